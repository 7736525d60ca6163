"""Choose the grader by the object: which grader may decide which kind of case.

Owns the table and its rules (judges only after error analysis, outcomes by state and not by
transcript, rewards only when hardened). It looks at what a case declares, not at receipts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval import Problem, receipts

JUDGE = "judge-binary"
_DETERMINISTIC = ("deterministic", "schema", "unit-test", "state-diff", "artifact-digest", "event-sequence", "trajectory-match", "receipt")


@dataclass(frozen=True, slots=True)
class Choice:
    """One row: the grader to take for an object, others that will do, and those that need a waiver with a reason."""

    default: str
    allowed: tuple[str, ...] = ()
    waivable: tuple[str, ...] = ()


OBJECTS: dict[str, Choice] = {
    "structured-output": Choice("deterministic", ("schema", "unit-test"), (JUDGE,)),
    "subjective-output": Choice(JUDGE, ("human",), ("likert",)),
    "tool-trajectory": Choice("trajectory-match", ("event-sequence", "trace-review"), ("exact-path",)),
    "agent-outcome": Choice("state-diff", ("artifact-digest",), ("transcript", "final-message")),
    "harness-quality": Choice("receipt", ("trace-spans",), ("outcome-only",)),
    "benchmark-integrity": Choice("integrity-checks"),
    "self-improving-agent": Choice("evolving-evaluator", (), ("fixed-judge",)),
}
GRADERS = tuple(
    dict.fromkeys(grader for row in OBJECTS.values() for grader in (row.default, *row.allowed, *row.waivable))
)

_TEXT = receipts.Form("a non-empty string", lambda value: isinstance(value, str) and value.strip() != "")
_BOOLEAN = receipts.Form("true or false", lambda value: isinstance(value, bool))
_TEXTS = receipts.list_of(_TEXT)
JUDGE_RECORD = receipts.record_of(
    "a judge",
    {
        "id": receipts.Field(_TEXT, "which judge", required=True),
        "family": receipts.Field(_TEXT, "the model family that judges", required=True),
        "candidateFamily": receipts.Field(_TEXT, "the model family that is judged", required=True),
        "sameFamilyReason": receipts.Field(_TEXT, "why both may be one family"),
        "errorAnalysis": receipts.Field(_TEXT, "where the error analysis is", required=True),
        "validation": receipts.Field(_TEXT, "the validation record (TPR and TNR)", required=True),
        "scale": receipts.Field(_TEXT, "binary", required=True),
        "question": receipts.Field(_TEXT, "one yes-or-no question", required=True),
        "shows": receipts.Field(_TEXTS, "what the judge is shown to answer it", required=True),
    },
)
HARDENING = receipts.record_of(
    "a hardening record",
    {
        "negativeFixtures": receipts.Field(_TEXTS, "fixtures that fooled an earlier grader", required=True),
        "leakageCheck": receipts.Field(_TEXT, "where the leakage check is", required=True),
        "maskedExitCheck": receipts.Field(_TEXT, "where the check for masked exit codes is", required=True),
    },
)
INTEGRITY = receipts.record_of(
    "an integrity record",
    {
        "contamination": receipts.Field(_TEXT, "the contamination report", required=True),
        "labelErrors": receipts.Field(_TEXT, "the label-error review", required=True),
        "saturation": receipts.Field(_TEXT, "the saturation report", required=True),
    },
)
WAIVER = receipts.record_of("a waiver", {"reason": receipts.Field(_TEXT, "why", required=True)})
CASE_FIELDS: dict[str, receipts.Field] = {
    "judge": receipts.Field(JUDGE_RECORD, "who judges, when a judge does"),
    "rewardUse": receipts.Field(_BOOLEAN, "whether the status is used as a reward", default=False),
    "hardening": receipts.Field(HARDENING, "what makes the grader fit for a reward"),
    "integrity": receipts.Field(INTEGRITY, "the three checks behind a capability claim"),
    "heldOutNegatives": receipts.Field(_TEXTS, "negatives that the evolving evaluator has not seen"),
    "waiver": receipts.Field(WAIVER, "why a grader outside the row is taken"),
    "surface": receipts.Field(receipts.Form("offline or online", lambda value: value in ("offline", "online")), "where results come from", default="offline"),
}
MIN_NEGATIVE_FIXTURES = 3

_LIKERT = re.compile(r"\d\s*(?:-|–|to|\.\.)\s*\d+|likert|stars?|points?|score", re.IGNORECASE)
_COMPOUND = re.compile(r"\b(?:and|or|as well as)\b|and/or|;|\?.*\?", re.IGNORECASE | re.DOTALL)


def graders_of(case: Mapping[str, Any]) -> tuple[str, ...]:
    """The graders of a case; the first one decides."""
    grader = case["grader"]
    return (grader,) if isinstance(grader, str) else tuple(grader)


def problems(case: Mapping[str, Any], where: str) -> list[Problem]:
    """Every rule of the table that the case breaks. The case's fields have been checked one by one."""
    return [Problem(f"{where}{place}", what, fix) for place, what, fix in _broken(case)]


