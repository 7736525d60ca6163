"""Faults in the numbers of a set, each written with true digests; and the checks that must fail, those and no others."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

from consumers.r_artifacts.design import Design
from consumers.r_artifacts.model import Model
from consumers.r_artifacts.numerics import adjust_bh, quantile7

from .artifact_set import ArtifactSet, adjust, finish, number, refilter, summarize, text

PAIRED, TWO_GROUPS, BOTH = ("paired",), ("two_groups",), ("paired", "two_groups")


@dataclass(frozen=True)
class Mutant:
    name: str
    change: Callable[[ArtifactSet], None]
    fails: frozenset[str]       # these must fail,
    sets: tuple[str, ...] = BOTH
    contains: str = ""          # what the detail of a failed check must say
    may: frozenset[str] = frozenset()   # these may, in one design or another; and no others


MUTANTS: list[Mutant] = []


def mutant(*fails: str, sets: tuple[str, ...] = BOTH, contains: str = "", may: tuple[str, ...] = ()) -> Callable:
    def register(change: Callable[[ArtifactSet], None]) -> Callable[[ArtifactSet], None]:
        MUTANTS.append(Mutant(change.__name__, change, frozenset(fails), sets, contains, frozenset(may)))
        return change
    return register


def made_from(base: ArtifactSet, one: Mutant) -> ArtifactSet:
    changed = copy.deepcopy(base)
    one.change(changed)
    return changed


# ---- genes to change ------------------------------------------------------------------------------------------------

def genes(s: ArtifactSet, wanted: Callable[[dict[str, float]], bool]) -> list[str]:
    """Genes of results for which the predicate holds, by what the row says."""
    names = s.grids["results"].header[1:]
    return [row[0] for row in s.grids["results"].rows if wanted(dict(zip(names, map(number, row[1:]))))]


def significant(s: ArtifactSet) -> str:
    """A clearly significant gene that is not at the top, with good counts."""
    return genes(s, lambda r: 1e-6 < r["padj"] < 0.01 and r["baseMean"] > 100)[0]


def dull(s: ArtifactSet) -> str:
    """A gene of no significance, kept by the filter, that the top table does not hold."""
    top = {row[0] for row in s.grids["top_genes"].rows}
    return next(gene for gene in genes(s, lambda r: r["padj"] > 0.5 and r["baseMean"] > 200 and r["pvalue"] < 0.9) if gene not in top)


def model_of(s: ArtifactSet) -> Model:
    """The retained model of a set."""
    matrix = s.metadata["model_matrix"]
    number_of: dict[tuple, int] = {}
    rows = [tuple(map(float, row)) for row in matrix["values"]]
    cells = tuple(number_of.setdefault(row, len(number_of)) for row in rows)
    design = Design(tuple(matrix["columns"]), tuple(rows), cells, matrix["columns"].index("dex_trt_vs_untrt"), (), (), False)
    return Model(design, s.grids["size_factors"].numbers("size_factor"))


def refit_error(s: ArtifactSet, gene: str) -> None:
    """lfcSE of one gene as its coefficients and dispersion now have it."""
    row = s.grids["coefficients"].row(gene)
    found = model_of(s).evaluate([float(v) for v in s.grids["counts"].row(gene)[1:]], [number(v) for v in row[1:-1]],
                                 number(s.grids["dispersions"].get(gene, "dispersion")))
    s.grids["results"].set(gene, "lfcSE", found.error_log2)


def set_change(s: ArtifactSet, gene: str, change: float, factor: float = 0.9) -> None:
    """LFC of a gene, followed into the coefficient and the shrunken table."""
    rounded = float(text(change, 9))
    s.grids["results"].set(gene, "log2FoldChange", rounded)
    s.grids["coefficients"].set(gene, "dex_trt_vs_untrt", rounded, 9)
    s.grids["lfc_shrunken"].set(gene, "log2FoldChange", rounded * factor, 6)


# ---- from the counts up ---------------------------------------------------------------------------------------------

@mutant("library-sizes", contains="S3")
def library_size_off_by_one(s: ArtifactSet) -> None:
    row = s.grids["size_factors"].row("S3")
    row[1] = str(int(row[1]) + 1)


@mutant("size-factors", contains="S5")
def size_factor_of_one_sample(s: ArtifactSet) -> None:
    s.grids["size_factors"].set("S5", "size_factor", number(s.grids["size_factors"].get("S5", "size_factor")) * (1 + 1e-8))


@mutant("size-factors", "normalized-counts", "base-mean", "filter-threshold")
def size_factors_centred_everywhere(s: ArtifactSet) -> None:
    """All size factors divided by their mean, followed into normalized counts and baseMean."""
    sizes = s.grids["size_factors"].numbers("size_factor")
    mean = sum(sizes) / len(sizes)
    for row in s.grids["size_factors"].rows:
        row[2] = text(float(row[2]) / mean)
    for role, columns in (("normalized_counts", range(1, 9)), ("results", (1,))):
        for row in s.grids[role].rows:
            for at in columns:
                row[at] = text(float(row[at]) * mean)
    s.metadata["filter_threshold"] *= mean
    summarize(s)


@mutant("normalized-counts", contains="S2")
def one_normalized_count(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["normalized_counts"].set(gene, "S2", number(s.grids["normalized_counts"].get(gene, "S2")) * 1.0001)


@mutant("base-mean")
def one_base_mean(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["results"].set(gene, "baseMean", number(s.grids["results"].get(gene, "baseMean")) * 1.001)


@mutant("library-sizes", "normalized-counts", "base-mean", "dispersion-trend", "glm-score", "summary", contains="S1",
        may=("size-factors", "lfc-se", "cooks-distance", "dispersion-trend-fit", "dispersion-prior", "dispersion-map",
             "filter-rejections", "filter-threshold", "filter-theta", "filter-set", "padj"))
def one_count_raised(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["counts"].set(gene, "S1", str(int(s.grids["counts"].get(gene, "S1")) * 4))


@mutant("missing-values")
def all_zero_gene_with_values(s: ArtifactSet) -> None:
    gene = genes(s, lambda r: r["baseMean"] == 0)[0]
    s.grids["lfc_shrunken"].set(gene, "log2FoldChange", 0.1)


@mutant("missing-values")
def expressed_gene_without_coefficients(s: ArtifactSet) -> None:
    gene = dull(s)
    for column in s.grids["coefficients"].header[1:]:
        s.grids["coefficients"].set(gene, column, "NA")


# ---- Wald -----------------------------------------------------------------------------------------------------------

@mutant("wald-stat", "top-genes")
def one_stat(s: ArtifactSet) -> None:
    gene = s.grids["top_genes"].rows[7][0]
    s.grids["results"].set(gene, "stat", number(s.grids["results"].get(gene, "stat")) * (1 + 1e-7))


@mutant("wald-stat")
def stat_with_the_wrong_sign(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["results"].set(gene, "stat", -number(s.grids["results"].get(gene, "stat")))


@mutant("p-value")
def one_p_value(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["results"].set(gene, "pvalue", number(s.grids["results"].get(gene, "pvalue")) * 0.999)


@mutant("p-value")
def p_values_one_sided(s: ArtifactSet) -> None:
    """All p halved, and everything after them made from those."""
    for row in s.grids["results"].rows:
        if row[5] != "NA":
            row[5] = text(float(row[5]) / 2)
    refilter(s)


@mutant("p-value", "top-genes")
def p_zero_where_it_is_not(s: ArtifactSet) -> None:
    s.grids["results"].set(s.grids["top_genes"].rows[1][0], "pvalue", "0")


@mutant("lfc-se")
def error_too_small_followed_everywhere(s: ArtifactSet) -> None:
    gene = dull(s)
    results = s.grids["results"]
    results.set(gene, "lfcSE", number(results.get(gene, "lfcSE")) * 0.97)
    finish(s)


@mutant("contrast-coefficient")
def fold_change_not_the_coefficient(s: ArtifactSet) -> None:
    gene = dull(s)
    results = s.grids["results"]
    results.set(gene, "log2FoldChange", number(results.get(gene, "log2FoldChange")) * 1.01)
    finish(s)


@mutant("threshold-stat", "threshold-p-value")
def lfc_threshold_claimed(s: ArtifactSet) -> None:
    s.metadata["lfc_threshold"] = 0.5


@mutant("parameters")
def lfc_threshold_without_effect(s: ArtifactSet) -> None:
    s.metadata["lfc_threshold"] = 1e-300


@mutant("threshold-stat", "threshold-p-value")
def one_sided_alternative_claimed(s: ArtifactSet) -> None:
    s.metadata["alt_hypothesis"] = "greater"


@mutant("lrt-p-value")
def ratio_test_claimed(s: ArtifactSet) -> None:
    s.metadata["test"] = "LRT"


# ---- filter and BH --------------------------------------------------------------------------------------------------

@mutant("filter-theta-grid")
def one_theta_of_the_grid(s: ArtifactSet) -> None:
    s.metadata["filter_num_rej"][20]["theta"] += 1e-6


@mutant("filter-theta-grid", "filter-rejections")
def grid_cut_short(s: ArtifactSet) -> None:
    s.metadata["filter_num_rej"].pop()


@mutant("filter-rejections", contains="filter_num_rej/17/numRej")
def one_number_of_rejections(s: ArtifactSet) -> None:
    s.metadata["filter_num_rej"][17]["numRej"] += 1


@mutant("filter-theta")
def theta_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["filter_theta"] = s.metadata["filter_num_rej"][40]["theta"]


@mutant("filter-threshold")
def threshold_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["filter_threshold"] *= 1 + 1e-8


@mutant("filter-theta")
def another_theta_used_throughout(s: ArtifactSet) -> None:
    means = sorted(s.grids["results"].numbers("baseMean"))
    theta = s.metadata["filter_num_rej"][30]["theta"]
    s.metadata["filter_theta"], s.metadata["filter_threshold"] = theta, quantile7(means, theta)
    adjust(s, s.metadata["filter_threshold"])


@mutant("filter-set", "summary", contains="padj")
def padj_taken_from_a_gene_that_passed(s: ArtifactSet) -> None:
    s.grids["results"].set(dull(s), "padj", "NA")


@mutant("filter-set", "summary")
def padj_for_a_filtered_gene(s: ArtifactSet) -> None:
    gene = genes(s, lambda r: math.isnan(r["padj"]) and r["pvalue"] > 0.6)[0]
    s.grids["results"].set(gene, "padj", 0.9)


@mutant("filter-set", "padj")
def filter_not_applied(s: ArtifactSet) -> None:
    """BH over all tested genes, while the metadata say that the filter was on."""
    adjust(s, 0.0)


@mutant("padj")
def adjusted_before_filtering(s: ArtifactSet) -> None:
    rows = [row for row in s.grids["results"].rows if row[5] != "NA"]
    for row, padj in zip(rows, adjust_bh([float(row[5]) for row in rows])):
        if row[6] != "NA":
            row[6] = text(padj)
    summarize(s)


@mutant("padj")
def bonferroni(s: ArtifactSet) -> None:
    rows = [row for row in s.grids["results"].rows if row[6] != "NA"]
    for row in rows:
        row[6] = text(min(1.0, float(row[5]) * len(rows)))
    summarize(s)


@mutant("padj", "summary")
def one_gene_called_significant(s: ArtifactSet) -> None:
    gene = genes(s, lambda r: 0.11 < r["padj"] < 0.5 and r["log2FoldChange"] > 0)[0]
    s.grids["results"].set(gene, "padj", 0.0999)
    s.grids["top_genes"].rows = [list(s.grids["results"].row(row[0])) for row in s.grids["top_genes"].rows]


@mutant("filter-set", "parameters", "padj")
def filtering_said_to_be_off(s: ArtifactSet) -> None:
    s.metadata["independent_filtering"] = False


# ---- Cook -----------------------------------------------------------------------------------------------------------

@mutant("cooks-cutoff")
def cooks_cutoff_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["cooks_cutoff"] *= 1.01


@mutant("cooks-cutoff")
def replicates_stated_wrongly(s: ArtifactSet) -> None:
    s.metadata["cooks_samples_with_3_replicates"] = 4


def outlier(s: ArtifactSet) -> str:
    return next(row[0] for row in s.grids["dispersions"].rows if number(row[6]) > 10.93 and row[0] != "SPARED"
                and s.grids["results"].get(row[0], "pvalue") == "NA")


@mutant("cooks-rule", sets=TWO_GROUPS)
def outlier_keeps_its_p_value(s: ArtifactSet) -> None:
    gene = outlier(s)
    results = s.grids["results"]
    results.set(gene, "pvalue", math.erfc(abs(number(results.get(gene, "stat"))) / math.sqrt(2)))
    refilter(s)


@mutant("cooks-rule", sets=TWO_GROUPS)
def p_value_taken_without_an_outlier(s: ArtifactSet) -> None:
    s.grids["results"].set(dull(s), "pvalue", "NA")
    refilter(s)


@mutant("cooks-rule", sets=TWO_GROUPS)
def p_value_of_a_spared_gene_taken(s: ArtifactSet) -> None:
    s.grids["results"].set("SPARED", "pvalue", "NA")
    refilter(s)


@mutant("missing-values", sets=PAIRED)
def p_value_taken_without_replicates(s: ArtifactSet) -> None:
    s.grids["results"].set(dull(s), "pvalue", "NA")
    refilter(s)


@mutant("cooks-distance", sets=TWO_GROUPS, contains="maxCooks")
def gene_removed_by_a_made_up_distance(s: ArtifactSet) -> None:
    gene = significant(s)
    s.grids["dispersions"].set(gene, "maxCooks", 19.5, 10)
    s.grids["results"].set(gene, "pvalue", "NA")
    refilter(s)


@mutant("cooks-distance", sets=TWO_GROUPS)
def outlier_hidden_by_a_made_up_distance(s: ArtifactSet) -> None:
    s.grids["dispersions"].set(outlier(s), "maxCooks", 3.0, 10)
    finish(s)


@mutant("cooks-distance", sets=TWO_GROUPS)
def another_sample_blamed(s: ArtifactSet) -> None:
    gene = dull(s)
    now = s.grids["dispersions"].get(gene, "maxCooksSample")
    s.grids["dispersions"].set(gene, "maxCooksSample", "S1" if now != "S1" else "S2")


@mutant("missing-values", sets=TWO_GROUPS)
def distances_withheld(s: ArtifactSet) -> None:
    for row in s.grids["dispersions"].rows:
        row[6] = row[7] = "NA"
    results = s.grids["results"]
    for row in results.rows:
        if row[5] == "NA" and row[4] != "NA":
            row[5] = text(math.erfc(abs(float(row[4])) / math.sqrt(2)))
    refilter(s)


@mutant("missing-values", sets=PAIRED)
def distances_without_replicates(s: ArtifactSet) -> None:
    gene = dull(s)
    s.grids["dispersions"].set(gene, "maxCooks", 99.0)
    s.grids["dispersions"].set(gene, "maxCooksSample", "S1")


@mutant("parameters")
def counts_said_to_be_replaced(s: ArtifactSet) -> None:
    s.metadata["counts_replaced"] = True
