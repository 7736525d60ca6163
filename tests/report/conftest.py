"""Evidence that several tests read and none changes: two thousand synthetic trials, and real runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.synthetic import Directory, large

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def two_thousand(tmp_path_factory: pytest.TempPathFactory) -> Directory:
    """250 cases of 8 trials, 20 kB of output each, about a fifth failed."""
    return large(tmp_path_factory.mktemp("large") / "e", 250, 8, 20_000)


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``forged``, ``honest``, ``regraded`` and ``compared``, made by the project's own commands."""
    folder = tmp_path_factory.mktemp("real")

    def run(*arguments: str) -> None:
        done = subprocess.run([sys.executable, ROOT / "run.py", *arguments, "-q"], cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1, 4), done.stderr

    baseline = ("--baseline", "--trials", "2")
    run("core-agent", "--binary", str(ROOT / "tests/programs/forger.py"), *baseline, "-o", "forged")
    run("core-agent", "--binary", str(ROOT / "consumers/core_agent/reference_agent.py"), *baseline, "-o", "honest")
    run("regrade", "honest", "-o", "regraded")
    run("compare", "forged", "honest", "-o", "compared")
    return folder
