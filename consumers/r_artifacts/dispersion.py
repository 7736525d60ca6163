"""The dispersions: trend, its fit, prior, outliers, the final rule, and whether the value used is where the posterior peaks.

Sources: Love et al. 2014; DESeq2's `parametricDispersionFit`, `estimateDispersionsPriorVar`, `fitDisp`. `dispersion-map` is
a bound, not an identity: DESeq2 maximizes with means from an earlier stage than the retained coefficients. It is there
because a dispersion made small, and followed into lfcSE, stat and p, satisfies every other row.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from .artifacts import Analysis
from .design import MIN_MU, Design
from .findings import Comparison, Ledger, Place
from .glm import Fit
from .model import Model
from .normalization import Base
from .numerics import digamma, factorize, median, trigamma

TREND_TOLERANCE = 1e-8          # printed with 10 digits
FIT_TOLERANCE = 1e-3            # Newton step relative to the coefficient; measured 5e-6
PRIOR_TOLERANCE = 1e-6
_OUTLIER_SLACK = 1e-9
_LEAST, _FIT_FROM = 1e-8, 1e-6  # DESeq2's minDisp, and 100 times it
_GOOD = (1e-4, 15.0)            # residuals that parametricDispersionFit keeps
_PRIOR_LEAST = 0.25
_BEFORE = "the trend and its spread were fitted before outlier counts were replaced"
# The variance implied by dispMAP is within 0.1 % of the stated one in all real sets; DESeq2's simulated ones lie 1.5 % apart.
_IMPLIED_TOLERANCE, _IMPLIED_GENES, _LEAST_IMPLIED = 0.03, 400, 30
# ln(value used / peak of the posterior) is measured as -0.35 to +1.0 at the outside over all genes of the real sets, the
# extremes where the early means fit badly. Too small makes a gene significant and is bounded closely.
MAP_BELOW, MAP_ABOVE = 0.5, 1.2


def check_dispersions(analysis: Analysis, design: Design, base: Base, model: Model, fit: Fit, ledger: Ledger) -> None:
    fitted = _check_trend(analysis, base, ledger)
    _check_trend_fit(analysis, base, ledger)
    _check_prior(analysis, design, base, fitted, model, fit, ledger)
    _check_outliers(analysis, base, fitted, ledger)
    _check_final(analysis, base, ledger)
    _check_map(analysis, base, model, fit, ledger)


def _check_trend(analysis: Analysis, base: Base, ledger: Ledger) -> array:
    """The trend to go on with: recomputed where it is parametric (and not the coefficients themselves wrong), else the table's."""
    metadata, stated, path = analysis.metadata, analysis.column("dispersions", "dispFit"), analysis.path("dispersions")
    if metadata.asympt_disp is not None and metadata.extra_pois is not None:
        check = ledger.add(Comparison("dispersion-trend", "dispFit = asympt_disp + extra_pois / baseMean", TREND_TOLERANCE))
        expected = array("d", [metadata.asympt_disp + metadata.extra_pois / mean if there else math.nan
                               for mean, there in zip(base.base_mean, base.expressed)])
        off = check.column(stated, expected, analysis.genes, path, "dispFit")
        return expected if 2 * len(off) <= check.compared else stated
    if metadata.fit_type == "local" and not _is_parametric(stated, base):
        ledger.not_applicable("dispersion-trend", "the dispersion fit is local: its curve is not among the artifacts")
        return stated
    check = ledger.add(Comparison("dispersion-trend", f"dispFit is a {metadata.fit_type} fit", TREND_TOLERANCE))
    values = [(row, value) for row, value in enumerate(stated) if value == value]
    if metadata.fit_type == "mean":
        for row, value in values:
            check.number(value, values[0][1], Place(path, value, values[0][1], gene=analysis.genes[row], column="dispFit"))
    else:
        check.require(False, Place(path, column="dispFit", what="the fit is said to be local, and dispFit is exactly "
                                   "a + b / baseMean: it is parametric, and its coefficients are withheld"))
    return stated


