"""Arguments outside a formula's domain raise; none of them ever becomes a number."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from agent_eval.measure import agreement, beta, exact, intervals, multiplicity, reliability, standard_errors
from agent_eval.measure.comparison import CaseCounts, compare
from agent_eval.measure.domain import OutOfDomain

NOT_COUNTS = (True, 1.0, 2.5, math.nan, math.inf, -1, "2", None)
NOT_LEVELS = (0.0, 1.0, 0, 1, -0.1, 1.5, math.nan, math.inf, True, "0.95", None)
NOT_PROBABILITIES = (-1e-9, 1.0000001, math.nan, math.inf, True, "0.5", None)

COUNTED: dict[str, tuple[Callable[..., object], dict[str, object], tuple[str, ...]]] = {
    "pass_at_k": (reliability.pass_at_k, {"n": 5, "c": 2, "k": 2}, ("n", "c", "k")),
    "pass_hat_k": (reliability.pass_hat_k, {"n": 5, "c": 2, "k": 2}, ("n", "c", "k")),
    "clopper_pearson": (intervals.clopper_pearson, {"c": 1, "n": 3}, ("c", "n")),
    "clopper_pearson_lower": (intervals.clopper_pearson_lower_one_sided, {"c": 1, "n": 3}, ("c", "n")),
    "clopper_pearson_upper": (intervals.clopper_pearson_upper_one_sided, {"c": 1, "n": 3}, ("c", "n")),
    "wilson": (intervals.wilson, {"c": 1, "n": 3}, ("c", "n")),
    "jeffreys": (intervals.jeffreys, {"c": 1, "n": 3}, ("c", "n")),
    "unpaired": (intervals.newcombe_diff_unpaired, {"c1": 1, "n1": 3, "c2": 1, "n2": 3}, ("c1", "n1", "c2", "n2")),
    "paired": (
        intervals.newcombe_diff_paired,
        {"both": 1, "only_first": 1, "only_second": 1, "neither": 1},
        ("both", "only_first", "only_second", "neither"),
    ),
    "best_belief": (intervals.best_belief, {"successes": 1, "failures": 1}, ("successes", "failures")),
    "hoeffding": (intervals.hoeffding_halfwidth_one_sided, {"n": 3, "alpha": 0.05}, ("n",)),
    "bernstein": (intervals.empirical_bernstein_lower, {"n": 3, "c": 1, "alpha": 0.05}, ("n", "c")),
    "sign": (exact.sign_test_one_sided, {"wins": 1, "losses": 1}, ("wins", "losses")),
    "mcnemar": (exact.mcnemar_exact_two_sided, {"b": 1, "c": 1}, ("b", "c")),
    "greater": (exact.binom_test_greater, {"k": 1, "n": 3, "p0": 0.5}, ("k", "n")),
    "two_sided": (exact.binom_test_two_sided, {"k": 1, "n": 3, "p0": 0.5}, ("k", "n")),
    "wins_needed": (exact.wins_needed, {"losses": 1, "alpha": 0.05}, ("losses",)),
    "look": (multiplicity.alpha_at_look, {"alpha": 0.05, "look": 1}, ("look",)),
    "evalue": (multiplicity.evalue_sign_onesided, {"wins": 1, "losses": 1}, ("wins", "losses")),
    "tpr": (agreement.true_positive_rate, {"tp": 1, "fn": 1}, ("tp", "fn")),
    "tnr": (agreement.true_negative_rate, {"tn": 1, "fp": 1}, ("tn", "fp")),
    "rogan_gladen": (
        agreement.rogan_gladen,
        {"tp": 9, "fn": 1, "tn": 9, "fp": 1, "pos": 5, "m": 10},
        ("tp", "fn", "tn", "fp", "pos", "m"),
    ),
    "rogan_gladen_se": (
        agreement.rogan_gladen_se,
        {"tp": 9, "fn": 1, "tn": 9, "fp": 1, "pos": 5, "m": 10},
        ("tp", "fn", "tn", "fp", "pos", "m"),
    ),
    "prevalence_interval": (
        agreement.prevalence_interval,
        {"tp": 9, "fn": 1, "tn": 9, "fp": 1, "pos": 5, "m": 10},
        ("tp", "fn", "tn", "fp", "pos", "m"),
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_no_count_raises(name: str) -> None:
    function, arguments, counts = COUNTED[name]
    assert function(**arguments) is not None
    for argument in counts:
        for value in NOT_COUNTS:
            with pytest.raises(OutOfDomain):
                function(**{**arguments, argument: value})


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (reliability.pass_at_k, (3, 1, 4)),
        (reliability.pass_hat_k, (0, 0, 1)),
        (reliability.pass_hat_k, (5, 6, 1)),
        (intervals.wilson, (0, 0)),
        (intervals.clopper_pearson, (3, 2)),
        (intervals.newcombe_diff_paired, (0, 0, 0, 0)),
        (intervals.empirical_bernstein_lower, (1, 1, 0.05)),
        (exact.binom_test_greater, (0, 0, 0.5)),
        (agreement.rogan_gladen, (1, 1, 1, 1, 5, 10)),
        (agreement.rogan_gladen, (0, 0, 5, 1, 5, 10)),
        (agreement.rogan_gladen, (5, 1, 0, 0, 5, 10)),
        (agreement.rogan_gladen_se, (5, 1, 5, 1, 0, 0)),
        (agreement.prevalence_interval, (5, 1, 5, 1, 11, 10)),
        (agreement.cohen_kappa, ([[0, 0], [0, 0]],)),
        (agreement.cohen_kappa, ([[1, 2]],)),
        (agreement.cohen_kappa, ([],)),
        (agreement.spearman_rho, ([1], [1])),
        (agreement.spearman_rho, ([1, 2], [1, 2, 3])),
        (agreement.spearman_rho, ([1, math.nan], [1, 2])),
        (standard_errors.paired_diff_se, ([1], [0])),
        (standard_errors.paired_diff_se, ([1, 0], [0])),
        (standard_errors.cluster_se_mean, ([], [])),
        (standard_errors.cluster_se_mean, ([1, True], [0, 1])),
        (standard_errors.cluster_se_mean, ([1, 0], [0])),
    ],
)
def test_impossible_tables_raise(function: Callable[..., object], arguments: tuple) -> None:
    with pytest.raises(OutOfDomain):
        function(*arguments)


@pytest.mark.parametrize("value", NOT_LEVELS)
def test_a_level_lies_strictly_inside(value: object) -> None:
    for call in (
        lambda: intervals.wilson(1, 2, value),
        lambda: intervals.clopper_pearson(0, 2, value),
        lambda: intervals.jeffreys(2, 2, value),
        lambda: intervals.newcombe_diff_unpaired(1, 2, 1, 2, value),
        lambda: intervals.newcombe_diff_paired(1, 1, 1, 1, value),
        lambda: intervals.best_belief(1, 1, value),
        lambda: intervals.hoeffding_halfwidth_two_sided(5, value),
        lambda: intervals.empirical_bernstein_lower(5, 1, value),
        lambda: intervals.norm_ppf(value),
        lambda: multiplicity.alpha_at_look(value, 1),
        lambda: exact.wins_needed(0, value),
        lambda: agreement.prevalence_interval(9, 1, 9, 1, 5, 10, value),
        lambda: compare({"a": CaseCounts(passed=1)}, {"a": CaseCounts(passed=1)}, alpha=value),
    ):
        with pytest.raises(OutOfDomain):
            call()


@pytest.mark.parametrize("value", NOT_PROBABILITIES)
def test_a_probability_lies_in_the_unit_interval(value: object) -> None:
    for call in (
        lambda: multiplicity.holm([0.1, value]),
        lambda: multiplicity.bh([value]),
        lambda: exact.binom_test_greater(1, 2, value),
        lambda: exact.binom_test_two_sided(1, 2, value),
        lambda: beta.betainc_reg(1, 1, value),
        lambda: beta.beta_quantile(value, 1, 1),
        lambda: beta.beta_quantile_upper(value, 1, 1),
        lambda: beta.binomial_pmf(1, 2, value),
        lambda: reliability.mean_over_cases([0.5, value]),
    ):
        with pytest.raises(OutOfDomain):
            call()


@pytest.mark.parametrize("value", [0, 0.0, -1, math.nan, math.inf, True, "1", None, 2e9, 10**400])
def test_a_shape_is_a_positive_number_of_bounded_size(value: object) -> None:
    for call in (
        lambda: beta.betainc_reg(value, 1, 0.5),
        lambda: beta.betainc_reg(1, value, 0.5),
        lambda: beta.beta_quantile(0.5, value, 1),
        lambda: beta.beta_quantile_upper(0.5, 1, value),
    ):
        with pytest.raises(OutOfDomain):
            call()


def test_the_message_names_argument_and_domain() -> None:
    with pytest.raises(OutOfDomain, match=r"c must be at most n = 2, not 3"):
        intervals.wilson(3, 2)
    with pytest.raises(OutOfDomain, match=r"k must be at most n = 3, not 4: an estimate is not extrapolated"):
        reliability.pass_at_k(3, 1, 4)
