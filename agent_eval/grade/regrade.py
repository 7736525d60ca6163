"""Regrade: new judgments over retained evidence, in a new directory; nothing is executed.

Owns the walk from a checked source to a new sealed directory with ``changes.json``. It
never writes into the source and needs neither the subject nor any original path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from agent_eval.evidence import layout
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.grade.evaluator import evaluator_record, grader_record
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.grade.void import Judge, judge_trial
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import Limits, PlannedCase, PlannedRun, part_facts
from agent_eval.records.problems import EvidenceFault

NOT_ASSESSABLE = "not-assessable"
UNRECORDED = "unrecorded"


class Counter(Protocol):
    """Adds up judgments; ``measure.summary.Tally`` is the one there is."""

    def add(self, case_id: str, number: int, judgment: Judgment, outcome: Outcome | None, *, recorded: bool = True) -> None:
        """Count one trial."""

    def summary(self, *, signal: int | None = None, facts: dict[str, object] | None = None) -> dict[str, object]:
        """The content of ``summary.json``."""


def evidence_of(reader: EvidenceReader, trial: RetainedTrial) -> TrialEvidence:
    """What a judgment may look at of a retained trial."""
    record = {key: value for key, value in trial.record.items() if key not in ("judgment", "files")}
    return TrialEvidence(
        reader.plan, trial.case_id, trial.number, reader.case_bytes(trial.case_id), record, trial.read
    )


def source_record(reader: EvidenceReader) -> dict[str, object]:
    """Where new judgments come from: the source's run id, plan digest and seal (``None`` when it was unsealed)."""
    return {"run_id": reader.plan["run_id"], "plan_sha256": reader.plan["plan_sha256"], "seal": reader.seal}


def planned_from(reader: EvidenceReader) -> PlannedRun:
    """The plan of a retained run, to be judged or rechecked again under the same denominator."""
    plan = reader.plan
    cases = tuple(
        PlannedCase(
            case["id"], reader.case_bytes(case["id"]), case["scope"], tuple(case["not_scored"]), case.get("critical", False)
        )
        for case in plan["cases"]
    )
    return PlannedRun(cases, plan["trials"], Limits(**plan["limits"]), plan["task_seed"], plan["subject"], plan.get("selection"))


class ChangeList:
    """What a second judging changed: one entry a trial, with both reasons."""

    def __init__(self) -> None:
        self._entries: list[dict[str, object]] = []
        self.counts = {"same": 0, "changed": 0, "not_assessable": 0}

    def add(self, trial: str, before: dict | None, after: Judgment) -> None:
        """Compare a retained judgment (as JSON) with a new one."""
        now = after.to_json()
        if after.cause == NOT_ASSESSABLE:
            kind = "not_assessable"
        else:
            kind = "same" if before is not None and _short(before) == _short(now) else "changed"
        self.counts[kind] += 1
        self._entries.append({"trial": trial, "change": kind, "before": _short(before), "after": _short(now)})

    def to_json(self) -> dict[str, object]:
        """The content of ``changes.json``."""
        return {**self.counts, "trials": self._entries}


def _short(judgment: dict | None) -> dict[str, object] | None:
    if judgment is None:
        return None
    reasons = dict.fromkeys(failure["reason"] for failure in judgment["failures"])
    return {"verdict": judgment["verdict"], "cause": judgment["cause"], "reasons": list(reasons)}


def regrade(
    reader: EvidenceReader,
    consumer_name: str,
    consumer_folder: str,
    judge: Judge,
    criteria: str,
    argv: tuple[str, ...],
    new_writer: Callable[[], EvidenceWriter],
    counter_for: Callable[[dict], Counter],
) -> tuple[EvidenceWriter, dict, dict, str]:
    """Judge every retained trial again and seal the result.

    Returns the writer, the new plan, its summary and its seal. Raises ``EvidenceFault`` when the source does
    not hold (before anything is written for the trial in question) or the result cannot be sealed.
    """
    evaluator = evaluator_record(consumer_folder)
    planned = planned_from(reader)
    facts = {"kind": "regrade", "criteria": criteria, "source": source_record(reader), "source_sealed": reader.sealed, **part_facts(reader.plan)}
    plan = make_plan(consumer_name, planned, argv, evaluator, **facts)
    counter = counter_for(plan)
    grader = grader_record(consumer_name, evaluator)
    judged = _judged(reader, judge, criteria, grader)
    first = next(judged, None)
    writer = new_writer()
    changes = ChangeList()
    try:
        writer.write_plan(plan, ((case.id, case.data) for case in planned.cases))
        while first is not None:
            trial, judgment = first
            _keep(writer, trial, judgment)
            changes.add(trial.name, trial.record.get("judgment"), judgment)
            outcome = trial.record.get("outcome")
            counter.add(trial.case_id, trial.number, judgment, None if outcome is None else Outcome.from_json(outcome))
            first = next(judged, None)
        _count_unrecorded(reader, counter)
        writer.write(layout.CHANGES, strict_json.pretty(changes.to_json()))
        summary = counter.summary(facts={"source_sealed": reader.sealed, "changes": changes.counts})
        return writer, plan, summary, writer.seal(summary)
    except OSError as error:
        raise EvidenceFault.one(writer.path, f"could not be written ({error.strerror})", "the directory is left unsealed") from None
    finally:
        writer.close()


def _judged(
    reader: EvidenceReader, judge: Judge, criteria: str, grader: tuple[tuple[str, str], ...]
) -> Iterator[tuple[RetainedTrial, Judgment]]:
    for trial in reader.trials():
        yield trial, judge_trial(judge, evidence_of(reader, trial), criteria, grader)


def _keep(writer: EvidenceWriter, trial: RetainedTrial, judgment: Judgment) -> None:
    folder = writer.trial(trial.case_id, trial.number)
    source = sha256_bytes(strict_json.canonical(trial.record) + b"\n")
    record = {
        "case_id": trial.case_id,
        "number": trial.number,
        "source_trial_sha256": source,
        "outcome": trial.record.get("outcome"),
        "judgment": judgment.to_json(),
    }
    writer.finish(folder, record)


def _count_unrecorded(reader: EvidenceReader, counter: Counter) -> None:
    """Trials that were void because they could not be recorded stay in the denominator as void."""
    for name in (reader.summary or {}).get("unrecorded", ()):
        case_id, _, number = name.rpartition("/")
        failure = Failure(UNRECORDED, "no record of this trial could be written when it ran")
        judgment = Judgment(Verdict.VOID, Basis.RECOMPUTED, (failure,), cause=UNRECORDED)
        counter.add(case_id, int(number), judgment, None, recorded=False)
