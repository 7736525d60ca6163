"""verify.py as a program: from any folder, with any input, exit 0, 1 or 2, and a report whenever it can be written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.consumers.r_artifacts.artifact_set import ArtifactSet

VERIFY = Path(__file__).resolve().parents[3] / "consumers" / "r_artifacts" / "verify.py"


def run(*arguments: object, cwd: Path, isolated: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-I"] if isolated else []), str(VERIFY), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("isolated", [False, True])
def test_passes_from_another_folder(isolated: bool, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    folder = sets["two_groups"].write(tmp_path / "artifacts")
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')\n")
    done = run(folder, "--report", tmp_path / "report.json", cwd=tmp_path, isolated=isolated)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["passed"] is True and report["counts"]["failed"] == 0
    for said in ("no refit", "no RDS", "no provenance", "no autonomous research"):
        assert any(limit.startswith(said) for limit in report["limits"])
    assert done.stdout.endswith("not evaluated\n") and "passed:" in done.stdout


def test_a_failure_says_what_to_open_and_still_writes_the_report(sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    folder = sets["paired"].write(tmp_path / "artifacts")
    (folder / "analysis.R").write_bytes(b"changed")
    done = run(folder, "--report", tmp_path / "report.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "FAIL file-digests" in done.stdout and "analysis.R" in done.stdout
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["passed"] is False
    worst = next(check for check in report["checks"] if check["id"] == "file-digests")["worst"]
    assert worst["file"] == "analysis.R" and {"found", "expected"} <= set(worst)


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "DIR"), (["nowhere"], "no such folder"), (["a", "b"], "unrecognized"), ([".", "--report", "no/such/report.json"], "--report"),
])
def test_usage_errors(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [
    b"", b"{}", b"[]", b"null", b"\xff\xfe", b'{"files": [null, 3, {}]}', b'{"files": {"path": 1}}',
    b'{"schema":"airway-deseq2-artifacts","contrast":[],"dataset":3,"versions":null,"files":[{"path":"complete.json","role":"counts"}]}',
    b'{"alpha": 1e400}', b'{"alpha": ' + b"9" * 5000 + b"}", b'{"design": "\\ud800", "files": [{"path": "\\ud800", "role": "x"}]}',
])
def test_any_manifest_is_a_failed_check_and_no_traceback(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (folder / "complete.json").write_bytes(content)
    done = run(folder, "--report", tmp_path / "report.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["passed"] is False and report["not_evaluated"]


def test_an_empty_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("empty", cwd=tmp_path)
    assert done.returncode == 1 and "complete.json" in done.stdout
