"""Faults in dispersions, coefficients and conclusions; among them those that only the coefficient rows can find."""

from __future__ import annotations

import math

from .artifact_set import ArtifactSet, finish, number, summarize, text
from .number_mutants import MUTANTS, PAIRED, TWO_GROUPS, dull, genes, mutant, refit_error, set_change, significant

# ---- dispersions ----------------------------------------------------------------------------------------------------


@mutant("dispersion-trend")
def one_trend_value(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["dispersions"].set(gene, "dispFit", number(s.grids["dispersions"].get(gene, "dispFit")) * 1.001, 10)


@mutant("dispersion-trend", "dispersion-trend-fit")
def trend_coefficient_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["dispersion_fit"]["extra_pois"] *= 1.01


@mutant("dispersion-trend-fit")
def another_trend_throughout(s: ArtifactSet) -> None:
    fit = s.metadata["dispersion_fit"]
    fit["asympt_disp"] *= 1.01
    for row, result in zip(s.grids["dispersions"].rows, s.grids["results"].rows):
        if row[2] != "NA":
            row[2] = text(fit["asympt_disp"] + fit["extra_pois"] / float(result[1]), 10)
    estimates = [math.log(float(row[1]) / float(row[2])) for row in s.grids["dispersions"].rows if row[1] != "NA" and float(row[1]) >= 1e-6]
    centre = _median(estimates)
    fit["var_log_disp_ests"] = (1.4826 * _median([abs(value - centre) for value in estimates])) ** 2
    if len(s.metadata["model_matrix"]["columns"]) == 2:
        fit["disp_prior_var"] = max(fit["var_log_disp_ests"] - 0.39493406684822646, 0.25)


def _median(values: list[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


@mutant("dispersion-trend")
def trend_said_to_be_local(s: ArtifactSet) -> None:
    s.metadata["dispersion_fit"].update(type="local", asympt_disp=None, extra_pois=None)


@mutant("parameters")
def trend_said_to_be_local_with_coefficients(s: ArtifactSet) -> None:
    s.metadata["dispersion_fit"]["type"] = "local"


@mutant("dispersion-prior")
def residual_variance_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["dispersion_fit"]["var_log_disp_ests"] *= 1.001


@mutant("dispersion-prior")
def prior_variance_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["dispersion_fit"]["disp_prior_var"] *= 1.05


@mutant("dispersion-outlier", "dispersion-final")
def outlier_flag_of_one_gene(s: ArtifactSet) -> None:
    s.grids["dispersions"].set(dull(s), "dispOutlier", "TRUE")


@mutant("dispersion-final")
def dispersion_not_by_the_rule(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["dispersions"].set(gene, "dispersion", number(s.grids["dispersions"].get(gene, "dispersion")) * (1 + 1e-9), 10)


@mutant("dispersion-final")
def posterior_mode_of_one_gene(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["dispersions"].set(gene, "dispMAP", number(s.grids["dispersions"].get(gene, "dispMAP")) * 1.2, 10)


@mutant("dispersion-outlier", may=("dispersion-prior",))
def likelihood_mode_raised_beyond_the_margin(s: ArtifactSet) -> None:
    gene = next(row[0] for row in s.grids["dispersions"].rows if row[4] == "FALSE" and float(row[1]) < 1e-7)
    fit = s.metadata["dispersion_fit"]
    most = number(s.grids["dispersions"].get(gene, "dispFit")) * math.exp(2 * math.sqrt(fit["var_log_disp_ests"]))
    s.grids["dispersions"].set(gene, "dispGeneEst", most * 40, 10)


def _scale_dispersion(s: ArtifactSet, gene: str, factor: float) -> None:
    for column in ("dispMAP", "dispersion"):
        s.grids["dispersions"].set(gene, column, number(s.grids["dispersions"].get(gene, column)) * factor, 10)
    refit_error(s, gene)
    s.grids["lfc_shrunken"].set(gene, "lfcSE", number(s.grids["results"].get(gene, "lfcSE")) * 0.5, 6)
    finish(s)


def _plain(s: ArtifactSet, gene: str) -> bool:
    return s.grids["dispersions"].get(gene, "dispOutlier") == "FALSE" and number(s.grids["dispersions"].get(gene, "dispMAP")) < 1


@mutant("dispersion-map", may=("glm-score", "cooks-distance"))
def dispersion_made_small_followed_everywhere(s: ArtifactSet) -> None:
    """A gene made significant by its dispersion alone; the coefficients hardly move, so the score may not tell."""
    gene = next(g for g in genes(s, lambda r: 0.2 < r["padj"] < 0.6 and r["baseMean"] > 200) if _plain(s, g))
    _scale_dispersion(s, gene, 0.1)


@mutant("dispersion-map", may=("glm-score", "cooks-distance"))
def dispersion_made_large_followed_everywhere(s: ArtifactSet) -> None:
    """A gene taken out of the list by its dispersion."""
    _scale_dispersion(s, next(g for g in genes(s, lambda r: r["padj"] < 0.05 and r["baseMean"] > 200) if _plain(s, g)), 12.0)


# ---- coefficients ---------------------------------------------------------------------------------------------------

@mutant("contrast-coefficient")
def one_contrast_coefficient(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["coefficients"].set(gene, "dex_trt_vs_untrt", number(s.grids["coefficients"].get(gene, "dex_trt_vs_untrt")) + 1e-3, 9)


@mutant("glm-score", "lfc-se")
def one_intercept(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["coefficients"].set(gene, "Intercept", number(s.grids["coefficients"].get(gene, "Intercept")) + 0.1, 9)


@mutant("glm-score", contains="sample")
def gene_fabricated_consistently(s: ArtifactSet) -> None:
    """A dull gene with a large change in results, coefficients, shrunken table, its own error, p, padj, top, summary."""
    gene = dull(s)
    set_change(s, gene, 3.0)
    refit_error(s, gene)
    finish(s)


@mutant("glm-score", may=("direction", "shrunken"))
def gene_fabricated_below_the_floor(s: ArtifactSet) -> None:
    """The same with fitted means far below 0.5, where the plain score equation does not hold anyway."""
    gene = dull(s)
    set_change(s, gene, 20.0)
    s.grids["coefficients"].set(gene, "Intercept", -15.0, 9)
    refit_error(s, gene)
    finish(s)


@mutant("glm-score")
def gene_flattened_consistently(s: ArtifactSet) -> None:
    gene = significant(s)
    set_change(s, gene, 0.01)
    refit_error(s, gene)
    finish(s)


def _swap_labels(s: ArtifactSet, first: str, second: str) -> None:
    """The data of two samples under each other's names, in every table that has samples."""
    for role in ("counts", "normalized_counts"):
        grid = s.grids[role]
        a, b = grid.at(first), grid.at(second)
        for row in grid.rows:
            row[a], row[b] = row[b], row[a]
    rows = s.grids["size_factors"].rows
    one, other = (next(row for row in rows if row[0] == name) for name in (first, second))
    one[1:], other[1:] = other[1:], one[1:]


@mutant("glm-score", "lfc-se", sets=PAIRED)
def two_samples_swapped_in_all_tables(s: ArtifactSet) -> None:
    _swap_labels(s, "S3", "S4")


@mutant("glm-score", "lfc-se", sets=PAIRED)
def two_samples_of_one_treatment_swapped_in_all_tables(s: ArtifactSet) -> None:
    _swap_labels(s, "S1", "S5")


@mutant("glm-score", "lfc-se", "cooks-distance", "cooks-rule", "direction", sets=TWO_GROUPS)
def two_samples_swapped_between_the_groups(s: ArtifactSet) -> None:
    _swap_labels(s, "S3", "S4")


@mutant("cooks-distance", "cooks-rule", sets=TWO_GROUPS)
def two_samples_swapped_within_a_group(s: ArtifactSet) -> None:
    """Nothing of the analysis changes but who is the outlier."""
    _swap_labels(s, "S1", "S3")


def _flip_labels(s: ArtifactSet, names: tuple[str, ...]) -> None:
    """Treatment labels flipped in the sample table and in the recorded model matrix."""
    table, matrix = s.grids["sample_table"], s.metadata["model_matrix"]
    at, column = table.at("dex"), matrix["columns"].index("dex_trt_vs_untrt")
    for row in table.rows:
        if row[0] in names:
            row[at] = "trt" if row[at] == "untrt" else "untrt"
    for name, values in zip(matrix["rows"], matrix["values"]):
        if name in names:
            values[column] = 1 - values[column]


@mutant("glm-score", "lfc-se", sets=PAIRED)
def label_swap_followed_into_the_model_matrix(s: ArtifactSet) -> None:
    _flip_labels(s, ("S1", "S2"))


def _negate(s: ArtifactSet) -> None:
    for role, columns in (("results", ("log2FoldChange", "stat")), ("coefficients", ("dex_trt_vs_untrt",)),
                          ("lfc_shrunken", ("log2FoldChange",))):
        for row in s.grids[role].rows:
            for column in columns:
                at = s.grids[role].at(column)
                row[at] = text(-number(row[at]), 15)
    summarize(s)


@mutant("glm-score", "lfc-se", "direction", sets=PAIRED)
def contrast_reversed_in_every_number(s: ArtifactSet) -> None:
    _negate(s)


@mutant("glm-score", "lfc-se", sets=PAIRED)
def contrast_reversed_with_all_labels(s: ArtifactSet) -> None:
    """Numbers negated, labels and matrix flipped with them: only the intercept gives it away."""
    _negate(s)
    _flip_labels(s, tuple(row[0] for row in s.grids["sample_table"].rows))


@mutant("glm-score", "lfc-se", may=("cooks-distance",))
def coefficients_of_two_genes_exchanged(s: ArtifactSet) -> None:
    one, other = genes(s, lambda r: 100 < r["baseMean"] < 400 and r["padj"] > 0)[3:5]
    a, b = s.grids["coefficients"].row(one), s.grids["coefficients"].row(other)
    a[1:-2], b[1:-2] = b[1:-2], a[1:-2]


# ---- design and settings --------------------------------------------------------------------------------------------

@mutant("model-matrix", sets=PAIRED, contains="S1")
def lines_swapped_in_the_sample_table(s: ArtifactSet) -> None:
    rows = s.grids["sample_table"].rows
    rows[0][1], rows[4][1] = rows[4][1], rows[0][1]


@mutant("model-matrix", "direction")
def treatments_flipped_in_the_sample_table(s: ArtifactSet) -> None:
    for row in s.grids["sample_table"].rows:
        at = s.grids["sample_table"].at("dex")
        row[at] = "trt" if row[at] == "untrt" else "untrt"


@mutant("model-matrix", sets=PAIRED)
def design_without_the_lines(s: ArtifactSet) -> None:
    s.manifest["design"] = "~ dex"


@mutant("model-matrix", sets=PAIRED, contains="another order")
def design_in_another_order(s: ArtifactSet) -> None:
    s.manifest["design"] = "~ dex + cell"


@mutant("model-matrix")
def design_with_an_interaction(s: ArtifactSet) -> None:
    s.manifest["design"] = "~ cell * dex"


@mutant("model-matrix", "contrast")
def matrix_column_renamed(s: ArtifactSet) -> None:
    s.metadata["model_matrix"]["columns"][-1] = "dex_treated_vs_untrt"


@mutant("model-matrix", "glm-score", "lfc-se", "cooks-distance", sets=TWO_GROUPS)
def one_entry_of_the_model_matrix(s: ArtifactSet) -> None:
    s.metadata["model_matrix"]["values"][2][1] = 1


@mutant("contrast")
def contrast_of_a_level_that_is_not_there(s: ArtifactSet) -> None:
    s.manifest["contrast"]["numerator"] = "high"


@mutant("contrast", "direction")
def contrast_turned_round_in_the_manifest(s: ArtifactSet) -> None:
    s.manifest["contrast"].update(numerator="untrt", denominator="trt")


@mutant("contrast", "model-matrix")
def another_reference_level(s: ArtifactSet) -> None:
    s.manifest["reference_level"] = "trt"


@mutant("contrast")
def another_shrunken_coefficient(s: ArtifactSet) -> None:
    s.metadata["shrinkage"]["coefficient"] = "Intercept"


@mutant("parameters")
def alpha_of_the_manifest(s: ArtifactSet) -> None:
    s.manifest["alpha"] = 0.05


@mutant("filter-rejections", "summary", may=("filter-theta",))
def alpha_changed_everywhere(s: ArtifactSet) -> None:
    s.manifest["alpha"] = s.metadata["alpha"] = s.documents["summary"]["alpha"] = 0.02


@mutant("parameters")
def another_adjustment_named(s: ArtifactSet) -> None:
    s.metadata["p_adjust_method"] = "BY"


@mutant("parameters")
def beta_prior_claimed(s: ArtifactSet) -> None:
    s.metadata["beta_prior"] = True


@mutant("parameters")
def minimal_mean_raised(s: ArtifactSet) -> None:
    s.metadata["min_mu"] = 1e9


@mutant("parameters")
def ridge_raised(s: ArtifactSet) -> None:
    s.metadata["beta_ridge_log2"] = 1.0


# ---- conclusions ----------------------------------------------------------------------------------------------------

@mutant("shrunken")
def shrunken_sign_of_a_significant_gene(s: ArtifactSet) -> None:
    gene = significant(s)
    s.grids["lfc_shrunken"].set(gene, "log2FoldChange", -number(s.grids["lfc_shrunken"].get(gene, "log2FoldChange")), 6)


@mutant("shrunken")
def shrunken_table_is_not_shrunken(s: ArtifactSet) -> None:
    for row, full in zip(s.grids["lfc_shrunken"].rows, s.grids["results"].rows):
        row[1], row[2] = full[2], full[3]


@mutant("shrunken")
def shrunken_error_above_the_full_one(s: ArtifactSet) -> None:
    s.grids["lfc_shrunken"].set(dull(s), "lfcSE", 9.0, 6)


@mutant("shrunken")
def shrunken_value_of_a_dull_gene_far_off(s: ArtifactSet) -> None:
    s.grids["lfc_shrunken"].set(dull(s), "log2FoldChange", 6.0, 6)


@mutant("shrunken")
def shrunken_error_of_nothing(s: ArtifactSet) -> None:
    s.grids["lfc_shrunken"].set(significant(s), "lfcSE", 1e-9, 6)


@mutant("summary", contains="n_up")
def up_and_down_exchanged(s: ArtifactSet) -> None:
    summary = s.documents["summary"]
    summary["n_up"], summary["n_down"] = summary["n_down"], summary["n_up"] + 1


@mutant("summary")
def total_counts_off_by_one(s: ArtifactSet) -> None:
    s.documents["summary"]["total_counts"] += 1


@mutant("summary")
def significant_at_five_percent(s: ArtifactSet) -> None:
    s.documents["summary"]["at_fdr_0.05"]["n_significant"] -= 1


@mutant("summary")
def another_top_gene(s: ArtifactSet) -> None:
    s.documents["summary"]["top_gene"] = s.grids["top_genes"].rows[1][0]


@mutant("top-genes")
def top_genes_in_another_order(s: ArtifactSet) -> None:
    rows = s.grids["top_genes"].rows
    rows[3], rows[30] = rows[30], rows[3]


@mutant("top-genes")
def top_gene_left_out(s: ArtifactSet) -> None:
    del s.grids["top_genes"].rows[10]


@mutant("top-genes")
def top_genes_by_fold_change(s: ArtifactSet) -> None:
    rows = sorted((row for row in s.grids["results"].rows if row[6] != "NA"), key=lambda row: -abs(float(row[2])))
    s.grids["top_genes"].rows = [list(row) for row in rows[:50]]


@mutant("top-genes")
def one_value_of_the_top_table(s: ArtifactSet) -> None:
    row = s.grids["top_genes"].rows[5]
    row[2] = text(float(row[2]) * (1 + 1e-12))


@mutant("top-genes")
def one_gene_twice_at_the_top(s: ArtifactSet) -> None:
    s.grids["top_genes"].rows[6] = list(s.grids["top_genes"].rows[5])


ALL_MUTANTS = tuple(MUTANTS)     # those of the numbers and these
