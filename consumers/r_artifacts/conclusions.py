"""What a reader takes home: direction of the significant genes, shrunken table, summary and top genes.

Compared with the tables, exactly; the direction with the counts themselves. A direction that only most genes can show (95 %,
correlation 0.9) finds a reversed contrast or swapped labels, not one gene: that is for the coefficient rows.
"""

from __future__ import annotations

import math

from .artifacts import Analysis
from .design import Design
from .findings import Comparison, Ledger, Place
from .normalization import Base

_LEAST_MEAN, _LEAST_SHARE, _LEAST_CORRELATION, _LEAST_GENES = 50.0, 0.95, 0.9, 3
_TOP = 50
# How far a shrunken LFC may be from LFC * (its error / lfcSE), in its own errors. With one coefficient and a normal likelihood
# the two are equal; the largest distance in the real sets is 6.2, of a gene far from normal.
_FARTHEST = 12.0


def check_conclusions(analysis: Analysis, design: Design, base: Base, ledger: Ledger) -> None:
    significant = [row for row, padj in enumerate(analysis.column("results", "padj")) if padj < analysis.metadata.alpha]
    void = _void_reason(analysis)
    if void:
        ledger.not_applicable("direction", void)
    elif not design.numerator or not design.denominator:
        ledger.not_evaluated(["direction"], "a level of the contrast has no samples (see contrast)")
    else:
        _check_direction(analysis, design, base, significant, ledger)
    _check_shrunken(analysis, base, [] if void else significant, void, ledger)
    order = _check_top(analysis, ledger)
    _check_summary(analysis, base, order, ledger)


def _void_reason(analysis: Analysis) -> str | None:
    if analysis.metadata.test == "LRT":
        return "with a likelihood-ratio test a gene can be significant without a change in this contrast"
    if analysis.metadata.alt_hypothesis == "lessAbs":
        return "with the alternative lessAbs a significant gene is one without a change"
    return None


def _check_direction(analysis: Analysis, design: Design, base: Base, significant: list[int], ledger: Ledger) -> None:
    lfc = analysis.column("results", "log2FoldChange")
    rows = [row for row in significant if base.base_mean[row] >= _LEAST_MEAN and lfc[row] == lfc[row]]
    if len(rows) < _LEAST_GENES:
        ledger.not_applicable("direction", f"only {len(rows)} significant genes have a baseMean of at least {_LEAST_MEAN:g}")
        return
    check = ledger.add(Comparison("direction", f"sign of LFC = sign of the change in the counts for over {_LEAST_SHARE:.0%} of the "
                                  f"significant genes, correlation over {_LEAST_CORRELATION}"))
    changes = [_mean_log(analysis, base, row, design.numerator) - _mean_log(analysis, base, row, design.denominator) for row in rows]
    against = [at for at, row in enumerate(rows) if changes[at] * lfc[row] <= 0]
    worst = max(against, key=lambda at: abs(changes[at]), default=0)
    place = Place(analysis.path("results"), lfc[rows[worst]], changes[worst], gene=analysis.genes[rows[worst]],
                  column="log2FoldChange", what="expected: difference of the mean log2 normalized counts of the two levels")
    check.compared = len(rows) + 1      # and the correlation
    share = 1 - len(against) / len(rows)
    if share <= _LEAST_SHARE:
        check.wrong(place)
        check.off = len(against)
    correlation = _correlation(changes, [lfc[row] for row in rows])
    if not correlation > _LEAST_CORRELATION:
        check.wrong(Place(analysis.path("results"), correlation, f"above {_LEAST_CORRELATION}", what="correlation with the counts"))
    check.notes.append(f"{share:.2%} of {len(rows)} genes agree, correlation {correlation:.4f}")


def _mean_log(analysis: Analysis, base: Base, row: int, samples: tuple[int, ...]) -> float:
    return sum(math.log2(analysis.counts[at][row] / base.size_factors[at] + 0.5) for at in samples) / len(samples)


def _correlation(x: list[float], y: list[float]) -> float:
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    sxy = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    sxx, syy = math.fsum((a - mean_x) ** 2 for a in x), math.fsum((b - mean_y) ** 2 for b in y)
    return sxy / math.sqrt(sxx * syy) if sxx > 0 and syy > 0 else 0.0