def _is_parametric(stated: array, base: Base) -> bool:
    points = sorted((1 / mean, value) for mean, value, there in zip(base.base_mean, stated, base.expressed)
                    if there and value == value)
    if len(points) < 10 or points[-1][0] == points[0][0]:
        return False
    (low, first), (high, last) = points[len(points) // 10], points[-1 - len(points) // 10]
    slope = (last - first) / (high - low) if high > low else 0.0
    on_it = sum(abs(first + slope * (x - low) - value) <= 1e-6 * abs(value) for x, value in points)
    return on_it > 0.9 * len(points)


def _check_trend_fit(analysis: Analysis, base: Base, ledger: Ledger) -> None:
    """The gamma GLM's estimating equation (identity link) at the two coefficients, over the genes that DESeq2 uses."""
    metadata, path = analysis.metadata, analysis.path("results_metadata")
    if metadata.asympt_disp is None or metadata.extra_pois is None:
        ledger.not_applicable("dispersion-trend-fit", f"the dispersion fit is {metadata.fit_type}, not parametric")
        return
    if base.replaced:
        ledger.not_applicable("dispersion-trend-fit", f"{_BEFORE}, with estimates of the {len(base.replaced)} genes that are not kept")
        return
    check = ledger.add(Comparison("dispersion-trend-fit", "asympt_disp and extra_pois solve the gamma regression of dispGeneEst",
                                  FIT_TOLERANCE, "Newton step relative to the coefficient"))
    level, slope = metadata.asympt_disp, metadata.extra_pois
    s0 = s1 = i00 = i01 = i11 = 0.0
    for mean, estimate, there in zip(base.base_mean, analysis.column("dispersions", "dispGeneEst"), base.expressed):
        if not there or not estimate > _FIT_FROM:
            continue
        x = 1 / mean
        fit = level + slope * x
        if fit <= 0 or not _GOOD[0] < estimate / fit < _GOOD[1]:
            continue
        weight = 1 / (fit * fit)
        s0, s1 = s0 + (estimate - fit) * weight, s1 + (estimate - fit) * weight * x
        i00, i01, i11 = i00 + weight, i01 + weight * x, i11 + weight * x * x
    determinant = i00 * i11 - i01 * i01
    if not check.require(determinant > 0 and level > 0 and slope > 0, Place(path, what="dispersion_fit has no positive trend")):
        return
    for name, value, step in (("asympt_disp", level, (i11 * s0 - i01 * s1) / determinant),
                              ("extra_pois", slope, (i00 * s1 - i01 * s0) / determinant)):
        check.compared += 1
        place = Place(path, value, value + step, what=f"dispersion_fit/{name}")
        if abs(step) > FIT_TOLERANCE * value:
            check.wrong(place, abs(step) / value)
        elif not check.off and abs(step) / value >= check.largest:
            check.largest, check.worst = abs(step) / value, place


def _check_prior(analysis: Analysis, design: Design, base: Base, fitted: array, model: Model, fit: Fit, ledger: Ledger) -> None:
    metadata, path = analysis.metadata, analysis.path("results_metadata")
    check = ledger.add(Comparison("dispersion-prior", "var_log_disp_ests = squared MAD of the log residuals; prior variance from it",
                                  PRIOR_TOLERANCE))
    residuals = [math.log(estimate) - math.log(trend) for estimate, trend in zip(
        analysis.column("dispersions", "dispGeneEst"), fitted) if estimate >= _FIT_FROM and trend > 0]
    if not check.require(bool(residuals), Place(analysis.path("dispersions"), what="no gene has a dispGeneEst above the floor")):
        return
    middle = median(residuals)
    spread = (1.4826 * median([abs(value - middle) for value in residuals])) ** 2
    stated = metadata.var_log_disp_ests
    if base.replaced:
        check.notes.append(f"var_log_disp_ests is not compared: {_BEFORE}")
        spread = stated
    else:
        check.number(stated, spread, Place(path, stated, spread, what="dispersion_fit/var_log_disp_ests"))
    if design.degrees > 3:
        expected = max(spread - trigamma(design.degrees / 2), _PRIOR_LEAST)
        check.number(metadata.disp_prior_var, expected, Place(
            path, metadata.disp_prior_var, expected, what="dispersion_fit/disp_prior_var"))
    else:
        check.notes.append(f"with {design.degrees} residual degrees of freedom DESeq2 simulates disp_prior_var; "
                           "it is compared with what the dispMAP values imply")
    implied = _implied_prior_variance(analysis, model, fit)
    if implied is not None:
        check.require(abs(metadata.disp_prior_var - implied) <= _IMPLIED_TOLERANCE * implied, Place(
            path, metadata.disp_prior_var, f"{implied:.4g}, give or take {_IMPLIED_TOLERANCE:.0%}", what="dispersion_fit/disp_prior_var"))


def _implied_prior_variance(analysis: Analysis, model: Model, fit: Fit) -> float | None:
    """The variance that makes the log posterior stationary at dispMAP: the median over genes that the prior moved.

    None where too few genes can tell, or where more than a tenth have coefficients that do not fit (`glm-score` has failed).
    """
    if 10 * len(fit.unfit) > len(fit.beta):
        return None
    used, trend = analysis.column("dispersions", "dispMAP"), analysis.column("dispersions", "dispFit")
    flags, base_means = analysis.column("dispersions", "dispOutlier"), analysis.column("results", "baseMean")
    telling = [one for one in fit.genes(analysis) if flags[one[0]] == 0 and base_means[one[0]] > 10 and 0 < used[one[0]] < 9
               and trend[one[0]] > 0 and abs(math.log(used[one[0]] / trend[one[0]])) > 0.3]
    implied = []
    for row, counts, beta in telling[::max(1, len(telling) // _IMPLIED_GENES)]:
        means, place = _floored_means(model, beta), math.log(used[row])
        slope = _slope(counts, means, place, (0.0, math.inf)) + _cox_reid(model, means, place)
        if slope:
            implied.append((math.log(used[row]) - math.log(trend[row])) / slope)
    return median(implied) if len(implied) >= _LEAST_IMPLIED else None


def _floored_means(model: Model, beta: Sequence[float]) -> list[float]:
    etas = model.log_means(beta)
    return [max(MIN_MU, size * math.exp(etas[cell])) for size, cell in zip(model.size_factors, model.cells)]


def _check_outliers(analysis: Analysis, base: Base, fitted: array, ledger: Ledger) -> None:
    check = ledger.add(Comparison("dispersion-outlier", "dispOutlier where ln dispGeneEst > ln dispFit + 2 sqrt(var_log_disp_ests)"))
    margin, path = 2 * math.sqrt(analysis.metadata.var_log_disp_ests), analysis.path("dispersions")
    for row, (estimate, fit, flag) in enumerate(zip(
            analysis.column("dispersions", "dispGeneEst"), fitted, analysis.column("dispersions", "dispOutlier"))):
        if not base.expressed[row] or flag != flag or not estimate > 0 or not fit > 0:
            continue
        beyond = math.log(estimate) - math.log(fit) - margin
        holds = (flag == 1) == (beyond > 0) or abs(beyond) < _OUTLIER_SLACK
        check.require(holds, Place(path, "TRUE" if flag else "FALSE", "TRUE" if beyond > 0 else "FALSE",
                                   gene=analysis.genes[row], column="dispOutlier"))


def _check_final(analysis: Analysis, base: Base, ledger: Ledger) -> None:
    check = ledger.add(Comparison("dispersion-final", "dispersion = dispGeneEst of an outlier, else dispMAP; all above 0"))
    path, columns = analysis.path("dispersions"), [analysis.column("dispersions", name) for name in (
        "dispGeneEst", "dispMAP", "dispOutlier", "dispersion")]
    for row, (estimate, middle, flag, used) in enumerate(zip(*columns)):
        if not base.expressed[row] or used != used or flag != flag:
            continue
        expected = estimate if flag == 1 else middle
        check.require(used == expected and used > 0 and estimate > 0 and middle > 0, Place(
            path, used, expected, gene=analysis.genes[row], column="dispersion"))


def _check_map(analysis: Analysis, base: Base, model: Model, fit: Fit, ledger: Ledger) -> None:
    check = ledger.add(Comparison("dispersion-map", "the dispersion of a gene with padj is near the peak of its posterior",
                                  notes=fit.left_out()))
    cap, prior_variance = max(10.0, float(len(analysis.samples))), analysis.metadata.disp_prior_var
    path, padj = analysis.path("dispersions"), analysis.column("results", "padj")
    if not prior_variance > 0:
        check.wrong(Place(analysis.path("results_metadata"), prior_variance, "above 0", what="dispersion_fit/disp_prior_var"))
        return
    used, fitted, flags = (analysis.column("dispersions", name) for name in ("dispersion", "dispFit", "dispOutlier"))
    for row, counts, beta in fit.genes(analysis):
        if not (padj[row] == padj[row] and used[row] > 0 and fitted[row] > 0):
            continue
        counts = base.replaced.get(row, counts)
        means = _floored_means(model, beta)
        # an outlier's dispersion is the peak of its likelihood alone, as if its prior were flat
        prior = (math.log(fitted[row]), math.inf if flags[row] == 1 else prior_variance)
        place = math.log(used[row])
        check.compared += 1
        low = used[row] < 0.999 * cap and _peak_above(model, counts, means, place + MAP_BELOW, prior)
        high = used[row] > 10 * _LEAST and not _peak_above(model, counts, means, place - MAP_ABOVE, prior)
        if low or high:
            check.wrong(Place(path, used[row], gene=analysis.genes[row], column="dispersion", expected=(
                f"above {math.exp(place + MAP_BELOW):.4g}" if low else f"below {math.exp(place - MAP_ABOVE):.4g}")))


def _slope(counts: Sequence[float], means: Sequence[float], log_dispersion: float, prior: tuple[float, float]) -> float:
    """Derivative in ln(dispersion) of the log posterior, without the Cox-Reid term."""
    dispersion = math.exp(log_dispersion)
    size = 1 / dispersion
    at_size, slope = digamma(size), 0.0
    for count, mean in zip(counts, means):
        slope += math.log1p(dispersion * mean) + (count - mean) / (mean + size)
        if count:
            slope += at_size - digamma(count + size)
    return size * slope - (log_dispersion - prior[0]) / prior[1]


def _cox_reid(model: Model, means: Sequence[float], log_dispersion: float) -> float:
    """Derivative of -ln det(X'WX) / 2: from 0 up to half the number of columns times the largest dispersion * weight."""
    dispersion = math.exp(log_dispersion)
    weights = [mean / (1 + dispersion * mean) for mean in means]
    factor = factorize(model.information(weights, 0.0))
    if factor is None:
        return 0.0
    leverages = model.cell_leverages(factor)
    return 0.5 * dispersion * sum(weight * weight * leverages[cell] for weight, cell in zip(weights, model.cells))


def _peak_above(model: Model, counts: Sequence[float], means: Sequence[float], log_dispersion: float,
                prior: tuple[float, float]) -> bool:
    """Whether the adjusted posterior still rises there. The costly term is taken only where its bounds leave it open."""
    slope = _slope(counts, means, log_dispersion, prior)
    if slope > 0:
        return True
    scaled = math.exp(log_dispersion) * max(means)
    if slope + 0.5 * model.width * scaled / (1 + scaled) <= 0:
        return False
    return slope + _cox_reid(model, means, log_dispersion) > 0
