"""Faults of form inside the files: damaged archives, values that are no numbers, documents and names that do not pair."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

from .artifact_set import ArtifactSet
from .form_mutants import FORM_MUTANTS, edit_field, edit_lines, form

# ---- damaged files --------------------------------------------------------------------------------------------------

@form("tables", says=("counts.csv.gz", "truncated"))
def gzip_truncated(folder: Path, made: ArtifactSet) -> None:
    path = folder / "counts.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])


@form("tables", says=("counts.csv.gz", "truncated"))
def gzip_without_its_last_byte(folder: Path, made: ArtifactSet) -> None:
    path = folder / "counts.csv.gz"
    path.write_bytes(path.read_bytes()[:-1])


@form("tables", says=("damaged",))
def gzip_with_a_wrong_checksum(folder: Path, made: ArtifactSet) -> None:
    path = folder / "results.csv.gz"
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(bytes(data))


@form("tables", says=("after the gzip member",))
def bytes_after_the_gzip(folder: Path, made: ArtifactSet) -> None:
    path = folder / "results.csv.gz"
    path.write_bytes(path.read_bytes() + b"garbage")


@form("tables", says=("not gzip",))
def plain_text_named_gz(folder: Path, made: ArtifactSet) -> None:
    path = folder / "results.csv.gz"
    path.write_bytes(gzip.decompress(path.read_bytes()))


@form("tables", says=("line of more than",))
def bomb_of_one_line(folder: Path, made: ArtifactSet) -> None:
    (folder / "counts.csv.gz").write_bytes(gzip.compress(b"\0" * 50_000_000, 9))


@form("tables", says=("more than 500000 rows",))
def bomb_of_many_rows(folder: Path, made: ArtifactSet) -> None:
    member = gzip.compress(b"G,0.1,0.1\n" * 200_000, 9)
    (folder / "lfc_shrunken.csv.gz").write_bytes(gzip.compress(b"gene_id,log2FoldChange,lfcSE\n") + member * 200)


@form("tables", says=("gzip members",))
def bomb_of_many_members(folder: Path, made: ArtifactSet) -> None:
    # each end of a member used to copy the rest of the file: minutes for these two megabytes
    (folder / "results.csv.gz").write_bytes(gzip.compress(b"") * 100_000)


@form("tables", says=("is empty",))
def empty_table(folder: Path, made: ArtifactSet) -> None:
    (folder / "top_genes.csv").write_bytes(b"")


@form("tables", says=("UTF-8", "line 7"))
def gene_name_in_latin_1(folder: Path, made: ArtifactSet) -> None:
    edit_field(folder, "results.csv.gz", 7, 1, b"G\xe9ne")


@form("attachments", says=("ma_plot.png", "truncated"))
def figure_truncated(folder: Path, made: ArtifactSet) -> None:
    path = folder / "ma_plot.png"
    path.write_bytes(path.read_bytes()[:-5])


@form("attachments", says=("ma_plot.png", "CRC"))
def figure_damaged(folder: Path, made: ArtifactSet) -> None:
    path = folder / "ma_plot.png"
    data = bytearray(path.read_bytes())
    data[45] ^= 255
    path.write_bytes(bytes(data))


@form("attachments", says=("dds.rds",))
def object_truncated(folder: Path, made: ArtifactSet) -> None:
    path = folder / "dds.rds"
    path.write_bytes(path.read_bytes()[:-20])


@form("attachments", says=("dds.rds", "not an RDS"))
def object_is_something_else(folder: Path, made: ArtifactSet) -> None:
    (folder / "dds.rds").write_bytes(b"PK\x03\x04")


@form("attachments", says=("sessionInfo.txt", "DESeq2 1.38.3"))
def session_of_another_version(folder: Path, made: ArtifactSet) -> None:
    path = folder / "sessionInfo.txt"
    path.write_text(path.read_text().replace("1.38.3", "1.40.0"))


@form("attachments", says=("analysis.R", "empty"))
def script_empty(folder: Path, made: ArtifactSet) -> None:
    (folder / "analysis.R").write_bytes(b"\n")


# ---- values ---------------------------------------------------------------------------------------------------------

def _value(name: str, line: int, column: int, value: bytes, *says: str) -> None:
    def change(folder: Path, made: ArtifactSet) -> None:
        edit_field(folder, name, line, column, value)
    change.__name__ = f"{name.split('.')[0]}_has_{value.decode()!r}_in_column_{column}"
    form("tables", says=(name, f"line {line}", *says))(change)


for _text, _said in ((b"NaN", "finite"), (b"Inf", "finite"), (b"-Inf", "finite"), (b"1_0", "not a number"), (b"0x1f", "not a number"),
                     (b"1e999", "too large"), (b"", "empty"), (b" 1", "not a number"), (b"n/a", "not a number")):
    _value("results.csv.gz", 12, 4, _text, "column lfcSE", _said)
for _text, _said in ((b"12.5", "fraction"), (b"-3", "negative"), (b"NA", "NA"), (b"NaN", "finite"), (b"1e10", "largest integer"),
                     (b"TRUE", "not a number")):
    _value("counts.csv.gz", 31, 5, _text, "column S4", _said)
_value("results.csv.gz", 9, 2, b"NA", "column baseMean")
_value("normalized_counts.csv.gz", 9, 3, b"NA", "column S2")
_value("dispersions.csv.gz", 20, 5, b"maybe", "column dispOutlier")
_value("coefficients.csv.gz", 3, 2, b"1,2", "columns")


@form("tables", says=("line 5", "8 columns, expected 9"))
def row_with_a_column_less(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "counts.csv.gz", lambda lines: lines.__setitem__(4, lines[4].rpartition(b",")[0]))


@form("tables", says=("line 5",))
def empty_line(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "results.csv.gz", lambda lines: lines.insert(4, b""))


@form("tables", says=("line 5", "quotes"))
def quote_that_does_not_close(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "results.csv.gz", lambda lines: lines.__setitem__(4, b'"' + lines[4]))


@form("tables", says=("log2FoldChange",))
def column_renamed(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "results.csv.gz", lambda lines: lines.__setitem__(0, lines[0].replace(b"log2FoldChange", b"logFC")))


@form("tables", says=("S1", "twice"))
def sample_column_twice(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "counts.csv.gz", lambda lines: lines.__setitem__(0, lines[0].replace(b"S2", b"S1")))


# ---- documents ------------------------------------------------------------------------------------------------------

@form("documents", says=("min_mu", "is missing"))
def metadata_without_a_field(folder: Path, made: ArtifactSet) -> None:
    _rewrite(folder, "results_metadata.json", lambda value: value.pop("min_mu"))


@form("documents", says=("alpha",))
def alpha_as_text(folder: Path, made: ArtifactSet) -> None:
    _rewrite(folder, "results_metadata.json", lambda value: value.update(alpha="0.1"))


@form("documents", says=("NaN",))
def nan_in_the_metadata(folder: Path, made: ArtifactSet) -> None:
    _rewrite(folder, "results_metadata.json", lambda value: value.update(filter_theta=float("nan")))


@form("documents", says=("n_up",))
def negative_count_in_the_summary(folder: Path, made: ArtifactSet) -> None:
    _rewrite(folder, "summary.json", lambda value: value.update(n_up=-1))


@form("documents", says=("model_matrix/values",))
def ragged_model_matrix(folder: Path, made: ArtifactSet) -> None:
    _rewrite(folder, "results_metadata.json", lambda value: value["model_matrix"]["values"][2].pop())


@form("documents", says=("summary.json", "not a JSON object"))
def summary_is_a_list(folder: Path, made: ArtifactSet) -> None:
    (folder / "summary.json").write_text("[]")


def _rewrite(folder: Path, name: str, change: Callable[[dict], object]) -> None:
    value = json.loads((folder / name).read_text())
    change(value)
    (folder / name).write_text(json.dumps(value))


# ---- pairing --------------------------------------------------------------------------------------------------------

@form("samples", says=("S9", "S1"))
def sample_renamed_in_the_table(folder: Path, made: ArtifactSet) -> None:
    edit_field(folder, "sample_table.csv", 2, 1, b"S9")


@form("samples", says=("S2", "2 times"))
def sample_twice_in_the_size_factors(folder: Path, made: ArtifactSet) -> None:
    edit_field(folder, "size_factors.csv", 2, 1, b"S2")


@form("samples", says=("another order", "size_factors.csv"))
def size_factors_in_another_order(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "size_factors.csv", lambda lines: lines.__setitem__(slice(1, 3), lines[2:0:-1]))


@form("samples", says=("n_samples",))
def another_number_of_samples(folder: Path, made: ArtifactSet) -> None:
    made.manifest["n_samples"] = 9


@form("samples", says=("normalized_counts.csv.gz", "S8"))
def sample_missing_in_the_normalized_counts(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "normalized_counts.csv.gz", lambda lines: lines.__setitem__(
        slice(None), [line.rpartition(b",")[0] if line else line for line in lines]))


@form("genes", says=("results.csv.gz", "is missing"))
def gene_missing_in_results(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "results.csv.gz", lambda lines: lines.pop(10))


@form("genes", says=("coefficients.csv.gz", "2 times"))
def gene_twice_in_coefficients(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "coefficients.csv.gz", lambda lines: lines.insert(10, lines[10]))


@form("genes", says=("counts.csv.gz", "twice"))
def last_gene_repeated_in_the_counts(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "counts.csv.gz", lambda lines: lines.insert(-1, lines[-2]))


@form("samples", says=("sample_table.csv", "twice"))
def last_sample_repeated_in_the_sample_table(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "sample_table.csv", lambda lines: lines.insert(-1, lines[-2]))


@form("genes", says=("counts.csv.gz", "twice"))
def gene_twice_in_the_counts(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "counts.csv.gz", lambda lines: lines.insert(10, lines[10]))


@form("genes", says=("dispersions.csv.gz", "EXTRA"))
def gene_of_no_other_table(folder: Path, made: ArtifactSet) -> None:
    edit_lines(folder, "dispersions.csv.gz", lambda lines: lines.insert(10, lines[10].replace(lines[10].split(b",")[0], b"EXTRA")))


@form("genes", says=("results.csv.gz", "another order"))
def results_sorted_by_padj(folder: Path, made: ArtifactSet) -> None:
    """What people often save; every other check still goes through, gene by gene."""
    def change(lines: list[bytes]) -> None:
        lines[1:-1] = sorted(lines[1:-1], key=lambda line: float(line.rpartition(b",")[2].replace(b"NA", b"inf")))
    edit_lines(folder, "results.csv.gz", change)


@form("genes", says=("n_genes",))
def another_number_of_genes(folder: Path, made: ArtifactSet) -> None:
    made.manifest["n_genes"] -= 1


ALL_FORM_MUTANTS = tuple(FORM_MUTANTS)      # those of the folder and these
