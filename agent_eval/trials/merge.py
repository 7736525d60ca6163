"""Merge: the shards of one plan, and reruns of what was interrupted, as one denominator.

Owns putting the parts, byte for byte, under one new plan, summary and manifest. Which parts belong together is
``belonging``'s; it judges nothing again.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from agent_eval.evidence import layout
from agent_eval.evidence.copying import copy_evidence, require_plain
from agent_eval.evidence.draft import Draft
from agent_eval.evidence.parts import part_findings
from agent_eval.grade.regrade import Counter
from agent_eval.grade.retained import Retained, judgment_of, outcome_of
from agent_eval.records.clock import now_at
from agent_eval.records.problems import EvidenceFault, Problem
from agent_eval.trials.belonging import Merged


def merge(
    merged: Merged, argv: tuple[str, ...], draft: Draft, counter_for: Callable[[dict], Counter], go_on: Callable[[], None]
) -> tuple[dict, dict, str]:
    """Copy the parts, seal the whole and put it under its name; returns plan, summary and seal.

    ``go_on`` is called before each file and trial, and may raise to stop. Raises ``EvidenceFault``; nothing is left
    then, when the draft's block ends.
    """
    writer = draft.writer
    plan = _merged_plan(merged, argv)
    counter = counter_for(plan)
    readers = [part.reader for part in merged.parts]
    cases = [(case["id"], readers[0].case_bytes(case["id"])) for case in plan["cases"]]
    for reader in readers:
        if not reader.sealed:
            require_plain(reader)
    try:
        writer.write_plan(plan, cases)
        writer.files.make_directory(os.path.join(writer.path, layout.PARTS))
        for index, reader in enumerate(readers, 1):
            copy_evidence(reader, os.path.join(writer.path, layout.part_folder(index)), writer.files, go_on)
        for (case_id, number), index in merged.source.items():
            go_on()
            _count(counter, merged.parts[index], case_id, number)
        summary = counter.summary(facts=_facts(merged))
        seal = writer.seal(summary)
        _require_parts(writer.path)
        go_on()
        draft.publish()
        return plan, summary, seal
    except OSError as error:
        raise EvidenceFault.one(draft.path, f"could not be written ({error.strerror})", "nothing was kept") from None


def _facts(merged: Merged) -> dict[str, object]:
    return {
        "rerun_after_interrupt": merged.rerun_after_interrupt,
        "rerun_after_unrun": merged.rerun_after_unrun,
        "parts": len(merged.parts),
    }


def _merged_plan(merged: Merged, argv: tuple[str, ...]) -> dict:
    plans = [part.reader.plan for part in merged.parts]
    first = plans[0]
    plan = {key: value for key, value in first.items() if key not in ("chosen", "shard", "source", "source_sealed", "rerun")}
    plan.update(
        kind="merge",
        run_id=f"merge-{os.urandom(6).hex()}",
        argv=list(argv),
        planned=len(first["cases"]) * first["trials"],
        created_at=now_at(),
        parts=[
            {"folder": layout.part_folder(index), "run_id": part.reader.plan["run_id"], "seal": part.reader.seal, "kind": part.reader.plan.get("kind", "run")}
            for index, part in enumerate(merged.parts, 1)
        ],
        counted={case["id"]: [merged.source.get((case["id"], n), -1) + 1 for n in range(1, first["trials"] + 1)] for case in first["cases"]},
    )
    return plan


def _count(counter: Counter, part: Retained, case_id: str, number: int) -> None:
    trial = part.reader.trial(case_id, number)
    if trial is not None:
        counter.add(case_id, number, judgment_of(trial), outcome_of(trial))
    elif (case_id, number) in part.without_record:
        counter.add(case_id, number, part.without_record[case_id, number], None, recorded=False)


def _require_parts(path: str) -> None:
    """Something else may have written into the copies before they were sealed; what is sealed must verify."""
    found = part_findings(path)
    names = (*found.missing, *found.unexpected, *found.changed, *found.unsafe)
    if names:
        raise EvidenceFault([Problem(name, "changed-before-seal", "nothing was kept") for name in names[:20]])
