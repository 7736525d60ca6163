"""The order of the last steps, on which the promises rest, and the pieces that have no process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_eval.supervise import linux, wire
from agent_eval.supervise.command import STDIN_LIMIT_BYTES, Command

ROOT = Path(__file__).parents[2]

# In a process of its own, because the steps sweep every child of the process that takes them.
WATCHED_RUN = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from agent_eval.supervise import capture, report_file, sweep, watch
from agent_eval.supervise.command import Command
steps = []
def spied(owner, name, label):
    real = getattr(owner, name)
    def spy(*arguments, **named):
        steps.append(label)
        return real(*arguments, **named)
    setattr(owner, name, spy)
spied(os, "killpg", "kill group"); spied(os, "wait4", "reap leader"); spied(watch, "sweep", "sweep")
spied(watch, "take_census", "count"); spied(capture.Capture, "drain", "drain")
spied(report_file.ReportSpot, "collect", "report")
class Nobody:
    gone = False
    def descriptors(self): return ()
    def receive(self, fd): pass
    def take(self): return None
host = watch.Host(children=sweep.ChildList(), mailbox=Nobody(), publish_leader=lambda pid: None,
                  sink_factory=capture.FileSink, containment="subreaper", null_fd=0)
folder = os.getcwd()
outcome = watch.supervise(Command(argv=("sh", "-c", "echo x; sleep 60 & echo {} >report"), cwd=folder,
    env={"PATH": os.environ["PATH"]}, timeout_s=10, max_output_bytes=1000, stdout_path=folder + "/stdout",
    report_source=folder + "/report", report_path=folder + "/copy"), host)
print(json.dumps([outcome.exit_code, steps]))
"""


def test_kill_before_reaping_and_reap_before_reading_the_report(tmp_path):
    argv = [sys.executable, "-c", WATCHED_RUN, str(ROOT)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, ["count", "kill group", "reap leader", "sweep", "drain", "report"]]


def frames(*values: bytes) -> tuple[wire.FrameReader, int]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    for value in values:
        os.write(write_end, value)
    return wire.FrameReader(read_end), write_end


def test_frames_arrive_whole_however_they_are_cut():
    whole = wire.encode(wire.RUN, ("a", {"b": b"\xff"})) + wire.encode(wire.STOP)
    for cut in range(1, len(whole)):
        reader, write_end = frames(whole[:cut])
        found = reader.read()
        os.write(write_end, whole[cut:])
        found += reader.read()
        assert found == [(wire.RUN, ("a", {"b": b"\xff"})), (wire.STOP, None)]
        assert reader.read() == [] and not reader.ended
        os.close(write_end)
        assert reader.read() == [] and reader.ended
        os.close(reader.fd)


def test_sending_gives_up_when_nobody_reads():
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    began = time.monotonic()
    assert wire.send_all(write_end, bytes(1 << 20), began + 0.1) is False
    assert 0.1 <= time.monotonic() - began < 1.0
    os.close(read_end)
    assert wire.send_all(write_end, b"x", time.monotonic() + 5) is False
    os.close(write_end)


@pytest.mark.parametrize(
    "change",
    [
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"grace_s": -1},
        {"grace_s": float("nan")},
        {"max_output_bytes": 0},
        {"stdin_bytes": bytes(STDIN_LIMIT_BYTES + 1)},
        {"report_source": "/x"},
    ],
)
def test_a_command_without_sense_is_refused(change):
    values = {"argv": ("true",), "cwd": "/", "env": {}, "timeout_s": 1.0, "max_output_bytes": 10}
    with pytest.raises(ValueError):
        Command(**{**values, **change})


def test_a_slot_runs_one_command_at_a_time(lab):
    with pytest.raises(RuntimeError):
        lab.slot.collect()
    with pytest.raises(RuntimeError):
        lab.slot.stop()
    lab.start(lab.command("sleep", "60"))
    with pytest.raises(RuntimeError):
        lab.slot.start(lab.command("true"))
    lab.slot.kill()
    assert lab.collect().outcome.signal == signal.SIGKILL


def test_a_command_as_large_as_the_system_allows(lab):
    """Longer than a pipe holds: the guardian reads while the harness writes."""
    words = ["x" * 100_000] * 15
    run = lab.run(lab.command("sh", "-c", "echo $#", "sh", *words))
    assert run.stdout == b"15\n"


def test_syncing_a_file_system(tmp_path):
    assert linux.syncfs(str(tmp_path)) is None
    with pytest.raises(OSError):
        linux.syncfs(str(tmp_path / "nowhere"))


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: /proc is Linux's")
def test_facts_of_a_process_with_an_awkward_name(tmp_path):
    program = tmp_path / "a) b (c"
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o755)
    child = subprocess.Popen([str(program)], stdin=subprocess.PIPE, start_new_session=True)
    try:
        facts = linux.facts_of(child.pid)
        assert facts.name == "a) b (c"
        assert (facts.parent, facts.group, facts.session, facts.alive) == (os.getpid(), child.pid, child.pid, True)
        assert linux.ticks(linux.boot_clock()) - facts.start_ticks in range(0, 100 * 60)
        assert child.pid in linux.children_of(os.getpid())
    finally:
        child.communicate()
    assert linux.facts_of(child.pid) is None
    assert linux.children_of(child.pid) == ()
