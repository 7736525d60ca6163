"""``attest DIR``: the statement on stdout or in a file, only for sealed evidence that holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.report.synthetic import mixed

RUN = Path(__file__).parents[2] / "run.py"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, RUN, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=60)


def test_the_statement_is_printed_and_the_same_in_a_file(tmp_path: Path) -> None:
    seal = mixed(tmp_path / "e").seal_hex
    printed = run("attest", "e", cwd=tmp_path)
    assert printed.returncode == 0 and printed.stdout.count("\n") == 1
    assert json.loads(printed.stdout)["predicate"]["configuration"][0]["digest"] == {"sha256": seal}
    written = run("attest", "e", "-o", "s.json", cwd=tmp_path)
    assert written.stdout.splitlines() == [f"statement: {tmp_path}/s.json, unsigned", f"seal: {seal}"]
    assert (tmp_path / "s.json").read_text() == printed.stdout


def test_what_is_refused(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    assert "lies inside the evidence" in run("attest", "e", "-o", "e/s.json", cwd=tmp_path).stderr
    (tmp_path / "s.json").write_text("mine")
    assert run("attest", "e", "-o", "s.json", cwd=tmp_path).returncode == 2
    assert (tmp_path / "s.json").read_text() == "mine"
    (made.path / "summary.json").write_text("{}")
    changed = run("attest", "e", cwd=tmp_path)
    assert (changed.returncode, changed.stdout, changed.stderr) == (3, "", "error: summary.json: changed\n")
    (made.path / "manifest-sha256.txt").unlink()
    assert run("attest", "e", cwd=tmp_path).returncode == 2
