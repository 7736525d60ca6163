"""A set of artifacts in memory: tables of text, JSON documents and blobs; read from a folder, changed, written with true digests.

What every mutant works on. `write` hashes what it writes, so a fault planted in a set is found by what the numbers say
or not at all.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import lzma
import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from consumers.r_artifacts.filtering import choose, count_rejections, theta_grid
from consumers.r_artifacts.numerics import adjust_bh, quantile7

from .small_deseq import Study

FILES = {
    "counts": "counts.csv.gz", "sample_table": "sample_table.csv", "size_factors": "size_factors.csv",
    "normalized_counts": "normalized_counts.csv.gz", "results": "results.csv.gz", "dispersions": "dispersions.csv.gz",
    "coefficients": "coefficients.csv.gz", "lfc_shrunken": "lfc_shrunken.csv.gz", "top_genes": "top_genes.csv",
    "results_metadata": "results_metadata.json", "summary": "summary.json", "figure": "ma_plot.png", "dds": "dds.rds",
    "session_info": "sessionInfo.txt", "script": "analysis.R",
}
GENE_ROLES = ("counts", "normalized_counts", "results", "dispersions", "coefficients", "lfc_shrunken")


def text(value: float, digits: int = 15) -> str:
    """A double as R's write.csv prints it."""
    return "NA" if math.isnan(value) else f"{value:.{digits}g}"


def number(field_text: str) -> float:
    return math.nan if field_text == "NA" else float(field_text)


@dataclass
class Grid:
    """One table as text."""

    header: list[str]
    rows: list[list[str]]

    def at(self, name: str) -> int:
        return self.header.index(name)

    def row(self, gene: str) -> list[str]:
        return next(row for row in self.rows if row[0] == gene)

    def get(self, gene: str, column: str) -> str:
        return self.row(gene)[self.at(column)]

    def set(self, gene: str, column: str, value: float | str, digits: int = 15) -> None:
        self.row(gene)[self.at(column)] = value if isinstance(value, str) else text(value, digits)

    def numbers(self, name: str) -> list[float]:
        at = self.at(name)
        return [number(row[at]) for row in self.rows]

    def encode(self, *, end: str = "\n", quoted: bool = False, unnamed: bool = False) -> bytes:
        header = ["", *self.header[1:]] if unnamed else self.header

        def name(value: str) -> str:
            return f'"{value}"' if quoted else value

        lines = [",".join(map(name, header))] + [",".join([name(row[0]), *row[1:]]) for row in self.rows]
        return "".join(line + end for line in lines).encode()


@dataclass
class ArtifactSet:
    """All of one analysis. `encoders` overrides how a role is turned into bytes."""

    grids: dict[str, Grid]
    documents: dict[str, dict]
    blobs: dict[str, bytes]
    manifest: dict
    encoders: dict[str, Callable[[Grid], bytes]] = field(default_factory=dict)

    @property
    def metadata(self) -> dict:
        return self.documents["results_metadata"]

    def data(self, role: str) -> bytes:
        if role in self.blobs:
            return self.blobs[role]
        if role in self.documents:
            return json.dumps(self.documents[role], indent=2).encode() + b"\n"
        if role in self.encoders:
            return self.encoders[role](self.grids[role])
        data = self.grids[role].encode()
        return gzip.compress(data, 1, mtime=0) if FILES[role].endswith(".gz") else data

    def write(self, folder: Path) -> Path:
        folder.mkdir()
        for role, name in FILES.items():
            (folder / name).write_bytes(self.data(role))
        return rehash(folder, self.manifest)


