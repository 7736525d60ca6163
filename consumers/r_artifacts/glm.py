"""The coefficient rows: contrast coefficient = LFC, its standard error, and the score equation at the retained coefficients.

No refit: the estimating equations are evaluated. They alone find two samples swapped through all tables, a label swap
followed into the recorded model matrix, a contrast reversed everywhere, and one gene fabricated consistently.
"""

from __future__ import annotations

from array import array

from .artifacts import Analysis
from .design import Design
from .findings import Comparison, Ledger, Place, relative_deviation
from .model import Evaluated, Model
from .normalization import Base

COEFFICIENT_TOLERANCE = 1e-8    # printed with 9 digits
ERROR_TOLERANCE = 1e-6
SCORE_TOLERANCE = 1e-2          # standard errors; the largest of the real sets is 8.5e-4
FLOORED_TOLERANCE = 0.1         # of a gene with a mean at the floor; the largest of the real sets is 6.8e-3


def check_glm(analysis: Analysis, design: Design, base: Base, model: Model, ledger: Ledger) -> None:
    lfc = analysis.column("results", "log2FoldChange")
    names = design.columns
    columns = [analysis.column("coefficients", name) for name in names]
    check = ledger.add(Comparison("contrast-coefficient", f"coefficient {names[design.contrast]} = log2FoldChange",
                                  COEFFICIENT_TOLERANCE))
    doubtful = check.column(columns[design.contrast], lfc, analysis.genes, analysis.path("coefficients"), names[design.contrast])
    errors = ledger.add(Comparison("lfc-se", "lfcSE = sandwich error of the NB GLM at the coefficients", ERROR_TOLERANCE))
    scores = ledger.add(Comparison("glm-score", "the NB score vanishes at the coefficients", SCORE_TOLERANCE,
                                   "Newton step in standard errors"))
    alternatives = _alternatives(analysis)
    used = analysis.column("dispersions", "dispersion")
    stated = analysis.column("results", "lfcSE")
    for row, (counts, beta) in enumerate(zip(analysis.rows(), zip(*columns))):
        dispersion = used[row]
        if not base.expressed[row] or dispersion != dispersion or any(value != value for value in beta):
            continue
        counts = base.replaced.get(row, counts)
        choices = [(beta, dispersion)]
        if row in alternatives:
            choices.append((beta, alternatives[row]))
        if row in doubtful:     # the same fault is not said twice where the rest of the gene stands with LFC
            beta = (*beta[:design.contrast], lfc[row], *beta[design.contrast + 1:])
            choices += [(beta, one) for _, one in choices]
        found = [model.evaluate(counts, *choice) for choice in choices if choice[1] > 0]
        _judge(analysis, row, counts, [one for one in found if one is not None], stated[row], errors, scores)


def _alternatives(analysis: Analysis) -> dict[int, float]:
    """The dispersion by the final rule, for genes where the table's breaks it (`dispersion-final` has said so)."""
    estimate, middle, used, outlier = (analysis.column("dispersions", name) for name in (
        "dispGeneEst", "dispMAP", "dispersion", "dispOutlier"))
    return {row: estimate[row] if flag == 1 else middle[row] for row, flag in enumerate(outlier)
            if flag == flag and used[row] != (estimate[row] if flag == 1 else middle[row])}


def _judge(analysis: Analysis, row: int, counts: tuple[float, ...], found: list[Evaluated], stated: float,
           errors: Comparison, scores: Comparison) -> None:
    gene, path = analysis.genes[row], analysis.path("coefficients")
    scores.compared += 1
    errors.compared += 1
    if not found:
        scores.wrong(Place(path, gene=gene, what="the information matrix is singular at these coefficients"))
        return
    best = min(found, key=lambda one: max(one.decrement / SCORE_TOLERANCE,
                                          relative_deviation(stated, one.error_log2) / ERROR_TOLERANCE))
    deviation = relative_deviation(stated, best.error_log2) if stated == stated else 0.0
    if deviation > ERROR_TOLERANCE:
        errors.wrong(Place(analysis.path("results"), stated, best.error_log2, gene=gene, column="lfcSE"), deviation)
    elif not errors.off and deviation > errors.largest:
        errors.largest, errors.worst = deviation, Place(analysis.path("results"), stated, best.error_log2, gene=gene, column="lfcSE")
    if best.decrement > SCORE_TOLERANCE:
        sample, mean, count = _farthest(analysis.samples, best, counts)
        scores.wrong(Place(path, count, mean, gene=gene, sample=sample,
                           what=f"the coefficients do not fit the counts (step {best.decrement:.3g} SE); "
                                "count against fitted mean of the sample farthest off"), best.decrement)
    elif not scores.off and best.decrement > scores.largest:
        scores.largest, scores.worst = best.decrement, Place(path, best.decrement, 0.0, gene=gene)


def _farthest(samples: list[str], best: Evaluated, counts: tuple[float, ...]) -> tuple[str, float, float]:
    """The sample with the largest weighted residual: the one to look at."""
    pulls = array("d", [abs(count - mean) * weight / max(mean, 0.5) for count, mean, weight in zip(
        counts, best.means, best.weights)])
    at = max(range(len(pulls)), key=pulls.__getitem__)
    return samples[at], best.means[at], counts[at]
