"""What a directory says of its trials, typed: how each was judged, also those without a record.

Owns reading judgments and outcomes back, so that a record of another shape is a fault that names it.
It judges nothing.
"""

from __future__ import annotations

import enum
from typing import Any

from agent_eval.evidence.layout import parse_trial_name
from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
from agent_eval.grade.void import INTERRUPTED
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import planned_numbers
from agent_eval.records.problems import EvidenceFault

UNRECORDED = "unrecorded"
_SHAPE = (KeyError, TypeError, ValueError, AttributeError)
Trial = tuple[str, int]


class Stage(enum.StrEnum):
    """How far a planned trial got in a directory. Only an ``ended`` one says something of the subject, or why it cannot."""

    UNRUN = "unrun"
    INTERRUPTED = "interrupted"
    ENDED = "ended"


def judgment_of(trial: RetainedTrial) -> Judgment:
    """The judgment of a trial's record. Raises ``EvidenceFault`` when it has none of this format."""
    try:
        return Judgment.from_json(trial.record["judgment"])
    except _SHAPE as error:
        raise EvidenceFault.one(f"trials/{trial.name}/trial.json", f"holds no judgment of this format ({error})") from None


def outcome_of(trial: RetainedTrial) -> Outcome | None:
    """The outcome of a trial's record, ``None`` when nothing was started. Raises ``EvidenceFault`` as above."""
    value = trial.record.get("outcome")
    try:
        return None if value is None else Outcome.from_json(value)
    except _SHAPE as error:
        raise EvidenceFault.one(f"trials/{trial.name}/trial.json", f"holds no outcome of this format ({error})") from None


def without_record(reader: EvidenceReader) -> dict[Trial, Judgment]:
    """The trials that were started and have no record, and how each counts: as the run counted it.

    The summary of a sealed directory says so. Of an unsealed one the journal does: started and never finished
    is interrupted (its summary, if there is one, is nobody's word). Raises ``EvidenceFault``.
    """
    if not reader.sealed:
        lost = Judgment(Verdict.VOID, Basis.RECOMPUTED, (Failure(INTERRUPTED, "started and never finished"),), cause=INTERRUPTED)
        return dict.fromkeys(sorted(reader.unfinished), lost)
    summary = reader.summary or {}
    names, judgments = summary.get("unrecorded", []), summary.get("unrecorded_judgments", {})
    if not isinstance(names, list) or not isinstance(judgments, dict):
        raise EvidenceFault.one("summary.json", "does not say which trials have no record")
    planned = {case["id"]: planned_numbers(reader.plan, case["id"]) for case in reader.plan["cases"]}
    found = {}
    for name in names:
        trial = parse_trial_name(name) if isinstance(name, str) else None
        if trial is None or trial[1] not in planned.get(trial[0], ()):
            raise EvidenceFault.one("summary.json", f"{name!r} is not a planned trial")
        if reader.trial(*trial) is not None:
            raise EvidenceFault.one("summary.json", f"{name} has a record")
        found[trial] = _unrecorded(name, judgments.get(name))
    return found


def _unrecorded(name: str, value: Any) -> Judgment:
    if value is None:
        # A directory of before the summary kept the judgments: which it was cannot be told any more.
        failure = Failure(UNRECORDED, "no record of this trial could be written when it ran")
        return Judgment(Verdict.VOID, Basis.RECOMPUTED, (failure,), cause=UNRECORDED)
    try:
        return Judgment.from_json(value)
    except _SHAPE as error:
        raise EvidenceFault.one("summary.json", f"holds no judgment of {name} of this format ({error})") from None


class Retained:
    """A directory's trials by how far each got."""

    def __init__(self, reader: EvidenceReader) -> None:
        """Raises ``EvidenceFault`` for a summary of another shape."""
        self.reader = reader
        self.without_record = without_record(reader)

    def judgment(self, case_id: str, number: int) -> Judgment | None:
        """How a trial counts there, ``None`` for one that was not run. Raises ``EvidenceFault`` for a record that does not hold."""
        trial = self.reader.trial(case_id, number)
        return self.without_record.get((case_id, number)) if trial is None else judgment_of(trial)

    def stage(self, case_id: str, number: int) -> Stage:
        """How far a trial got there. Raises ``EvidenceFault`` as above."""
        judgment = self.judgment(case_id, number)
        if judgment is None:
            return Stage.UNRUN
        return Stage.INTERRUPTED if judgment.cause == INTERRUPTED else Stage.ENDED
