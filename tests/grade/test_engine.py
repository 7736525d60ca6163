"""The engine: five values, strict specifications, three-valued combinators."""

from __future__ import annotations

import itertools

import pytest

from agent_eval.grade import engine, receipts
from agent_eval.grade.engine import Finding, Kind, Status, evaluate, kinds, register, validate
from agent_eval.records.problems import InvalidInput

P, F, M, U, N = Status.PASS, Status.FAIL, Status.MISSING, Status.UNSUPPORTED, Status.NOT_APPLICABLE


class _Fixed(Kind):
    """A kind that answers what its field says, for tests of the combinators; never registered under a real name."""

    name = "test_fixed"
    summary = "answers the status that it is given"
    family = "test"
    fields = {"status": engine.Field(engine.Form("a status", lambda value: value in set(Status)), "the answer", required=True)}

    def check(self, spec: dict, evidence: dict) -> Finding:
        return Finding(Status(spec["status"]), f"is {spec['status']}", ("/x",), "why")


@pytest.fixture(autouse=True)
def fixed_kind():
    register(_Fixed)
    yield
    engine._KINDS.pop("test_fixed")


def fixed(status: Status) -> dict:
    return {"kind": "test_fixed", "status": str(status)}


def of(kind: str, *statuses: Status) -> Status:
    return evaluate({"kind": kind, "of": [fixed(status) for status in statuses]}, {}).status


@pytest.mark.parametrize(("given", "answer"), [(P, F), (F, P), (M, M), (U, U), (N, N)])
def test_not_keeps_what_is_unknown(given: Status, answer: Status) -> None:
    assert evaluate({"kind": "not", "of": fixed(given)}, {}).status is answer


def test_all_of_and_any_of_over_every_pair() -> None:
    all_order, any_order = (F, M, U, P, N), (P, M, U, F, N)
    for pair in itertools.product(Status, repeat=2):
        assert of("all_of", *pair) is min(pair, key=all_order.index), pair
        assert of("any_of", *pair) is min(pair, key=any_order.index), pair


def test_hiding_one_part_never_makes_a_combination_pass() -> None:
    # Whatever does not pass with a part failing does not pass with that part missing.
    for other in Status:
        assert of("all_of", M, other) is not P
        assert (of("any_of", M, other) is P) == (other is P)


@pytest.mark.parametrize(
    ("antecedent", "consequent", "answer"),
    [(P, P, P), (P, F, F), (P, M, M), (P, N, N), (F, P, N), (F, F, N), (M, P, M), (U, P, U), (N, P, N)],
)
def test_if_then(antecedent: Status, consequent: Status, answer: Status) -> None:
    assert evaluate({"kind": "if_then", "if": fixed(antecedent), "then": fixed(consequent)}, {}).status is answer


def test_a_combination_names_every_contrary_place_and_a_reason() -> None:
    finding = evaluate({"kind": "all_of", "of": [fixed(F), fixed(P), fixed(F)]}, {})
    assert (finding.status, finding.pointers, finding.reason) == (F, ("/x",), "why")
    assert finding.detail == "is fail"


def test_validation_reports_every_problem_at_once_with_its_place() -> None:
    spec = {
        "kind": "all_of",
        "of": [{"kind": "nope"}, {"kind": "not"}, {"kind": "not", "of": 3, "x": 1}, {"kind": "test_fixed", "status": "odd"}, 7],
        "extra": True,
    }
    found = {problem.where for problem in validate(spec, "a")}
    assert found == {"a/extra", "a/of/0/kind", "a/of/1", "a/of/2/x", "a/of/2/of", "a/of/3/status", "a/of/4"}


@pytest.mark.parametrize("spec", [None, 3, [], "x", {}, {"kind": 4}, {"kind": None}, {"of": []}, {"kind": "all_of", "of": []}])
def test_things_that_are_no_specification(spec: object) -> None:
    assert validate(spec, "a")


def test_nesting_is_bounded() -> None:
    spec: dict = fixed(P)
    for _ in range(engine.MAX_NESTING - 1):
        spec = {"kind": "not", "of": spec}
    assert validate(spec, "a") == []
    assert validate({"kind": "not", "of": spec}, "a")


def test_a_family_sees_its_own_kinds_and_the_combinators() -> None:
    assert validate(fixed(P), "a", family="test") == []
    assert "unknown assertion kind" in str(validate(fixed(P), "a", family="receipt")[0])
    assert validate({"kind": "not", "of": fixed(P)}, "a", family="receipt")[0].where == "a/of/kind"
    names = [kind.name for kind in receipts.kinds()]
    assert names == sorted(names) and "test_fixed" not in names and {"not", "command_ok"} <= set(names)


def test_two_kinds_of_one_name_are_a_programming_error() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        register(_Fixed)


def test_evaluating_an_unknown_kind_is_invalid_input() -> None:
    with pytest.raises(InvalidInput):
        evaluate({"kind": "nope"}, {})


def test_every_kind_is_documented() -> None:
    assert len(kinds("receipt")) >= 34
    for kind in kinds():
        assert kind.summary and type(kind).__doc__ and all(field.summary for field in kind.fields.values()), kind.name