def _check_shrunken(analysis: Analysis, base: Base, significant: list[int], void: str | None, ledger: Ledger) -> None:
    check = ledger.add(Comparison("shrunken", "shrunken LFC of significant genes: same sign, smaller; every error below lfcSE, "
                                  f"every LFC within {_FARTHEST:g} errors of one shrunken like its error"))
    path, genes = analysis.path("lfc_shrunken"), analysis.genes
    shrunken, full = analysis.column("lfc_shrunken", "log2FoldChange"), analysis.column("results", "log2FoldChange")
    for row in significant:
        small, large = shrunken[row], full[row]
        if small == small and large == large:
            check.require(small * large > 0 and abs(small) < abs(large), Place(
                path, small, f"between 0 and {large:.15g}", gene=genes[row], column="log2FoldChange"))
    errors, full_errors = analysis.column("lfc_shrunken", "lfcSE"), analysis.column("results", "lfcSE")
    for row, (small, large, error, full_error) in enumerate(zip(shrunken, full, errors, full_errors)):
        if error != error or full_error != full_error:
            continue
        plausible = check.require(0 < error < full_error, Place(
            path, error, f"between 0 and {full_error:.15g}", gene=genes[row], column="lfcSE"))
        if plausible and small == small and large == large:
            near = large * error / full_error
            check.require(abs(small - near) <= _FARTHEST * error, Place(
                path, small, f"within {_FARTHEST:g} errors of {near:.6g}", gene=genes[row], column="log2FoldChange"))
    if void:
        check.notes.append(f"sign and size are not compared: {void}")


def _key(padj: float, p: float) -> tuple[float, float]:
    """R's order(padj, pvalue): NA last."""
    return (padj if padj == padj else math.inf, p if p == p else math.inf)


def _check_top(analysis: Analysis, ledger: Ledger) -> list[str]:
    """The genes that may stand first."""
    check = ledger.add(Comparison("top-genes", f"the {_TOP} rows of results with least padj, then pvalue, as they stand there"))
    results, top, path = analysis.tables["results"], analysis.tables["top_genes"], analysis.path("top_genes")
    keys = [_key(padj, p) for padj, p in zip(results.numbers["padj"], results.numbers["pvalue"])]
    least = sorted(keys)[:_TOP]
    at = {gene: row for row, gene in enumerate(analysis.genes)}
    check.require(len(top.ids) == len(least), Place(path, len(top.ids), len(least), what="number of rows"))
    seen: set[str] = set()
    for position, gene in enumerate(top.ids):
        row = at.get(gene)
        known = row is not None and gene not in seen
        if not check.require(known, Place(path, gene=gene, line=position + 2, what="is there twice" if gene in seen else "is not in results")):
            continue
        seen.add(gene)
        for name, column in top.numbers.items():
            have, want = column[position], results.numbers[name][row]
            check.require(have == want or (have != have and want != want), Place(
                path, have, want, gene=gene, line=position + 2, column=name))
        if position < len(least):       # of genes with equal keys any order is right: ties break by row
            check.require(keys[row] == least[position], Place(
                path, keys[row][0], least[position][0], gene=gene, line=position + 2, column="padj", what="not in this place of the order"))
    return [gene for gene, key in zip(analysis.genes, keys) if key == least[0]] if least else []


def _check_summary(analysis: Analysis, base: Base, first: list[str], ledger: Ledger) -> None:
    check = ledger.add(Comparison("summary", "counts of the summary = counts of the tables"))
    padj, p_values, lfc = (analysis.column("results", name) for name in ("padj", "pvalue", "log2FoldChange"))
    expressed = sum(base.expressed)
    tested = sum(p == p for p in p_values)
    adjusted = sum(value == value for value in padj)
    expected: dict[str, object] = {
        "n_samples": len(analysis.samples), "n_genes": len(analysis.genes), "n_all_zero": len(analysis.genes) - expressed,
        "n_expressed": expressed, "n_tested": tested, "n_adjusted": adjusted,
        "n_cooks_outlier": sum(p != p and there == 1 for p, there in zip(p_values, base.expressed)),
        "n_filtered": sum(p == p and value != value for p, value in zip(p_values, padj)),
        "total_counts": int(sum(math.fsum(column) for column in analysis.counts)),
    }
    for prefix, alpha in (("", analysis.metadata.alpha), ("at_fdr_0.05/", 0.05)):
        rows = [row for row, value in enumerate(padj) if value < alpha]
        expected[f"{prefix}n_significant"] = len(rows)
        expected[f"{prefix}n_up"] = sum(lfc[row] > 0 for row in rows)
        expected[f"{prefix}n_down"] = sum(lfc[row] < 0 for row in rows)
    path = analysis.path("summary")
    for name, wanted in expected.items():
        check.require(analysis.summary[name] == wanted, Place(path, analysis.summary[name], wanted, what=name))
    top = analysis.summary["top_gene"]
    check.require(top in first, Place(path, top, " or ".join(first[:3]), what="top_gene"))
