"""Exact tests of counts: sign test, McNemar, binomial; and how many wins a verdict needs.

Owns: p-values that hold at every sample size. Integers to n = 5000, the incomplete beta function beyond (error
about 1e-15 there, where integers would take a second at n = 1e5).
Does not own: alpha and its spending over looks (`multiplicity`), nor how outcomes are paired (`comparison`).

Mid-p and chi-square versions are left out on purpose: neither keeps its level. A fixed-n test may be read once for
each declared look; twenty undeclared looks at 0.05 gave 14 % false positives.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from agent_eval.measure.beta import betainc_tails, binomial_pmf
from agent_eval.measure.domain import count, count_of, level, probability

INTEGER_LIMIT = 5000
_SAME_POINT_PROBABILITY = 1.0 + 1e-7  # scipy's slack for "as improbable as"


def sign_test_one_sided(wins: int, losses: int) -> float:
    """P(X >= wins) for X ~ Bin(wins + losses, 1/2): how easily chance alone gives so many wins.

    The sign test (Arbuthnot 1710), which is McNemar's (1947) exact test with one side. Domain: integer counts of at
    least 0, else OutOfDomain. Edges: 1.0 when wins = 0, so also without any discordant pair; ties do not enter. Not for
    trials of one case counted as cases: they are not independent.
    """
    wins, losses = count("wins", wins), count("losses", losses)
    n = wins + losses
    if wins == 0:
        return 1.0
    if n > INTEGER_LIMIT:
        return betainc_tails(wins, losses + 1, 0.5).lower
    if losses < wins:
        return _ways_up_to(losses, n) / (1 << n)
    return ((1 << n) - _ways_up_to(wins - 1, n)) / (1 << n)


def _ways_up_to(top: int, n: int) -> int:
    """Sum of C(n, i) for i = 0 .. top."""
    term = total = 1
    for i in range(top):
        term = term * (n - i) // (i + 1)
        total += term
    return total


def mcnemar_exact_two_sided(b: int, c: int) -> float:
    """min(1, 2 P(X <= min(b, c))) for X ~ Bin(b + c, 1/2), b and c the two discordant counts (McNemar, exact form).

    Domain: integer counts of at least 0, else OutOfDomain. Edges: 1.0 when b = c, so also when both are 0 (then
    say that there was no discordant pair).
    """
    b, c = count("b", b), count("c", c)
    if b == c:
        return 1.0
    return min(1.0, 2.0 * sign_test_one_sided(max(b, c), min(b, c)))


def binom_test_greater(k: int, n: int, p0: float) -> float:
    """P(X >= k) for X ~ Bin(n, p0), as I_p0(k, n - k + 1) (Clopper and Pearson 1934).

    Domain: 0 <= k <= n, n >= 1 integers, 0 <= p0 <= 1, else OutOfDomain. Edge: 1.0 when k = 0. Not for comparing two
    subjects: p0 must be fixed beforehand, not estimated from the incumbent.
    """
    k, n = count_of("k", k, "n", n)
    return _at_least(k, n, probability("p0", p0))


def _at_least(k: int, n: int, p0: float) -> float:
    return 1.0 if k <= 0 else 0.0 if k > n else betainc_tails(k, n - k + 1, p0).lower


def _at_most(k: int, n: int, p0: float) -> float:
    return 0.0 if k < 0 else 1.0 if k >= n else betainc_tails(k + 1, n - k, p0).upper


def binom_test_two_sided(k: int, n: int, p0: float) -> float:
    """Sum of P(X = i) over all i at most as probable as k (within 1e-7): the "minlike" convention of scipy and R.

    Domain as for binom_test_greater. For parity with other programs; house rule for two sides is doubling the
    smaller tail, which mcnemar_exact_two_sided does.
    """
    k, n = count_of("k", k, "n", n)
    p0 = probability("p0", p0)
    if k == p0 * n:
        return 1.0
    bound = binomial_pmf(k, n, p0) * _SAME_POINT_PROBABILITY
    if k < p0 * n:
        far = _first(math.ceil(p0 * n), n + 1, lambda i: binomial_pmf(i, n, p0) <= bound)
        return min(1.0, _at_most(k, n, p0) + _at_least(far, n, p0))
    far = _first(0, math.floor(p0 * n) + 1, lambda i: binomial_pmf(i, n, p0) > bound)
    return min(1.0, _at_least(k, n, p0) + _at_most(far - 1, n, p0))


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Smallest i in [low, high) for which the monotone `holds` is true, else `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def wins_needed(losses: int, alpha: float) -> int:
    """The fewest wins that, against `losses` losses, reach sign_test_one_sided <= alpha (and exceed the losses).

    Domain: losses an integer of at least 0, 0 < alpha < 1, else OutOfDomain. With alpha = 0.05: 5 wins against 0
    losses, 7 against 1. At look k give alpha/(k(k+1)): 6 against 0 at the first look.
    """
    losses, alpha = count("losses", losses), level("alpha", alpha)
    step = 1
    while sign_test_one_sided(losses + step, losses) > alpha:
        step *= 2
    return _first(losses + 1, losses + step, lambda wins: sign_test_one_sided(wins, losses) <= alpha)
