"""The Wald statistic and its p-value; and what stands in their place with a fold-change threshold or a ratio test.

Owns `wald-stat`, `p-value`, and the alternatives `threshold-stat`, `threshold-p-value`, `lrt-p-value`. Sources: DESeq2's
`results` (lfcThreshold, altHypothesis) and `nbinomLRT`. The statistic of a likelihood-ratio test itself would need the
reduced model to be fitted, and is a limit.
"""

from __future__ import annotations

import math
from array import array

from .artifacts import Analysis
from .findings import Comparison, Ledger, Place, relative_deviation
from .numerics import chi_square_tail, two_sided_p, upper_normal

TOLERANCE = 1e-9
P_FLOOR = 1e-307                # below it doubles lose digits, and R's pnorm ends at abs(z) = 37.52
_ZERO_ABOVE = 37.5


def check_significance(analysis: Analysis, ledger: Ledger) -> array:
    """The checks, and the p-values to go on with: the table's, or the recomputed one where the table's is wrong."""
    metadata = analysis.metadata
    if metadata.test == "LRT":
        reason = "the test is a likelihood-ratio test: its statistic is no ratio of fold change and error"
        ledger.not_applicable("wald-stat", reason)
        ledger.not_applicable("p-value", reason + ", and its p-value is a chi-square tail (see lrt-p-value)")
        ledger.limits.append("the likelihood-ratio statistic itself: it needs the reduced model to be fitted")
        return _check_lrt(analysis, ledger)
    if metadata.lfc_threshold > 0 or metadata.alt_hypothesis != "greaterAbs":
        reason = (f"lfc_threshold is {metadata.lfc_threshold:g} with the alternative {metadata.alt_hypothesis}: "
                  "see threshold-stat and threshold-p-value")
        ledger.not_applicable("wald-stat", reason)
        ledger.not_applicable("p-value", reason)
        return _check_threshold(analysis, ledger)
    return _check_wald(analysis, ledger)


def p_agrees(found: float, expected: float, stat: float) -> bool:
    """Equal to 1e-9 down to 1e-307; below that R prints what is left of a subnormal, or 0 beyond abs(stat) 37.5."""
    if expected >= P_FLOOR:
        return relative_deviation(found, expected) <= TOLERANCE
    if found == 0:
        return abs(stat) > _ZERO_ABOVE
    return abs(found - expected) <= 1e-3 * expected + 1e-322


def _check_wald(analysis: Analysis, ledger: Ledger) -> array:
    lfc, error = analysis.column("results", "log2FoldChange"), analysis.column("results", "lfcSE")
    stat, p_values = analysis.column("results", "stat"), array("d", analysis.column("results", "pvalue"))
    path, genes = analysis.path("results"), analysis.genes
    check = ledger.add(Comparison("wald-stat", "stat = log2FoldChange / lfcSE", TOLERANCE))
    ratios = array("d", [change / spread if spread else math.inf for change, spread in zip(lfc, error)])
    for row, spread in enumerate(error):
        if spread <= 0:
            check.wrong(Place(path, spread, "above 0", gene=genes[row], column="lfcSE"))
    check.column(stat, ratios, genes, path, "stat")
    check = ledger.add(Comparison("p-value", "pvalue = erfc(abs(stat) / sqrt 2)", TOLERANCE))
    for row, (found, z) in enumerate(zip(p_values, stat)):
        if found != found or z != z:
            continue
        check.compared += 1
        expected = two_sided_p(z)
        if p_agrees(found, expected, z):
            continue
        ratio = ratios[row]
        # One of stat and p is wrong. When p follows from LFC/lfcSE it is stat, and wald-stat has said so.
        if z != ratio and p_agrees(found, two_sided_p(ratio), ratio):
            continue
        check.wrong(Place(path, found, expected, gene=genes[row], column="pvalue", what=f"stat is {z:.15g}"),
                    relative_deviation(found, expected))
        p_values[row] = expected
    return _to_go_on_with(check, analysis, p_values)


