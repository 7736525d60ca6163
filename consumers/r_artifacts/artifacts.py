"""Loading: the documents and tables of one analysis, paired by sample and by gene.

Owns the checks `documents`, `tables`, `samples` and `genes`. Tables in another order than the counts are a fault, and are
then put in order by name, so that the arithmetic still says what it has to say. Where the sets differ nothing can be
paired, and the arithmetic is not evaluated.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from .documents import DocumentError, Metadata, Reader, parse_object, read_metadata, read_summary
from .findings import Comparison, Ledger, Place
from .integrity import MANIFEST, Folder
from .tables import Shape, Table, read_table

_RESULTS = (("baseMean", "number"), ("log2FoldChange", "number?"), ("lfcSE", "number?"), ("stat", "number?"),
            ("pvalue", "number?"), ("padj", "number?"))
SHAPES: dict[str, Shape] = {
    "sample_table": Shape("sample", rest="text"),
    "counts": Shape("gene_id", rest="count"),
    "size_factors": Shape("sample", (("library_size", "number"), ("size_factor", "number"))),
    "normalized_counts": Shape("gene_id", rest="number"),
    "results": Shape("gene_id", _RESULTS),
    "dispersions": Shape("gene_id", (
        ("dispGeneEst", "number?"), ("dispFit", "number?"), ("dispMAP", "number?"), ("dispOutlier", "logical?"),
        ("dispersion", "number?"), ("maxCooks", "number?"), ("maxCooksSample", "text?"))),
    "coefficients": Shape("gene_id", rest="number?", last=(("betaConv", "logical?"),)),
    "lfc_shrunken": Shape("gene_id", (("log2FoldChange", "number?"), ("lfcSE", "number?"))),
    "top_genes": Shape("gene_id", _RESULTS),
}
GENE_TABLES = ("counts", "normalized_counts", "results", "dispersions", "coefficients", "lfc_shrunken")


@dataclass(slots=True)
class Analysis:
    """One analysis, every table in the order of the counts' genes and the sample table's samples."""

    folder: Folder
    metadata: Metadata
    summary: dict[str, object]
    tables: dict[str, Table]
    samples: list[str] = field(default_factory=list)
    genes: list[str] = field(default_factory=list)
    counts: list[array] = field(default_factory=list)          # one column per sample
    normalized: list[array] = field(default_factory=list)
    model: list[tuple[float, ...]] = field(default_factory=list)   # one row per sample

    def path(self, role: str) -> str:
        return self.folder.path(role)

    def column(self, role: str, name: str) -> array:
        return self.tables[role].numbers[name]

    def sample_column(self, name: str) -> list[str]:
        return self.tables["sample_table"].texts[name]

    def rows(self) -> zip[tuple[float, ...]]:
        """The counts, one tuple of samples per gene."""
        return zip(*self.counts)


def load(folder: Folder, ledger: Ledger) -> Analysis | None:
    """Everything read and paired, or None when a document or table cannot be used."""
    metadata, summary = _load_documents(folder, ledger)
    tables = _load_tables(folder, ledger)
    if metadata is None or summary is None or tables is None:
        return None
    analysis = Analysis(folder, metadata, summary, tables)
    paired_samples = _pair_samples(analysis, ledger)
    paired_genes = _pair_genes(analysis, ledger)
    return analysis if paired_samples and paired_genes else None


def _load_documents(folder: Folder, ledger: Ledger) -> tuple[Metadata | None, dict[str, object] | None]:
    check = ledger.add(Comparison("documents", "results metadata and summary are JSON with every field of its type"))
    found: list[object] = []
    for role, read in (("results_metadata", read_metadata), ("summary", read_summary)):
        path, data = folder.path(role), folder.data.get(role)
        if data is None:        # an integrity check has said so
            found.append(None)
            continue
        check.compared += 1
        try:
            document, bom = parse_object(data)
        except DocumentError as error:
            check.wrong(Place(path, what=str(error)))
            found.append(None)
            continue
        if bom:
            ledger.accept(f"{path}: a BOM")
        reader = Reader(document)
        value = read(reader)
        for where, what in reader.faults:
            check.wrong(Place(path, what=f"{where} {what}"))
        if reader.unboxed:
            ledger.accept(f"{path}: a scalar written as a one-element array")
        found.append(None if reader.faults else value)
    return found[0], found[1]


def _load_tables(folder: Folder, ledger: Ledger) -> dict[str, Table] | None:
    check = ledger.add(Comparison("tables", "every table is whole, with its columns and with numbers that R writes"))
    tables: dict[str, Table] = {}
    for role, shape in SHAPES.items():
        path, data = folder.path(role), folder.data.pop(role, None)
        if data is None:        # an integrity check has said so
            continue
        check.compared += 1
        table = read_table(path, data, shape)
        for line, column, what in table.faults:
            check.wrong(Place(path, line=line, column=column, what=what))
        for what in sorted(table.accepted):
            ledger.accept(f"{path}: {what}")
        tables[role] = table
        same = tables.get("counts")
        if same is not None and same is not table and table.ids == same.ids:
            table.ids = same.ids        # one list for all tables: the ids are most of the memory
    return None if check.off or len(tables) < len(SHAPES) else tables


def _twice(names: Sequence[str]) -> list[str]:
    return [name for name, number in Counter(names).items() if number > 1]


def _same(check: Comparison, place: Place, names: Sequence[str], wanted: Sequence[str], noun: str) -> bool:
    """Names equal in set and order. False only where the sets differ or a name is there twice: no pairing then."""
    check.compared += 1
    if list(names) == list(wanted):
        return True
    fields = {"file": place.file, noun: None}
    twice, have, want = _twice(names), set(names), set(wanted)
    for name in twice[:3]:
        check.wrong(Place(**{**fields, noun: name}, what=f"is there {list(names).count(name)} times"))
    for name in [name for name in wanted if name not in have][:3]:
        check.wrong(Place(**{**fields, noun: name}, what="is missing"))
    for name in [name for name in names if name not in want][:3]:
        check.wrong(Place(**{**fields, noun: name}, what="is there and in no other table"))
    if twice or have != want or len(names) != len(wanted):     # the last: a name is twice in `wanted`, as its own table's fault
        return False
    at = next(at for at, pair in enumerate(zip(names, wanted)) if pair[0] != pair[1])
    check.wrong(Place(place.file, names[at], wanted[at], what=f"another order of the {noun}s, from number {at + 1}"))
    return True


def _pair_samples(analysis: Analysis, ledger: Ledger) -> bool:
    check = ledger.add(Comparison("samples", "the same samples in the same order in every table and in the model matrix"))
    tables, metadata = analysis.tables, analysis.metadata
    wanted = tables["sample_table"].ids
    for name in _twice(wanted):
        check.wrong(Place(analysis.path("sample_table"), sample=name, what="is there twice"))
    stated = analysis.folder.facts["n_samples"]
    check.require(stated == len(wanted), Place(MANIFEST, stated, len(wanted), what="n_samples"))
    lists = {"counts": tables["counts"].names, "normalized_counts": tables["normalized_counts"].names,
             "size_factors": tables["size_factors"].ids, "results_metadata": metadata.rows}
    paired = [_same(check, Place(analysis.path(role)), names, wanted, "sample") for role, names in lists.items()]
    if not all(paired) or _twice(wanted) or not wanted:
        return False
    analysis.samples = list(wanted)
    analysis.counts = [tables["counts"].numbers[name] for name in wanted]
    analysis.normalized = [tables["normalized_counts"].numbers[name] for name in wanted]
    _reorder(tables["size_factors"], wanted)
    by_name = dict(zip(metadata.rows, metadata.values))
    analysis.model = [by_name[name] for name in wanted]
    return True


def _pair_genes(analysis: Analysis, ledger: Ledger) -> bool:
    check = ledger.add(Comparison("genes", "the same genes in the same order in all six gene tables"))
    wanted = analysis.tables["counts"].ids
    stated = analysis.folder.facts["n_genes"]
    check.require(stated == len(wanted), Place(MANIFEST, stated, len(wanted), what="n_genes"))
    twice = _twice(wanted)
    for name in twice[:3]:
        check.wrong(Place(analysis.path("counts"), gene=name, what="is there twice"))
    check.require(bool(wanted), Place(analysis.path("counts"), what="has no genes"))
    paired = [_same(check, Place(analysis.path(role)), analysis.tables[role].ids, wanted, "gene") for role in GENE_TABLES[1:]]
    if not all(paired) or twice or not wanted:
        return False
    for role in GENE_TABLES[1:]:
        _reorder(analysis.tables[role], wanted)
    if analysis.samples:
        analysis.normalized = [analysis.tables["normalized_counts"].numbers[name] for name in analysis.samples]
    analysis.genes = wanted
    return True


def _reorder(table: Table, wanted: list[str]) -> None:
    """Rows into the order of `wanted`, the same names."""
    if table.ids == wanted:
        return
    at = {name: row for row, name in enumerate(table.ids)}
    rows = [at[name] for name in wanted]
    table.numbers = {name: array("d", [column[row] for row in rows]) for name, column in table.numbers.items()}
    table.texts = {name: [column[row] for row in rows] for name, column in table.texts.items()}
    table.ids = wanted
