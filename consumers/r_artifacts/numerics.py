"""The numerical methods that the checks rest on: quantiles, lowess, BH, F and chi-square tails, small linear systems.

Pure functions over plain numbers; knows no file and no gene. Sources: Cleveland's lowess as in R's clowess.c; F quantile by
Lentz's continued fraction of the incomplete beta function; type-7 quantile as in R's `quantile`; BH as in `p.adjust`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile7(ordered: Sequence[float], probability: float) -> float:
    """R's default quantile of a sorted sequence: linear between order statistics."""
    position = (len(ordered) - 1) * probability
    low = min(math.floor(position + 4 * 2.220446049250313e-16), len(ordered) - 1)
    fraction = position - low
    if fraction <= 0 or low + 1 >= len(ordered):
        return ordered[low]
    return (1 - fraction) * ordered[low] + fraction * ordered[low + 1]


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle. Not empty."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def trimmed_mean(values: Sequence[float], trim: float) -> float:
    """R's mean(x, trim =): that fraction is taken off each end."""
    ordered = sorted(values)
    cut = int(len(ordered) * trim)
    kept = ordered[cut:len(ordered) - cut]
    return sum(kept) / len(kept)


def adjust_bh(p_values: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg of p-values without NA, in the given order."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    total, least = len(p_values), 1.0
    adjusted = [0.0] * total
    for at, index in enumerate(order):
        least = min(least, total / (total - at) * p_values[index])
        adjusted[index] = least
    return adjusted


def bh_rejections(ascending: Sequence[float], total: int, alpha: float) -> int:
    """How many of `total` p-values BH rejects strictly below alpha; `ascending` holds at least those below alpha."""
    for rank in range(len(ascending), 0, -1):
        if total / rank * ascending[rank - 1] < alpha:
            return rank
    return 0


def two_sided_p(stat: float) -> float:
    """2 * pnorm(-abs(stat)): against R within 4.4e-13 down to 1e-307."""
    return math.erfc(abs(stat) / math.sqrt(2.0))


def upper_normal(z: float) -> float:
    """pnorm(z, lower.tail = FALSE)."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def chi_square_tail(value: float, degrees: int) -> float:
    """Upper tail of chi-square with a whole number of degrees of freedom, value >= 0."""
    half = value / 2
    if degrees % 2:
        tail, shape = math.erfc(math.sqrt(half)), 0.5
    else:
        tail, shape = math.exp(-half), 1.0
    while shape < degrees / 2:
        if half > 0:
            tail += math.exp(shape * math.log(half) - half - math.lgamma(shape + 1))
        shape += 1
    return tail


def f_quantile(probability: float, df1: int, df2: int) -> float:
    """qf(probability, df1, df2) by bisection of the F distribution on the log scale."""
    low, high = -50.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        value = math.exp(middle)
        # the upper tail keeps its digits where the lower is near 1
        if _beta_fraction(df2 / 2, df1 / 2, df2 / (df2 + df1 * value)) > 1 - probability:
            low = middle
        else:
            high = middle
        if high - low < 1e-15:
            break
    return math.exp((low + high) / 2)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_fraction(b, a, 1 - x)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a
    tiny, numerator = 1e-300, 1.0
    denominator = 1 - (a + b) * x / (a + 1)
    denominator = 1 / (denominator if abs(denominator) > tiny else tiny)
    result = denominator
    for m in range(1, 500):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            denominator = 1 + term * denominator
            denominator = 1 / (denominator if abs(denominator) > tiny else tiny)
            numerator = 1 + term / numerator
            numerator = numerator if abs(numerator) > tiny else tiny
            step = denominator * numerator
            result *= step
        if abs(step - 1) < 1e-16:
            break
    return front * result


def digamma(x: float) -> float:
    """Digamma for x > 0: recurrence up to 8, then the asymptotic series (about 1e-13)."""
    value = 0.0
    while x < 8:
        value -= 1 / x
        x += 1
    f = 1 / (x * x)
    return value + math.log(x) - 0.5 / x - f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f * (1 / 240 - f / 132))))


def trigamma(x: float) -> float:
    """Trigamma for x > 0, likewise."""
    value = 0.0
    while x < 12:
        value += 1 / (x * x)
        x += 1
    f = 1 / (x * x)
    return value + 1 / x + f / 2 + f / x * (1 / 6 - f * (1 / 30 - f * (1 / 42 - f * (1 / 30 - f * 5 / 66))))


def factorize(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """LDL' of a symmetric positive matrix (L below the diagonal, 1/D on it); None where it is singular."""
    size = len(matrix)
    factor = [[0.0] * size for _ in range(size)]
    pivots = [0.0] * size
    for i in range(size):
        row, source = factor[i], matrix[i]
        for j in range(i):
            other, value = factor[j], source[j]
            for k in range(j):
                value -= row[k] * other[k] * pivots[k]
            row[j] = value / pivots[j]
        pivot = source[i]
        for k in range(i):
            pivot -= row[k] * row[k] * pivots[k]
        if not pivot > 1e-12 * abs(source[i]):
            return None
        pivots[i] = pivot
    for i in range(size):
        factor[i][i] = 1 / pivots[i]
    return factor


def solve(factor: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """x of A x = right, with the factor of A."""
    size, x = len(factor), list(right)
    for i in range(1, size):
        row, value = factor[i], x[i]
        for k in range(i):
            value -= row[k] * x[k]
        x[i] = value
    for i in range(size - 1, -1, -1):
        value = x[i] * factor[i][i]
        for k in range(i + 1, size):
            value -= factor[k][i] * x[k]
        x[i] = value
    return x


def lowess(x: Sequence[float], y: Sequence[float], span: float, iterations: int = 3) -> list[float]:
    """R's lowess(x, y, f = span): x sorted, delta = 1 % of its range."""
    n = len(x)
    window = max(min(int(span * n + 1e-7), n), 2)
    delta = 0.01 * (x[-1] - x[0])
    fitted, robust = [0.0] * n, [1.0] * n
    for iteration in range(iterations + 1):
        _lowess_pass(x, y, window, delta, robust if iteration else None, fitted)
        if iteration == iterations:
            break
        residuals = [abs(y[i] - fitted[i]) for i in range(n)]
        scale = sum(residuals) / n
        middle = 6 * median(residuals)     # R: 3 * (sum of the two middle ones)
        if middle < 1e-7 * scale:
            break
        for i, residual in enumerate(residuals):
            if residual <= 0.001 * middle:
                robust[i] = 1.0
            elif residual <= 0.999 * middle:
                robust[i] = (1 - (residual / middle) ** 2) ** 2
            else:
                robust[i] = 0.0
    return fitted


def _lowess_pass(x: Sequence[float], y: Sequence[float], window: int, delta: float,
                 robust: Sequence[float] | None, fitted: list[float]) -> None:
    n = len(x)
    left, right, last, i = 0, window - 1, -1, 0
    while True:
        while right < n - 1 and x[i] - x[left] > x[right + 1] - x[i]:
            left, right = left + 1, right + 1
        value = _lowess_fit(x, y, x[i], left, right, robust)
        fitted[i] = y[i] if value is None else value
        if last < i - 1:
            width = x[i] - x[last]
            for j in range(last + 1, i):
                share = (x[j] - x[last]) / width
                fitted[j] = share * fitted[i] + (1 - share) * fitted[last]
        last = i
        cut = x[last] + delta
        i = last + 1
        while i < n and x[i] <= cut:
            if x[i] == x[last]:
                fitted[i] = fitted[last]
                last = i
            i += 1
        i = max(last + 1, i - 1)
        if last >= n - 1:
            return


def _lowess_fit(x: Sequence[float], y: Sequence[float], at: float, left: int, right: int,
                robust: Sequence[float] | None) -> float | None:
    n = len(x)
    spread = x[-1] - x[0]
    reach = max(at - x[left], x[right] - at)
    far, near = 0.999 * reach, 0.001 * reach
    weights: list[tuple[int, float]] = []
    for j in range(left, n):
        distance = abs(x[j] - at)
        if distance <= far:
            weight = 1.0 if distance <= near else (1 - (distance / reach) ** 3) ** 3
            weights.append((j, weight * robust[j] if robust else weight))
        elif x[j] > at:
            break
    total = sum(weight for _, weight in weights)
    if total <= 0:
        return None
    weights = [(j, weight / total) for j, weight in weights]
    if reach > 0:
        centre = sum(weight * x[j] for j, weight in weights)
        slope = at - centre
        moment = sum(weight * (x[j] - centre) ** 2 for j, weight in weights)
        if math.sqrt(moment) > 0.001 * spread:
            slope /= moment
            weights = [(j, weight * (slope * (x[j] - centre) + 1)) for j, weight in weights]
    return sum(weight * y[j] for j, weight in weights)
