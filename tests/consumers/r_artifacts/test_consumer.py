"""The command `r-artifacts`: the case it writes down, what it counts as identity, and a run from argv to a sealed directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from consumers.r_artifacts.consumer import artifact_files, checker_files
from tests.consumers.r_artifacts.artifact_set import FILES, ArtifactSet

ROOT = Path(__file__).resolve().parents[3]


def harness(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "run.py"), *map(str, arguments)], cwd=cwd, capture_output=True, text=True,
                          timeout=120, check=False)


def test_checker_files_are_what_python_loads() -> None:
    """Against the interpreter itself, not against another reading of the imports."""
    script = ("import runpy, sys\ntry:\n runpy.run_path(sys.argv.pop(1), run_name='__main__')\nexcept SystemExit:\n pass\n"
              "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('consumers.') and getattr(m, '__file__', None)), sep='\\n')")
    verify = ROOT / "consumers" / "r_artifacts" / "verify.py"
    done = subprocess.run([sys.executable, "-I", "-c", script, str(verify), "/nowhere"], capture_output=True, text=True, check=True)
    assert sorted([*done.stdout.split(), str(verify)]) == checker_files()


def test_identity_is_every_declared_file_and_none_outside(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    folder = sets["paired"].write(tmp_path / "artifacts")
    assert sorted(artifact_files(str(folder))) == sorted(str(folder / name) for name in [*FILES.values(), "complete.json"])
    whole = json.loads((folder / "complete.json").read_text())
    whole["files"][0]["path"], whole["files"][1]["path"] = "/etc/passwd", "../secret"
    (folder / "complete.json").write_text(json.dumps(whole))
    assert all(path.startswith(f"{folder}/") and ".." not in path for path in artifact_files(str(folder)))


def test_a_run_keeps_the_report_and_the_identity(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    folder = sets["two_groups"].write(tmp_path / "artifacts")
    done = harness("r-artifacts", folder, "-o", tmp_path / "evidence", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trial = tmp_path / "evidence" / "trials" / "deseq2-artifacts" / "001"
    record = json.loads((trial / "trial.json").read_bytes())
    looked_at = {entry["path"] for entry in record["identity"]["before"]}
    assert {*checker_files(), *artifact_files(str(folder))} <= looked_at
    assert json.loads((trial / "owner-report.json").read_bytes())["passed"] is True
    assert record["judgment"]["verdict"] == "pass" and record["judgment"]["basis"] == "owner-attested"
    summary = json.loads((tmp_path / "evidence" / "summary.json").read_bytes())
    assert {"no refit of the model", "no RDS is read"} <= set(summary["not_scored"])
    assert harness("verify", tmp_path / "evidence", cwd=tmp_path).returncode == 0


def test_a_fault_is_a_failed_trial_with_the_check_named(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    folder = sets["paired"].write(tmp_path / "artifacts")
    (folder / "analysis.R").write_bytes(b"changed")
    done = harness("r-artifacts", folder, "-o", tmp_path / "evidence", cwd=tmp_path)
    assert done.returncode == 1
    record = json.loads((tmp_path / "evidence/trials/deseq2-artifacts/001/trial.json").read_bytes())
    assert {failure["reason"] for failure in record["judgment"]["failures"]} == {"nonzero-exit", "owner-failed"}
    assert [check["id"] for check in record["judgment"]["checks"] if check["status"] == "fail"] == ["file-digests"]


def test_without_a_manifest_the_checker_decides(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    assert harness("r-artifacts", "artifacts", "-o", "evidence", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("name", ["nowhere", "a{report}"])
def test_a_folder_that_cannot_be_checked_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / "a{report}").mkdir()
    done = harness("r-artifacts", name, "-o", "evidence", cwd=tmp_path)
    assert done.returncode == 2 and f"error: {name}" in done.stderr
    assert not (tmp_path / "evidence").exists()
