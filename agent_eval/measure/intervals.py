"""Confidence intervals for one proportion, for a difference of two, and for a bounded mean.

Owns: Clopper-Pearson (two- and one-sided), Wilson, Jeffreys, best belief, Newcombe paired and unpaired, Hoeffding,
empirical Bernstein, the normal quantile they use.
Does not own: which interval a verdict rests on. House rule: a gate uses Clopper-Pearson, whose
coverage is guaranteed; reports may show Wilson. No interval here may be used on counts pooled over trials of the
same case: trials of one case are not independent draws of cases.

`conf` is a two-sided confidence in (0, 1); the tail (1 - conf)/2 is computed in decimal from its shortest literal,
so that 0.95 gives exactly 0.025. Counts are integers. Anything else, n = 0 included, raises OutOfDomain: without
a trial there is no interval, not [0, 1].
"""

from __future__ import annotations

import math

from agent_eval.measure.beta import beta_quantile, beta_quantile_upper
from agent_eval.measure.domain import OutOfDomain, count, count_of, level, positive

Interval = tuple[float, float]


def norm_ppf(p: float) -> float:
    """Standard normal quantile (Wichura 1988, AS 241). Domain 0 < p < 1, else OutOfDomain; about 16 digits."""
    return _normal_quantile(level("p", p))


def _normal_quantile(p: float) -> float:
    # Imported when first needed: it brings in half of the number types, and a run that prints one interval starts faster.
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def tail(conf: float) -> float:
    """(1 - conf)/2 of the decimal literal of `conf`: binary 1 - 0.95 is not 0.05."""
    return _complement(conf, 2)


def _complement(conf: float, parts: int) -> float:
    from decimal import Decimal

    return float((1 - Decimal(repr(level("conf", conf)))) / parts)


def _z(conf: float) -> float:
    return -_normal_quantile(tail(conf))


def clopper_pearson(c: int, n: int, conf: float = 0.95) -> Interval:
    """Exact two-sided interval for c passes in n trials: coverage is at least `conf` for every true rate.

    Clopper and Pearson 1934, by beta quantiles. Edges: lower 0.0 at c = 0, upper 1.0 at c = n. Conservative.
    """
    c, n = count_of("c", c, "n", n)
    each = tail(conf)
    return _exact_lower(c, n, each), _exact_upper(c, n, each)


def clopper_pearson_lower_one_sided(c: int, n: int, conf: float = 0.95) -> float:
    """Exact lower bound that spends the whole of 1 - conf below; 0.0 at c = 0. For "at least this good"."""
    c, n = count_of("c", c, "n", n)
    return _exact_lower(c, n, _one_tail(conf))


def clopper_pearson_upper_one_sided(c: int, n: int, conf: float = 0.95) -> float:
    """Exact upper bound that spends the whole of 1 - conf above; 1.0 at c = n.

    With c = 0 it is 1 - (1 - conf)^(1/n), about 3/n at 95 %. For "at most this many lost".
    """
    c, n = count_of("c", c, "n", n)
    return _exact_upper(c, n, _one_tail(conf))


def _one_tail(conf: float) -> float:
    return _complement(conf, 1)


def _exact_lower(c: int, n: int, alpha: float) -> float:
    return 0.0 if c == 0 else beta_quantile(alpha, c, n - c + 1)


def _exact_upper(c: int, n: int, alpha: float) -> float:
    return 1.0 if c == n else beta_quantile_upper(alpha, c + 1, n - c)


def jeffreys(c: int, n: int, conf: float = 0.95) -> Interval:
    """Equal-tailed interval of Beta(c + 1/2, n - c + 1/2), edges forced: lower 0.0 at c = 0, upper 1.0 at c = n.

    Brown, Cai and DasGupta 2001; statsmodels does not apply their edge rule. Coverage holds on average over true
    rates, not for each: never for a gate.
    """
    c, n = count_of("c", c, "n", n)
    each = tail(conf)
    lower = 0.0 if c == 0 else beta_quantile(each, c + 0.5, n - c + 0.5)
    upper = 1.0 if c == n else beta_quantile_upper(each, c + 0.5, n - c + 0.5)
    return lower, upper


def wilson(c: int, n: int, conf: float = 0.95) -> Interval:
    """Score interval (Wilson 1927), bounds exactly 0 at c = 0 and 1 at c = n. For reports; coverage dips below conf.

    The lower bound is a quotient, not a difference: at c = 0, n = 1e5 the difference leaves 3.5e-18 where the
    answer is 0 (statsmodels does).
    """
    c, n = count_of("c", c, "n", n)
    square = _z(conf) ** 2
    reach = 2.0 * c + square + math.sqrt(square * (square + 4.0 * c * (n - c) / n))
    lower = 2.0 * c * c / (n * reach)
    upper = 1.0 if c == n else reach / (2.0 * (n + square))
    return lower, min(1.0, upper)


def _score_arms(c: int, n: int, z: float) -> tuple[float, float]:
    """c/n minus Wilson's lower bound, and Wilson's upper bound minus c/n; equal to the last bit at c = n/2."""
    square = z * z
    half = math.sqrt(square * (square + 4.0 * c * (n - c) / n)) / (2.0 * (n + square))
    offset = square * (2 * c - n) / (2.0 * n * (n + square))
    below = 0.0 if c == 0 else half + offset
    above = 0.0 if c == n else half - offset
    return below, above


