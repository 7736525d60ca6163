"""Agreement of two raters, ranks of two orders, and a prevalence corrected for an imperfect judge.

Owns: kappa, Spearman's rho, true positive and true negative rate, Rogan-Gladen with its standard error and interval.
Does not own: reading labels and verdicts, and what makes a validation acceptable (`judge_validation`).

Undefined is None, never 0 or 1. Kappa and raw agreement are context: a judge that always says pass agrees in 90 % of
a 90/10 sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from agent_eval.measure.domain import OutOfDomain, count, count_of, real
from agent_eval.measure.intervals import Interval, norm_ppf, tail


def cohen_kappa(table: Sequence[Sequence[int]]) -> float | None:
    """Cohen's kappa (1960) of a square table of counts (rows: first rater, columns: second), None where chance agrees always.

    (observed - chance) / (1 - chance), in exact rationals. Domain: square, at least 1 x 1, integer counts, at least one
    item, else OutOfDomain. Not as the validation of a judge: it moves with the share of passes in the sample.
    """
    size = len(table)
    if size == 0 or any(len(row) != size for row in table):
        raise OutOfDomain("table must be square, with at least one class")
    cells = [[count(f"table[{i}][{j}]", value) for j, value in enumerate(row)] for i, row in enumerate(table)]
    total = sum(map(sum, cells))
    if total == 0:
        raise OutOfDomain("table must hold at least one item")
    observed = Fraction(sum(cells[i][i] for i in range(size)), total)
    by_chance = Fraction(sum(sum(cells[i]) * sum(row[i] for row in cells) for i in range(size)), total * total)
    if by_chance == 1:
        return None
    return float((observed - by_chance) / (1 - by_chance))


def spearman_rho(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation (1904) with average ranks for ties; None when either vector is constant.

    Pearson's correlation of the ranks, summed in integers. Domain: two vectors of equal length of at least 2, finite
    numbers, else OutOfDomain. For the distance of two rankings, not as a test.
    """
    if len(a) != len(b) or len(a) < 2:
        raise OutOfDomain(f"a and b must have the same length of at least 2, not {len(a)} and {len(b)}")
    first, second = _doubled_ranks("a", a), _doubled_ranks("b", b)
    mean = len(a) + 1  # of doubled ranks
    covariance = sum((x - mean) * (y - mean) for x, y in zip(first, second, strict=True))
    spread_a = sum((x - mean) ** 2 for x in first)
    spread_b = sum((y - mean) ** 2 for y in second)
    if spread_a == 0 or spread_b == 0:
        return None
    return max(-1.0, min(1.0, covariance / math.sqrt(spread_a * spread_b)))


def _doubled_ranks(name: str, values: Sequence[float]) -> list[int]:
    """Twice the average rank of each value, so that ranks of ties stay integers."""
    numbers = [real(f"{name}[{index}]", value) for index, value in enumerate(values)]
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    ranks = [0] * len(numbers)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or numbers[order[end]] != numbers[order[start]]:
            for position in range(start, end):
                ranks[order[position]] = start + end + 1
            start = end
    return ranks


def true_positive_rate(tp: int, fn: int) -> float:
    """TP / (TP + FN), positive meaning a human "pass"; OutOfDomain without a positive label. Never without the TNR."""
    return count("tp", tp) / _labels("positive", tp, fn)


def true_negative_rate(tn: int, fp: int) -> float:
    """TN / (TN + FP); OutOfDomain without a negative label. Never without the TPR."""
    return count("tn", tn) / _labels("negative", tn, fp)


def _labels(kind: str, right: int, wrong: int) -> int:
    total = count("right", right) + count("wrong", wrong)
    if total == 0:
        raise OutOfDomain(f"there must be at least one {kind} label")
    return total


@dataclass(frozen=True, slots=True)
class Prevalence:
    """A corrected rate: `value` in [0, 1], `unclipped` as computed, `clipped` whether they differ."""

    value: float
    unclipped: float
    clipped: bool


