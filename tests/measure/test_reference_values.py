"""Reference values that need no file: derived by hand, exact, or from the publications that the formulas come from."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from agent_eval.measure.agreement import (
    cohen_kappa,
    prevalence_interval,
    rogan_gladen,
    rogan_gladen_se,
    spearman_rho,
    true_negative_rate,
    true_positive_rate,
)
from agent_eval.measure.exact import (
    binom_test_greater,
    binom_test_two_sided,
    mcnemar_exact_two_sided,
    sign_test_one_sided,
    wins_needed,
)
from agent_eval.measure.intervals import (
    best_belief,
    clopper_pearson,
    clopper_pearson_lower_one_sided,
    clopper_pearson_upper_one_sided,
    empirical_bernstein_lower,
    hoeffding_halfwidth_one_sided,
    hoeffding_halfwidth_two_sided,
    jeffreys,
    newcombe_diff_paired,
    newcombe_diff_unpaired,
    norm_ppf,
    tail,
    wilson,
)
from agent_eval.measure.multiplicity import alpha_at_look, bh, evalue_sign_onesided, holm
from agent_eval.measure.reliability import mean_over_cases, pass_at_k, pass_hat_k
from agent_eval.measure.standard_errors import cluster_se_mean, paired_diff_se

close = pytest.approx


def test_pass_at_k_and_pass_hat_k_by_counting_subsets() -> None:
    assert (pass_at_k(5, 2, 3), pass_hat_k(5, 2, 3)) == (0.9, 0.0)
    assert (pass_at_k(4, 2, 2), pass_hat_k(4, 2, 2)) == (5 / 6, 1 / 6)
    assert pass_at_k(10, 3, 1) == pass_hat_k(10, 3, 1) == 0.3
    assert (pass_at_k(7, 7, 7), pass_hat_k(7, 7, 7)) == (1.0, 1.0)
    assert (pass_at_k(7, 0, 3), pass_hat_k(7, 0, 3)) == (0.0, 0.0)
    assert pass_at_k(100_000, 1, 3) == close(3e-5, rel=1e-15)


def test_a_mean_over_cases_is_not_a_pooled_count() -> None:
    both = [(10, 10), (10, 0)]
    assert mean_over_cases(pass_hat_k(n, c, 2) for n, c in both) == 0.5
    assert pass_hat_k(20, 10, 2) == close(9 / 38)
    assert mean_over_cases([]) is None


def test_sign_and_mcnemar_by_powers_of_two() -> None:
    assert sign_test_one_sided(5, 0) == 1 / 32
    assert sign_test_one_sided(7, 1) == 9 / 256
    assert sign_test_one_sided(0, 9) == 1.0
    assert sign_test_one_sided(1, 3) == 15 / 16
    assert mcnemar_exact_two_sided(20, 5) == close(0.004077315330505371, rel=1e-15)
    assert mcnemar_exact_two_sided(4, 4) == mcnemar_exact_two_sided(0, 0) == 1.0


def test_wins_needed_is_the_table_of_the_methods() -> None:
    looks = (1, 2, 3, 5, 10, 20)
    table = {0: [6, 7, 8, 10, 12, 14], 1: [8, 10, 11, 13, 15, 17], 2: [10, 12, 13, 15, 17, 19]}
    for losses, expected in table.items():
        assert [wins_needed(losses, float(alpha_at_look(0.05, look))) for look in looks] == expected
    assert wins_needed(0, 0.05) == 5


def test_binomial_tests_by_hand() -> None:
    assert binom_test_greater(3, 3, 0.1) == close(1e-3, rel=1e-14)
    assert binom_test_greater(1, 4, 0.5) == close(15 / 16, rel=1e-14)
    assert binom_test_greater(0, 4, 0.2) == 1.0
    assert binom_test_two_sided(9, 10, 0.5) == close(22 / 1024, rel=1e-13)
    # P(X=0) = .6561 and P(X=1) = .2916 of Bin(4, .1): only outcomes as improbable as 1 count.
    assert binom_test_two_sided(1, 4, 0.1) == close(1 - 0.6561, rel=1e-13)
    assert binom_test_two_sided(0, 5, 0.0) == binom_test_two_sided(5, 5, 1.0) == 1.0


def test_clopper_pearson_edges_have_closed_forms() -> None:
    assert clopper_pearson(0, 20) == (0.0, close(1 - 0.025 ** (1 / 20), rel=1e-14))
    assert clopper_pearson(20, 20) == (close(0.025 ** (1 / 20), rel=1e-14), 1.0)
    assert clopper_pearson_upper_one_sided(0, 40) == close(1 - 0.05 ** (1 / 40), rel=1e-14)
    assert clopper_pearson_lower_one_sided(0, 9) == 0.0
    assert clopper_pearson_upper_one_sided(9, 9) == 1.0
    lower, upper = clopper_pearson(18, 20)
    assert (round(100 * lower, 1), round(100 * upper, 1)) == (68.3, 98.8)


def test_the_exact_bound_is_where_the_exact_test_turns() -> None:
    lower, upper = clopper_pearson(7, 30, 0.9)
    assert binom_test_greater(7, 30, lower) == close(0.05, rel=1e-12)
    assert 1 - binom_test_greater(8, 30, upper) == close(0.05, rel=1e-12)


def test_published_newcombe_examples() -> None:
    # Newcombe 1998 (unpaired), example a: 56/70 - 48/80.
    assert newcombe_diff_unpaired(56, 70, 48, 80) == (close(0.0524, abs=5e-5), close(0.3339, abs=5e-5))
    # Newcombe 1998 (paired), method 10 without correction: mirror images and no discordant pair.
    lower, upper = newcombe_diff_paired(36, 12, 2, 0)
    assert newcombe_diff_paired(36, 2, 12, 0) == (close(-upper), close(-lower))
    assert newcombe_diff_paired(50, 0, 0, 50) == (0.0, 0.0)


def test_wilson_and_jeffreys_edges() -> None:
    z2 = 1.959963984540054**2
    assert wilson(0, 100_000) == (0.0, close(z2 / (100_000 + z2), rel=1e-13))
    assert wilson(5, 5)[1] == 1.0
    assert jeffreys(0, 3)[0] == 0.0
    assert jeffreys(3, 3)[1] == 1.0


def test_bounds_of_a_mean() -> None:
    assert hoeffding_halfwidth_one_sided(50, 0.05) == close(math.sqrt(math.log(20) / 100), rel=1e-15)
    assert hoeffding_halfwidth_two_sided(50, 0.05, 2.0) == close(2 * math.sqrt(math.log(40) / 100), rel=1e-15)
    assert empirical_bernstein_lower(11, 11, 0.05) == close(1 - 7 * math.log(40) / 30, rel=1e-14)


def test_levels_come_from_the_decimal_literal() -> None:
    assert tail(0.95) == 0.025
    assert tail(0.9) == 0.05
    assert norm_ppf(0.975) == close(1.959963984540054, rel=1e-15)
    assert best_belief(1, 0, 0.01) == close(0.1, rel=1e-15)
    assert best_belief(0, 0, 0.05) == close(0.05, rel=1e-15)


def test_multiplicity_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert bh([0.01, 0.04, 0.03]) == [close(0.03), close(0.04), close(0.04)]
    assert holm([]) == bh([]) == []
    assert holm([1, 0]) == [1.0, 0.0]
    assert alpha_at_look(0.05, 3) == Fraction(5, 1200)


def test_evalues_by_integration() -> None:
    # E(w, l) = 2 * integral over (1/2, 1) of (2 t)^w (2 (1 - t))^l
    assert evalue_sign_onesided(0, 0) == 1.0
    assert evalue_sign_onesided(4, 0) == 6.2
    assert evalue_sign_onesided(0, 1) == 0.5
    assert evalue_sign_onesided(0, 100_000) == close(1 / 100_001, rel=1e-12)
    assert evalue_sign_onesided(100_000, 0) == math.inf


def test_agreement_by_hand() -> None:
    assert cohen_kappa([[20, 5], [10, 15]]) == close(0.4)
    assert cohen_kappa([[30, 0], [0, 0]]) is None
    assert spearman_rho([1, 2, 3], [30, 20, 10]) == -1.0
    assert spearman_rho([1, 2, 2, 3], [1, 2, 3, 4]) == close(0.9486832980505138, rel=1e-14)
    assert spearman_rho([1, 1], [1, 2]) is None
    assert (true_positive_rate(9, 1), true_negative_rate(3, 1)) == (0.9, 0.75)


def test_rogan_gladen_by_hand() -> None:
    assert rogan_gladen(90, 10, 90, 10, 70, 100).value == 0.75
    clipped = rogan_gladen(8, 2, 7, 3, 90, 100)
    assert (clipped.value, clipped.unclipped, clipped.clipped) == (1.0, close(1.2), True)
    variance = (0.7 * 0.3 / 100 + 0.75**2 * 0.09 / 100 + 0.25**2 * 0.09 / 100) / 0.8**2
    assert rogan_gladen_se(90, 10, 90, 10, 70, 100) == close(math.sqrt(variance), rel=1e-14)
    lower, upper = prevalence_interval(90, 10, 90, 10, 70, 100)
    assert lower < 0.75 < upper


def test_standard_errors_by_hand() -> None:
    assert paired_diff_se([1, 1, 0, 1], [0, 1, 0, 0]) == (0.5, close(math.sqrt(1 / 12)))
    assert cluster_se_mean([1, 0, 1, 0], ["a", "a", "b", "b"]) == 0.0
    assert cluster_se_mean([1, 1, 0, 0], ["a", "a", "b", "b"]) == close(math.sqrt(2) / 4)
    assert cluster_se_mean([1, 1, 0, 0], [1, 2, 3, 4]) == 0.25
