"""SIGKILL at any moment and at every write: nobody left, nothing finished lost, nothing sealed that is not whole."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import pytest

from agent_eval.evidence.files import Files
from tests.evidence.crashes import TRIALS, CrashRun
from tests.supervise.lab import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="skipped: the subreaper is Linux's")

MOMENTS = int(os.environ.get("AGENT_EVAL_CRASH_MOMENTS", "200"))
AT_ONCE = 4


def measured_s(tmp_path) -> float:
    """How long a run takes that nobody kills."""
    run = CrashRun(tmp_path / "whole")
    began = time.monotonic()
    run.start()
    assert run.wait() == 0
    took_s = time.monotonic() - began
    run.assert_nobody_is_left()
    assert run.assert_honest()["passed"] == TRIALS
    return took_s


def test_the_harness_killed_at_random_moments(tmp_path):
    draw = random.Random(3)
    took_s = measured_s(tmp_path)
    finished = set()
    for first in range(0, MOMENTS, AT_ONCE):
        runs = [CrashRun(tmp_path / f"run{first + number}", jobs=1 + number % 2) for number in range(AT_ONCE)]
        moments = sorted(draw.random() * took_s * 1.5 for _ in runs)
        began = time.monotonic()
        for run in runs:
            run.start()
        for run, moment in zip(runs, moments, strict=True):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            run.kill()
        for run in runs:
            run.wait()
            run.assert_nobody_is_left()
            counts = run.assert_honest()
            if counts is not None:
                finished.add(counts["finished"])
    assert len(finished) > 1, "the moments fell into different trials"
    beside = CrashRun(tmp_path / "beside")
    beside.start()
    assert beside.wait() == 0
    assert beside.assert_honest()["passed"] == TRIALS


def test_a_guardian_killed_at_random_moments(tmp_path):
    """The run goes on, seals, and says for which trial it lost its supervisor."""
    draw = random.Random(4)
    took_s = measured_s(tmp_path)
    lost = 0
    for number in range(max(10, MOMENTS // 10)):
        run = CrashRun(tmp_path / f"run{number}")
        run.start()
        assert wait_until(run.guardians)
        time.sleep(draw.random() * took_s)
        for guardian in run.guardians():
            os.kill(guardian, signal.SIGKILL)
        code = run.wait()
        run.assert_nobody_is_left()
        counts = run.assert_honest()
        assert counts["sealed"] and counts["unrun"] == counts["interrupted"] == 0
        assert code == (0 if counts["passed"] == TRIALS else 5 if counts["failed"] == 0 else 1)
        lost += counts["passed"] < TRIALS
    assert lost > 0, "no moment fell into a trial"


class Killer(Files):
    """Real operations; at the one numbered ``at`` the process is killed before, in the middle of, or after it."""

    __slots__ = ("at", "count", "when")

    def __init__(self, at: int, when: str) -> None:
        self.at = at
        self.when = when
        self.count = 0

    def _die(self, when: str) -> None:
        if self.count == self.at and self.when == when:
            os.kill(os.getpid(), signal.SIGKILL)

    def _around(self, operation, *arguments):
        self.count += 1
        self._die("before")
        result = operation(*arguments)
        self._die("after")
        return result

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        self._around(super().make_directory, path, mode)

    def create(self, path: str, data: bytes) -> None:
        if self.count + 1 == self.at and self.when == "middle":
            super().create(path, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self._around(super().create, path, data)

    def open_append(self, path: str) -> int:
        return self._around(super().open_append, path)

    def append(self, descriptor: int, line: bytes) -> None:
        if self.count + 1 == self.at and self.when == "middle":
            super().append(descriptor, line[: len(line) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self._around(super().append, descriptor, line)

    def sync_file(self, path: str) -> None:
        self._around(super().sync_file, path)

    def sync_all(self, directory: str) -> None:
        self._around(super().sync_all, directory)

    def rename(self, source: str, target: str) -> None:
        self._around(super().rename, source, target)


@pytest.mark.parametrize("when", ["before", "middle", "after"])
def test_the_harness_killed_at_every_write(tmp_path, when):
    number = 0
    while True:
        number += 1
        run = CrashRun(tmp_path / f"{when}{number}", files=Killer(number, when))
        run.start()
        code = run.wait()
        run.assert_nobody_is_left()
        counts = run.assert_honest()
        if code == 0:  # a write that there is not, or one without a middle
            assert counts["passed"] == TRIALS
            if when != "middle" or number > 40:
                break
        else:
            assert code == -signal.SIGKILL
    assert number > 4 * TRIALS