@dataclass(frozen=True, slots=True)
class _Corrected:
    """Exact ingredients of Rogan-Gladen: theta, the rates and Youden's J = TPR + TNR - 1."""

    theta: Fraction
    observed: Fraction
    tpr: Fraction
    tnr: Fraction
    youden: Fraction


def _corrected(tp: int, fn: int, tn: int, fp: int, pos: int, m: int) -> _Corrected:
    positives, negatives = _labels("positive", tp, fn), _labels("negative", tn, fp)
    pos, m = count_of("pos", pos, "m", m)
    tpr, tnr = Fraction(tp, positives), Fraction(tn, negatives)
    youden = tpr + tnr - 1
    if youden <= 0:
        raise OutOfDomain(f"TPR + TNR must exceed 1, not {float(tpr + tnr):.4g}: the judge is no better than a coin")
    observed = Fraction(pos, m)
    return _Corrected((observed + tnr - 1) / youden, observed, tpr, tnr, youden)


def rogan_gladen(tp: int, fn: int, tn: int, fp: int, pos: int, m: int) -> Prevalence:
    """True pass rate among m unlabelled items of which the judge passed `pos` (Rogan and Gladen 1978).

    (pos/m + TNR - 1) / (TPR + TNR - 1), clipped to [0, 1] with the clipping said. Domain: both label classes present,
    TPR + TNR > 1, 0 <= pos <= m, m >= 1, integers, else OutOfDomain. Not after a change of judge, prompt, model or
    parser, and not for items that differ in kind from the labelled ones.
    """
    theta = _corrected(tp, fn, tn, fp, pos, m).theta
    inside = max(Fraction(0), min(Fraction(1), theta))
    return Prevalence(float(inside), float(theta), inside != theta)


def rogan_gladen_se(tp: int, fn: int, tn: int, fp: int, pos: int, m: int) -> float:
    """Delta-method standard error of rogan_gladen with all three terms; domain as there.

    sqrt(p(1-p)/m + theta^2 TPR(1-TPR)/n1 + (1-theta)^2 TNR(1-TNR)/n0) / J, theta unclipped. Leaving out the first term, as a public
    package does by holding the observed rate fixed, covered 42 % at a nominal 95 %.
    """
    parts = _corrected(tp, fn, tn, fp, pos, m)
    variance = (
        parts.observed * (1 - parts.observed) / m
        + parts.theta**2 * parts.tpr * (1 - parts.tpr) / (tp + fn)
        + (1 - parts.theta) ** 2 * parts.tnr * (1 - parts.tnr) / (tn + fp)
    )
    return math.sqrt(variance) / float(parts.youden)


def prevalence_interval(tp: int, fn: int, tn: int, fp: int, pos: int, m: int, conf: float = 0.95) -> Interval:
    """Two-sided interval of the true pass rate, honest for small samples and for a judge without an observed error.

    Lang and Reiczigel 2014: the delta interval after adding one item to each cell of the judge's table and z^2/2 to
    each side of the observed rate, its centre shifted for the skew; clipped to [0, 1]. Simulated coverage at a nominal
    95 %: 93 % or more where the plain interval of rogan_gladen_se falls to 25 % (no error among 15 labels). Domain
    as for rogan_gladen.
    """
    _corrected(tp, fn, tn, fp, pos, m)
    z = -norm_ppf(tail(conf))
    positives, negatives, items = tp + fn + 2, tn + fp + 2, m + z * z
    tpr, tnr = (tp + 1) / positives, (tn + 1) / negatives
    youden = tpr + tnr - 1.0
    if youden <= 0.0:
        return 0.0, 1.0
    observed = (pos + z * z / 2.0) / items
    theta = (observed + tnr - 1.0) / youden
    tpr_term, tnr_term = tpr * (1.0 - tpr) / positives, tnr * (1.0 - tnr) / negatives
    variance = observed * (1.0 - observed) / items + theta**2 * tpr_term + (1.0 - theta) ** 2 * tnr_term
    centre = theta + 2.0 * z * z * (theta * tpr_term - (1.0 - theta) * tnr_term)
    reach = z * math.sqrt(variance) / youden
    return max(0.0, min(1.0, centre - reach)), max(0.0, min(1.0, centre + reach))
