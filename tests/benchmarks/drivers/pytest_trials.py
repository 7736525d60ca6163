"""Copied beside the reports as test_trials.py: one test a trial, the checker by ``subprocess.run`` with capture."""

import os
import subprocess

import pytest

ARGV = os.environ["BENCH_ARGV"].split("\x1f")


@pytest.mark.parametrize("index", range(int(os.environ["BENCH_TRIALS"])))
def test_trial(index: int) -> None:
    command = [part.replace("{}", str(index)) for part in ARGV]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=float(os.environ["BENCH_TIMEOUT_S"]))
    assert done.returncode == 0