def _to_go_on_with(check: Comparison, analysis: Analysis, repaired: array) -> array:
    """A few wrong p-values are repaired, so that padj is not blamed for them; where most are wrong, padj rests on the table's."""
    return repaired if 2 * check.off <= check.compared else analysis.column("results", "pvalue")


def threshold_p(change: float, spread: float, threshold: float, alternative: str) -> float:
    """The p-value of DESeq2's `results` with lfcThreshold; change and threshold on the log2 scale."""
    if alternative == "greaterAbs":
        return min(1.0, 2 * upper_normal((abs(change) - threshold) / spread))
    if alternative == "lessAbs":
        return max(upper_normal((threshold - change) / spread), upper_normal((change + threshold) / spread))
    return upper_normal(((change if alternative == "greater" else -change) - threshold) / spread)


def threshold_stat(change: float, spread: float, threshold: float, alternative: str) -> float:
    """The statistic that goes with it: never beyond 0 on the wrong side."""
    if alternative == "greaterAbs":
        return math.copysign(max((abs(change) - threshold) / spread, 0.0), change)
    if alternative == "lessAbs":
        return min(max((threshold - change) / spread, 0.0), max((change + threshold) / spread, 0.0))
    if alternative == "greater":
        return max((change - threshold) / spread, 0.0)
    return min((change + threshold) / spread, 0.0)


def _check_threshold(analysis: Analysis, ledger: Ledger) -> array:
    threshold, alternative = analysis.metadata.lfc_threshold, analysis.metadata.alt_hypothesis
    lfc, error = analysis.column("results", "log2FoldChange"), analysis.column("results", "lfcSE")
    stat, p_values = analysis.column("results", "stat"), array("d", analysis.column("results", "pvalue"))
    path, genes = analysis.path("results"), analysis.genes
    relation = f"with lfc_threshold {threshold:g} and {alternative}"
    stats = ledger.add(Comparison("threshold-stat", f"stat beyond the threshold over lfcSE, {relation}", TOLERANCE))
    tails = ledger.add(Comparison("threshold-p-value", f"pvalue of the normal tail beyond the threshold, {relation}", TOLERANCE))
    for row, (change, spread, z, found) in enumerate(zip(lfc, error, stat, p_values)):
        if change != change or spread != spread:
            continue
        if spread <= 0:
            stats.wrong(Place(path, spread, "above 0", gene=genes[row], column="lfcSE"))
            continue
        wanted = threshold_stat(change, spread, threshold, alternative)
        stats.number(z, wanted, Place(path, z, wanted, gene=genes[row], column="stat"))
        if found != found:
            continue
        expected = threshold_p(change, spread, threshold, alternative)
        tails.compared += 1
        if not p_agrees(found, expected, wanted):
            tails.wrong(Place(path, found, expected, gene=genes[row], column="pvalue"), relative_deviation(found, expected))
            p_values[row] = expected
    return _to_go_on_with(tails, analysis, p_values)


def _check_lrt(analysis: Analysis, ledger: Ledger) -> array:
    """p is the chi-square tail of stat with one number of degrees of freedom for all genes, below the model's columns."""
    stat, p_values = analysis.column("results", "stat"), analysis.column("results", "pvalue")
    path, genes = analysis.path("results"), analysis.genes
    pairs = [(row, z, p) for row, (z, p) in enumerate(zip(stat, p_values)) if z == z and p == p]

    def agrees(z: float, p: float, degrees: int) -> bool:
        return z >= 0 and p_agrees(p, chi_square_tail(z, degrees), math.inf if z > 1400 else 0.0)

    choices = range(1, len(analysis.metadata.columns))
    degrees = max(choices, key=lambda one: sum(agrees(z, p, one) for _, z, p in pairs[:500]), default=1)
    check = ledger.add(Comparison("lrt-p-value", f"stat >= 0 and pvalue = chi-square tail of stat, {degrees} df", TOLERANCE))
    for row, z, p in pairs:
        check.compared += 1
        if not agrees(z, p, degrees):
            expected = chi_square_tail(max(z, 0.0), degrees)
            check.wrong(Place(path, p, expected, gene=genes[row], column="pvalue", what=f"stat is {z:.15g}"),
                        relative_deviation(p, expected))
    return p_values
