"""Strict reading of the three JSON documents: the manifest, the results metadata and the summary.

Owns what a value must look like (type, range) and says every fault by JSON path. Whether the values are *true* is
the business of the arithmetic. jsonlite writes a scalar as a one-element array unless told otherwise: that is
accepted, and said.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_MAX_DIGITS = 400
_HEX64 = re.compile(r"[0-9a-f]{64}\Z")


class DocumentError(ValueError):
    """Not a JSON object that this checker can read; the message says why."""


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise DocumentError(f"the key {name!r} is there twice")
        found[name] = value
    return found


def _no_constant(text: str) -> object:
    raise DocumentError(f"{text} is not JSON")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise DocumentError(f"an integer of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise DocumentError(f"the number {text[:40]} is out of range")
    return value


def parse_object(data: bytes) -> tuple[dict[str, object], bool]:
    """The JSON object in `data`, and whether a BOM stood before it. Duplicate keys, NaN and 1e999 are errors."""
    bom = data.startswith(_BOM)
    try:
        text = data[len(_BOM) if bom else 0:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant,
                           parse_int=_integer, parse_float=_finite)
    except DocumentError:
        raise
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DocumentError("not a JSON object")
    return value, bom


@dataclass(slots=True)
class Reader:
    """Takes values out of one document and collects every fault as (JSON path, what is wrong)."""

    document: dict[str, object]
    faults: list[tuple[str, str]] = field(default_factory=list)
    unboxed: bool = False

    def take(self, path: str, accept: Callable[[object], bool], wanted: str) -> object:
        """The value at a `/`-separated path when `accept` holds for it; else a fault, and None."""
        value: object = self.document
        for part in path.split("/"):
            if not isinstance(value, dict) or part not in value:
                self.faults.append((path, f"is missing; it must be {wanted}"))
                return None
            value = value[part]
        if isinstance(value, list) and len(value) == 1 and not accept(value) and accept(value[0]):
            self.unboxed = True
            value = value[0]
        if not accept(value):
            self.faults.append((path, f"is {brief(value)}; it must be {wanted}"))
            return None
        return value

    def text(self, path: str) -> str:
        return self.take(path, lambda value: isinstance(value, str) and bool(value), "a text") or ""

    def flag(self, path: str) -> bool:
        return bool(self.take(path, lambda value: isinstance(value, bool), "true or false"))

    def count(self, path: str) -> int:
        return self.take(path, is_count, "a whole number from 0") or 0

    def number(self, path: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number in [low, high]."""
        wanted = "a number" if low == -math.inf else f"a number from {low:g}" + ("" if high == math.inf else f" to {high:g}")
        value = self.take(path, lambda given: is_number(given) and low <= given <= high, wanted)
        return math.nan if value is None else float(value)

    def optional_number(self, path: str) -> float | None:
        """A finite number, or None where the key is absent or null."""
        value: object = self.document
        for part in path.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        return None if value is None else self.number(path)

    def digest(self, path: str) -> str:
        return self.take(path, is_digest, "a lower-case sha256") or ""


def is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= 1.7976931348623157e308


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**63


def is_digest(value: object) -> bool:
    return isinstance(value, str) and _HEX64.match(value) is not None


def brief(value: object) -> str:
    """A value as a message shows it: short, on one line."""
    text = json.dumps(value) if not isinstance(value, (dict, list)) else f"a JSON {'object' if isinstance(value, dict) else 'array'}"
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True)
class Metadata:
    """`results_metadata.json`. None where a setting is off in this analysis (no independent filtering, no such fit)."""

    alpha: float
    test: str
    p_adjust_method: str
    lfc_threshold: float
    alt_hypothesis: str
    independent_filtering: bool
    filter_statistic: str | None
    filter_threshold: float | None
    filter_theta: float | None
    rejections: tuple[tuple[float, int], ...]
    cooks_cutoff: float | None
    samples_with_3_replicates: int
    counts_replaced: bool
    beta_prior: bool
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    fit_type: str
    asympt_disp: float | None
    extra_pois: float | None
    var_log_disp_ests: float
    disp_prior_var: float
    ridge_log2: float
    min_mu: float
    shrinkage_type: str
    shrinkage_coefficient: str


