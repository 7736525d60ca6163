"""The regularised incomplete beta function I_x(a, b) and its quantile, to about 13 digits in the smaller tail.

Owns: I_x(a, b) with both tails, the binomial point probability, and quantiles from either tail.
Does not own: intervals and tests built on them (`intervals`, `exact`, `multiplicity`).

Three traps of the usual implementations were measured, and are why this is not ten lines:
a front factor from `lgamma` differences loses 1e-10 at n = 1e5 (here: Loader 2000, saddle point with the
deviation given exactly); the continued fraction of Numerical Recipes cancels near x = 1 (here: DiDonato and
Morris 1992, TOMS 708 BFRAC, positive terms on the side it is used); and 1 - p loses the small tail (here: both
tails are carried).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agent_eval.measure.domain import OutOfDomain, count_of, positive, probability

_EPSILON = 2.0**-53
_MAX_TERMS = 100_000
_LARGEST = 1e9
_LOG_SMALLEST = math.log(2.0**-1022)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


@dataclass(frozen=True, slots=True)
class Tails:
    """`lower` = I_x(a, b) and `upper` = 1 - I_x(a, b), each computed for itself where it is the smaller one."""

    lower: float
    upper: float


def betainc_reg(a: float, b: float, x: float) -> float:
    """I_x(a, b), the distribution function of Beta(a, b) at x.

    Domain: 0 < a, b <= 1e9, 0 <= x <= 1, else OutOfDomain. Edges: 0.0 at x = 0, 1.0 at x = 1. For a value
    near 1 whose complement matters use betainc_tails.
    """
    return betainc_tails(a, b, x).lower


def betainc_tails(a: float, b: float, x: float) -> Tails:
    """Both tails of Beta(a, b) at x; domain and edges as for betainc_reg."""
    return _tails(_shape("a", a), _shape("b", b), probability("x", x))


def _shape(name: str, value: object) -> float:
    number = positive(name, value)
    if number > _LARGEST:
        raise OutOfDomain(f"{name} must be at most {_LARGEST:g}, not {number}")
    return number


def _tails(a: float, b: float, x: float) -> Tails:
    if x == 0.0:
        return Tails(0.0, 1.0)
    if x == 1.0:
        return Tails(1.0, 0.0)
    y = 1.0 - x
    deviation = _deviation(a, b, x, y)
    front = math.exp(_log_front(a, b, x, y, deviation))
    # a*y - b*x equals the deviation a - (a+b)x: at or below the mean the fraction is positive for the lower tail.
    if deviation >= 0.0:
        lower = min(1.0, front / fraction(a, b, x, y, deviation))
        return Tails(lower, 1.0 - lower)
    upper = min(1.0, front / fraction(b, a, y, x, -deviation))
    return Tails(1.0 - upper, upper)


def _deviation(a: float, b: float, x: float, y: float) -> float:
    """a - (a+b)x without the rounding of the product; 1 - x is exact only for x >= 1/2, so use the smaller of x, y."""
    n = a + b
    if x <= y:
        high, low = _exact_product(n, x)
        return (a - high) - low
    high, low = _exact_product(n, y)
    return (high - b) + low


def _exact_product(left: float, right: float) -> tuple[float, float]:
    """Dekker's product: high + low equals left * right exactly (barring overflow); math.fma needs Python 3.13."""
    high = left * right
    left_high, left_low = _split(left)
    right_high, right_low = _split(right)
    low = ((left_high * right_high - high) + left_high * right_low + left_low * right_high) + left_low * right_low
    return high, low


def _split(value: float) -> tuple[float, float]:
    scaled = 134217729.0 * value  # 2**27 + 1, Veltkamp
    high = scaled - (scaled - value)
    return high, value - high


def _stirling_error(n: float) -> float:
    """log(Gamma(n+1)) minus Stirling's formula; the series from n = 16, where it is exact to double precision."""
    if n < 16.0:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - _HALF_LOG_TWO_PI
    square = n * n
    total = 0.0
    for coefficient in reversed(_STIRLING):
        total = total / square + coefficient
    return total / n


def _deviance(observed: float, n: float, x: float, deviation: float) -> float:
    """observed * log(observed/(n x)) + n x - observed, with `deviation` = observed - n x given exactly."""
    ratio = deviation / (observed + n * x)
    if abs(ratio) >= 0.5:
        return observed * (math.log(observed / n) - math.log(x)) - deviation
    total = deviation * ratio
    term = 2.0 * observed * ratio
    square = ratio * ratio
    for odd in range(3, 200, 2):
        term *= square
        step = term / odd
        total += step
        if abs(step) <= _EPSILON * abs(total):
            break
    return total


def _log_binomial(successes: float, failures: float, x: float, y: float, deviation: float) -> float:
    """log of Gamma(n+1)/(Gamma(s+1)Gamma(f+1)) x^s y^f for positive real s, f with n = s + f (Loader 2000)."""
    n = successes + failures
    return (
        _stirling_error(n)
        - _stirling_error(successes)
        - _stirling_error(failures)
        - _deviance(successes, n, x, deviation)
        - _deviance(failures, n, y, -deviation)
        + 0.5 * math.log(n / (successes * failures))
        - _HALF_LOG_TWO_PI
    )


