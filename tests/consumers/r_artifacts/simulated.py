"""The two simulated studies that the tests change: paired (no replicates in a cell) and two groups of four (Cook's outliers)."""

from __future__ import annotations

import copy
import random
from functools import cache

from .artifact_set import ArtifactSet, from_study
from .small_deseq import Gene, Study, analyse, draw_counts, replace_outliers

SAMPLES = [f"S{number}" for number in range(1, 9)]
TREATMENT = ["untrt", "trt"] * 4
LINES = ["N3", "N3", "N1", "N1", "N2", "N2", "N4", "N4"]


@cache
def paired() -> ArtifactSet:
    """`~ cell + dex`, one sample in each cell of the design."""
    columns = ["Intercept", *(f"cell_{line}_vs_N1" for line in ("N2", "N3", "N4")), "dex_trt_vs_untrt"]
    matrix = [[1, *(int(line == own) for line in ("N2", "N3", "N4")), int(dex == "trt")] for own, dex in zip(LINES, TREATMENT)]
    study = Study("~ cell + dex", SAMPLES, {"cell": LINES, "dex": TREATMENT}, columns, matrix)
    draw_counts(study, random.Random(20261130), 300, 30)
    analyse(study)
    return from_study(study)


@cache
def two_groups() -> ArtifactSet:
    """`~ dex`, four against four, with outliers that lose their p-value and one that three larger counts spare."""
    matrix = [[1, int(dex == "trt")] for dex in TREATMENT]
    study = Study("~ dex", SAMPLES, {"dex": TREATMENT}, ["Intercept", "dex_trt_vs_untrt"], matrix)
    rng = random.Random(41)
    draw_counts(study, rng, 300, 30)
    for at, gene in enumerate(gene for gene in study.genes if gene.expressed and min(gene.counts) > 20):
        if at % 40 == 0:
            gene.counts[at // 40 % 8] *= 60
    sizes = next(gene.counts for gene in study.genes if gene.name == "GENE00162")
    study.genes.append(Gene("SPARED", [round(one * share) for one, share in zip(sizes, (0.01, 5, 1, 5, 0.01, 5, 0.01, 5))]))
    analyse(study)
    return from_study(study)


@cache
def replaced() -> tuple[ArtifactSet, tuple[str, ...]]:
    """`~ dex`, seven against seven, with outlier counts that DESeq2 replaces; and the names of those genes."""
    samples, levels = [f"S{number}" for number in range(1, 15)], TREATMENT[:2] * 7
    matrix = [[1, int(dex == "trt")] for dex in levels]
    study = Study("~ dex", samples, {"dex": levels}, ["Intercept", "dex_trt_vs_untrt"], matrix)
    draw_counts(study, random.Random(77), 150, 15)
    for at, gene in enumerate(gene for gene in copy.copy(study.genes) if gene.expressed and min(gene.counts) > 20):
        if at % 15 == 0:
            gene.counts[at // 15 % 14] *= 60
    analyse(study)
    names = replace_outliers(study, 6 * (100 ** (1 / 6) - 1))
    made = from_study(study)
    made.metadata["counts_replaced"] = True
    return made, tuple(names)
