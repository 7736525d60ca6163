"""Voids that do not depend on the domain: the harness or the evidence is at fault.

Owns the rules that come before a consumer's own judging. What the subject brought
about itself is not void: turning a fail into a void must never help it.
"""

from __future__ import annotations

from collections.abc import Callable

from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict

Judge = Callable[[TrialEvidence, str], Judgment]

INTERRUPTED = "interrupted"
RECORDING_FAILED = "recording-failed"
SUPERVISOR_LOST = "supervisor-lost"
STATUS_LOST = "status-lost"
NO_RESOURCES = "no-resources"
WORKER_LOST = "worker-lost"
EVIDENCE_TAMPERED = "evidence-tampered"

_OUR_STAGES = ("setup", "fork")  # no descriptors or processes left for us: it says nothing about the program


def judge_trial(judge: Judge, evidence: TrialEvidence, criteria: str, grader: tuple[tuple[str, str], ...]) -> Judgment:
    """The judgment of one trial: the rules here first, then the consumer's ``judge``.

    ``grader`` (name and source digest) is written into the judgment, before what the consumer says of its
    criterion (such as the digest of a suite). ``criteria`` is ``retained`` (the scenario data kept in the evidence) or ``current`` (today's).
    """
    first = _before_domain(evidence.record)
    judgment = first if first is not None else judge(evidence, criteria)
    return judgment.graded_by(grader)


def _before_domain(record: dict) -> Judgment | None:
    if record.get("interrupted"):
        return _void(INTERRUPTED, "the run was interrupted while this trial was running")
    recording = record.get("recording")
    if recording:
        if recording["brought_about_by_subject"]:
            detail = ": ".join((recording["how"], *recording["errors"]))
            return Judgment(Verdict.FAIL, Basis.RECOMPUTED, (Failure(EVIDENCE_TAMPERED, detail, ("trial.json#/recording",)),))
        return _void(RECORDING_FAILED, "; ".join(recording["errors"]))
    if record.get("worker_lost"):
        return _void(WORKER_LOST, record["worker_lost"])
    outcome = record.get("outcome") or {}
    if outcome.get("stop_reason") == SUPERVISOR_LOST:
        return _void(SUPERVISOR_LOST, "the guardian of this trial was killed or stopped")
    start_error = outcome.get("start_error")
    if start_error and start_error["stage"] in _OUR_STAGES:
        return _void(NO_RESOURCES, f"{start_error['stage']}: {start_error['message']}")
    if outcome.get("status_lost"):
        return _void(STATUS_LOST, "the exit status was taken by something else")
    return None


def _void(cause: str, detail: str) -> Judgment:
    return Judgment(Verdict.VOID, Basis.RECOMPUTED, (Failure(cause, detail),), cause=cause)
