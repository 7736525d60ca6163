"""From the raw counts up: library sizes, size factors, normalized counts, baseMean, and which values must be NA.

Everything later rests on what is recomputed here from the counts, not on the tables, so that one tampered value fails its
own check and not twenty others. Source: Love, Huber & Anders 2014 (median of ratios); DESeq2's `replaceOutliers`.
"""

from __future__ import annotations

import itertools
import math
from array import array
from dataclasses import dataclass, field

from .artifacts import Analysis
from .design import REPLICATES_FOR_COOKS, REPLICATES_FOR_REPLACEMENT, Design
from .findings import Comparison, Ledger, Place, relative_deviation
from .numerics import median, trimmed_mean

TOLERANCE = 1e-9
_MAX_REPLACED = 3               # samples of one gene, tried in every combination
_MAX_COMBINATIONS = 2_000_000   # of all genes together
_NULLABLE = {"results": ("log2FoldChange", "lfcSE", "stat", "pvalue"),
             "dispersions": ("dispGeneEst", "dispFit", "dispMAP", "dispOutlier", "dispersion"),
             "lfc_shrunken": ("log2FoldChange", "lfcSE")}


@dataclass(slots=True)
class Base:
    """What the counts alone say. `replaced` holds the counts DESeq2 fitted instead, where it replaced outliers."""

    size_factors: list[float]
    base_mean: array
    expressed: bytearray
    replaced: dict[int, tuple[float, ...]] = field(default_factory=dict)


def check_normalization(analysis: Analysis, design: Design, ledger: Ledger) -> Base | None:
    """All of it; None where no size factors can be computed."""
    _check_library_sizes(analysis, ledger)
    size_factors = _check_size_factors(analysis, ledger)
    if size_factors is None:
        return None
    columns = [array("d", [count / size for count in column]) for column, size in zip(analysis.counts, size_factors)]
    _check_normalized(analysis, columns, ledger)
    number = len(columns)
    base = Base(size_factors, array("d", [sum(row) / number for row in zip(*columns)]),
                bytearray(1 if any(row) else 0 for row in analysis.rows()))
    _check_base_mean(analysis, design, base, columns, ledger)
    _check_missing(analysis, design, base, ledger)
    return base


def _check_library_sizes(analysis: Analysis, ledger: Ledger) -> None:
    check = ledger.add(Comparison("library-sizes", "library_size = sum of the sample's counts"))
    stated = analysis.column("size_factors", "library_size")
    for sample, column, found in zip(analysis.samples, analysis.counts, stated):
        check.number(found, math.fsum(column), Place(
            analysis.path("size_factors"), found, math.fsum(column), sample=sample, column="library_size"))


def _check_size_factors(analysis: Analysis, ledger: Ledger) -> list[float] | None:
    check = ledger.add(Comparison("size-factors", "size factor = median ratio to the geometric mean, over genes without a zero",
                                  TOLERANCE))
    logs = [[math.log(count) for count in row] for row in analysis.rows() if all(row)]
    if not check.require(bool(logs), Place(analysis.path("counts"), what="no gene has counts in every sample: no median of ratios")):
        return None
    means = [math.fsum(row) / len(row) for row in logs]
    expected = [math.exp(median([row[at] - mean for row, mean in zip(logs, means)])) for at in range(len(analysis.samples))]
    for sample, found, wanted in zip(analysis.samples, analysis.column("size_factors", "size_factor"), expected):
        check.number(found, wanted, Place(analysis.path("size_factors"), found, wanted, sample=sample, column="size_factor"))
    return expected


def _check_normalized(analysis: Analysis, columns: list[array], ledger: Ledger) -> None:
    check = ledger.add(Comparison("normalized-counts", "normalized count = count / size factor", TOLERANCE))
    for sample, found, wanted in zip(analysis.samples, analysis.normalized, columns):
        check.column(found, wanted, analysis.genes, analysis.path("normalized_counts"), sample=sample)


