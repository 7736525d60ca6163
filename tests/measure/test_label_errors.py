"""Label errors: a queue with reasons, in the order in which a reviewer should look."""

from __future__ import annotations

import pytest

from agent_eval.measure.domain import OutOfDomain
from agent_eval.measure.label_errors import audit_labels

LABELS = {"a": True, "b": False, "c": True, "d": False}


def queue(**arguments: object) -> dict[str, list[str]]:
    found = audit_labels(**{"labels": LABELS, "graders": {}, "systems": {}, **arguments})
    return {entry["id"]: [signal["kind"] for signal in entry["signals"]] for entry in found["queue"]}


def test_two_graders_who_agree_against_the_label_queue_it_and_one_does_not() -> None:
    first, second = {**LABELS, "a": False, "b": True}, {**LABELS, "a": False}
    assert queue(graders={"g1": first, "g2": second}) == {"a": ["graders-against-label"]}
    assert queue(graders={"g1": first}) == {}
    found = audit_labels(LABELS, {"g1": first, "g2": second, "g3": LABELS}, {})
    assert found["queue"][0]["signals"][0]["detail"] == "2 of 3 graders say fail: g1, g2"


def test_items_that_every_system_fails_come_before_those_that_one_fails() -> None:
    everything = dict.fromkeys(LABELS, True)
    systems = {"s1": {**everything, "a": False, "d": False}, "s2": {**everything, "d": False}}
    assert queue(systems=systems) == {"d": ["every-system-fails"], "a": ["a-system-fails"]}
    assert list(queue(systems=systems)) == ["d", "a"]


def test_confident_learning_uses_each_class_mean_as_its_threshold() -> None:
    labels = {f"p{n}": True for n in range(4)} | {f"n{n}": False for n in range(4)}
    chances = {"p0": 0.9, "p1": 0.8, "p2": 0.9, "p3": 0.05, "n0": 0.1, "n1": 0.2, "n2": 0.1, "n3": 0.9}
    found = audit_labels(labels, {}, {}, chances)
    assert [entry["id"] for entry in found["queue"]] == ["p3", "n3"]
    # One class without a probability has no threshold.
    assert audit_labels(labels, {}, {}, {"p0": 0.1})["queue"] == []


def test_an_item_carries_every_signal_and_is_never_relabelled() -> None:
    against = {**LABELS, "a": False}
    chances = {"a": 0.0, "b": 0.1, "c": 0.9, "d": 0.1}
    found = audit_labels(LABELS, {"g1": against, "g2": against}, {"s": dict.fromkeys(LABELS, False)}, chances)
    assert [signal["kind"] for signal in found["queue"][0]["signals"]] == [
        "graders-against-label",
        "every-system-fails",
        "confident-learning",
    ]
    assert found["queue"][0]["label"] == "pass"


def test_noise_bounds_what_a_score_can_mean() -> None:
    systems = {"top": {f"i{n}": n > 0 for n in range(50)}, "low": {f"i{n}": n > 30 for n in range(50)}}
    labels = dict.fromkeys(systems["top"], True)
    reviewed = {f"i{n}": n < 5 for n in range(40)}
    found = audit_labels(labels, {}, systems, None, reviewed)
    assert (found["noise"]["wrong"], found["noise"]["reviewed"]) == (5, 40)
    assert found["noise"]["lower"] == pytest.approx(0.0419, abs=1e-4)
    assert found["scores"]["top"]["indistinguishable_from_ceiling"] is True
    assert found["scores"]["low"]["indistinguishable_from_ceiling"] is False
    assert audit_labels(labels, {}, systems)["scores"]["top"]["indistinguishable_from_ceiling"] is None


def test_what_was_not_exercised_is_said() -> None:
    assert len(audit_labels(LABELS, {}, {})["not_exercised"]) == 4
    full = audit_labels(LABELS, {"g": LABELS, "h": LABELS}, {"s": LABELS}, dict.fromkeys(LABELS, 0.5), {"a": False})
    assert full["not_exercised"] == []


def test_a_probability_outside_the_unit_interval_raises() -> None:
    with pytest.raises(OutOfDomain):
        audit_labels(LABELS, {}, {}, {"a": 1.5})
