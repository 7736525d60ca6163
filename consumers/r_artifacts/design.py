"""The design: model matrix, contrast, replicates, and which settings the checker takes an analysis at its word for.

Owns the checks `model-matrix`, `contrast` and `parameters`. `parameters` is where a setting that would excuse another check
must have its cause: counts can only have been replaced where a cell of the design has seven replicates, a
`min_mu` other than 0.5 would exempt any gene from the score equation, and so on. Does not look at counts.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from .artifacts import Analysis
from .documents import Metadata
from .findings import Comparison, Ledger, Place
from .integrity import MANIFEST
from .numerics import factorize

RIDGE_LOG2, MIN_MU = 1e-6, 0.5          # DESeq2's own; the schema knows no others
REPLICATES_FOR_COOKS, REPLICATES_FOR_REPLACEMENT = 3, 7
_NAME = re.compile(r"[A-Za-z.][A-Za-z0-9._]*\Z")
_LEAST_THRESHOLD = 1e-6
_ALTERNATIVES = ("greaterAbs", "lessAbs", "greater", "less")


@dataclass(frozen=True, slots=True)
class Design:
    """The model as it is used by the arithmetic. `cells` numbers the distinct rows of the matrix, per sample."""

    columns: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]
    cells: tuple[int, ...]
    contrast: int                       # column of the contrast
    numerator: tuple[int, ...]          # samples of each level of the contrast
    denominator: tuple[int, ...]
    two_levels: bool                    # one factor of two levels is all the design there is

    @property
    def degrees(self) -> int:
        """n - p."""
        return len(self.matrix) - len(self.columns)

    def with_replicates(self, least: int) -> tuple[int, ...]:
        """Samples in cells of at least so many samples."""
        size = Counter(self.cells)
        return tuple(at for at, cell in enumerate(self.cells) if size[cell] >= least)


def valid_name(text: str) -> str:
    """What R's make.names makes of a coefficient's name."""
    return "".join(char if char.isalnum() or char in "._" else "." for char in text)


def formula_terms(design: str) -> list[str] | None:
    """The variables of an additive formula with intercept; None for any other."""
    text = design.strip()
    if not text.startswith("~"):
        return None
    terms = [term.strip() for term in text[1:].split("+")]
    terms = [term for term in terms if term != "1"]
    return terms if terms and all(_NAME.match(term) for term in terms) and len(set(terms)) == len(terms) else None


def check_design(analysis: Analysis, ledger: Ledger) -> Design | None:
    """All checks of the design; None when the arithmetic has no model or contrast to stand on."""
    sound = _check_matrix(analysis, ledger)
    contrast = _check_contrast(analysis, ledger)
    if not sound or contrast is None:
        return None
    number: dict[tuple[float, ...], int] = {}
    cells = tuple(number.setdefault(row, len(number)) for row in analysis.model)
    levels = analysis.sample_column(str(analysis.folder.facts["factor"]))
    facts = analysis.folder.facts
    design = Design(
        analysis.metadata.columns, tuple(analysis.model), cells, contrast,
        tuple(at for at, level in enumerate(levels) if level == facts["numerator"]),
        tuple(at for at, level in enumerate(levels) if level == facts["denominator"]),
        two_levels=len(analysis.metadata.columns) == 2 and len(set(levels)) == 2)
    _check_parameters(analysis, design, ledger)
    return design


def _expected_columns(analysis: Analysis, terms: list[str], check: Comparison) -> dict[str, tuple[int, list[float]]]:
    """The columns that the design makes of the sample table, by name: number of the term (Intercept 0) and values."""
    metadata, facts, table = analysis.metadata, analysis.folder.facts, analysis.path("sample_table")
    expected = {"Intercept": (0, [1.0] * len(analysis.samples))}
    for number, term in enumerate(terms, 1):
        if not check.require(term in analysis.tables["sample_table"].texts,
                             Place(table, column=term, what="the design's variable is not in the sample table")):
            continue
        values = analysis.sample_column(term)
        if term in metadata.columns:        # a numeric covariate keeps its name
            try:
                expected[term] = number, [float(value) for value in values]
            except ValueError:
                check.wrong(Place(table, column=term, what="is a covariate of the model and not a number"))
            continue
        levels = sorted(set(values))
        base = str(facts["reference_level"]) if term == facts["factor"] else next(
            (level for level in levels if all(
                valid_name(f"{term}_{other}_vs_{level}") in metadata.columns for other in levels if other != level)), levels[0])
        for level in levels:
            if level != base:
                expected[valid_name(f"{term}_{level}_vs_{base}")] = number, [float(value == level) for value in values]
    return expected


def _check_matrix(analysis: Analysis, ledger: Ledger) -> bool:
    check = ledger.add(Comparison("model-matrix", "the model matrix is what the design makes of the sample table"))
    metadata, path = analysis.metadata, analysis.path("results_metadata")
    design = str(analysis.folder.facts["design"])
    terms = formula_terms(design)
    if check.require(terms is not None, Place(MANIFEST, design, "~ a + b", what="a design that this checker does not read")):
        expected = _expected_columns(analysis, terms, check)
        for name in [name for name in expected if name not in metadata.columns]:
            check.require(False, Place(path, column=name, what="is missing in the model matrix"))
        for at, name in enumerate(metadata.columns):
            if not check.require(name in expected, Place(path, column=name, what=f"is not a column of {design}")):
                continue
            for sample, row, want in zip(analysis.samples, analysis.model, expected[name][1]):
                check.require(row[at] == want, Place(path, row[at], want, sample=sample, column=name))
        # of the terms only: the order of a factor's levels is the locale's, or the analyst's
        numbers = [expected[name][0] for name in metadata.columns if name in expected]
        check.require(numbers == sorted(numbers), Place(
            path, ", ".join(metadata.columns), f"the order of {design}", what="columns of the model matrix in another order"))
    names = tuple(analysis.tables["coefficients"].names[:-1])
    same = check.require(names == metadata.columns, Place(
        analysis.path("coefficients"), ", ".join(names), ", ".join(metadata.columns), what="columns of the model matrix"))
    width = len(metadata.columns)
    cross = [[sum(row[i] * row[j] for row in analysis.model) for j in range(width)] for i in range(width)]
    full = check.require(factorize(cross) is not None, Place(path, what="the model matrix is not of full rank"))
    left = check.require(len(analysis.model) > width, Place(path, what="no residual degrees of freedom are left"))
    return same and full and left


def _check_contrast(analysis: Analysis, ledger: Ledger) -> int | None:
    """The column of the contrast, of the shrunken coefficient where the contrast is none, or None."""
    check = ledger.add(Comparison("contrast", "the contrast is one coefficient of the model, over the reference level"))
    facts, metadata = analysis.folder.facts, analysis.metadata
    factor, top, base = str(facts["factor"]), str(facts["numerator"]), str(facts["denominator"])
    if not check.require(factor in analysis.tables["sample_table"].texts, Place(
            MANIFEST, factor, "a column of the sample table", what="contrast/factor")):
        return None
    levels = analysis.sample_column(factor)
    for name, level in (("contrast/numerator", top), ("contrast/denominator", base)):
        check.require(level in levels, Place(MANIFEST, level, f"a level of {factor}", what=name))
    check.require(top != base, Place(MANIFEST, top, f"another level than {base}", what="contrast/numerator"))
    check.require(base == facts["reference_level"], Place(
        MANIFEST, base, str(facts["reference_level"]), what="contrast/denominator is not the reference level"))
    check.require(factor in (formula_terms(str(facts["design"])) or [factor]), Place(
        MANIFEST, factor, str(facts["design"]), what="contrast/factor is not in the design"))
    name = valid_name(f"{factor}_{top}_vs_{base}")
    known = check.require(name in metadata.columns, Place(
        analysis.path("results_metadata"), what=f"the model has no coefficient {name} for the contrast"))
    check.require(metadata.shrinkage_coefficient == name, Place(
        analysis.path("results_metadata"), metadata.shrinkage_coefficient, name, what="shrinkage/coefficient"))
    # with a contrast that is no coefficient the arithmetic still says what it can of the one that was shrunken
    used = name if known else metadata.shrinkage_coefficient
    return metadata.columns.index(used) if used in metadata.columns else None


def _check_parameters(analysis: Analysis, design: Design, ledger: Ledger) -> None:
    check = ledger.add(Comparison("parameters", "settings agree with each other, and what would excuse a check has its cause"))
    metadata, path = analysis.metadata, analysis.path("results_metadata")

    def equal(name: str, found: object, wanted: object) -> None:
        check.require(found == wanted, Place(path, found, wanted, what=name))

    for where, alpha in ((MANIFEST, analysis.folder.facts["alpha"]), (analysis.path("summary"), analysis.summary["alpha"])):
        check.require(alpha == metadata.alpha, Place(where, alpha, metadata.alpha, what="alpha"))
    check.require(0 < metadata.alpha < 1, Place(path, metadata.alpha, "between 0 and 1", what="alpha"))
    equal("p_adjust_method", metadata.p_adjust_method, "BH")
    equal("beta_prior", metadata.beta_prior, False)
    equal("beta_ridge_log2", metadata.ridge_log2, RIDGE_LOG2)
    equal("min_mu", metadata.min_mu, MIN_MU)
    equal("shrinkage/type", metadata.shrinkage_type, "normal")
    check.require(metadata.test in ("Wald", "LRT"), Place(path, metadata.test, "Wald or LRT", what="test"))
    _check_alternative(metadata, check, path)
    _check_filter_settings(metadata, check, path)
    parametric = metadata.fit_type == "parametric"
    check.require(metadata.fit_type in ("parametric", "local", "mean"), Place(
        path, metadata.fit_type, "parametric, local or mean", what="dispersion_fit/type"))
    check.require((metadata.asympt_disp is None) == (not parametric) == (metadata.extra_pois is None), Place(
        path, what="dispersion_fit has asympt_disp and extra_pois if, and only if, its type is parametric"))
    cause = bool(design.with_replicates(REPLICATES_FOR_REPLACEMENT))
    check.require(cause or not metadata.counts_replaced, Place(
        path, True, False, what=f"counts_replaced, but no cell of the design has {REPLICATES_FOR_REPLACEMENT} replicates"))


def _check_alternative(metadata: Metadata, check: Comparison, path: str) -> None:
    check.require(metadata.alt_hypothesis in _ALTERNATIVES, Place(
        path, metadata.alt_hypothesis, " or ".join(_ALTERNATIVES), what="alt_hypothesis"))
    check.require(metadata.alt_hypothesis != "lessAbs" or metadata.lfc_threshold > 0, Place(
        path, metadata.lfc_threshold, "above 0", what="lfc_threshold of lessAbs"))
    # a threshold that changes no p-value would only take `wald-stat` and `p-value` out of the list
    check.require(metadata.lfc_threshold == 0 or metadata.lfc_threshold >= _LEAST_THRESHOLD, Place(
        path, metadata.lfc_threshold, f"0, or at least {_LEAST_THRESHOLD:g}", what="lfc_threshold"))
    check.require(metadata.test != "LRT" or (metadata.lfc_threshold == 0 and metadata.alt_hypothesis == "greaterAbs"), Place(
        path, what="a likelihood-ratio test has no lfc_threshold and no other alternative than greaterAbs"))


def _check_filter_settings(metadata: Metadata, check: Comparison, path: str) -> None:
    if metadata.independent_filtering:
        check.require(metadata.filter_statistic == "baseMean", Place(
            path, metadata.filter_statistic, "baseMean", what="filter_statistic"))
    else:
        check.require(metadata.filter_threshold is None and metadata.filter_theta is None and not metadata.rejections, Place(
            path, what="independent_filtering is false, and yet a filter threshold, theta or table of rejections is there"))