def _check_base_mean(analysis: Analysis, design: Design, base: Base, columns: list[array], ledger: Ledger) -> None:
    check = ledger.add(Comparison("base-mean", "baseMean = mean of the gene's normalized counts", TOLERANCE))
    stated = analysis.column("results", "baseMean")
    replaceable = design.with_replicates(REPLICATES_FOR_REPLACEMENT) if analysis.metadata.counts_replaced else ()
    budget = _MAX_COMBINATIONS
    if replaceable:
        for row, (found, wanted) in enumerate(zip(stated, base.base_mean)):
            if base.expressed[row] and relative_deviation(found, wanted) > TOLERANCE and budget > 0:
                counts, tried = _replacement(found, [column[row] for column in columns], base.size_factors, replaceable)
                budget -= tried
                if counts is not None:
                    base.replaced[row] = tuple(analysis.counts[at][row] if new is None else new
                                               for at, new in enumerate(counts))
                    base.base_mean[row] = found
        check.notes.append(f"the {len(base.replaced)} genes whose outlier counts DESeq2 replaced are compared "
                           "with the mean after such a replacement")
        check.require(bool(base.replaced), Place(analysis.path("results_metadata"), True, False, what=(
            "counts_replaced, but no baseMean is that of replaced counts")))
    check.column(stated, base.base_mean, analysis.genes, analysis.path("results"), "baseMean")


def _replacement(found: float, normalized: list[float], size_factors: list[float],
                 replaceable: tuple[int, ...]) -> tuple[list[float | None] | None, int]:
    """Which counts, replaced as `replaceOutliers` does, give this baseMean: per sample the new count or None.

    An outlier becomes as.integer(trimmed mean * size factor), trim 0.2. Without such an explanation a baseMean that is not
    the row mean stays a fault: `counts_replaced` excuses nothing by itself.
    """
    middle = trimmed_mean(normalized, 0.2)
    number, total, tried = len(normalized), sum(normalized), 0
    new = [float(int(middle * size)) for size in size_factors]
    change = [value / size - old for value, size, old in zip(new, size_factors, normalized)]
    ranked = sorted(replaceable, key=lambda at: -abs(change[at]))[:40]
    for many in range(1, _MAX_REPLACED + 1):
        for chosen in itertools.combinations(ranked, many):
            tried += 1
            mean = (total + sum(change[at] for at in chosen)) / number
            if abs(mean - found) <= TOLERANCE * max(abs(found), 1e-3 * total / number):
                return [new[at] if at in chosen else None for at in range(number)], tried
    return None, tried


def _check_missing(analysis: Analysis, design: Design, base: Base, ledger: Ledger) -> None:
    """NA exactly where DESeq2 leaves it. p of a Cook's outlier is left to `cooks-rule`, padj to `filter-set`."""
    check = ledger.add(Comparison("missing-values", "NA where, and only where, all counts of a gene are 0"))
    columns = [(role, name, analysis.column(role, name)) for role, names in _NULLABLE.items() for name in names]
    columns += [("coefficients", name, analysis.column("coefficients", name))
                for name in analysis.tables["coefficients"].names]
    replicates = bool(design.with_replicates(REPLICATES_FOR_COOKS))
    for role, name, column in columns:
        missing = bytearray(value == value for value in column)     # 1 where there is a value, as in `expressed`
        check.compared += len(missing)
        if missing == base.expressed:
            continue
        for row, (there, expressed) in enumerate(zip(missing, base.expressed)):
            if there == expressed or (name == "pvalue" and replicates and expressed):
                continue
            check.wrong(Place(analysis.path(role), column[row], "a value" if expressed else "NA", gene=analysis.genes[row],
                              column=name, what="" if expressed else "all counts of the gene are 0"))
    _check_missing_cooks(analysis, base, replicates, check)
    _check_missing_padj(analysis, check)


def _check_missing_cooks(analysis: Analysis, base: Base, replicates: bool, check: Comparison) -> None:
    path, distances = analysis.path("dispersions"), analysis.column("dispersions", "maxCooks")
    samples = analysis.tables["dispersions"].texts["maxCooksSample"]
    known = set(analysis.samples)
    for row, (distance, sample) in enumerate(zip(distances, samples)):
        wanted = bool(base.expressed[row]) and replicates
        check.compared += 1
        if (distance == distance) != wanted:
            check.wrong(Place(path, distance, "a value" if wanted else "NA", gene=analysis.genes[row], column="maxCooks",
                              what="" if replicates else "no cell of the design has 3 replicates"))
        elif (sample in known) != wanted or (sample is not None) != wanted:
            check.wrong(Place(path, sample or "NA", "a sample" if wanted else "NA", gene=analysis.genes[row],
                              column="maxCooksSample"))


def _check_missing_padj(analysis: Analysis, check: Comparison) -> None:
    for row, (p, padj) in enumerate(zip(analysis.column("results", "pvalue"), analysis.column("results", "padj"))):
        if p != p and padj == padj:
            check.wrong(Place(analysis.path("results"), padj, "NA", gene=analysis.genes[row], column="padj",
                              what="the gene has no p-value"))
