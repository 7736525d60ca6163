"""Exact tests against brute force, over the border between integers and the incomplete beta function."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from agent_eval.measure import exact, multiplicity
from agent_eval.measure.beta import betainc_tails
from agent_eval.measure.exact import binom_test_greater, binom_test_two_sided, sign_test_one_sided, wins_needed


def test_sign_test_equals_the_sum_over_all_outcomes() -> None:
    for wins in range(12):
        for losses in range(12):
            n = wins + losses
            ways = sum(math.comb(n, i) for i in range(wins, n + 1))
            assert sign_test_one_sided(wins, losses) == float(Fraction(ways, 2**n))


def test_both_ways_of_computing_agree_at_the_border() -> None:
    half = exact.INTEGER_LIMIT // 2
    for wins, losses in ((half, half), (half + 60, half - 60), (half - 90, half + 90), (half + 400, half - 400)):
        assert wins + losses == exact.INTEGER_LIMIT
        by_beta = betainc_tails(wins, losses + 1, 0.5).lower
        assert sign_test_one_sided(wins, losses) == pytest.approx(by_beta, rel=1e-12)
        assert multiplicity.evalue_sign_onesided(wins, losses) == pytest.approx(evalue_beyond(wins, losses), rel=1e-11)


def evalue_beyond(wins: int, losses: int) -> float:
    """2 I_1/2(l+1, w+1) / ((n+1) P(X = w)), the form that is used beyond the integers."""
    n = wins + losses
    below = betainc_tails(losses + 1, wins + 1, 0.5).lower
    return float(2 * Fraction(below) * 2**n / ((n + 1) * math.comb(n, wins)))


def test_one_more_win_or_loss_moves_the_p_value_the_right_way() -> None:
    for wins in range(0, 40, 3):
        for losses in range(0, 40, 3):
            p = sign_test_one_sided(wins, losses)
            assert sign_test_one_sided(wins + 1, losses) <= p <= sign_test_one_sided(wins, losses + 1)


def test_wins_needed_is_the_first_that_decides() -> None:
    for losses in (0, 1, 5, 40, 3000):
        for alpha in (0.5, 0.05, 0.001, 1e-9):
            needed = wins_needed(losses, alpha)
            assert needed > losses
            assert sign_test_one_sided(needed, losses) <= alpha
            assert needed == losses + 1 or sign_test_one_sided(needed - 1, losses) > alpha


def minlike(k: int, n: int, p: Fraction) -> Fraction:
    points = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    bound = points[k] * (1 + Fraction(1, 10**7))
    return sum((point for point in points if point <= bound), Fraction(0))


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 0.5, 0.75, 1.0])
def test_binomial_tests_equal_the_sum_over_all_outcomes(p: float) -> None:
    for n in (1, 2, 9, 24):
        for k in range(n + 1):
            at_least = sum(math.comb(n, i) * Fraction(p) ** i * (1 - Fraction(p)) ** (n - i) for i in range(k, n + 1))
            assert binom_test_greater(k, n, p) == pytest.approx(float(at_least), rel=1e-12)
            assert binom_test_two_sided(k, n, p) == pytest.approx(float(minlike(k, n, Fraction(p))), rel=1e-11)


def test_two_sided_is_symmetric_at_one_half() -> None:
    for k in range(31):
        assert binom_test_two_sided(k, 30, 0.5) == pytest.approx(exact.mcnemar_exact_two_sided(k, 30 - k), rel=1e-12)