def rehash(folder: Path, manifest: dict) -> Path:
    """`complete.json` with the true sizes and digests."""
    entries = []
    for role, name in FILES.items():
        data = (folder / name).read_bytes()
        entries.append({"path": name, "role": role, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    whole = {**manifest, "files": sorted(entries, key=lambda entry: entry["path"])}
    (folder / "complete.json").write_text(json.dumps(whole, indent=2) + "\n")
    return folder


def read_set(folder: Path) -> ArtifactSet:
    """A set from a folder in the tidy style."""
    grids, documents, blobs = {}, {}, {}
    for role, name in FILES.items():
        data = (folder / name).read_bytes()
        if name.endswith(".json"):
            documents[role] = json.loads(data)
        elif ".csv" in name:
            raw = gzip.decompress(data) if name.endswith(".gz") else data
            header, *rows = csv.reader(io.StringIO(raw.decode()))
            grids[role] = Grid(header, rows)
        else:
            blobs[role] = data
    manifest = json.loads((folder / "complete.json").read_text())
    del manifest["files"]
    return ArtifactSet(grids, documents, blobs, manifest)


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\1\2\3\4" * 4)) + chunk(b"IEND", b"")


def from_study(study: Study, alpha: float = 0.1) -> ArtifactSet:
    """The study's numbers as DESeq2's files, rounded as `analysis.R` rounds them."""
    nan = math.nan
    grids = {
        "counts": Grid(["gene_id", *study.samples], [[g.name, *map(str, g.counts)] for g in study.genes]),
        "sample_table": Grid(["sample", *study.factors], [
            [name, *(levels[at] for levels in study.factors.values())] for at, name in enumerate(study.samples)]),
        "size_factors": Grid(["sample", "library_size", "size_factor"], [
            [name, str(sum(g.counts[at] for g in study.genes)), text(study.size_factors[at])] for at, name in enumerate(study.samples)]),
        "normalized_counts": Grid(["gene_id", *study.samples], [
            [g.name, *(text(count / size) for count, size in zip(g.counts, study.size_factors))] for g in study.genes]),
        "results": Grid(["gene_id", "baseMean", "log2FoldChange", "lfcSE", "stat", "pvalue", "padj"], [
            [g.name, text(g.mean), text(g.beta[-1] / math.log(2)) if g.beta else "NA", text(g.error), "NA", "NA", "NA"]
            for g in study.genes]),
        "coefficients": Grid(["gene_id", *study.columns, "betaConv"], [
            [g.name, *(text(b / math.log(2), 9) for b in g.beta or [nan] * len(study.columns)), "TRUE" if g.beta else "NA"]
            for g in study.genes]),
        "lfc_shrunken": Grid(["gene_id", "log2FoldChange", "lfcSE"], []),
        "dispersions": Grid(["gene_id", "dispGeneEst", "dispFit", "dispMAP", "dispOutlier", "dispersion", "maxCooks",
                             "maxCooksSample"], []),
        "top_genes": Grid([], []),
    }
    for g in study.genes:
        shrink = 0.5 / (0.5 + g.error**2)
        change = g.beta[-1] / math.log(2) if g.beta else nan
        grids["lfc_shrunken"].rows.append([g.name, text(change * shrink, 6), text(g.error * shrink, 6)])
        worst = max(g.cooks, default=nan)
        grids["dispersions"].rows.append([
            g.name, *(text(value, 10) for value in (g.gene_est, g.fit, g.map)), str(g.outlier).upper() if g.beta else "NA",
            text(g.used, 10), text(worst, 10), study.samples[g.cooks.index(worst)] if g.cooks else "NA"])
    width, left = len(study.columns), len(study.samples) - len(study.columns)
    cells = [tuple(row) for row in study.matrix]
    metadata = {
        "alpha": alpha, "test": "Wald", "p_adjust_method": "BH", "lfc_threshold": 0, "alt_hypothesis": "greaterAbs",
        "independent_filtering": True, "filter_statistic": "baseMean",
        "cooks_cutoff": {(5, 3): 28.237080837755, (2, 6): 10.9247665008383, (2, 12): 6 * (100 ** (1 / 6) - 1)}[width, left],
        "cooks_samples_with_3_replicates": sum(cells.count(cell) >= 3 for cell in cells),
        "counts_replaced": False, "beta_prior": False,
        "model_matrix": {"columns": study.columns, "rows": study.samples, "values": study.matrix},
        "dispersion_fit": {"type": "parametric", "asympt_disp": study.trend[0], "extra_pois": study.trend[1],
                           "var_log_disp_ests": study.log_variance, "disp_prior_var": study.prior_variance},
        "beta_ridge_log2": 1e-06, "min_mu": 0.5, "shrinkage": {"type": "normal", "coefficient": study.columns[-1]},
    }
    manifest = {
        "schema": "airway-deseq2-artifacts", "schema_version": 1, "status": "complete", "started_utc": "2026-11-30T14:22:15Z",
        "finished_utc": "2026-11-30T14:22:38Z",
        "dataset": {"name": "simulated", "counts_source_sha256": "0" * 64, "metadata_source_sha256": "1" * 64},
        "design": study.design, "contrast": {"factor": "dex", "numerator": "trt", "denominator": "untrt"},
        "reference_level": "untrt", "alpha": alpha, "n_samples": len(study.samples), "n_genes": len(study.genes),
        "versions": {"R": "4.2.2", "DESeq2": "1.38.3"}, "command": ["simulator"],
    }
    blobs = {
        "figure": png(), "dds": lzma.compress(b"X\n" + bytes(range(256)) * 16), "script": b"# simulated\n",
        "session_info": b"R version 4.2.2 (2022-10-31)\nother attached packages:\n[1] DESeq2_1.38.3\n",
    }
    made = ArtifactSet(grids, {"results_metadata": metadata, "summary": {}}, blobs, manifest)
    finish(made)
    return made


def finish(made: ArtifactSet) -> None:
    """Everything after LFC and lfcSE, consistently: stat, p, Cook's rule, filter, padj, top genes, summary."""
    results, metadata = made.grids["results"], made.metadata
    dispersions, counts = made.grids["dispersions"], made.grids["counts"]
    alone = made.manifest["design"] == "~ dex"
    for row, disp, count in zip(results.rows, dispersions.rows, counts.rows):
        change, error = number(row[2]), number(row[3])
        stat = change / error
        row[4], row[5] = text(stat), text(math.erfc(abs(stat) / math.sqrt(2)))
        if number(disp[6]) > metadata["cooks_cutoff"]:
            outlier = int(count[counts.at(disp[7])])
            if not alone or sum(int(value) > outlier for value in count[1:]) < 3:
                row[5] = "NA"
    refilter(made)


def refilter(made: ArtifactSet) -> None:
    """From p and baseMean on."""
    results, metadata = made.grids["results"], made.metadata
    means, p_values = results.numbers("baseMean"), results.numbers("pvalue")
    grid = theta_grid(means)
    cutoffs = [quantile7(sorted(means), theta) for theta in grid]
    rejections = count_rejections(means, p_values, cutoffs, metadata["alpha"])
    chosen = choose(grid, rejections)
    metadata["filter_theta"], metadata["filter_threshold"] = grid[chosen], cutoffs[chosen]
    metadata["filter_num_rej"] = [{"theta": theta, "numRej": count} for theta, count in zip(grid, rejections)]
    adjust(made, cutoffs[chosen])


def adjust(made: ArtifactSet, threshold: float) -> None:
    """BH over the genes at or above the threshold; then top genes and summary."""
    results = made.grids["results"]
    for row in results.rows:
        row[6] = "NA"
    kept = [row for row in results.rows if row[5] != "NA" and float(row[1]) >= threshold * (1 - 1e-12)]
    for row, padj in zip(kept, adjust_bh([float(row[5]) for row in kept])):
        row[6] = text(padj)
    summarize(made)


def summarize(made: ArtifactSet) -> None:
    """Top genes and summary from results as they stand."""
    results, alpha = made.grids["results"], made.metadata["alpha"]

    def key(row: list[str]) -> tuple[float, float]:
        return tuple(math.inf if row[at] == "NA" else float(row[at]) for at in (6, 5))

    ordered = sorted(results.rows, key=key)
    made.grids["top_genes"] = Grid(list(results.header), [list(row) for row in ordered[:50]])
    counts = made.grids["counts"]
    empty = [all(value == "0" for value in row[1:]) for row in counts.rows]
    padj, p = results.numbers("padj"), results.numbers("pvalue")
    change = results.numbers("log2FoldChange")

    def called(level: float) -> dict[str, int]:
        rows = [at for at, value in enumerate(padj) if value < level]
        return {"n_significant": len(rows), "n_up": sum(change[at] > 0 for at in rows), "n_down": sum(change[at] < 0 for at in rows)}

    made.documents["summary"] = {
        "n_samples": len(counts.header) - 1, "n_genes": len(empty), "n_all_zero": sum(empty), "n_expressed": len(empty) - sum(empty),
        "n_cooks_outlier": sum(math.isnan(value) and not none for value, none in zip(p, empty)),
        "n_tested": sum(not math.isnan(value) for value in p),
        "n_filtered": sum(not math.isnan(a) and math.isnan(b) for a, b in zip(p, padj)),
        "n_adjusted": sum(not math.isnan(value) for value in padj), "alpha": alpha, **called(alpha), "at_fdr_0.05": called(0.05),
        "total_counts": sum(int(value) for row in counts.rows for value in row[1:]), "top_gene": ordered[0][0],
    }


def rename_samples(made: ArtifactSet) -> ArtifactSet:
    """The same set with its samples called S1, S2, ...: what the mutants expect."""
    names = {row[0]: f"S{at}" for at, row in enumerate(made.grids["sample_table"].rows, 1)}
    for role in ("sample_table", "size_factors"):
        for row in made.grids[role].rows:
            row[0] = names[row[0]]
    for role in ("counts", "normalized_counts"):
        made.grids[role].header[1:] = [names[name] for name in made.grids[role].header[1:]]
    for row in made.grids["dispersions"].rows:
        row[7] = names.get(row[7], row[7])
    matrix = made.metadata["model_matrix"]
    matrix["rows"] = [names[name] for name in matrix["rows"]]
    return made
