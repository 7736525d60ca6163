"""Kappa, ranks, and the coverage of a corrected prevalence."""

from __future__ import annotations

import itertools
import random

import pytest

from agent_eval.measure.agreement import cohen_kappa, prevalence_interval, rogan_gladen, spearman_rho
from agent_eval.measure.domain import OutOfDomain


def test_kappa_of_a_judge_that_says_pass_to_everything_is_zero() -> None:
    assert cohen_kappa([[90, 0], [10, 0]]) == 0.0
    assert cohen_kappa([[5, 0], [0, 5]]) == 1.0
    assert cohen_kappa([[0, 5], [5, 0]]) == -1.0


def test_kappa_is_undefined_where_chance_alone_agrees() -> None:
    assert cohen_kappa([[7]]) is None
    assert cohen_kappa([[0, 0], [0, 7]]) is None


def test_ranks_ignore_scale_and_average_ties() -> None:
    assert spearman_rho([1, 10, 100], [0.1, 0.2, 0.3]) == pytest.approx(1.0)
    assert spearman_rho([1, 2, 2, 4], [4, 2, 2, 1]) == pytest.approx(-1.0)
    assert spearman_rho([3, 3, 3], [1, 2, 3]) is None


@pytest.mark.parametrize(("labelled", "fresh"), [((100, 100), 60), ((30, 40), 100), ((20, 20), 1000)])
def test_the_corrected_prevalence_is_covered(labelled: tuple[int, int], fresh: int) -> None:
    """Simulated coverage at a nominal 95 % is at least 93 %, over judges and prevalences, perfect judges included."""
    source = random.Random(20261130)
    covered = repeats = 0
    positives, negatives = labelled
    for tpr, tnr, prevalence in itertools.product((0.8, 0.95, 1.0), (0.75, 0.9, 1.0), (0.0, 0.1, 0.5, 0.8, 1.0)):
        here = 0
        for _ in range(100):
            tp, tn = binomial(source, positives, tpr), binomial(source, negatives, tnr)
            passed = binomial(source, fresh, prevalence * tpr + (1 - prevalence) * (1 - tnr))
            try:
                lower, upper = prevalence_interval(tp, positives - tp, tn, negatives - tn, passed, fresh)
            except OutOfDomain:
                continue
            here += lower <= prevalence <= upper
            repeats += 1
        covered += here
        assert here >= 85, (tpr, tnr, prevalence)
    assert covered / repeats >= 0.93


def binomial(source: random.Random, n: int, p: float) -> int:
    return sum(source.random() < p for _ in range(n))


def test_the_interval_stays_in_the_unit_interval_and_near_the_estimate() -> None:
    for cells in ((9, 1, 9, 1, 0, 10), (9, 1, 9, 1, 10, 10), (3, 0, 3, 0, 1, 2), (50, 50, 60, 40, 30, 100)):
        lower, upper = prevalence_interval(*cells)
        assert 0.0 <= lower < upper <= 1.0
        assert lower <= rogan_gladen(*cells).value <= upper


def test_more_items_narrow_the_interval() -> None:
    wide = prevalence_interval(45, 5, 45, 5, 25, 50)
    narrow = prevalence_interval(4500, 500, 4500, 500, 2500, 5000)
    assert narrow[1] - narrow[0] < (wide[1] - wide[0]) / 5
