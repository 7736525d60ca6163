"""Killing and stopping what supervises: the guardian, the harness, and both."""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.supervise import linux
from agent_eval.supervise.capture import FileSink
from agent_eval.supervise.environment import MARK_VARIABLE
from tests.supervise.lab import PROGRAMS, Lab, marked_processes, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="skipped: the subreaper is Linux's")


class Harness:
    """A harness in a process of its own, and everybody below it."""

    def __init__(self, folder: Path, kind: str, timeout_s: float = 30, slots: int = 1, wrapper: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.mark = f"harness-{os.urandom(8).hex()}"
        if not (folder / "gate").exists():
            os.mkfifo(folder / "gate")
        self.process = subprocess.Popen(
            [*wrapper, sys.executable, str(PROGRAMS / "harness.py"), self.mark, str(folder), kind, str(timeout_s), str(slots)],
            stderr=subprocess.PIPE,
        )
        self.seen: dict[int, int] = {}

    def look(self) -> set[int]:
        """The trial's processes now: all below the guardians. Also remembers them."""
        alive = set()
        for guardian in self.guardians():
            for facts in linux.descendants_of(linux.children_of(guardian), time.monotonic() + 5):
                if facts.alive:
                    alive.add(facts.pid)
                    self.seen[facts.pid] = facts.start_ticks
        return alive

    def guardians(self) -> list[int]:
        try:
            return [int(word) for word in (self.folder / "started").read_text().split()]
        except FileNotFoundError:
            return []

    def see_alive(self, count: int) -> None:
        assert wait_until(lambda: len(self.look()) >= count), self.process.poll()

    def survivors(self) -> set[int]:
        left = marked_processes(self.mark)
        for pid, start_ticks in self.seen.items():
            facts = linux.facts_of(pid)
            if facts is not None and facts.start_ticks == start_ticks and facts.alive:
                left.add(pid)
        return left

    def outcomes(self) -> list[Outcome]:
        return [Outcome.from_json(value) for value in json.loads((self.folder / "outcomes.json").read_text())]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        for pid in self.survivors():
            os.kill(pid, signal.SIGKILL)
        for pid in self.guardians():  # this process may be a subreaper, too
            if wait_until(lambda pid=pid: not is_alive(pid), 1.0):
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass


def is_alive(pid: int) -> bool:
    facts = linux.facts_of(pid)
    return facts is not None and facts.alive


@pytest.fixture
def harness(tmp_path):
    made = []

    def make(kind: str, **options) -> Harness:
        made.append(Harness(tmp_path, kind, **options))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.mark.parametrize("kind", ["kills_guardian", "kills_guardian_from_cleared_daemon"])
def test_a_killed_guardian_leaves_nobody(harness, kind):
    """The program kills it while a daemon with its own session runs, in one case with nothing left that marks it."""
    run = harness(kind)
    run.see_alive(2)
    began = time.monotonic()
    os.close(os.open(run.folder / "gate", os.O_WRONLY))
    assert run.process.wait(10) == 0, run.process.stderr.read()
    assert time.monotonic() - began < 2.0
    (outcome,) = run.outcomes()
    assert outcome.stop_reason is StopReason.SUPERVISOR_LOST
    assert outcome.tree.unreaped == ()
    assert outcome.tree.killed >= 1
    assert run.survivors() == set()


def test_a_killed_guardian_of_a_wide_tree_leaves_nobody(lab):
    lab.start(lab.program("processes", "wide"))
    lab.see_alive(64)
    os.kill(lab.slot.guardian, signal.SIGKILL)
    outcome = lab.collect().outcome
    assert outcome.stop_reason is StopReason.SUPERVISOR_LOST
    assert lab.survivors() <= {left.pid for left in outcome.tree.unreaped}
    assert lab.run(lab.command("true")).outcome.exit_code == 0
    assert wait_until(lambda: not lab.survivors(), 1.0)


def test_a_stopped_guardian_is_outwaited_and_swept(harness):
    run = harness("stops_guardian", timeout_s=0.6)
    run.see_alive(2)
    began = time.monotonic()
    os.close(os.open(run.folder / "gate", os.O_WRONLY))
    assert run.process.wait(10) == 0, run.process.stderr.read()
    assert time.monotonic() - began < 0.6 + 0.2 + 1.0 + 0.5  # and the interpreter's own end
    (outcome,) = run.outcomes()
    assert outcome.stop_reason is StopReason.SUPERVISOR_LOST
    assert outcome.wall_s < 0.6 + 0.2 + 1.0
    assert outcome.tree.killed >= 1 and outcome.tree.unreaped == ()
    assert run.survivors() == set()


@pytest.mark.parametrize("kind", ["escaped", "quiet_daemon", "cleared_environment", "wide", "session_chain", "ignores_term"])
def test_a_killed_harness_leaves_nobody_a_second_later(harness, kind):
    run = harness(kind)
    run.see_alive({"wide": 64, "session_chain": 20, "ignores_term": 1}.get(kind, 2))
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not run.survivors(), 1.0), run.survivors()
    assert wait_until(lambda: not any(is_alive(pid) for pid in run.guardians()), 1.0)


