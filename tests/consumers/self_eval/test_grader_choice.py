"""Choose the grader by the object: the negatives, each with its place, and what is allowed."""

from __future__ import annotations

import pytest

from agent_eval.records.problems import InvalidInput
from consumers.self_eval.grader_choice import OBJECTS

from tests.consumers.self_eval.world import SUITE_BYTES, one_case, suite_with

JUDGE = {
    "id": "judge-1",
    "family": "family-a",
    "candidateFamily": "family-b",
    "errorAnalysis": "analysis.md",
    "validation": "validation.json",
    "scale": "binary",
    "question": "Does the note say why the change was made?",
    "shows": ["notes"],
}
JUDGED = one_case(
    {"kind": "judge_binary", "question": JUDGE["question"], "judgeRef": "validation.json"},
    object="subjective-output",
    grader="judge-binary",
    origin={"kind": "real-failure", "ref": "run-0388"},
    judge=JUDGE,
)
HARDENING = {"negativeFixtures": ["a", "b", "c"], "leakageCheck": "d", "maskedExitCheck": "e"}
PLAIN = {"kind": "event_present", "match": {"type": "edit"}}
ORDER = {"kind": "event_before", "first": {"type": "a"}, "second": {"type": "b"}}


def refused(case: dict) -> set[str]:
    try:
        suite_with({"set": {"/cases/0": case}})
    except InvalidInput as error:
        return {problem.where.removeprefix("suite.json#/cases/0") for problem in error.problems}
    return set()


def judged(**members: object) -> dict:
    return {**JUDGED, "judge": {**JUDGE, **members}}


def test_a_judge_with_all_that_it_needs() -> None:
    assert refused(JUDGED) == set()
    assert refused(judged(candidateFamily="family-a", sameFamilyReason="no other reads this language")) == set()


@pytest.mark.parametrize(
    ("case", "place"),
    [
        ({**JUDGED, "object": "structured-output"}, "/grader"),
        (one_case(PLAIN, object="agent-outcome", grader="transcript"), "/grader"),
        (one_case(PLAIN, object="agent-outcome", grader="final-message"), "/grader"),
        (one_case(PLAIN, object="subjective-output", grader="likert"), "/grader"),
        (judged(scale="1-5"), "/judge/scale"),
        (judged(question="How good is it, 1 to 5?"), "/judge/scale"),
        (judged(question="Is it correct and complete?"), "/judge/question"),
        (judged(question="Is it short or clear?"), "/judge/question"),
        (judged(question="Is it short? Is it clear?"), "/judge/question"),
        (judged(candidateFamily="family-a"), "/judge/family"),
        ({**JUDGED, "origin": {"kind": "policy", "ref": "x"}}, "/origin"),
        ({**JUDGED, "origin": {"kind": "real-failure"}}, "/origin"),
        ({key: value for key, value in JUDGED.items() if key != "origin"}, ""),
        ({key: value for key, value in JUDGED.items() if key != "judge"}, "/judge"),
        ({**JUDGED, "judge": {key: value for key, value in JUDGE.items() if key != "validation"}}, "/judge"),
        ({**JUDGED, "judge": {key: value for key, value in JUDGE.items() if key != "errorAnalysis"}}, "/judge"),
        (one_case(PLAIN, surface="online"), "/surface"),
        (one_case(PLAIN, rewardUse=True), "/rewardUse"),
        (one_case(PLAIN, rewardUse=True, hardening={**HARDENING, "negativeFixtures": ["a", "b", "a"]}), "/hardening/negativeFixtures"),
        (one_case(PLAIN, rewardUse=True, hardening={"negativeFixtures": ["a", "b", "c"]}), "/hardening"),
        (one_case(PLAIN, grader="vibes"), "/grader"),
        (one_case(PLAIN, object="vibes"), "/object"),
        (one_case(PLAIN, grader="outcome-only"), "/grader"),
        (one_case(PLAIN, grader=["judge-binary", "receipt"]), "/grader"),
        (one_case(ORDER, object="tool-trajectory", grader="exact-path"), "/grader"),
        (one_case(PLAIN, object="tool-trajectory", grader="trajectory-match"), "/assert"),
        (one_case(PLAIN, object="agent-outcome", grader="state-diff"), "/assert"),
        (one_case(JUDGED["assert"]), "/assert"),
        (one_case(PLAIN, object="benchmark-integrity", grader="integrity-checks"), "/integrity"),
        (one_case(PLAIN, object="self-improving-agent", grader="fixed-judge", waiver={"reason": "x"}), "/grader"),
        (one_case(PLAIN, object="self-improving-agent", grader="evolving-evaluator"), "/heldOutNegatives"),
    ],
)
def test_refused(case: dict, place: str) -> None:
    assert place in refused(case)


@pytest.mark.parametrize(
    "case",
    [
        one_case(PLAIN, surface="online", severity="advisory"),
        one_case(PLAIN, rewardUse=True, hardening=HARDENING),
        one_case(PLAIN, object="structured-output", grader=["deterministic", "judge-binary"], judge=JUDGE, origin={"kind": "real-failure", "ref": "run-1"}),
        one_case(ORDER, object="tool-trajectory", grader="exact-path", waiver={"reason": "the protocol has one path"}),
        one_case(PLAIN, object="benchmark-integrity", grader="integrity-checks", integrity={"contamination": "a", "labelErrors": "b", "saturation": "c"}),
        one_case(PLAIN, object="self-improving-agent", grader="evolving-evaluator", heldOutNegatives=["a"]),
        one_case({"kind": "state_diff"}, object="agent-outcome", grader="state-diff"),
    ],
)
def test_allowed(case: dict) -> None:
    assert refused(case) == set()


def test_the_mismatch_names_the_grader_to_take() -> None:
    for name, row in OBJECTS.items():
        wrong = "outcome-only" if name != "harness-quality" else "transcript"
        with pytest.raises(InvalidInput) as caught:
            suite_with({"set": {"/cases/0": one_case(PLAIN, object=name, grader=wrong)}})
        assert any(row.default in problem.fix for problem in caught.value.problems if problem.where.endswith("/grader"))
    assert b'"grader"' in SUITE_BYTES
