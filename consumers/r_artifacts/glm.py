"""The coefficient rows: contrast coefficient = LFC, its standard error, and the score equation at the retained coefficients.

No refit: the estimating equations are evaluated. They alone find two samples swapped through all tables, a label swap
followed into the recorded model matrix, a contrast reversed everywhere, and one gene fabricated consistently.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from .artifacts import Analysis
from .design import MIN_MU, Design
from .findings import Comparison, Ledger, Place, relative_deviation
from .model import Evaluated, Model
from .normalization import Base

COEFFICIENT_TOLERANCE = 1e-8    # printed with 9 digits
ERROR_TOLERANCE = 1e-6
SCORE_TOLERANCE = 1e-2          # standard errors; the largest of the real sets is 8.5e-4
UNFIT_ABOVE = 0.5               # beyond it the other checks of a gene's coefficients have nothing to add
FLOORED_TOLERANCE = 0.1         # of a gene with a mean at the floor; the largest of the real sets is 6.8e-3


@dataclass(slots=True)
class Fit:
    """The coefficients to go on with. Genes in `unfit` are left out: what rests on their coefficients has been said once."""

    beta: dict[int, tuple[float, ...]] = field(default_factory=dict)
    unfit: set[int] = field(default_factory=set)

    def left_out(self) -> list[str]:
        """What a check over `genes` has to say of those it does not see."""
        return [f"{len(self.unfit)} genes left out, whose coefficients do not fit their counts (see glm-score)"] if self.unfit else []

    def genes(self, analysis: Analysis) -> Iterator[tuple[int, tuple[float, ...], tuple[float, ...]]]:
        """Row, counts and coefficients of each gene that can be evaluated."""
        for row, counts in enumerate(analysis.rows()):
            beta = self.beta.get(row)
            if beta is not None and row not in self.unfit:
                yield row, counts, beta


def check_glm(analysis: Analysis, design: Design, base: Base, model: Model, ledger: Ledger) -> Fit:
    lfc, at = analysis.column("results", "log2FoldChange"), design.contrast
    name, fit = design.columns[at], Fit()
    columns = [analysis.column("coefficients", column) for column in design.columns]
    check = ledger.add(Comparison("contrast-coefficient", f"coefficient {name} = log2FoldChange", COEFFICIENT_TOLERANCE))
    doubtful = check.column(columns[at], lfc, analysis.genes, analysis.path("coefficients"), name)
    errors = ledger.add(Comparison("lfc-se", "lfcSE = sandwich error of the NB GLM at the coefficients", ERROR_TOLERANCE))
    scores = ledger.add(Comparison("glm-score", "the NB score vanishes at the coefficients", SCORE_TOLERANCE,
                                   "Newton step in standard errors"))
    stuck = sum(value == 0 for value in analysis.column("coefficients", "betaConv"))
    if stuck:
        scores.notes.append(f"{stuck} genes have betaConv FALSE: DESeq2 itself did not see them converge, and they are not excused")
    alternatives = _alternatives(analysis)
    used = analysis.column("dispersions", "dispersion")
    for row, (counts, beta) in enumerate(zip(analysis.rows(), zip(*columns))):
        dispersion = used[row]
        if not base.expressed[row] or dispersion != dispersion or any(value != value for value in beta):
            continue
        choices = [(beta, dispersion)]
        if row in alternatives:
            choices.append((beta, alternatives[row]))
        if row in doubtful:     # the same fault is not said twice where the rest of the gene stands with LFC
            other = (*beta[:at], lfc[row], *beta[at + 1:])
            choices += [(other, one) for _, one in choices]
        best, fit.beta[row] = _best(analysis, row, base.replaced.get(row, counts), choices, model)
        _judge(analysis, row, base.replaced.get(row, counts), best, errors, scores)
        if best is None or best.decrement > UNFIT_ABOVE:
            fit.unfit.add(row)
    return fit


def _alternatives(analysis: Analysis) -> dict[int, float]:
    """The dispersion by the final rule, for genes where the table's breaks it (`dispersion-final` has said so)."""
    estimate, middle, used, outlier = (analysis.column("dispersions", name) for name in (
        "dispGeneEst", "dispMAP", "dispersion", "dispOutlier"))
    return {row: estimate[row] if flag == 1 else middle[row] for row, flag in enumerate(outlier)
            if flag == flag and used[row] != (estimate[row] if flag == 1 else middle[row])}


def _best(analysis: Analysis, row: int, counts: tuple[float, ...], choices: list[tuple[tuple[float, ...], float]],
          model: Model) -> tuple[Evaluated | None, tuple[float, ...]]:
    """The choice that fits best, and its coefficients; there is one choice only, but for genes with a fault already said."""
    stated = analysis.column("results", "lfcSE")[row]
    found = [(one, beta) for beta, dispersion in choices if dispersion > 0
             and (one := model.evaluate(counts, beta, dispersion)) is not None]
    if len(found) == 1:
        return found[0]
    return min(found, default=(None, choices[0][0]), key=lambda pair: max(
        pair[0].decrement / SCORE_TOLERANCE, relative_deviation(stated, pair[0].error_log2) / ERROR_TOLERANCE))


def _judge(analysis: Analysis, row: int, counts: tuple[float, ...], best: Evaluated | None, errors: Comparison,
           scores: Comparison) -> None:
    gene, path, stated = analysis.genes[row], analysis.path("coefficients"), analysis.column("results", "lfcSE")[row]
    scores.compared += 1
    errors.compared += 1
    if best is None:
        scores.wrong(Place(path, gene=gene, what="the information matrix is singular at these coefficients"))
        return
    deviation = relative_deviation(stated, best.error_log2) if stated == stated else 0.0
    if deviation > ERROR_TOLERANCE:
        errors.wrong(Place(analysis.path("results"), stated, best.error_log2, gene=gene, column="lfcSE"), deviation)
    elif not errors.off and deviation > errors.largest:
        errors.largest, errors.worst = deviation, Place(analysis.path("results"), stated, best.error_log2, gene=gene, column="lfcSE")
    tolerance = SCORE_TOLERANCE if min(best.means) > MIN_MU else FLOORED_TOLERANCE
    if best.decrement > tolerance:
        sample, mean, count = _farthest(analysis.samples, best, counts)
        scores.wrong(Place(path, count, mean, gene=gene, sample=sample,
                           what=f"the coefficients do not fit the counts (step {best.decrement:.3g} SE, at most {tolerance:g}); "
                                "count against fitted mean of the sample farthest off"), best.decrement)
    elif not scores.off and best.decrement > scores.largest:
        scores.largest, scores.worst = best.decrement, Place(path, best.decrement, 0.0, gene=gene)


def _farthest(samples: list[str], best: Evaluated, counts: tuple[float, ...]) -> tuple[str, float, float]:
    """The sample with the largest weighted residual: the one to look at."""
    pulls = array("d", [abs(count - mean) * weight / max(mean, 0.5) for count, mean, weight in zip(
        counts, best.means, best.weights)])
    at = max(range(len(pulls)), key=pulls.__getitem__)
    return samples[at], best.means[at], counts[at]
