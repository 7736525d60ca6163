"""The incomplete beta function and its quantile, against exact sums and against each other."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from agent_eval.measure.beta import beta_quantile, beta_quantile_upper, betainc_reg, betainc_tails, binomial_pmf


def exact_tails(k: int, n: int, p: Fraction) -> tuple[Fraction, Fraction]:
    """P(X >= k) and P(X < k) of Bin(n, p): I_p(k, n - k + 1) and its complement."""
    terms = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    return sum(terms[k:], Fraction(0)), sum(terms[:k], Fraction(0))


@pytest.mark.parametrize("p", [2**-20, 0.001, 0.3, 0.5, 0.9, 1 - 2**-20])
def test_both_tails_equal_the_exact_binomial_sums(p: float) -> None:
    for n in (1, 2, 7, 40, 150):
        for k in {1, min(2, n), n // 3 or 1, n // 2 or 1, n - 1 or 1, n}:
            lower, upper = exact_tails(k, n, Fraction(p))
            tails = betainc_tails(k, n - k + 1, p)
            for got, expected in ((tails.lower, lower), (tails.upper, upper)):
                # The smaller tail is computed for itself; the larger one is its complement.
                assert got == pytest.approx(float(expected), rel=2e-13, abs=1e-16 if expected > 0.5 else 0.0)


def test_the_points_equal_the_exact_probabilities() -> None:
    for n, p in ((10, 0.3), (100, 0.01), (100, 0.99), (60, 0.5)):
        for k in range(n + 1):
            exact = math.comb(n, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (n - k)
            assert binomial_pmf(k, n, p) == pytest.approx(float(exact), rel=1e-12)
    assert binomial_pmf(0, 5, 0.0) == binomial_pmf(5, 5, 1.0) == 1.0
    assert binomial_pmf(1, 5, 0.0) == 0.0


def test_symmetry_and_edges() -> None:
    source = random.Random(11)
    for _ in range(300):
        a, b, x = 10 ** source.uniform(-2, 5), 10 ** source.uniform(-2, 5), source.random()
        x = 1.0 - x if x < 0.5 else x  # 1 - x is then exact
        mirrored = betainc_tails(b, a, 1.0 - x)
        tails = betainc_tails(a, b, x)
        assert tails.lower == pytest.approx(mirrored.upper, rel=1e-12, abs=1e-300)
        assert tails.upper == pytest.approx(mirrored.lower, rel=1e-12, abs=1e-300)
    assert (betainc_reg(3, 4, 0.0), betainc_reg(3, 4, 1.0)) == (0.0, 1.0)
    assert betainc_reg(7, 7, 0.5) == pytest.approx(0.5, rel=1e-14)
    assert betainc_reg(1, 1, 0.25) == pytest.approx(0.25, rel=1e-15)


def test_the_arcsine_law() -> None:
    for x in (1e-12, 1e-3, 0.2, 0.5, 0.7, 0.999):
        assert betainc_reg(0.5, 0.5, x) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)), rel=1e-13)


def test_quantiles_invert_both_tails() -> None:
    source = random.Random(12)
    for _ in range(300):
        a, b, q = 10 ** source.uniform(-0.5, 5), 10 ** source.uniform(-0.5, 5), 10 ** source.uniform(-9, 0) / 2
        lower, upper = beta_quantile(q, a, b), beta_quantile_upper(q, a, b)
        assert lower <= upper
        # A root above 1/2 is known to 1e-16 absolutely; where the density is steep that moves the tail.
        for x, got in ((lower, betainc_tails(a, b, lower).lower), (upper, betainc_tails(a, b, upper).upper)):
            assert got == pytest.approx(q, rel=1e-9) or x > 1 - 1e-6


def test_quantile_edges_and_closed_forms() -> None:
    assert (beta_quantile(0.0, 2, 3), beta_quantile(1.0, 2, 3)) == (0.0, 1.0)
    assert (beta_quantile_upper(0.0, 2, 3), beta_quantile_upper(1.0, 2, 3)) == (1.0, 0.0)
    assert beta_quantile(0.3, 5, 1) == pytest.approx(0.3**0.2, rel=1e-15)
    assert beta_quantile(0.3, 1, 5) == pytest.approx(1 - 0.7**0.2, rel=1e-14)
    assert beta_quantile_upper(1e-300, 1, 5) == pytest.approx(1.0)
    assert beta_quantile(1e-300, 5, 1e5) == pytest.approx(
        math.exp((math.log(1e-300) + math.lgamma(6) + math.lgamma(1e5) - math.lgamma(1e5 + 5)) / 5), rel=1e-9
    )
    # Below the smallest double there is nothing but 0.
    assert beta_quantile(0.1, 0.001, 5) == 0.0


def test_extremes_end() -> None:
    assert betainc_reg(1e9, 1e9, 0.5) == pytest.approx(0.5, rel=1e-10)
    assert beta_quantile(0.5, 1e9, 1e9) == pytest.approx(0.5, rel=1e-9)
    assert betainc_reg(0.003, 0.2, 5e-324) == pytest.approx(0.10567932607715769, rel=1e-9)
