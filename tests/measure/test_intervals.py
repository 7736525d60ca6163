"""Coverage of the intervals, summed exactly over all outcomes, and the properties that reports rely on."""

from __future__ import annotations

import random

import pytest

from agent_eval.measure.beta import binomial_pmf
from agent_eval.measure.intervals import (
    Interval,
    clopper_pearson,
    clopper_pearson_lower_one_sided,
    clopper_pearson_upper_one_sided,
    empirical_bernstein_lower,
    hoeffding_halfwidth_one_sided,
    jeffreys,
    newcombe_diff_paired,
    newcombe_diff_unpaired,
    wilson,
)

RATES = [i / 100 for i in range(1, 100)] + [0.001, 0.999]


def coverage(bounds: list[Interval], n: int, rate: float) -> float:
    return sum(binomial_pmf(c, n, rate) for c, (lower, upper) in enumerate(bounds) if lower <= rate <= upper)


@pytest.mark.parametrize("n", [1, 5, 20, 60])
def test_clopper_pearson_covers_at_every_rate(n: int) -> None:
    two_sided = [clopper_pearson(c, n) for c in range(n + 1)]
    below = [(clopper_pearson_lower_one_sided(c, n), 1.0) for c in range(n + 1)]
    above = [(0.0, clopper_pearson_upper_one_sided(c, n)) for c in range(n + 1)]
    for rate in RATES:
        for bounds in (two_sided, below, above):
            assert coverage(bounds, n, rate) >= 0.95 - 1e-12


def test_wilson_and_jeffreys_cover_on_average_and_dip_at_some_rates() -> None:
    for method in (wilson, jeffreys):
        bounds = [method(c, 40) for c in range(41)]
        covered = [coverage(bounds, 40, rate) for rate in RATES]
        assert 0.945 < sum(covered) / len(covered) < 0.97
        assert min(covered) < 0.94  # which is why a gate does not use them


def test_bounded_means_cover_at_every_rate() -> None:
    for n in (10, 60):
        for rate in RATES:
            hoeffding = [(c / n - hoeffding_halfwidth_one_sided(n, 0.05), 1.0) for c in range(n + 1)]
            bernstein = [(empirical_bernstein_lower(n, c, 0.05), 1.0) for c in range(n + 1)]
            assert coverage(hoeffding, n, rate) >= 0.95
            assert coverage(bernstein, n, rate) >= 0.95


@pytest.mark.parametrize("method", [clopper_pearson, wilson, jeffreys])
def test_an_interval_holds_its_estimate_moves_up_with_it_and_mirrors(method) -> None:
    for n in (1, 3, 17, 100_000):
        previous = (-1.0, -1.0)
        for c in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            lower, upper = method(c, n)
            assert 0.0 <= lower <= c / n <= upper <= 1.0
            assert (lower == 0.0) == (c == 0)
            assert (upper == 1.0) == (c == n)
            assert lower >= previous[0] and upper > previous[1]
            mirrored = method(n - c, n)
            assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((lower, upper), abs=1e-14)
            previous = lower, upper


def test_more_confidence_is_wider() -> None:
    for method in (clopper_pearson, wilson, jeffreys):
        narrow, wide = method(7, 20, 0.9), method(7, 20, 0.99)
        assert wide[0] < narrow[0] and narrow[1] < wide[1]


def test_simulated_coverage_of_the_paired_difference() -> None:
    source = random.Random(20261130)
    covered = trials = 0
    for _ in range(600):
        n = source.choice((20, 50, 120))
        both, first, second = source.choice(((0.6, 0.2, 0.1), (0.3, 0.1, 0.1), (0.8, 0.15, 0.02)))
        cells = [0, 0, 0, 0]
        for _ in range(n):
            u = source.random()
            cells[0 if u < both else 1 if u < both + first else 2 if u < both + first + second else 3] += 1
        lower, upper = newcombe_diff_paired(*cells)
        covered += lower <= first - second <= upper
        trials += 1
    assert covered / trials >= 0.93


def test_simulated_coverage_of_the_unpaired_difference() -> None:
    source = random.Random(7)
    covered = 0
    for _ in range(600):
        n1, n2, p1, p2 = source.choice((15, 60)), source.choice((15, 60)), source.choice((0.5, 0.9)), source.choice((0.3, 0.95))
        c1, c2 = (sum(source.random() < p for _ in range(n)) for n, p in ((n1, p1), (n2, p2)))
        lower, upper = newcombe_diff_unpaired(c1, n1, c2, n2)
        covered += lower <= p1 - p2 <= upper
    assert covered / 600 >= 0.93


def test_differences_mirror_when_the_sides_swap() -> None:
    for one, other in (((3, 10, 9, 10), (9, 10, 3, 10)), ((0, 1, 1, 1), (1, 1, 0, 1)), ((40, 100_000, 1, 7), (1, 7, 40, 100_000))):
        lower, upper = newcombe_diff_unpaired(*one)
        assert newcombe_diff_unpaired(*other) == (pytest.approx(-upper), pytest.approx(-lower))
        assert -1.0 <= lower <= upper <= 1.0


def test_no_discordant_pair_is_a_certainty_that_a_gate_must_not_use() -> None:
    for half in (1, 50, 12_345):
        assert newcombe_diff_paired(half, 0, 0, half) == (0.0, 0.0)
    assert clopper_pearson_upper_one_sided(0, 100) > 0.029
