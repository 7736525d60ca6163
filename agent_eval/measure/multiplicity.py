"""Many hypotheses and many looks: Holm, Benjamini-Hochberg, alpha spending, e-values.

Owns: what a p-value must be multiplied by, what a look may spend, and the any-time valid alternative.
Does not own: the p-values (`exact`), nor the memory of how many looks were taken (a gate's ledger, or whoever
declares `--look`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from agent_eval.measure.beta import betainc_tails, fraction, log_binomial_pmf
from agent_eval.measure.domain import count, level, probability
from agent_eval.measure.exact import INTEGER_LIMIT


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values (Holm 1979), in the order given; controls the family-wise error.

    Running maximum of (m - r) p, at most 1, in exact rationals. [] for []. A value outside [0, 1], NaN or no number
    raises OutOfDomain. Within one look; between looks alpha is spent (alpha_at_look).
    """
    return _adjusted(p, lambda rank, m: Fraction(m - rank), rising=True)


def bh(p: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's step-up adjusted p-values (1995), in the order given; controls the false discovery rate.

    Running minimum of m p / r from the largest. Domain as for holm. For exploratory lists only, never for a gate.
    """
    return _adjusted(p, lambda rank, m: Fraction(m, rank + 1), rising=False)


def _adjusted(p: Sequence[float], factor: Callable[[int, int], Fraction], *, rising: bool) -> list[float]:
    values = [probability(f"p[{index}]", value) for index, value in enumerate(p)]
    m = len(values)
    order = sorted(range(m), key=values.__getitem__)
    adjusted = [0.0] * m
    running = Fraction(0) if rising else Fraction(1)
    for rank in range(m) if rising else reversed(range(m)):
        candidate = min(Fraction(1), Fraction(values[order[rank]]) * factor(rank, m))
        running = max(running, candidate) if rising else min(running, candidate)
        adjusted[order[rank]] = float(running)
    return adjusted


def alpha_at_look(alpha: float, look: int) -> Fraction:
    """What look number `look` may spend of `alpha`: alpha / (look (look + 1)), exact from the decimal literal.

    A union bound over a telescoping sum: all looks, however many, spend at most alpha. Not for looks that were taken and
    not declared. Domain: 0 < alpha < 1, look an integer of at least 1,
    else OutOfDomain. Looks are counted per suite revision and never reset.
    """
    literal = Fraction(repr(level("alpha", alpha)))
    return literal / (count("look", look, at_least=1) * (look + 1))


def evalue_sign_onesided(wins: int, losses: int) -> float:
    """E-value against P(win) <= 1/2: the likelihood ratio averaged uniformly over P(win) in (1/2, 1) (Robbins 1970).

    2^(n+1) B(w+1, l+1) I_{1/2}(l+1, w+1), n = w + l. Promote when it reaches 1/alpha, at any time and however often
    one looks (Ville's inequality). 1.0 for no discordant pair; infinity above the largest double. E-values multiply
    over independent suites, never over looks at the same one. Domain: integer counts of at least 0.
    """
    wins, losses = count("wins", wins), count("losses", losses)
    n = wins + losses
    try:
        if n <= INTEGER_LIMIT:
            return _evalue_by_integers(wins, losses)
        if losses >= wins:
            # The front factors of both terms are the same power of two over the same beta function and cancel.
            return 0.5 / fraction(losses + 1.0, wins + 1.0, 0.5, 0.5, (losses - wins) / 2.0)
        below = betainc_tails(losses + 1, wins + 1, 0.5).lower
        return math.exp(math.log(2.0 * below) - math.log(n + 1.0) - log_binomial_pmf(wins, n, 0.5))
    except OverflowError:
        return math.inf


def _evalue_by_integers(wins: int, losses: int) -> float:
    n = wins + losses
    term = below = 1
    for i in range(losses):
        term = term * (n + 1 - i) // (i + 1)
        below += term
    return ((1 << (n + 1)) - below) / ((n + 1) * math.comb(n, wins))
