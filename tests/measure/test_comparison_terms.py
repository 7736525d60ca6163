"""Which differences between two runs are found, and which can never be waived."""

from __future__ import annotations

import copy

import pytest

from agent_eval.measure.comparison_terms import Term, differences, incomparable, model_of, subject_kind

PLAN = {
    "consumer": "core-agent",
    "task_seed": 7,
    "limits": {"timeout_s": 60.0, "max_output_bytes": 8388608, "grace_s": 1.0},
    "cases": [{"id": "edit@1", "sha256": "a"}, {"id": "read@1", "sha256": "b"}],
    "evaluator": {"version": "0.1.0", "source_sha256": "c", "python": "3.11.7", "platform": "Linux"},
    "subject": {"subject_kind": "model", "model": "m-1", "binary": {"sha256": "1"}},
}


def changed(*path: str, value: object) -> dict:
    plan = copy.deepcopy(PLAN)
    place = plan
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return plan


def found(other: dict) -> dict[str, str]:
    return {difference.term.value: difference.detail for difference in differences(PLAN, other)}


def test_equal_plans_do_not_differ_whatever_the_subject_is() -> None:
    assert differences(PLAN, copy.deepcopy(PLAN)) == []
    assert found(changed("subject", "binary", value={"sha256": "2"})) == {}
    assert found(changed("evaluator", "python", value="3.13.0")) == {}
    assert found(changed("cases", value=list(reversed(PLAN["cases"])))) == {}


@pytest.mark.parametrize(
    ("path", "value", "term", "words"),
    [
        (("task_seed",), 8, "seed", "7 and 8"),
        (("task_seed",), None, "seed", "7 and null"),
        (("evaluator", "source_sha256"), "d", "evaluator", "c and d"),
        (("evaluator", "version"), "0.2.0", "evaluator", "0.1.0 and 0.2.0"),
        (("limits", "timeout_s"), 61.0, "limits", "timeout_s 60.0 and 61.0"),
        (("subject", "model"), "m-2", "model", '"m-1" and "m-2"'),
        (("subject", "transport"), {"max_model_requests": 9}, "limits", "max_model_requests null and 9"),
        (("cases",), [{"id": "edit@1", "sha256": "z"}, {"id": "read@1", "sha256": "b"}], "scenarios", "changed: edit@1"),
        (("cases",), [{"id": "edit@1", "sha256": "a"}], "scenarios", "only in the incumbent: read@1"),
        (("cases",), [*PLAN["cases"], {"id": "new", "sha256": "n"}], "scenarios", "only in the candidate: new"),
    ],
)
def test_each_difference_is_named_with_both_sides(path: tuple[str, ...], value: object, term: str, words: str) -> None:
    differing = found(changed(*path, value=value))
    assert set(differing) == {term}
    assert words in differing[term]


def test_every_difference_is_found_at_once_in_the_order_of_the_terms() -> None:
    other = changed("task_seed", value=1)
    other["limits"] = {**other["limits"], "grace_s": 2.0}
    other["subject"] = {"subject_kind": "model", "model": "m-2"}
    assert [difference.term for difference in differences(PLAN, other)] == [Term.SEED, Term.LIMITS, Term.MODEL]


def test_a_script_is_never_compared_with_a_model() -> None:
    scripted = changed("subject", value={"subject_kind": "scripted"})
    declared = changed("subject", value={"contract": {"subject_kind": "scripted"}})
    for one, other in ((PLAN, scripted), (scripted, PLAN), (PLAN, declared)):
        assert any("never compared with a model" in reason for reason in incomparable(one, other))
    assert incomparable(scripted, declared) == []
    assert incomparable(PLAN, PLAN) == []
    assert incomparable(scripted, changed("subject", value={}))


def test_runs_of_two_consumers_are_not_comparable() -> None:
    assert any("check" in reason for reason in incomparable(PLAN, changed("consumer", value="check")))


def test_a_plan_without_such_a_notion_has_neither_kind_nor_model() -> None:
    assert subject_kind({"subject": None}) is None
    assert subject_kind({}) is None
    assert model_of({}) is None
    assert model_of({"subject": {"transport": {"model": "m-3"}}}) == "m-3"
    assert model_of({"subject": {"transport": "fixture"}}) is None
    assert incomparable({}, {}) == []