def test_a_guardian_stopped_before_the_harness_dies_wakes_up_and_sweeps(harness):
    run = harness("quiet_daemon")
    run.see_alive(2)
    (guardian,) = run.guardians()
    os.kill(guardian, signal.SIGSTOP)
    assert wait_until(lambda: linux.facts_of(guardian).state == "T")
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not run.survivors(), 1.0), run.survivors()


def test_slots_do_not_hide_the_harnesss_death_from_each_other(harness):
    """A copy of one slot's pipe in another guardian would keep it open."""
    run = harness("quiet_daemon", slots=3)
    run.see_alive(6)
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not run.survivors(), 1.0), run.survivors()


def test_one_lost_guardian_does_not_touch_the_other_slots_trial(tmp_path, lab):
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other = Lab(other_folder)
    with other.slot:
        other.start(other.program("processes", "quiet_daemon"))
        other.see_alive(2)
        # Leader and daemon: the process between them is gone.
        assert wait_until(lambda: len(linux.children_of(other.slot.guardian)) == 2)
        untouched = other.alive()
        lab.start(lab.program("processes", "kills_guardian"))
        lab.see_alive(2)
        lab.open_gate()
        assert lab.collect().outcome.stop_reason is StopReason.SUPERVISOR_LOST
        assert other.alive() == untouched
        other.open_gate()
        assert other.collect().outcome.tree.killed == 1
        assert other.survivors() == set()


def test_a_slot_is_usable_after_its_guardian_was_lost(lab):
    lab.start(lab.program("processes", "kills_guardian"))
    lab.see_alive(2)
    before = lab.slot.guardian
    lab.open_gate()
    assert lab.collect().outcome.stop_reason is StopReason.SUPERVISOR_LOST
    run = lab.run(lab.command("echo", "again"))
    assert run.stdout == b"again\n" and run.outcome.stop_reason is None
    assert lab.slot.guardian != before


def test_what_was_written_before_the_guardian_died_is_kept(lab):
    run = lab.run(lab.command("sh", "-c", "echo '{}' >$0; echo said; sleep .1; kill -9 $PPID; sleep 60", "{report}"))
    assert run.outcome.stop_reason is StopReason.SUPERVISOR_LOST
    assert run.stdout == b"said\n"
    assert run.outcome.stdout.kept_bytes == 5 and run.outcome.stdout.sha256
    assert run.report == b"{}\n"
    assert run.outcome.signal == signal.SIGKILL


def test_a_guardian_killed_while_idle_is_replaced(lab):
    assert lab.run(lab.command("true")).outcome.exit_code == 0
    os.kill(lab.slot.guardian, signal.SIGKILL)
    assert wait_until(lambda: linux.facts_of(lab.slot.guardian).state == "Z")
    run = lab.run(lab.command("true"))
    assert run.outcome.exit_code == 0 and run.outcome.stop_reason is None


def test_strangers_among_our_children_are_not_signalled(lab):
    """An orphan of ours in a session of its own, there before the trial, and one that came during it."""
    strangers = [os.posix_spawn("/bin/sleep", ["sleep", "60"], {}, setsid=True)]
    try:
        time.sleep(0.03)  # start times are told in hundredths of a second
        lab.start(lab.program("processes", "kills_guardian"))
        lab.see_alive(2)
        strangers.append(os.posix_spawn("/bin/sleep", ["sleep", "60"], {}, setsid=True))
        lab.open_gate()
        outcome = lab.collect().outcome
        assert outcome.stop_reason is StopReason.SUPERVISOR_LOST
        assert outcome.tree.killed == 1
        assert [os.waitpid(pid, os.WNOHANG) for pid in strangers] == [(0, 0), (0, 0)]
        # This process did not say that all of its orphans are a trial's, so the doubtful one is named, and left.
        assert [left.pid for left in outcome.tree.unreaped] == [strangers[1]]
    finally:
        for pid in strangers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_harness_and_guardian_killed_at_random_moments(harness, tmp_path):
    """One of the two, at a moment drawn from a fixed seed: the other one sweeps."""
    draw = random.Random(20261130)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = Harness(folder, "quiet_daemon")
        try:
            run.see_alive(1)
            time.sleep(draw.random() * 0.02)
            run.look()
            victim = run.process.pid if draw.random() < 0.5 else run.guardians()[0]
            os.kill(victim, signal.SIGKILL)
            assert wait_until(lambda run=run: not run.survivors(), 1.0), run.survivors()
        finally:
            run.end()