def read_metadata(reader: Reader) -> Metadata:
    """Every field of the metadata; the faults stay in the reader, and a faulty field is NaN, empty or None."""
    filtering = reader.flag("independent_filtering")
    columns, rows, values = _model_matrix(reader)
    return Metadata(
        alpha=reader.number("alpha", 0, 1), test=reader.text("test"), p_adjust_method=reader.text("p_adjust_method"),
        lfc_threshold=reader.number("lfc_threshold", 0), alt_hypothesis=reader.text("alt_hypothesis"),
        independent_filtering=filtering,
        filter_statistic=reader.text("filter_statistic") if filtering else None,
        filter_threshold=reader.number("filter_threshold", 0) if filtering else reader.optional_number("filter_threshold"),
        filter_theta=reader.number("filter_theta", 0, 1) if filtering else reader.optional_number("filter_theta"),
        rejections=_rejections(reader, filtering),
        cooks_cutoff=reader.optional_number("cooks_cutoff"),
        samples_with_3_replicates=reader.count("cooks_samples_with_3_replicates"),
        counts_replaced=reader.flag("counts_replaced"), beta_prior=reader.flag("beta_prior"),
        columns=columns, rows=rows, values=values,
        fit_type=reader.text("dispersion_fit/type"),
        asympt_disp=reader.optional_number("dispersion_fit/asympt_disp"),
        extra_pois=reader.optional_number("dispersion_fit/extra_pois"),
        var_log_disp_ests=reader.number("dispersion_fit/var_log_disp_ests", 0),
        disp_prior_var=reader.number("dispersion_fit/disp_prior_var", 0),
        ridge_log2=reader.number("beta_ridge_log2", 0), min_mu=reader.number("min_mu", 0),
        shrinkage_type=reader.text("shrinkage/type"), shrinkage_coefficient=reader.text("shrinkage/coefficient"),
    )


def _rejections(reader: Reader, filtering: bool) -> tuple[tuple[float, int], ...]:
    if not filtering and reader.document.get("filter_num_rej") is None:
        return ()

    def entry(value: object) -> bool:
        return isinstance(value, dict) and is_number(value.get("theta")) and is_count(value.get("numRej"))

    found = reader.take("filter_num_rej", lambda value: isinstance(value, list) and all(map(entry, value)),
                        "a list of {theta, numRej}")
    return tuple((float(one["theta"]), one["numRej"]) for one in found or ())


def _model_matrix(reader: Reader) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[float, ...], ...]]:
    def texts(value: object) -> bool:
        return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)

    columns = reader.take("model_matrix/columns", texts, "a list of column names") or []
    rows = reader.take("model_matrix/rows", texts, "a list of sample names") or []

    def matrix(value: object) -> bool:
        return isinstance(value, list) and len(value) == len(rows) and all(
            isinstance(row, list) and len(row) == len(columns) and all(map(is_number, row)) for row in value)

    values = reader.take("model_matrix/values", matrix, f"{len(rows)} rows of {len(columns)} numbers") or []
    return tuple(columns), tuple(rows), tuple(tuple(map(float, row)) for row in values)


SUMMARY_COUNTS = ("n_samples", "n_genes", "n_all_zero", "n_expressed", "n_cooks_outlier", "n_tested", "n_filtered",
                  "n_adjusted", "n_significant", "n_up", "n_down", "total_counts")
AT_FDR_05 = ("n_significant", "n_up", "n_down")


def read_summary(reader: Reader) -> dict[str, object]:
    """`summary.json`, flat: the counts by name, `at_fdr_0.05/...`, `alpha` and `top_gene`."""
    found: dict[str, object] = {name: reader.count(name) for name in SUMMARY_COUNTS}
    for name in AT_FDR_05:
        found[f"at_fdr_0.05/{name}"] = reader.count(f"at_fdr_0.05/{name}")
    found["alpha"] = reader.number("alpha", 0, 1)
    found["top_gene"] = reader.text("top_gene")
    return found
