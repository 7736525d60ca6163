"""Independent filtering and the adjusted p-values: grid, rejections, chosen theta, threshold, the set removed, BH over the rest.

Sources: DESeq2's `pvalueAdjustment` and genefilter's `filtered_p`. `padj` is compared with BH over exactly the set that the
filter leaves, so a list that was filtered by anything else, or adjusted before filtering, does not pass.
"""

from __future__ import annotations

import math
from array import array

from .artifacts import Analysis
from .findings import Comparison, Ledger, Place, relative_deviation
from .normalization import Base
from .numerics import adjust_bh, bh_rejections, lowess, quantile7

TOLERANCE = 1e-9
_SLACK = 1e-12                  # of `baseMean >= threshold`: both are printed with 15 digits
_GRID = 50
_FILTER_IDS = ("filter-theta-grid", "filter-rejections", "filter-theta", "filter-threshold")


def check_filtering(analysis: Analysis, base: Base, p_values: array, ledger: Ledger) -> None:
    if not analysis.metadata.independent_filtering:
        for name in _FILTER_IDS:
            ledger.not_applicable(name, "independent filtering is off: padj is BH over every gene with a p-value")
        _check_adjusted(analysis, base, p_values, 0.0, ledger)
        return
    grid = theta_grid(base.base_mean)
    ordered = sorted(base.base_mean)
    cutoffs = [quantile7(ordered, theta) for theta in grid]
    rejections = count_rejections(base.base_mean, p_values, cutoffs, analysis.metadata.alpha)
    chosen = choose(grid, rejections)
    _check_grid(analysis, grid, rejections, chosen, ledger)
    used = _used_theta(analysis, base, p_values, grid, cutoffs, chosen)
    check = ledger.add(Comparison("filter-threshold", "filter_threshold = type-7 quantile of baseMean at theta", TOLERANCE))
    stated = analysis.metadata.filter_threshold
    check.number(stated, cutoffs[used], Place(analysis.path("results_metadata"), stated, cutoffs[used], what="filter_threshold"))
    _check_adjusted(analysis, base, p_values, cutoffs[used], ledger)


def theta_grid(base_mean: array) -> list[float]:
    """seq(mean(baseMean == 0), 0.95, length 50); to 1 where 95 % of the genes are empty."""
    low = sum(mean == 0 for mean in base_mean) / len(base_mean)
    high = 0.95 if low < 0.95 else 1.0
    return [low + (high - low) * at / (_GRID - 1) for at in range(_GRID)]


def count_rejections(base_mean: array, p_values: array, cutoffs: list[float], alpha: float) -> list[int]:
    """BH rejections below alpha among the genes at or above each cutoff."""
    tested = [(p, mean) for p, mean in zip(p_values, base_mean) if p == p]
    small = sorted(pair for pair in tested if pair[0] < alpha)
    means = sorted(mean for _, mean in tested)
    found, below = [], 0
    for cutoff in cutoffs:
        least = cutoff * (1 - _SLACK)
        while below < len(means) and means[below] < least:
            below += 1
        found.append(bh_rejections([p for p, mean in small if mean >= least], len(means) - below, alpha))
    return found


def choose(grid: list[float], rejections: list[int]) -> int:
    """The index of theta: the first at which the rejections come within the residual error of the lowess curve's top."""
    if max(rejections) <= 10:
        return 0
    fitted = lowess(grid, rejections, 1 / 5)
    residuals = [count - value for count, value in zip(rejections, fitted) if count > 0]
    top = max(fitted)
    error = math.sqrt(sum(value * value for value in residuals) / len(residuals))
    for least in (top - error, 0.9 * top, 0.8 * top):
        for at, count in enumerate(rejections):
            if count > least:
                return at
    return 0


def _check_grid(analysis: Analysis, grid: list[float], rejections: list[int], chosen: int, ledger: Ledger) -> None:
    metadata, path = analysis.metadata, analysis.path("results_metadata")
    check = ledger.add(Comparison("filter-theta-grid", "thetas = 50 steps from the share of empty genes to 0.95", TOLERANCE))
    check.require(len(metadata.rejections) == _GRID, Place(path, len(metadata.rejections), _GRID, what="length of filter_num_rej"))
    for at, ((theta, _), wanted) in enumerate(zip(metadata.rejections, grid)):
        check.number(theta, wanted, Place(path, theta, wanted, what=f"filter_num_rej/{at}/theta"))
    check = ledger.add(Comparison("filter-rejections", "numRej = BH rejections below alpha at each theta"))
    check.require(len(metadata.rejections) == _GRID, Place(path, len(metadata.rejections), _GRID, what="length of filter_num_rej"))
    for at, ((_, found), wanted) in enumerate(zip(metadata.rejections, rejections)):
        check.require(found == wanted, Place(path, found, wanted, what=f"filter_num_rej/{at}/numRej"))
    check = ledger.add(Comparison("filter-theta", "theta chosen by the lowess rule over numRej", TOLERANCE))
    check.number(metadata.filter_theta, grid[chosen], Place(path, metadata.filter_theta, grid[chosen], what="filter_theta"))


def _used_theta(analysis: Analysis, base: Base, p_values: array, grid: list[float], cutoffs: list[float], chosen: int) -> int:
    """The theta that padj was made with: the chosen one, unless the stated one explains the NAs better."""
    stated = [at for at, theta in enumerate(grid) if relative_deviation(theta, analysis.metadata.filter_theta) <= TOLERANCE]
    padj = analysis.column("results", "padj")

    def contradictions(at: int) -> int:
        least = cutoffs[at] * (1 - _SLACK)
        return sum((mean >= least) != (adjusted == adjusted)
                   for p, mean, adjusted in zip(p_values, base.base_mean, padj) if p == p)

    return min([chosen, *stated], key=contradictions)


def _check_adjusted(analysis: Analysis, base: Base, p_values: array, threshold: float, ledger: Ledger) -> None:
    padj, path, genes = analysis.column("results", "padj"), analysis.path("results"), analysis.genes
    check = ledger.add(Comparison("filter-set", "padj is NA where, and only where, baseMean is below the filter threshold"))
    least, kept = threshold * (1 - _SLACK), []
    for row, (p, mean) in enumerate(zip(p_values, base.base_mean)):
        if p != p:
            continue
        check.compared += 1
        there = padj[row] == padj[row]
        if mean >= least:
            kept.append(row)
        if there != (mean >= least):
            check.wrong(Place(path, padj[row], "NA" if there else "a value", gene=genes[row], column="padj",
                              what=f"baseMean {mean:.15g}, threshold {threshold:.15g}"))
    check = ledger.add(Comparison("padj", "padj = Benjamini-Hochberg over the genes that the filter leaves", TOLERANCE))
    expected = array("d", [math.nan]) * len(padj)
    for row, value in zip(kept, adjust_bh([p_values[row] for row in kept])):
        expected[row] = value
    check.column(padj, expected, genes, path, "padj")
