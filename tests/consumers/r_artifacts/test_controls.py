"""What must pass: other forms of the same truth, and designs that make a relation void, which is then said with its reason."""

from __future__ import annotations

import copy
import gzip
import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.r_artifacts.findings import CATALOGUE
from consumers.r_artifacts.numerics import chi_square_tail
from consumers.r_artifacts.significance import threshold_p, threshold_stat
from tests.consumers.r_artifacts import simulated
from tests.consumers.r_artifacts.artifact_set import FILES, GENE_ROLES, ArtifactSet, Grid, adjust, refilter, text
from tests.consumers.r_artifacts.said import failed, report_of, void


def plain_or_gzip(role: str, data: bytes, members: int = 1) -> bytes:
    if not FILES[role].endswith(".gz"):
        return data
    step = len(data) // members + 1
    return b"".join(gzip.compress(data[at:at + step], 1) for at in range(0, len(data), step))


def in_form(change: Callable[[Grid], bytes], members: int = 1) -> Callable[[ArtifactSet], None]:
    def apply(made: ArtifactSet) -> None:
        for role in made.grids:
            made.encoders[role] = lambda grid, role=role: plain_or_gzip(role, change(grid), members)
    return apply


FORMS = {
    "CRLF": (in_form(lambda grid: grid.encode(end="\r\n")), "CRLF line ends"),
    "BOM": (in_form(lambda grid: b"\xef\xbb\xbf" + grid.encode()), "a BOM"),
    "quoted": (in_form(lambda grid: grid.encode(quoted=True)), "quoted fields"),
    "write.csv defaults": (in_form(lambda grid: grid.encode(quoted=True, unnamed=True)), "an unnamed id column"),
    "gzip members": (in_form(Grid.encode, members=3), "3 gzip members"),
    "no last line end": (in_form(lambda grid: grid.encode()[:-1]), None),
    "all at once": (in_form(lambda grid: b"\xef\xbb\xbf" + grid.encode(end="\r\n", quoted=True, unnamed=True), members=40), "a BOM"),
}


