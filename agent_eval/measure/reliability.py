"""pass@k and pass^k of one case, and their unweighted mean over cases.

Owns: the two unbiased estimators and the rule that they are defined per case only.
Does not own: which trials count as passed (`agent_eval.grade`), nor the wording (`agent_eval.report`).

pass@k answers "can it?" (at least one of k trials passes), pass^k answers "does it every time?" (all k pass).
They are always named and always shown together. Neither may be computed from counts pooled over cases: with
one case at 10/10 and one at 0/10 the pooled 10/20 gives pass^2 = 0.24, while half of the cases never pass and
half always do. Neither may be quoted for trials that share state, cache or sampling seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, fsum

from agent_eval.measure.domain import OutOfDomain, count, count_of, probability


def _drawn(n: int, c: int, k: int) -> tuple[int, int, int]:
    c, n = count_of("c", c, "n", n)
    k = count("k", k, at_least=1)
    if k > n:
        raise OutOfDomain(f"k must be at most n = {n}, not {k}: an estimate is not extrapolated beyond its trials")
    return n, c, k


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that at least one of `k` trials passes, from `c` passes in `n` trials of one case.

    1 - C(n-c, k) / C(n, k), unbiased (Chen et al. 2021). Domain: 0 <= c <= n, 1 <= k <= n, integers;
    otherwise OutOfDomain. Edges: 1.0 when n - c < k, 0.0 when c = 0, c/n when k = 1. Correctly rounded: one
    division of exact integers (`1 - ratio` would lose the digits of a small result).
    Not for: reliability claims, counts pooled over cases, best-of-k chosen with the grader's own labels.
    """
    n, c, k = _drawn(n, c, k)
    if k == 1:
        return c / n
    if n - c < k:
        return 1.0
    if c == 0:
        return 0.0
    ways = comb(n, k)
    return (ways - comb(n - c, k)) / ways


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Probability that all of `k` trials pass (pass^k), from `c` passes in `n` trials of one case.

    C(c, k) / C(n, k), unbiased (tau-bench, Yao et al. 2024). Domain and exactness as for pass_at_k. Edges:
    0.0 when c < k, 1.0 when c = n, c/n when k = 1.
    Not for: capability claims, counts pooled over cases.
    """
    n, c, k = _drawn(n, c, k)
    if k == 1:
        return c / n
    if c < k:
        return 0.0
    if c == n:
        return 1.0
    return comb(c, k) / comb(n, k)


def mean_over_cases(estimates: Iterable[float]) -> float | None:
    """Unweighted mean of per-case estimates, the only suite value that pass@k and pass^k have; None for no case.

    Every case weighs the same however many trials it had; the uncertainty is that of cases, not of
    trials. Raises OutOfDomain for a value outside [0, 1].
    """
    values = [probability("an estimate", value) for value in estimates]
    return fsum(values) / len(values) if values else None
