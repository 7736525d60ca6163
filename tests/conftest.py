"""What every test may use: the command line as a real process."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture
def run_py(tmp_path: pathlib.Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``run_py("check", "--case", path)``: run.py as a process of its own, in ``tmp_path`` unless ``cwd`` says otherwise."""

    def call(*args: object, cwd: pathlib.Path | None = None, env: dict[str, str] | None = None, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "run.py"), *map(str, args)],
            cwd=cwd or tmp_path,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    return call


@pytest.fixture
def write_case(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
    """``write_case(command=[...], id="x")``: a check case file in ``tmp_path``."""

    def write(**fields: object) -> pathlib.Path:
        case = {"id": "case", "scope": "what a test needs", **fields}
        path = tmp_path / f"{case['id']}.case.json"
        path.write_text(json.dumps(case), encoding="utf-8")
        return path

    return write
