"""Voids before any domain is asked: what each rests on, and what the subject brought about is a fail."""

from __future__ import annotations

import pytest

from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.grade.void import judge_trial
from agent_eval.records.judgment import Basis, Judgment, Verdict

PASS = Judgment(Verdict.PASS, Basis.RECOMPUTED)


def judged(record: dict) -> Judgment:
    evidence = TrialEvidence({}, "a", 1, b"{}", record, lambda name: None)
    return judge_trial(lambda evidence, criteria: PASS, evidence, "retained", (("name", "x"),))


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        ({"interrupted": True}, "interrupted"),
        ({"recording": {"errors": ["no space"], "brought_about_by_subject": False, "how": None}}, "recording-failed"),
        ({"worker_lost": "gone"}, "worker-lost"),
        ({"outcome": {"stop_reason": "supervisor-lost"}}, "supervisor-lost"),
        ({"outcome": {"status_lost": True}}, "status-lost"),
        ({"outcome": {"start_error": {"stage": "fork", "message": "no processes"}}}, "no-resources"),
        ({"outcome": {"start_error": {"stage": "setup", "message": "no descriptors"}}}, "no-resources"),
    ],
)
def test_each_cause(record: dict, cause: str) -> None:
    found = judged(record)
    assert (found.verdict, found.cause) == (Verdict.VOID, cause)
    assert found.grader == (("name", "x"),)


def test_what_the_subject_brought_about_is_a_fail() -> None:
    found = judged({"recording": {"errors": ["moved"], "brought_about_by_subject": True, "how": "the directory was moved"}})
    assert (found.verdict, found.reasons) == (Verdict.FAIL, ("evidence-tampered",))


@pytest.mark.parametrize("record", [{}, {"outcome": None}, {"outcome": {"start_error": {"stage": "exec", "message": "x"}}}])
def test_everything_else_is_the_consumer_s(record: dict) -> None:
    assert judged(record).verdict is Verdict.PASS