def newcombe_diff_unpaired(c1: int, n1: int, c2: int, n2: int, conf: float = 0.95) -> Interval:
    """Interval of c1/n1 - c2/n2 for two independent groups (Newcombe 1998, hybrid score, method 10 of that paper).

    Domain: integer counts, 0 <= c <= n, n >= 1, else OutOfDomain. Not for paired outcomes (the same cases under two
    subjects): use newcombe_diff_paired.
    """
    c1, n1 = count_of("c1", c1, "n1", n1)
    c2, n2 = count_of("c2", c2, "n2", n2)
    z = _z(conf)
    below1, above1 = _score_arms(c1, n1, z)
    below2, above2 = _score_arms(c2, n2, z)
    difference = (c1 * n2 - c2 * n1) / (n1 * n2)
    return _within(difference - math.hypot(below1, above2), difference + math.hypot(above1, below2))


def newcombe_diff_paired(both: int, only_first: int, only_second: int, neither: int, conf: float = 0.95) -> Interval:
    """Interval of rate(first) - rate(second) over paired outcomes (Newcombe 1998, phi without continuity correction).

    Arguments are the four cells of the paired table. Trap: with both = neither and no discordant pair the interval is
    exactly [0, 0], a certainty that no data gave; never rest non-inferiority on it, use
    -clopper_pearson_upper_one_sided(losses, n).
    """
    e, f = count("both", both), count("only_first", only_first)
    g, h = count("only_second", only_second), count("neither", neither)
    n = e + f + g + h
    if n == 0:
        raise OutOfDomain("a paired table must hold at least one pair")
    z = _z(conf)
    unlike = _one_minus_phi(e, f, g, h)
    below1, above1 = _score_arms(e + f, n, z)
    below2, above2 = _score_arms(e + g, n, z)
    difference = (f - g) / n
    lower = difference - _correlated(below1, above2, unlike)
    upper = difference + _correlated(above1, below2, unlike)
    return _within(lower, upper)


def _within(lower: float, upper: float) -> Interval:
    return max(-1.0, lower), min(1.0, upper)


def _correlated(s: float, t: float, one_minus_phi: float) -> float:
    """sqrt(s^2 - 2 phi s t + t^2), written so that phi near 1 does not cancel (the naive form leaves 9e-10 for 0)."""
    return math.sqrt((s - t) ** 2 + 2.0 * one_minus_phi * s * t)


def _one_minus_phi(e: int, f: int, g: int, h: int) -> float:
    product = (e + f) * (g + h) * (e + g) * (f + h)
    if product == 0:
        return 1.0
    cross = e * h - f * g
    root = math.sqrt(product)
    if cross <= 0:
        return 1.0 - cross / root
    return (product - cross * cross) / (root * (root + cross))


def best_belief(successes: int, failures: int, eps: float = 0.05) -> float:
    """The eps-quantile of Beta(1 + successes, 1 + failures): the lower bound by which RQGM ranks (arXiv:2606.26294).

    Domain: integer counts of at least 0 (0 and 0 give eps), 0 < eps < 1. For ranking candidates with different n.
    Not for acceptance: for equal n it only compares counts, and promotes on one more success.
    """
    s, f = count("successes", successes), count("failures", failures)
    return beta_quantile(level("eps", eps), s + 1, f + 1)


def hoeffding_halfwidth_two_sided(n: int, alpha: float, width: float = 1.0) -> float:
    """Half-width w with P(|mean - expectation| >= w) <= alpha for n independent values in an interval of `width`.

    Hoeffding 1963: width sqrt(log(2/alpha) / (2n)). Domain: n >= 1 integer, 0 < alpha < 1, width > 0, else OutOfDomain.
    Not clipped: above `width` it only says that n is too small. For bounded scores; passes and fails have
    clopper_pearson, which is narrower.
    """
    return _hoeffding(n, 2.0 / level("alpha", alpha), width)


def hoeffding_halfwidth_one_sided(n: int, alpha: float, width: float = 1.0) -> float:
    """As hoeffding_halfwidth_two_sided for one side: width sqrt(log(1/alpha) / (2n))."""
    return _hoeffding(n, 1.0 / level("alpha", alpha), width)


def _hoeffding(n: int, odds: float, width: float) -> float:
    return positive("width", width) * math.sqrt(math.log(odds) / (2.0 * count("n", n, at_least=1)))


def empirical_bernstein_lower(n: int, c: int, alpha: float) -> float:
    """Lower bound of a rate from c passes in n independent trials (Maurer and Pontil 2009, theorem 4).

    mean - sqrt(2 V log(2/alpha) / n) - 7 log(2/alpha) / (3 (n - 1)), V the unbiased variance. Domain n >= 2. Not
    clipped: the caller clips to [0, 1] and says so. With V = 0 the last term still stands.
    """
    c, n = count_of("c", c, "n", n)
    if n < 2:
        raise OutOfDomain("n must be at least 2: the variance of one trial is undefined")
    log_odds = math.log(2.0 / level("alpha", alpha))
    variance = c * (n - c) / (n * (n - 1))
    return c / n - math.sqrt(2.0 * variance * log_odds / n) - 7.0 * log_odds / (3.0 * (n - 1))
