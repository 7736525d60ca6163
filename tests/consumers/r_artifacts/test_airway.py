"""Real DESeq2 output of the airway study, when it is there: it passes as it is, and planted faults are found in it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.consumers.r_artifacts.artifact_set import ArtifactSet, read_set, rename_samples
from tests.consumers.r_artifacts.model_mutants import ALL_MUTANTS
from tests.consumers.r_artifacts.number_mutants import Mutant, made_from
from tests.consumers.r_artifacts.said import failed, report_of, void

ROOT = Path(__file__).resolve().parents[3]
AIRWAY = ROOT.parent / "shared" / "airway"

pytestmark = pytest.mark.skipif(not AIRWAY.is_dir(), reason="skipped: ../shared/airway is not there")

# Some of each room: the whole list takes minutes on real sets.
CHOSEN = {
    "small": ("one_normalized_count", "one_p_value", "another_theta_used_throughout", "adjusted_before_filtering",
              "dispersion_made_small_followed_everywhere", "gene_fabricated_consistently", "gene_fabricated_below_the_floor",
              "two_samples_swapped_in_all_tables", "label_swap_followed_into_the_model_matrix", "contrast_reversed_in_every_number",
              "contrast_reversed_with_all_labels", "trend_said_to_be_local", "counts_said_to_be_replaced", "ratio_test_claimed"),
    "dexonly": ("outlier_keeps_its_p_value", "p_value_taken_without_an_outlier", "outlier_hidden_by_a_made_up_distance"),
}
CASES = [pytest.param(one, name, id=f"{one.name}-{name}") for name, chosen in CHOSEN.items() for one in ALL_MUTANTS if one.name in chosen]


@pytest.mark.parametrize("name", ["full", "small", "dexonly", "rdefault"])
def test_the_real_sets_pass(name: str, tmp_path: Path) -> None:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, str(ROOT / "consumers/r_artifacts/verify.py"), str(AIRWAY / name),
                           "--report", str(tmp_path / "report.json")], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["passed"] is True
    assert ("cooks-rule" in void(report)) == (name != "dexonly")
    assert bool(report["accepted_forms"]) == (name == "rdefault")
    assert time.perf_counter() - started < 60       # measured 6 s for full; the bound is for a machine that is busy


@pytest.fixture(scope="module")
def real() -> dict[str, ArtifactSet]:
    return {name: rename_samples(read_set(AIRWAY / name)) for name in CHOSEN}


@pytest.mark.parametrize(("one", "name"), CASES)
def test_faults_planted_in_real_sets(one: Mutant, name: str, real: dict[str, ArtifactSet], tmp_path: Path) -> None:
    report = report_of(made_from(real[name], one).write(tmp_path / "artifacts"))
    assert report["passed"] is False
    assert one.fails <= failed(report) <= one.fails | one.may


@pytest.mark.parametrize("name", CHOSEN)
def test_the_sets_pass_when_written_again(name: str, real: dict[str, ArtifactSet], tmp_path: Path) -> None:
    assert report_of(copy.deepcopy(real[name]).write(tmp_path / "artifacts"))["passed"] is True
