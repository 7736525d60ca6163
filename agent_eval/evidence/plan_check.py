"""Is a retained plan whole, and is it the plan that its digest names?

Owns the check of a plan that somebody else may have written, before its fields are used. It reads no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_eval.evidence import layout
from agent_eval.evidence.manifest_lines import DIGEST
from agent_eval.evidence.parts import is_part
from agent_eval.records.plan import MAX_TRIALS, plan_sha256
from agent_eval.records.problems import EvidenceFault, Problem

RERUN_CHOICES = ("unrun", "failed", "trial")
"""What a rerun was asked to do again: what was left, for the count; what failed, or one trial, for debugging."""

_KINDS = ("run", "rerun", "regrade", "recheck", "merge", "compare")


def require_shape(plan: dict, path: str) -> None:
    """Refuse a plan with a field of another shape than this project writes.

    ``path`` is the directory, for the message. Raises :class:`EvidenceFault` with every problem found.
    """
    where = f"{path}/{layout.PLAN}"
    cases, trials = plan.get("cases"), plan.get("trials")
    shapes = isinstance(cases, list) and all(isinstance(case, dict) and layout.is_safe_id(case.get("id")) for case in cases)
    if not shapes or type(trials) is not int or not 0 <= trials <= MAX_TRIALS:
        raise EvidenceFault.one(where, "not a plan of this format")
    problems = [Problem(where, text) for text in _misshapen(plan)]
    if problems:
        raise EvidenceFault(problems)


def require_digest(plan: dict, path: str) -> None:
    """Refuse a plan that is another one than its ``plan_sha256`` says: whoever compares plans compares these digests.

    The plan's shape was checked. Raises :class:`EvidenceFault`.
    """
    if plan_sha256(plan) != plan["plan_sha256"]:
        raise EvidenceFault.one(f"{path}/{layout.PLAN}", "is not the plan that its plan_sha256 names", "it was changed after it was made")


def _misshapen(plan: dict) -> Iterator[str]:
    for name, right in (
        ("kind", plan.get("kind", "run") in _KINDS),
        ("run_id", _is_text(plan.get("run_id"))),
        ("consumer", _is_text(plan.get("consumer"))),
        ("plan_sha256", _is_digest(plan.get("plan_sha256"))),
        ("argv", _is_texts(plan.get("argv"))),
        ("limits", _are_limits(plan.get("limits"))),
        ("task_seed", "task_seed" in plan and (plan["task_seed"] is None or type(plan["task_seed"]) is int)),
        ("subject", isinstance(plan.get("subject"), dict)),
        ("evaluator", _is_evaluator(plan.get("evaluator"))),
    ):
        if not right:
            yield f"{name} is missing or not what a plan says there"
    ids = [case["id"] for case in plan["cases"]]
    if len(set(ids)) < len(ids) or not all(map(_is_case, plan["cases"])):
        yield "cases are not those of a plan"
    elif "chosen" in plan and not _is_choice(plan["chosen"], frozenset(ids), plan["trials"]):
        yield "chosen names trials that were not planned"
    elif plan.get("planned") != _planned(plan):
        yield "planned is not the number of its trials"
    if (plan.get("kind") == "merge" or "counted" in plan or "parts" in plan) and not _are_parts(plan, ids):
        yield "parts and counted do not say what was merged"
    if plan.get("kind") == "rerun" and not _is_link(plan.get("source")):
        yield "source does not say what was rerun"
    if plan.get("rerun", RERUN_CHOICES[0]) not in RERUN_CHOICES:
        yield "rerun does not say which trials were chosen"


def _are_parts(plan: dict, ids: list[str]) -> bool:
    """Whether a merge says of each part what it was, and of each trial which part counts (0: none)."""
    parts, counted = plan.get("parts"), plan.get("counted")
    if not isinstance(parts, list) or not all(is_part(part, index) for index, part in enumerate(parts, 1)):
        return False
    return isinstance(counted, dict) and set(counted) == set(ids) and all(
        isinstance(column, list)
        and len(column) == plan["trials"]
        and all(type(index) is int and 0 <= index <= len(parts) for index in column)
        for column in counted.values()
    )


def _planned(plan: dict) -> int:
    if "chosen" in plan:
        return sum(map(len, plan["chosen"].values()))
    return len(plan["cases"]) * plan["trials"]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _are_limits(value: Any) -> bool:
    names = {"timeout_s", "max_output_bytes", "grace_s"}
    return isinstance(value, dict) and set(value) == names and all(map(_is_number, value.values()))


def _is_evaluator(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("version")) and _is_digest(value.get("source_sha256"))


def _is_case(case: dict) -> bool:
    scope, critical = case.get("scope"), case.get("critical", False)
    return _is_digest(case.get("sha256")) and isinstance(scope, str) and _is_texts(case.get("not_scored")) and isinstance(critical, bool)


def _is_choice(value: Any, ids: frozenset[str], trials: int) -> bool:
    if not isinstance(value, dict) or not ids.issuperset(value):
        return False
    return all(
        isinstance(numbers, list)
        and len(numbers) <= trials
        and all(type(number) is int and 1 <= number <= trials for number in numbers)
        and len(set(numbers)) == len(numbers)
        for numbers in value.values()
    )


def _is_link(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("run_id")) and (value.get("seal") is None or _is_digest(value["seal"]))
