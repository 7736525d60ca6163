"""Cook's distances: the cutoff, the distances themselves, and the rule that takes an outlier's p-value away.

Source: DESeq2's `calculateCooksDistance`, `robustMethodOfMomentsDisp`, `recordMaxCooks` and `results`. The distances are
recomputed, so that a gene cannot be removed from, or kept in, the list by writing another `maxCooks`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .artifacts import Analysis
from .design import REPLICATES_FOR_COOKS, Design
from .findings import Comparison, Ledger, Place
from .glm import Fit
from .model import Model
from .normalization import Base
from .numerics import f_quantile, trimmed_mean

CUTOFF_TOLERANCE = 1e-9
DISTANCE_TOLERANCE = 1e-4       # of distances from 0.01; measured 1.3e-6, from coefficients of 9 digits
_SMALL = 0.01
_LEAST_DISPERSION = 0.04
_SPARED_ABOVE = 3               # counts above the outlier's that spare it in a two-group design


def check_cooks(analysis: Analysis, design: Design, base: Base, model: Model, fit: Fit, ledger: Ledger) -> None:
    cutoff = _check_cutoff(analysis, design, ledger)
    replicated = design.with_replicates(REPLICATES_FOR_COOKS)
    if not replicated:
        reason = f"no cell of the design has {REPLICATES_FOR_COOKS} replicates, so DESeq2 computes no maximal Cook's distance"
        ledger.not_applicable("cooks-distance", reason)
        ledger.not_applicable("cooks-rule", reason + " and takes no p-value away (missing-values checks that none is)")
        return
    if analysis.metadata.counts_replaced:
        ledger.not_applicable("cooks-distance", "counts were replaced: DESeq2 sets the distances of replaceable samples to 0")
    else:
        _check_distances(analysis, design, model, fit, ledger)
    _check_rule(analysis, design, base, cutoff, ledger)


def _check_cutoff(analysis: Analysis, design: Design, ledger: Ledger) -> float:
    metadata, path = analysis.metadata, analysis.path("results_metadata")
    check = ledger.add(Comparison("cooks-cutoff", "cooks_cutoff = qf(.99, p, n - p), and the samples with 3 replicates", CUTOFF_TOLERANCE))
    expected = f_quantile(0.99, len(design.columns), design.degrees)
    stated = metadata.cooks_cutoff
    if check.require(stated is not None, Place(path, None, expected, what="cooks_cutoff")):
        check.number(stated, expected, Place(path, stated, expected, what="cooks_cutoff"))
    number = len(design.with_replicates(REPLICATES_FOR_COOKS))
    check.require(metadata.samples_with_3_replicates == number, Place(
        path, metadata.samples_with_3_replicates, number, what="cooks_samples_with_3_replicates"))
    return expected


def robust_dispersion(normalized: Sequence[float], cells: Sequence[Sequence[int]]) -> float:
    """The method-of-moments dispersion from trimmed variances of the replicated cells; at least 0.04."""
    variance = 0.0
    for cell in cells:
        values = [normalized[sample] for sample in cell]
        trim, scale = (1 / 3, 2.04) if len(cell) <= 3 else (1 / 4, 1.86) if len(cell) <= 23 else (1 / 8, 1.51)
        middle = trimmed_mean(values, trim)
        variance = max(variance, scale * trimmed_mean([(value - middle) ** 2 for value in values], trim))
    mean = sum(normalized) / len(normalized)
    return max((variance - mean) / mean ** 2, _LEAST_DISPERSION)


def _check_distances(analysis: Analysis, design: Design, model: Model, fit: Fit, ledger: Ledger) -> None:
    check = ledger.add(Comparison("cooks-distance", "maxCooks = largest Cook's distance of the replicated samples, and its sample",
                                  DISTANCE_TOLERANCE, notes=fit.left_out()))
    replicated = design.with_replicates(REPLICATES_FOR_COOKS)
    groups: dict[int, list[int]] = {}
    for sample in replicated:
        groups.setdefault(design.cells[sample], []).append(sample)
    cells, path = list(groups.values()), analysis.path("dispersions")
    stated, named = analysis.column("dispersions", "maxCooks"), analysis.tables["dispersions"].texts["maxCooksSample"]
    used = analysis.column("dispersions", "dispersion")
    for row, counts, beta in fit.genes(analysis):
        found = stated[row]
        if found != found or not used[row] > 0:
            continue
        distances = _distances(model, cells, counts, beta, used[row])
        if distances is None:
            continue
        expected = max(distances[sample] for sample in replicated)
        check.compared += 1
        deviation = abs(found - expected) / max(found, expected, _SMALL)
        place = Place(path, found, expected, gene=analysis.genes[row], sample=named[row], column="maxCooks")
        if deviation > DISTANCE_TOLERANCE:
            check.wrong(place, deviation)
        elif not check.off and deviation > check.largest:
            check.largest, check.worst = deviation, place
        at = max(range(len(distances)), key=distances.__getitem__)
        if named[row] != analysis.samples[at]:
            _check_sample(analysis, row, distances, at, named[row], check)


def _check_sample(analysis: Analysis, row: int, distances: list[float], at: int, named: str | None, check: Comparison) -> None:
    """Another sample than the recomputed one is right only where the two tie."""
    tie = named in analysis.samples and (
        distances[at] - distances[analysis.samples.index(named)] <= DISTANCE_TOLERANCE * max(distances[at], _SMALL))
    if not tie:
        check.wrong(Place(analysis.path("dispersions"), named or "NA", analysis.samples[at], gene=analysis.genes[row],
                          column="maxCooksSample"))


def _distances(model: Model, cells: list[list[int]], counts: Sequence[float], beta: Sequence[float],
               dispersion: float) -> list[float] | None:
    evaluated = model.evaluate(counts, beta, dispersion)
    if evaluated is None:
        return None
    robust = robust_dispersion([count / size for count, size in zip(counts, model.size_factors)], cells)
    leverages = model.cell_leverages(evaluated.factor)
    found = []
    for count, mean, weight, cell in zip(counts, evaluated.means, evaluated.weights, model.cells):
        hat = weight * leverages[cell]
        spread = mean + robust * mean * mean
        found.append((count - mean) ** 2 / spread / model.width * hat / (1 - hat) ** 2 if hat < 1 - 1e-9 and spread > 0 else 0.0)
    return found


def _check_rule(analysis: Analysis, design: Design, base: Base, cutoff: float, ledger: Ledger) -> None:
    relation = "pvalue is NA where, and only where, maxCooks is above the cutoff"
    if design.two_levels:
        relation += f" and fewer than {_SPARED_ABOVE} counts exceed the outlier's"
    check = ledger.add(Comparison("cooks-rule", relation))
    p_values = analysis.column("results", "pvalue")
    stated, named = analysis.column("dispersions", "maxCooks"), analysis.tables["dispersions"].texts["maxCooksSample"]
    position = {sample: at for at, sample in enumerate(analysis.samples)}
    for row, (p, distance) in enumerate(zip(p_values, stated)):
        if not base.expressed[row] or distance != distance:
            continue
        flagged = distance > cutoff
        if flagged and design.two_levels and named[row] in position:
            outlier = analysis.counts[position[named[row]]][row]
            flagged = sum(column[row] > outlier for column in analysis.counts) < _SPARED_ABOVE
        check.require((p != p) == flagged, Place(
            analysis.path("results"), p, "NA" if flagged else "a value", gene=analysis.genes[row], sample=named[row],
            column="pvalue", what=f"maxCooks {distance:.10g}, cutoff {cutoff:.10g}"))
