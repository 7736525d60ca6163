"""Saturation: full, unresolved or open, and whether a gate could still promote anybody."""

from __future__ import annotations

import pytest

from agent_eval.measure.domain import OutOfDomain
from agent_eval.measure.saturation import Candidate, audit_saturation


def candidate(name: str, passed: int, total: int) -> Candidate:
    return Candidate(name, {f"c{n}": n < passed for n in range(total)})


def test_a_full_suite_is_a_ceiling_and_solved_only_with_audited_labels() -> None:
    full = [candidate("one", 100, 100)]
    assert audit_saturation(full)["state"] == "ceiling"
    assert audit_saturation(full, labels_audited=True)["state"] == "solved"


def test_too_few_cases_are_under_resolved_which_is_not_a_ceiling() -> None:
    found = audit_saturation([candidate("one", 10, 10)], labels_audited=True)
    assert found["state"] == "under-resolved"
    assert found["best_lower_one_sided"] == pytest.approx(0.05**0.1)


def test_headroom_is_held_against_the_wins_of_the_look() -> None:
    suite = [candidate("best", 80, 87)]
    assert audit_saturation(suite)["headroom"]["cannot_promote"] is False
    later = audit_saturation(suite, look=5)["headroom"]
    assert (later["cases"], later["wins_needed"], later["cannot_promote"]) == (7, 10, True)
    assert audit_saturation(suite, look=5)["queue"][0]["detail"] == "at least 3 more that the best fails"
    assert audit_saturation(suite, look=5)["state"] == "no-headroom"
    assert audit_saturation(suite)["state"] == "open"


def test_dead_cases_are_those_that_nobody_or_everybody_passes_lately() -> None:
    candidates = [candidate("old", 2, 20), candidate("mid", 10, 20), candidate("new", 12, 20)]
    dead = audit_saturation(candidates)["dead"]
    assert (len(dead["all_pass"]), len(dead["all_fail"])) == (2, 8)
    assert len(audit_saturation(candidates, last=2)["dead"]["all_pass"]) == 10
    assert audit_saturation(candidates[:1])["dead"] is None


def test_the_top_two_are_told_apart_by_the_exact_test_only() -> None:
    found = audit_saturation([candidate("a", 50, 100), candidate("b", 54, 100), candidate("c", 20, 100)])["top_two"]
    assert (found["first"], found["second"], found["only_first"], found["separated"]) == ("b", "a", 4, False)
    apart = audit_saturation([candidate("a", 50, 100), candidate("b", 56, 100)])["top_two"]
    assert apart["separated"] and apart["p_two_sided"] == pytest.approx(2 / 64)


def test_only_common_cases_are_compared_and_the_others_named() -> None:
    found = audit_saturation([Candidate("a", {"x": True, "y": False}), Candidate("b", {"y": True, "z": True})])
    assert (found["cases"], found["not_in_every_candidate"]) == (1, ["x", "z"])
    with pytest.raises(OutOfDomain):
        audit_saturation([Candidate("a", {"x": True}), Candidate("b", {"y": True})])
    with pytest.raises(OutOfDomain):
        audit_saturation([])


def test_equal_scores_rank_the_newer_candidate_first() -> None:
    assert audit_saturation([candidate("old", 5, 10), candidate("new", 5, 10)])["best"] == "new"
