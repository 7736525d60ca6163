"""Regrade: new judgments over retained evidence, in a new directory; nothing is executed.

Owns the walk from a checked source to a new sealed directory with ``changes.json``. It
never writes into the source and needs neither the subject nor any original path.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Protocol

from agent_eval.evidence import layout
from agent_eval.evidence.draft import Draft
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.grade.evaluator import evaluator_record, grader_record
from agent_eval.grade.retained import judgment_of, outcome_of, without_record
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.grade.void import Judge, judge_trial
from agent_eval.records import strict_json
from agent_eval.records.judgment import Judgment
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import Limits, PlannedCase, PlannedRun, part_facts
from agent_eval.records.problems import EvidenceFault

NOT_ASSESSABLE = "not-assessable"


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
        reader.plan, trial.case_id, trial.number, reader.case_bytes(trial.case_id), record, trial.read, outcome_of(trial)
    )


def source_record(reader: EvidenceReader) -> dict[str, object]:
    """Where new judgments come from: the source's run id, plan digest and seal (``None`` when it was unsealed)."""
    return {"run_id": reader.plan["run_id"], "plan_sha256": reader.plan["plan_sha256"], "seal": reader.seal}


def history_facts(reader: EvidenceReader) -> dict[str, object]:
    """What the summary of a merged directory says of reruns: a second judging must not make it forgotten."""
    summary = reader.summary or {}
    return {name: summary[name] for name in ("rerun_after_interrupt", "rerun_after_unrun") if name in summary}


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
    """What a second judging changed: one entry a trial, with both reasons.

    Most entries are alike but for the trial's name, so the text of each kind is made and kept once.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[str, bytes]] = []
        self._texts: dict[str, bytes] = {}
        self.counts = {"same": 0, "changed": 0, "not_assessable": 0}

    def add(self, trial: str, before: dict | None, after: Judgment) -> None:
        """Compare a retained judgment (as JSON) with a new one."""
        was = _short(before)
        now = {"verdict": after.verdict.value, "cause": after.cause, "reasons": list(after.reasons)}
        if after.cause == NOT_ASSESSABLE:
            kind = "not_assessable"
        else:
            kind = "same" if was == now else "changed"
        self.counts[kind] += 1
        entry = {"change": kind, "before": was, "after": now}
        key = repr(entry)
        text = self._texts.get(key)
        if text is None:
            # "trial" is the last key in order: its value and what closes the entry are added for each.
            text = strict_json.pretty({**entry, "trial": ""}).removesuffix(b'""\n}\n').replace(b"\n", b"\n  ")
            self._texts[key] = text
        self._entries.append((trial, text))

    def to_bytes(self) -> bytes:
        """The content of ``changes.json``: the counts and ``trials``, pretty like every record."""
        whole = strict_json.pretty({**self.counts, "trials": []})
        if not self._entries:
            return whole
        data = bytearray(whole.removesuffix(b"]\n}\n"))
        for trial, text in self._entries:
            data += b"\n  %b%b\n  }," % (text, strict_json.canonical(trial))
        data[-1:] = b"\n ]\n}\n"
        return bytes(data)


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
    new_draft: Callable[[], Draft],
    counter_for: Callable[[dict], Counter],
    go_on: Callable[[], None],
) -> tuple[str, dict, dict, str]:
    """Judge every retained trial again, seal the result and put it under its name.

    Returns the path, the new plan, its summary and its seal. ``go_on`` is called before each trial and may raise to
    stop. Raises ``EvidenceFault`` when the source does not hold or the result cannot be sealed; nothing is left then.
    """
    evaluator = evaluator_record(consumer_folder)
    planned = planned_from(reader)
    facts = {"kind": "regrade", "criteria": criteria, "source": source_record(reader), "source_sealed": reader.sealed, **part_facts(reader.plan)}
    plan = make_plan(consumer_name, planned, argv, evaluator, **facts)
    counter = counter_for(plan)
    grader = grader_record(consumer_name, evaluator)
    judged = _judged(reader, judge, criteria, grader)
    first = next(judged, None)
    changes = ChangeList()
    with new_draft() as draft:
        try:
            draft.writer.write_plan(plan, ((case.id, case.data) for case in planned.cases))
            for trial, outcome, judgment in judged if first is None else itertools.chain((first,), judged):
                go_on()
                _keep(draft.writer, trial, judgment)
                changes.add(trial.name, trial.record.get("judgment"), judgment)
                counter.add(trial.case_id, trial.number, judgment, outcome)
            count_without_record(reader, counter)
            draft.writer.write(layout.CHANGES, changes.to_bytes())
            summary = counter.summary(facts={"source_sealed": reader.sealed, "changes": changes.counts, **history_facts(reader)})
            seal = draft.writer.seal(summary)
            go_on()
            draft.publish()
        except OSError as error:
            raise EvidenceFault.one(draft.path, f"could not be written ({error.strerror})", "nothing was kept") from None
    return draft.path, plan, summary, seal


def _judged(
    reader: EvidenceReader, judge: Judge, criteria: str, grader: tuple[tuple[str, str], ...]
) -> Iterator[tuple[RetainedTrial, Outcome | None, Judgment]]:
    for trial in reader.trials():
        if trial.record.get("judgment") is not None:
            judgment_of(trial)  # compared with the new one: it must be one
        evidence = evidence_of(reader, trial)
        try:
            judgment = judge_trial(judge, evidence, criteria, grader)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            # Somebody else's record may be of another shape: the place in this code where that was noticed says nothing to them.
            what = f"is not a record that can be judged ({type(error).__name__}: {error})"
            raise EvidenceFault.one(f"trials/{trial.name}/{layout.TRIAL_RECORD}", what) from error
        yield trial, evidence.outcome, judgment


def _keep(writer: EvidenceWriter, trial: RetainedTrial, judgment: Judgment) -> None:
    folder = writer.trial(trial.case_id, trial.number)
    record = {
        "case_id": trial.case_id,
        "number": trial.number,
        "source_trial_sha256": trial.sha256,
        "outcome": trial.record.get("outcome"),
        "judgment": judgment.to_json(),
    }
    writer.finish(folder, record)


def count_without_record(reader: EvidenceReader, counter: Counter) -> None:
    """Trials that were started and have no record stay in the denominator, under the verdict that the run gave them.

    Raises ``EvidenceFault`` for a summary of another shape.
    """
    for (case_id, number), judgment in without_record(reader).items():
        counter.add(case_id, number, judgment, None, recorded=False)
