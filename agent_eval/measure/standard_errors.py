"""Standard errors of means over cases: clustered, and of paired differences.

Owns: the two formulas of Miller 2024 (arXiv:2411.00640) that describe a mean over cases.
Does not own: tests. These are descriptions for reports; with fewer than ten clusters say so, and use a sign test
over clusters instead.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

from agent_eval.measure.domain import OutOfDomain, real


def cluster_se_mean(x: Sequence[float], cluster: Sequence[Hashable]) -> float:
    """Standard error of the mean of `x` when values of the same cluster move together: sqrt(sum_g S_g^2) / n.

    S_g is the sum of (x - mean) over cluster g; no small-sample correction. In exact rationals, so that a true 0 is
    0.0. Domain: at least one value, finite numbers, one cluster label for each, else OutOfDomain. One single cluster
    gives 0.0, which says that nothing can be said, not that the mean is certain.
    """
    values = _numbers("x", x)
    if len(values) != len(cluster):
        raise OutOfDomain(f"x has {len(values)} values and cluster {len(cluster)} labels")
    if not values:
        raise OutOfDomain("x must hold at least one value")
    n, total = len(values), sum(values)
    sums: dict[Hashable, Fraction | int] = {}
    sizes: dict[Hashable, int] = {}
    for value, label in zip(values, cluster, strict=True):
        sums[label] = sums.get(label, 0) + value
        sizes[label] = sizes.get(label, 0) + 1
    squares = sum((n * sums[label] - sizes[label] * total) ** 2 for label in sums)
    return math.sqrt(Fraction(squares) / n**4)


def paired_diff_se(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Mean of a - b over pairs and its standard error, sd(a - b) / sqrt(n) with the unbiased variance.

    Domain: at least two pairs of finite numbers, else OutOfDomain.
    """
    first, second = _numbers("a", a), _numbers("b", b)
    if len(first) != len(second):
        raise OutOfDomain(f"a has {len(first)} values and b {len(second)}")
    n = len(first)
    if n < 2:
        raise OutOfDomain("there must be at least 2 pairs: the variance of one difference is undefined")
    differences = [left - right for left, right in zip(first, second, strict=True)]
    total = sum(differences)
    squares = n * sum(value * value for value in differences) - total * total
    return float(Fraction(total) / n), math.sqrt(Fraction(squares) / (n * n * (n - 1)))


def _numbers(name: str, values: Sequence[float]) -> list[int | Fraction]:
    """The values as exact numbers; integers stay integers, which keeps 100,000 of them fast."""
    checked = []
    for index, value in enumerate(values):
        number = real(f"{name}[{index}]", value)
        checked.append(value if isinstance(value, int) else Fraction(number))
    return checked
