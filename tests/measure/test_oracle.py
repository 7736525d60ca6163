"""Every reference value of the shared oracle, or of another file of the same form named by STAT_ORACLE."""

from __future__ import annotations

import json
import math
import os
import pathlib
from collections.abc import Callable

import pytest

from agent_eval.measure import agreement, beta, exact, intervals, multiplicity, reliability, standard_errors

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "stat_oracle.json"

FUNCTIONS: dict[str, Callable[..., object]] = {
    "best_belief": intervals.best_belief,
    "betainc_reg": beta.betainc_reg,
    "bh": multiplicity.bh,
    "binom_test_greater": exact.binom_test_greater,
    "binom_test_two_sided": exact.binom_test_two_sided,
    "clopper_pearson": intervals.clopper_pearson,
    "clopper_pearson_lower_one_sided": intervals.clopper_pearson_lower_one_sided,
    "cluster_se_mean": standard_errors.cluster_se_mean,
    "cohen_kappa": agreement.cohen_kappa,
    "empirical_bernstein_lower": intervals.empirical_bernstein_lower,
    "evalue_sign_onesided": multiplicity.evalue_sign_onesided,
    "hoeffding_halfwidth_one_sided": lambda n, alpha, range: intervals.hoeffding_halfwidth_one_sided(n, alpha, range),
    "hoeffding_halfwidth_two_sided": lambda n, alpha, range: intervals.hoeffding_halfwidth_two_sided(n, alpha, range),
    "holm": multiplicity.holm,
    "jeffreys": intervals.jeffreys,
    "mcnemar_exact_two_sided": exact.mcnemar_exact_two_sided,
    "newcombe_diff_paired": intervals.newcombe_diff_paired,
    "newcombe_diff_unpaired": intervals.newcombe_diff_unpaired,
    "norm_ppf": intervals.norm_ppf,
    "paired_diff_se": standard_errors.paired_diff_se,
    "pass_at_k": reliability.pass_at_k,
    "pass_hat_k": reliability.pass_hat_k,
    "rogan_gladen": lambda **inputs: agreement.rogan_gladen(**inputs).value,
    "rogan_gladen_se": agreement.rogan_gladen_se,
    "sign_test_one_sided": exact.sign_test_one_sided,
    "spearman_rho": agreement.spearman_rho,
    "wilson": intervals.wilson,
}
"""Function name in the oracle -> ours. All of its 27."""


def oracle_path() -> pathlib.Path:
    return pathlib.Path(os.environ.get("STAT_ORACLE") or SHARED)


def oracle_cases() -> list[dict]:
    """The cases; none when there is no file, which test_the_oracle_is_there reports as skipped."""
    try:
        return json.loads(oracle_path().read_text(encoding="utf-8"))["cases"]
    except FileNotFoundError:
        return []


CASES = oracle_cases()


def close(got: object, expected: object, rtol: float, atol: float) -> bool:
    """The oracle's own rule, value by value; null means undefined and nothing else does."""
    if isinstance(expected, list):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(expected)
            and all(close(one, other, rtol, atol) for one, other in zip(got, expected, strict=True))
        )
    if expected is None or got is None:
        return expected is got
    return math.isfinite(got) and abs(got - expected) <= atol + rtol * abs(expected)


def test_the_oracle_is_there() -> None:
    if not oracle_path().is_file():
        if os.environ.get("STAT_ORACLE"):
            pytest.fail(f"STAT_ORACLE names {oracle_path()}, which is not there")
        pytest.skip("skipped: ../shared/stat_oracle.json is not there")
    assert CASES
    assert {case["fn"] for case in CASES} <= set(FUNCTIONS)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_reference_value(case: dict) -> None:
    function = FUNCTIONS[case["fn"]]
    if "expected_error" in case:
        with pytest.raises((ValueError, TypeError)):
            function(**case["inputs"])
        return
    got = function(**case["inputs"])
    assert close(got, case["expected"], case["rtol"], case["atol"]), f"got {got!r}, expected {case['expected']!r}"