@pytest.mark.parametrize("name", ["paired", "two_groups"])
def test_the_simulated_sets_pass(name: str, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    report = report_of(sets[name].write(tmp_path / "artifacts"))
    assert report["passed"] is True and not report["not_evaluated"] and not report["accepted_forms"]
    assert {check["id"] for check in report["checks"]} | set(void(report)) == set(CATALOGUE)
    assert ("cooks-rule" in void(report)) == (name == "paired")
    assert all(check["compared"] > 0 for check in report["checks"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["paired", "two_groups"])
def test_other_forms_pass_and_are_said(form: str, name: str, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets[name])
    change, said = FORMS[form]
    change(made)
    report = report_of(made.write(tmp_path / "artifacts"))
    assert failed(report) == set() and report["passed"] is True
    assert said is None or f"results.csv.gz: {said}" in report["accepted_forms"]


@pytest.mark.parametrize("name", ["paired", "two_groups"])
def test_any_common_order_of_the_genes(name: str, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets[name])
    order = list(range(len(made.grids["counts"].rows)))
    random.Random(7).shuffle(order)
    for role in GENE_ROLES:
        made.grids[role].rows = [made.grids[role].rows[at] for at in order]
    assert report_of(made.write(tmp_path / "artifacts"))["passed"] is True


def test_any_common_order_of_the_samples(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["paired"])
    order = [3, 0, 7, 1, 2, 6, 5, 4]
    for role in ("counts", "normalized_counts"):
        grid = made.grids[role]
        for row in [grid.header, *grid.rows]:
            row[1:] = [row[1 + at] for at in order]
    for role in ("sample_table", "size_factors"):
        made.grids[role].rows = [made.grids[role].rows[at] for at in order]
    matrix = made.metadata["model_matrix"]
    matrix["rows"], matrix["values"] = ([matrix[key][at] for at in order] for key in ("rows", "values"))
    assert report_of(made.write(tmp_path / "artifacts"))["passed"] is True


def test_whole_counts_in_scientific_notation(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    """write.csv writes a whole double as 1e+05, readr as 6e3."""
    made = copy.deepcopy(sets["paired"])
    for row in made.grids["counts"].rows:
        row[1:] = [f"{value[:-2]}e2" if value.endswith("00") and value != "0" else value for value in row[1:]]
    assert report_of(made.write(tmp_path / "artifacts"))["passed"] is True


def test_scalars_that_jsonlite_did_not_unbox(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["paired"])
    made.documents["results_metadata"] = {name: value if isinstance(value, (dict, list)) else [value] for name, value in made.metadata.items()}
    report = report_of(made.write(tmp_path / "artifacts"))
    assert report["passed"] is True
    assert any("one-element array" in said for said in report["accepted_forms"])


def test_bom_before_the_documents(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["paired"])
    made.blobs["summary"] = b"\xef\xbb\xbf" + json.dumps(made.documents["summary"]).encode()
    report = report_of(made.write(tmp_path / "artifacts"))
    assert report["passed"] is True and "summary.json: a BOM" in report["accepted_forms"]


def with_threshold(made: ArtifactSet, threshold: float, alternative: str) -> None:
    made.metadata.update(lfc_threshold=threshold, alt_hypothesis=alternative)
    for row in made.grids["results"].rows:
        if row[2] != "NA":
            given = (float(row[2]), float(row[3]), threshold, alternative)
            row[4] = text(threshold_stat(*given))
            row[5] = row[5] if row[5] == "NA" else text(threshold_p(*given))
    refilter(made)


@pytest.mark.parametrize("alternative", ["greaterAbs", "lessAbs", "greater", "less"])
def test_a_threshold_makes_the_plain_relations_void(alternative: str, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["paired"])
    with_threshold(made, 0.5, alternative)
    report = report_of(made.write(tmp_path / "artifacts"))
    assert failed(report) == set() and report["passed"] is True
    assert "lfc_threshold is 0.5" in void(report)["wald-stat"] and "p-value" in void(report)
    assert {"threshold-stat", "threshold-p-value"} <= {check["id"] for check in report["checks"]}
    assert ("direction" in void(report)) == (alternative == "lessAbs")


@pytest.mark.parametrize("degrees", [1, 3])
def test_a_ratio_test_makes_the_wald_relations_void(degrees: int, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["paired"])
    made.metadata["test"] = "LRT"
    for row in made.grids["results"].rows:
        if row[4] != "NA":
            row[4] = text(float(row[4]) ** 2 * degrees)
            row[5] = text(chi_square_tail(float(row[4]), degrees))
    refilter(made)
    report = report_of(made.write(tmp_path / "artifacts"))
    assert failed(report) == set() and report["passed"] is True
    assert "likelihood-ratio" in void(report)["wald-stat"] and {"p-value", "direction"} <= set(void(report))
    assert any("reduced model" in limit for limit in report["limits"])


def test_without_independent_filtering(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["two_groups"])
    made.metadata["independent_filtering"] = False
    for name in ("filter_statistic", "filter_threshold", "filter_theta", "filter_num_rej"):
        made.metadata[name] = None
    adjust(made, 0.0)
    report = report_of(made.write(tmp_path / "artifacts"))
    assert failed(report) == set() and report["passed"] is True
    assert {"filter-theta-grid", "filter-rejections", "filter-theta", "filter-threshold"} <= set(void(report))
    assert not {"filter-set", "padj"} & set(void(report))


def test_replaced_counts_excuse_the_genes_that_were_replaced_and_no_other(tmp_path: Path) -> None:
    base, names = simulated.replaced()
    report = report_of(base.write(tmp_path / "artifacts"))
    assert len(names) >= 5
    assert failed(report) == set() and report["passed"] is True
    assert {"cooks-distance", "dispersion-trend-fit"} == set(void(report))
    made = copy.deepcopy(base)
    other = next(row for row in made.grids["results"].rows if row[0] not in names and float(row[1]) > 100)
    other[1] = text(float(other[1]) * 0.9)
    assert failed(report_of(made.write(tmp_path / "fabricated"))) >= {"base-mean"}
    made = copy.deepcopy(base)
    made.metadata["counts_replaced"] = False
    assert failed(report_of(made.write(tmp_path / "withheld"))) >= {"base-mean", "glm-score", "cooks-distance"}


def test_replaced_counts_that_nothing_shows(tmp_path: Path) -> None:
    """The flag in a design that allows it, where no baseMean is that of replaced counts."""
    made = copy.deepcopy(simulated.replaced()[0])
    for row, normalized in zip(made.grids["results"].rows, made.grids["normalized_counts"].rows):
        row[1] = text(sum(map(float, normalized[1:])) / 14)
    assert "base-mean" in failed(report_of(made.write(tmp_path / "artifacts")))


def test_p_of_zero_beyond_what_r_can_say(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    """R's pnorm gives 0 above 37.52; where the score still holds such a stat is reached by a small error, so only p is looked at."""
    made = copy.deepcopy(sets["paired"])
    row = made.grids["results"].row(made.grids["top_genes"].rows[0][0])
    row[2], row[3], row[4], row[5] = "38", "1", "38", "0"
    refilter(made)
    report = report_of(made.write(tmp_path / "artifacts"))
    assert "p-value" not in failed(report) and "wald-stat" not in failed(report)
    row[2] = row[4] = "37"
    refilter(made)
    assert "p-value" in failed(report_of(made.write(tmp_path / "again")))


def test_an_alternative_name_does_not_change_a_p_value() -> None:
    assert threshold_p(2.0, 0.5, 0.0, "greaterAbs") == pytest.approx(math.erfc(4 / math.sqrt(2)), rel=1e-12)