def _log_front(a: float, b: float, x: float, y: float, deviation: float) -> float:
    """log of x^a y^b / B(a, b)."""
    return _log_binomial(a, b, x, y, deviation) + math.log(a) + math.log(b / (a + b))


def fraction(a: float, b: float, x: float, y: float, deviation: float) -> float:
    """DiDonato and Morris's continued fraction F with I_x(a, b) = x^a y^b / (B(a, b) F), for deviation >= 0.

    Evaluated by the modified Lentz method. `deviation` is a - (a+b)x, `y` is 1 - x. Raises ArithmeticError when it
    does not settle in 100,000 terms (never met in the domain).
    """
    tiny = 1e-300
    value = a * (deviation + 1.0) / (a + 1.0) or tiny
    numerator_ratio, denominator_ratio = value, 0.0
    for m in range(1, _MAX_TERMS):
        odd = a + 2.0 * m - 1.0
        term = (a + m - 1.0) / odd * ((a + b + m - 1.0) / odd) * m * (b - m) * x * x
        step = m + m * (b - m) * x / odd + (a + m) * (deviation + 1.0 + m * (1.0 + y)) / (odd + 2.0)
        denominator_ratio = 1.0 / ((step + term * denominator_ratio) or tiny)
        numerator_ratio = (step + term / numerator_ratio) or tiny
        change = numerator_ratio * denominator_ratio
        value *= change
        if abs(change - 1.0) <= 2.0 * _EPSILON:
            return value
    raise ArithmeticError(f"incomplete beta did not settle at a={a}, b={b}, x={x}")


def binomial_pmf(k: int, n: int, p: float) -> float:
    """P(X = k) for X ~ Bin(n, p), to about 14 digits. Domain: 0 <= k <= n, n >= 1, 0 <= p <= 1, else OutOfDomain."""
    k, n = count_of("k", k, "n", n)
    return math.exp(log_binomial_pmf(k, n, probability("p", p)))


def log_binomial_pmf(k: int, n: int, p: float) -> float:
    """log P(X = k) for X ~ Bin(n, p), minus infinity where it is impossible; arguments as checked by the caller."""
    if p in (0.0, 1.0):
        return 0.0 if k == p * n else -math.inf
    if k == 0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    return _log_binomial(k, n - k, p, 1.0 - p, _deviation(k, n - k, p, 1.0 - p))


def beta_quantile(q: float, a: float, b: float) -> float:
    """x with I_x(a, b) = q. Domain: 0 <= q <= 1, 0 < a, b <= 1e9, else OutOfDomain. Edges: 0.0, 1.0.

    Where the tail that is known is the upper one (q near 1), beta_quantile_upper keeps its digits.
    """
    q = probability("q", q)
    return _quantile(_shape("a", a), _shape("b", b), q, 1.0 - q)


def beta_quantile_upper(q: float, a: float, b: float) -> float:
    """x with 1 - I_x(a, b) = q; domain as for beta_quantile, so that a small upper tail loses no digit."""
    q = probability("q", q)
    return _quantile(_shape("a", a), _shape("b", b), 1.0 - q, q)


def _quantile(a: float, b: float, lower: float, upper: float) -> float:
    if lower == 0.0 or upper == 0.0:
        return 0.0 if lower == 0.0 else 1.0
    if b == 1.0:
        return math.exp(_log_of(lower, upper) / a)
    if a == 1.0:
        return -math.expm1(_log_of(upper, lower) / b)
    middle = _tails(a, b, 0.5)
    below = middle.lower >= lower if lower <= upper else middle.upper <= upper
    if below:
        return _root(a, b, lower, upper)
    return 1.0 - _root(b, a, upper, lower)


def _log_of(value: float, complement: float) -> float:
    return math.log(value) if value <= 0.5 else math.log1p(-complement)


def _root(a: float, b: float, lower: float, upper: float) -> float:
    """The quantile known to lie in (0, 1/2]: bracketed Newton on u = log x for the log of the smaller tail.

    On that scale the tail is nearly straight, so that few steps suffice, and the relative error of x is what is
    driven to zero, also for x near 1e-300.
    """
    use_lower = lower <= upper
    target = math.log(lower if use_lower else upper)
    low, high = _LOG_SMALLEST, -math.log(2.0)
    u = max(low, min(high, math.log(a / (a + b)) if a > 1.0 else math.log(lower) / a))
    for _ in range(200):
        x = math.exp(u)
        tails = _tails(a, b, x)
        tail = tails.lower if use_lower else tails.upper
        if tail <= 0.0:
            gap, step = (-math.inf if use_lower else math.inf), math.inf
        else:
            gap = math.log(tail) - target if use_lower else target - math.log(tail)
            density = math.exp(_log_front(a, b, x, 1.0 - x, _deviation(a, b, x, 1.0 - x))) / (1.0 - x)
            step = gap * tail / density if density > 0.0 else math.inf
        if gap > 0.0:
            if u == _LOG_SMALLEST:
                return 0.0
            high = u
        else:
            low = u
        following = u - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - u) <= 2.0 * _EPSILON * max(1.0, abs(u)) or gap == 0.0:
            return x
        u = following
    raise OutOfDomain(f"no quantile found for a={a}, b={b}, tails {lower} and {upper}")
