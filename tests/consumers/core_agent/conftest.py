"""Runs of the core-agent command, read back from their evidence."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.consumers.core_agent.runs import GRADER_COUNTS, Evidence


def pytest_configure(config: pytest.Config) -> None:
    """Counts for the end of the test output."""
    config.stash[GRADER_COUNTS] = {"known-bad catches": 0, "known-good passes": 0}


def pytest_terminal_summary(terminalreporter: object, config: pytest.Config) -> None:
    """Tell how the graders did."""
    counts = config.stash[GRADER_COUNTS]
    if any(counts.values()):
        terminalreporter.write_line("graders: " + ", ".join(f"{number} {what}" for what, number in counts.items()))


RunPy = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_agent(run_py: RunPy, tmp_path: pathlib.Path) -> Callable[..., Evidence]:
    """``run_agent(program, "--case", "edit")``: a run of ``program`` with its evidence in ``tmp_path``."""

    def call(program: object, *args: object, output: str = "evidence", **options: object) -> Evidence:
        path = tmp_path / output
        done = run_py("core-agent", "--binary", program, "--json", "-q", "-o", path, *args, **options)
        assert done.stdout, done.stderr
        return Evidence(done.returncode, path, json.loads(done.stdout), done.stderr)

    return call


@pytest.fixture
def write_program(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """``write_program(body)``: an agent of its own whose ``run`` executes ``body`` (Python; ``task``, ``workspace`` and ``emit`` are there)."""

    def write(body: str, name: str = "agent.py", contract: dict | None = None) -> pathlib.Path:
        answer = {
            "contract": "core-agent/1",
            "name": "test-agent",
            "version": "1",
            "tools": ["read", "list", "search", "write", "edit", "execute"],
            "transports": ["binary"],
            "model": {"required": False, "env": []},
            "subject_kind": "scripted",
            **(contract or {}),
        }
        lines = [
            f"#!{sys.executable} -S",
            "import json, os, sys, time",
            "def emit(kind, **fields):",
            "    sys.stdout.write(json.dumps({'type': kind, **fields}) + '\\n')",
            "    sys.stdout.flush()",
            "if sys.argv[1:] == ['contract']:",
            f"    print({json.dumps(json.dumps(answer))})",
            "    sys.exit(0)",
            "task, workspace = json.load(open(sys.argv[3])), sys.argv[5]",
            body,
        ]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return write