def test_stop_and_kill_interrupt_a_running_trial(lab):
    lab.start(lab.program("processes", "sleeps"))
    lab.see_output(b"ready")
    lab.slot.stop()
    run = lab.collect()
    assert run.outcome.stop_reason is StopReason.INTERRUPTED
    assert run.outcome.signal == signal.SIGTERM

    lab.start(lab.program("processes", "ignores_term", grace_s=30))
    lab.see_output(b"ready")
    lab.slot.stop()
    assert wait_until(lambda: True)
    lab.slot.kill()
    run = lab.collect()
    assert run.outcome.stop_reason is StopReason.INTERRUPTED
    assert run.outcome.signal == signal.SIGKILL
    assert run.elapsed_s < 5


def test_stop_before_the_program_has_started_and_after_it_has_ended(lab):
    lab.start(lab.command("sleep", "60"))
    lab.slot.stop()
    assert lab.collect().outcome.stop_reason is StopReason.INTERRUPTED

    lab.start(lab.command("true"))
    assert wait_until(lambda: _readable(lab.slot.fileno()))
    lab.slot.stop()
    assert lab.collect().outcome.exit_code == 0
    assert lab.run(lab.command("true")).outcome.stop_reason is None


def test_stop_during_the_grace_of_a_timeout_keeps_the_timeout(lab):
    lab.start(lab.program("processes", "ignores_term", timeout_s=0.4, grace_s=20))
    lab.see_output(b"ready")
    assert wait_until(lambda: time.monotonic() - lab._began > 0.5)
    lab.slot.stop()
    lab.slot.kill()
    run = lab.collect()
    assert run.outcome.stop_reason is StopReason.TIMEOUT
    assert run.elapsed_s < 3


def test_close_ends_a_running_trial(lab):
    lab.start(lab.program("processes", "quiet_daemon"))
    lab.see_alive(2)
    guardian = lab.slot.guardian
    lab.slot.close()
    assert lab.survivors() == set()
    assert linux.facts_of(guardian) is None


def test_closing_twice_is_no_error(lab):
    lab.slot.close()
    lab.slot.close()
    assert lab.slot.guardian is None


def test_inspection_of_guardian_and_harness_is_forbidden_to_the_same_user(lab):
    if os.geteuid() == 0:
        pytest.skip("skipped: root may look at everything")
    run = lab.run(lab.command("sh", "-c", "ls /proc/$PPID/fd; echo x >/proc/$PPID/fd/4"))
    assert run.stdout == b""
    assert b"ermission denied" in run.stderr


def test_the_marker_alone_finds_a_process(lab):
    lab.start(lab.command("sleep", "60"))
    assert wait_until(lambda: marked_processes(lab.mark))
    (pid,) = marked_processes(lab.mark)
    assert linux.has_variable(pid, f"{MARK_VARIABLE}={lab.mark}".encode())
    lab.slot.kill()
    lab.collect()


def _readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


class DyingSink(FileSink):
    """Kills the guardian that opens it, at one moment of one file."""

    __slots__ = ("_moment",)
    victim = ""
    moment = ""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._moment = self.moment if os.path.basename(path).startswith(self.victim) else ""
        if self._moment == "opened":
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, data: bytes) -> None:
        if self._moment == "half written":
            super().write(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(data)
        if self._moment == "written":
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["opened", "half written", "written"])
@pytest.mark.parametrize("victim", ["stdout", "report"])
def test_a_guardian_killed_while_it_keeps_bytes_leaves_nothing_unaccounted(tmp_path, monkeypatch, victim, moment):
    monkeypatch.setattr(DyingSink, "victim", victim)
    monkeypatch.setattr(DyingSink, "moment", moment)
    lab = Lab(tmp_path, DyingSink)
    try:
        monkeypatch.setattr(DyingSink, "victim", "nothing of the harness's own")
        run = lab.run(lab.command("sh", "-c", "echo a-line-of-text; printf %s '{\"passed\": true}' > \"$0\"", "{report}"))
    finally:
        lab.slot.close()
    outcome = run.outcome
    assert outcome.stop_reason is StopReason.SUPERVISOR_LOST
    for name, record in (("stdout-1", outcome.stdout), ("report-1", outcome.report)):
        kept = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
        assert (kept is None) == (record.sha256 is None)
        if kept is not None:
            assert record.sha256 == hashlib.sha256(kept).hexdigest()
    if victim == "report":
        assert run.report == b'{"passed": true}'


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_guardian_killed_while_it_moves_the_report_loses_no_report(tmp_path, monkeypatch, when):
    harness, really = os.getpid(), linux.rename_new

    def dying(folder_fd: int, name: str, target: str) -> bool:
        if os.getpid() == harness:
            return False
        if when == "after":
            assert really(folder_fd, name, target)
        os.kill(os.getpid(), signal.SIGKILL)
        return False

    monkeypatch.setattr(linux, "rename_new", dying)
    lab = Lab(tmp_path)
    try:
        run = lab.run(lab.command("sh", "-c", "printf %s '{\"passed\": true}' > \"$0\"", "{report}"))
    finally:
        lab.slot.close()
    assert run.outcome.stop_reason is StopReason.SUPERVISOR_LOST
    assert run.report == b'{"passed": true}'
    assert run.outcome.report.sha256 == hashlib.sha256(run.report).hexdigest()
