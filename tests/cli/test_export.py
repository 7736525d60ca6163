"""``export DIR --format inspect``: the log under a name that Inspect reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.report.synthetic import mixed

RUN = Path(__file__).parents[2] / "run.py"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, RUN, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=60)


def test_the_log_goes_into_the_current_folder_under_a_name_that_inspect_lists(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    found = run("export", "e", "--format", "inspect", cwd=tmp_path)
    name = "2026-11-30T14-03-58_core-agent_synthetic.json"
    assert found.returncode == 0 and found.stdout.startswith(f"Inspect log: {tmp_path}/{name} (")
    log = json.loads((tmp_path / name).read_text())
    assert log["version"] == 2 and len(log["samples"]) == 11


def test_what_is_refused(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    assert "--format" in run("export", "e", cwd=tmp_path).stderr
    assert "invalid choice" in run("export", "e", "--format", "other", cwd=tmp_path).stderr
    named = run("export", "e", "--format", "inspect", "-o", "log.txt", cwd=tmp_path)
    assert named.returncode == 2 and "does not end in .json" in named.stderr
    assert "lies inside the evidence" in run("export", "e", "--format", "inspect", "-o", "e/x.json", cwd=tmp_path).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e"]
