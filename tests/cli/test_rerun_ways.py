"""How a run was made (engine, syncing, reports) is said anew for a rerun, and what is left out is said in a line."""

from __future__ import annotations

import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
CHECKER = str(PROGRAMS / "checker.py")
THREADS = "concurrent.futures:ThreadPoolExecutor"


@pytest.fixture
def earlier(run_py, write_case, tmp_path):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "fail"])
    done = run_py("check", "--case", case, "--trials", 3, "-j", 2, "--executor", THREADS, "--sync", "trial", "-x", 3, "--junit", "first.xml", "-o", "first")
    assert done.returncode == 1, done.stderr
    return tmp_path / "first"


def started(directory: pathlib.Path) -> list[dict]:
    events = [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]
    return [event["request"] for event in events if event["event"] == "started"]


def test_a_rerun_says_what_it_leaves_out(run_py, earlier, tmp_path):
    before = (tmp_path / "first.xml").read_bytes()
    done = run_py("rerun", "--failed", earlier, "-j", 3, "-o", "again")
    assert done.returncode == 1
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("note:")]
    assert note == (
        f"note: the earlier run had --executor {THREADS}, --max-fail 3, --sync trial, --junit first.xml; a rerun has what it is given itself"
    )
    assert all("executor" not in request for request in started(tmp_path / "again"))
    assert (tmp_path / "first.xml").read_bytes() == before


def test_a_rerun_has_the_same_options(run_py, earlier, tmp_path):
    more = ["-j", 2, "--executor", "concurrent.futures:ProcessPoolExecutor", "--sync", "trial", "-x", 1, "--junit", "again.xml"]
    done = run_py("rerun", "--failed", earlier, *more, "-o", "again")
    assert done.returncode == 1
    assert "note:" not in done.stderr
    assert 1 <= len(started(tmp_path / "again")) <= 2
    assert started(tmp_path / "again")[0] == {"executor": "ProcessPoolExecutor"}
    assert b"<testsuites" in (tmp_path / "again.xml").read_bytes()
    assert run_py("verify", "again").returncode == 0


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--executor", "nowhere_at_all:f"], "--executor: nowhere_at_all:f: ModuleNotFoundError"),
        (["--executor", THREADS, "--keep-workspace"], "--keep-workspace: workspaces are on the workers"),
        (["--junit", "absent/x.xml"], "absent is not a folder"),
        (["-x", "0"], "'0' is not"),
    ],
)
def test_a_rerun_that_cannot_be(run_py, earlier, tmp_path, more, word):
    done = run_py("rerun", earlier, "case/001", *more, "-o", "again", env={"PYTHONPATH": f"{ROOT}{os.pathsep}{PROGRAMS}"})
    assert done.returncode == 2
    assert word in done.stderr.splitlines()[-1]
    assert not (tmp_path / "again").exists()
