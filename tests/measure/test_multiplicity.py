"""Many hypotheses, many looks."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from agent_eval.measure.multiplicity import alpha_at_look, bh, evalue_sign_onesided, holm


def test_adjusted_values_keep_the_order_given() -> None:
    p = [0.2, 0.001, 0.04, 0.001, 1.0]
    for adjust in (holm, bh):
        got = adjust(p)
        assert len(got) == 5
        assert got[1] == got[3] == min(got)
        assert [got[i] >= p[i] for i in range(5)] == [True] * 5
        assert sorted(range(5), key=lambda i: (p[i], i)) == sorted(range(5), key=lambda i: (got[i], p[i], i))


def test_holm_is_at_most_bonferroni_and_bh_at_most_holm() -> None:
    source = random.Random(3)
    for _ in range(50):
        p = [source.random() ** 3 for _ in range(source.randint(1, 12))]
        for strict, loose, plain in zip(holm(p), bh(p), p, strict=True):
            assert loose <= strict <= min(1.0, plain * len(p)) + 1e-12


def test_the_input_is_left_alone() -> None:
    p = [0.5, 0.1]
    holm(p)
    bh(p)
    assert p == [0.5, 0.1]


def test_all_looks_together_spend_at_most_alpha() -> None:
    spent = sum(alpha_at_look(0.05, look) for look in range(1, 2001))
    assert spent < Fraction("0.05")
    assert spent == Fraction("0.05") * Fraction(2000, 2001)
    assert alpha_at_look(0.05, 1) == Fraction("0.025")


def test_an_evalue_may_be_looked_at_any_time() -> None:
    source = random.Random(5)
    false_positives = 0
    runs = 1500
    for _ in range(runs):
        wins = losses = 0
        for _ in range(60):
            if source.random() < 0.5:
                wins += 1
            else:
                losses += 1
            if evalue_sign_onesided(wins, losses) >= 20:
                false_positives += 1
                break
    assert false_positives / runs <= 0.05
    assert evalue_sign_onesided(48, 12) > 1e4


def test_an_evalue_has_expectation_one_under_the_null() -> None:
    from math import comb

    for n in (1, 5, 30):
        mean = sum(comb(n, w) * Fraction(evalue_sign_onesided(w, n - w)) for w in range(n + 1)) / 2**n
        assert float(mean) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("wins", "losses"), [(3000, 2001), (2001, 3000), (50_500, 49_500), (1, 6000), (0, 5001)])
def test_large_evalues_continue_the_exact_ones(wins: int, losses: int) -> None:
    n = wins + losses
    # E(w, l) obeys (n+2) (E(w+1, l) + E(w, l+1)) = 2 (n+2) E(w, l), whatever branch computes each.
    assert (evalue_sign_onesided(wins + 1, losses) + evalue_sign_onesided(wins, losses + 1)) == pytest.approx(
        2 * evalue_sign_onesided(wins, losses), rel=1e-9
    ), n