def _broken(case: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    graders = graders_of(case)
    row = OBJECTS[case["object"]]
    for grader in graders:
        if grader not in GRADERS:
            yield "/grader", f"unknown grader {grader!r}", f"use one of {', '.join(GRADERS)}"
        elif grader not in (row.default, *row.allowed) and not _stands_beside(grader, graders):
            if grader not in row.waivable:
                yield "/grader", f"{grader} does not grade {case['object']}", f"use {row.default}"
            elif "waiver" not in case:
                yield "/grader", f"{grader} is not enough for {case['object']}", f"use {row.default}, or waive it with a reason"
    yield from _order(graders)
    yield from _assertions(case, graders)
    if JUDGE in graders or "judge" in case:
        yield from _judge(case)
    yield from _uses(case, graders)


def _stands_beside(grader: str, graders: tuple[str, ...]) -> bool:
    """A judge may look on where a deterministic grader decides."""
    return grader == JUDGE and graders[0] in _DETERMINISTIC


def _order(graders: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    first = next((grader for grader in graders if grader in _DETERMINISTIC), None)
    if first is not None and graders[0] != first and graders[0] in (JUDGE, "human", "likert"):
        yield "/grader", f"{graders[0]} decides although {first} can", f"name {first} first: the deterministic grader decides"


def kinds_of(spec: Any) -> Iterator[str]:
    """Every assertion kind that occurs in a specification."""
    if isinstance(spec, Mapping):
        if isinstance(spec.get("kind"), str):
            yield spec["kind"]
        for value in spec.values():
            yield from kinds_of(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from kinds_of(item)


_NEEDED_KINDS = {
    "state-diff": ("state_diff",),
    "artifact-digest": ("artifact_digest",),
    "event-sequence": ("event_sequence", "event_before", "event_adjacent", "command_order"),
    "trajectory-match": ("event_sequence", "event_before", "event_adjacent", "command_order"),
    JUDGE: ("judge_binary",),
}


def _assertions(case: Mapping[str, Any], graders: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    used = set(kinds_of(case["assert"]))
    needed = _NEEDED_KINDS.get(graders[0])
    if needed is not None and not used & set(needed):
        yield "/assert", f"the grader is {graders[0]} and no assertion is of its kind", f"use {' or '.join(needed)}"
    if "judge_binary" in used and JUDGE not in graders:
        yield "/assert", "judge_binary in a case that no judge grades", f"declare the grader {JUDGE}"


def _judge(case: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    judge = case.get("judge")
    if judge is None:
        yield "/judge", "a judge without a record", "say id, families, errorAnalysis, validation, scale, question and shows"
        return
    if judge["scale"] != "binary" or _LIKERT.search(judge["question"]):
        yield "/judge/scale", "a judge answers yes or no, not on a scale", "write scale: binary and split the standard into questions"
    if _COMPOUND.search(judge["question"]):
        yield "/judge/question", "more than one question", "split it: each is answered independently"
    if judge["family"] == judge["candidateFamily"] and "sameFamilyReason" not in judge:
        yield "/judge/family", "the judge is of the family that it judges", "take another, or give sameFamilyReason"
    origin = case["origin"]
    if origin["kind"] != "real-failure" or "ref" not in origin:
        yield "/origin", "a judge needs a real failure as its origin", "cite the run that showed the failure"


def _uses(case: Mapping[str, Any], graders: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    if case.get("surface") == "online" and case["severity"] == "required":
        yield "/surface", "results of online monitoring cannot decide an offline gate", "make the case advisory"
    if case.get("rewardUse") and "hardening" not in case:
        yield "/rewardUse", "a grader used as a reward needs a hardening record", "add hardening"
    if "hardening" in case and len(set(case["hardening"]["negativeFixtures"])) < MIN_NEGATIVE_FIXTURES:
        yield "/hardening/negativeFixtures", f"fewer than {MIN_NEGATIVE_FIXTURES} different fixtures", "add what fooled an earlier grader"
    if "fixed-judge" in graders and "hardening" not in case:
        yield "/grader", "a fixed judge reused as a reward needs a hardening record", "use evolving-evaluator"
    if "evolving-evaluator" in graders and "heldOutNegatives" not in case:
        yield "/heldOutNegatives", "an evolving evaluator needs held-out negatives", "name them"
    if case["object"] == "benchmark-integrity" and "integrity" not in case:
        yield "/integrity", "no capability claim without contamination, label-error and saturation checks", "name the three reports"
