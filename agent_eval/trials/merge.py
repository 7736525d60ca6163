"""Merge: the shards of one plan, and reruns of what was interrupted, as one denominator.

Owns checking that the parts belong together and putting them, byte for byte, under one
new plan, summary and manifest. It judges nothing again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from agent_eval.evidence import layout
from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.grade.regrade import Counter
from agent_eval.records.clock import now_at
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import planned_numbers
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem

UNRECORDED = "unrecorded"
INTERRUPTED = "interrupted"
RERUN = "rerun"
Trial = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Merged:
    """The parts of one plan, checked. ``source`` says for each trial which part counts."""

    parts: tuple[EvidenceReader, ...]
    source: dict[Trial, int]
    rerun_after_interrupt: int


def check_parts(parts: list[EvidenceReader], *, partial: bool) -> Merged:
    """Refuse parts of other plans, overlaps and gaps; every problem at once.

    A rerun may repeat a trial of the directory that it names as its source when that trial was interrupted or
    not run there; the rerun then counts. Raises ``InvalidInput``.
    """
    first = parts[0].plan
    problems = [
        Problem(part.path, f"belongs to another plan than {parts[0].path}", f"these differ: {', '.join(_differences(first, part.plan))}")
        for part in parts
        if part.plan["plan_sha256"] != first["plan_sha256"]
    ]
    problems += [Problem(part.path, f"is a {part.plan['kind']}", "merge shards and reruns") for part in parts if part.plan.get("kind") not in ("run", RERUN)]
    if problems:
        raise InvalidInput(problems)
    source: dict[Trial, int] = {}
    reruns = 0
    for index in sorted(range(len(parts)), key=lambda i: parts[i].plan["kind"] == RERUN):
        for case in first["cases"]:
            for number in planned_numbers(parts[index].plan, case["id"]):
                earlier = source.get((case["id"], number))
                if earlier is not None and not _may_replace(parts[earlier], parts[index], case["id"], number):
                    problems.append(Problem(parts[index].path, f"{case['id']}/{number:03d} is in {parts[earlier].path} too", "give each shard once"))
                reruns += earlier is not None
                source[case["id"], number] = index
    absent = [(case["id"], n) for case in first["cases"] for n in range(1, first["trials"] + 1) if (case["id"], n) not in source]
    if absent and not partial:
        names = ", ".join(f"{case_id}/{number:03d}" for case_id, number in absent[:5])
        problems.append(Problem("merge", f"{len(absent)} planned trials are in no part ({names} ...)", "add the missing shards, or --partial to count them as unrun"))
    if problems:
        raise InvalidInput(problems[:50])
    return Merged(tuple(parts), source, reruns)


def _differences(plan: dict, other: dict) -> list[str]:
    names = [name for name in ("consumer", "cases", "trials", "task_seed", "limits", "subject") if plan[name] != other[name]]
    sources = [value["evaluator"]["source_sha256"] for value in (plan, other)]
    if sources[0] != sources[1]:
        names.append("evaluator (the sources of this project)")
    return names or ["plan_sha256"]


def _may_replace(earlier: EvidenceReader, later: EvidenceReader, case_id: str, number: int) -> bool:
    link = later.plan.get("source") or {}
    if later.plan["kind"] != RERUN or link.get("run_id") != earlier.plan["run_id"]:
        return False
    trial = earlier.trial(case_id, number)
    return trial is None or trial.record["judgment"]["cause"] == INTERRUPTED


def merge(merged: Merged, argv: tuple[str, ...], writer: EvidenceWriter, counter_for: Callable[[dict], Counter]) -> tuple[dict, dict, str]:
    """Copy the parts and seal the whole; returns plan, summary and seal. Raises ``EvidenceFault``."""
    plan = _merged_plan(merged, argv)
    counter = counter_for(plan)
    cases = [(case["id"], merged.parts[0].case_bytes(case["id"])) for case in plan["cases"]]
    try:
        writer.write_plan(plan, cases)
        writer.files.make_directory(os.path.join(writer.path, layout.PARTS))
        for index, part in enumerate(merged.parts):
            copy_tree(part.path, os.path.join(writer.path, layout.part_folder(index + 1)), writer)
        for (case_id, number), index in merged.source.items():
            _count(counter, merged.parts[index], case_id, number)
        summary = counter.summary(facts={"rerun_after_interrupt": merged.rerun_after_interrupt, "parts": len(merged.parts)})
        return plan, summary, writer.seal(summary)
    except OSError as error:
        raise EvidenceFault.one(writer.path, f"could not be written ({error.strerror})", "the directory is left unsealed") from None
    finally:
        writer.close()


def _merged_plan(merged: Merged, argv: tuple[str, ...]) -> dict:
    first = merged.parts[0].plan
    plan = {key: value for key, value in first.items() if key not in ("chosen", "shard", "source")}
    plan.update(
        kind="merge",
        run_id=f"merge-{os.urandom(6).hex()}",
        argv=list(argv),
        planned=len(first["cases"]) * first["trials"],
        created_at=now_at(),
        parts=[
            {"folder": layout.part_folder(index + 1), "run_id": part.plan["run_id"], "seal": part.seal, "kind": part.plan["kind"]}
            for index, part in enumerate(merged.parts)
        ],
        counted={case["id"]: [merged.source.get((case["id"], n), -1) + 1 for n in range(1, first["trials"] + 1)] for case in first["cases"]},
    )
    return plan


def copy_tree(source: str, target: str, writer: EvidenceWriter) -> None:
    """Copy a verified directory byte for byte; only plain files are in one. Raises ``OSError``."""
    writer.files.make_directory(target)
    for relative, entry in layout.walk(source):
        place = os.path.join(target, relative.rstrip("/"))
        if relative.endswith("/"):
            writer.files.make_directory(place)
        else:
            with open(entry.path, "rb") as stream:
                writer.files.create(place, stream.read())


def _count(counter: Counter, part: EvidenceReader, case_id: str, number: int) -> None:
    trial = part.trial(case_id, number)
    if trial is not None:
        counter.add(case_id, number, Judgment.from_json(trial.record["judgment"]), _outcome(trial))
    elif f"{case_id}/{number:03d}" in (part.summary or {}).get("unrecorded", ()):
        failure = Failure(UNRECORDED, "no record of this trial could be written when it ran")
        counter.add(case_id, number, Judgment(Verdict.VOID, Basis.RECOMPUTED, (failure,), cause=UNRECORDED), None, recorded=False)


def _outcome(trial: RetainedTrial) -> Outcome | None:
    value = trial.record.get("outcome")
    return None if value is None else Outcome.from_json(value)
