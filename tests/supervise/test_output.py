"""Output under one exact cap: never a byte over, never a hang, never a decoded byte."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import socket
import sys
import threading

import pytest

from agent_eval.records.outcome import StopReason
from agent_eval.supervise.capture import FileSink
from tests.supervise.lab import Lab


@pytest.mark.parametrize(("offered", "cap", "truncated"), [(1023, 1024, False), (1024, 1024, False), (1025, 1024, True)])
@pytest.mark.parametrize("stream", [1, 2])
def test_the_cap_is_exact_to_the_byte(lab, offered, cap, truncated, stream):
    run = lab.run(lab.command("sh", "-c", f"head -c {offered} /dev/zero >&{stream}", cap=cap))
    record = run.outcome.stdout if stream == 1 else run.outcome.stderr
    kept = run.stdout if stream == 1 else run.stderr
    assert record.truncated is truncated
    assert (record.seen_bytes, record.kept_bytes) == (offered, min(offered, cap))
    assert kept == bytes(min(offered, cap))
    assert record.sha256 == hashlib.sha256(kept).hexdigest()
    assert run.outcome.stop_reason is (StopReason.OUTPUT_LIMIT if truncated else None)


@pytest.mark.parametrize("cap", [1024, 65536, 1_000_003])
def test_a_flood_on_both_streams_is_stopped_at_the_cap(lab, cap):
    run = lab.run(lab.command("sh", "-c", "yes A & yes B >&2", cap=cap))
    outcome = run.outcome
    assert outcome.stop_reason is StopReason.OUTPUT_LIMIT
    assert outcome.stdout.kept_bytes + outcome.stderr.kept_bytes == cap
    assert (len(run.stdout), len(run.stderr)) == (outcome.stdout.kept_bytes, outcome.stderr.kept_bytes)
    assert set(run.stdout) <= set(b"A\n") and set(run.stderr) <= set(b"B\n")
    assert outcome.stdout.truncated or outcome.stderr.truncated
    assert run.elapsed_s < 1.0


def test_a_flood_is_killed_at_once_without_grace(lab):
    run = lab.run(lab.command("sh", "-c", "trap '' TERM; exec yes", cap=4096, grace_s=30))
    assert run.outcome.signal == signal.SIGKILL
    assert [step.signal for step in run.outcome.stop_steps] == ["SIGKILL"]
    assert run.elapsed_s < 1.0


def test_the_other_stream_says_so_when_it_lost_bytes_too(lab):
    program = "head -c 1025 /dev/zero; head -c 8 /dev/zero >&2; sleep 60"
    run = lab.run(lab.command("sh", "-c", "head -c 8 /dev/zero >&2 & " + program, cap=1024))
    outcome = run.outcome
    assert outcome.stdout.kept_bytes + outcome.stderr.kept_bytes == 1024


def test_one_giant_line_is_kept_whole(lab):
    run = lab.run(lab.command("head", "-c", str(4 << 20), "/dev/zero", cap=8 << 20))
    assert run.stdout == bytes(4 << 20)
    assert run.outcome.exit_code == 0


def test_bytes_are_stored_as_they_came(lab):
    run = lab.run(lab.command("sh", "-c", r"printf '\000\377\303('; printf '\033]0;x\007\033[2J' >&2"))
    assert run.stdout == b"\x00\xff\xc3("
    assert run.stderr == b"\x1b]0;x\x07\x1b[2J"


def test_nothing_is_created_for_a_stream_that_stayed_silent(lab):
    command = lab.command("true")
    run = lab.run(command)
    assert not os.path.exists(command.stdout_path) and not os.path.exists(command.stderr_path)
    assert run.outcome.stdout.sha256 is None and run.outcome.stdout.seen_bytes == 0


def test_bytes_stolen_back_from_the_pipe_cannot_hang_the_capture(lab):
    program = (
        "import os, sys\n"
        "thief = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\n"
        "for _ in range(3000):\n"
        "    os.write(1, b'xx')\n"
        "    try: os.read(thief, 2)\n"
        "    except BlockingIOError: pass\n"
        "sys.exit(4)\n"
    )
    run = lab.run(lab.command(sys.executable, "-I", "-S", "-c", program))
    assert run.outcome.exit_code == 4
    assert run.outcome.stdout.seen_bytes == len(run.stdout) <= 6000
    assert run.elapsed_s < 2.0


def test_a_slow_drip_is_kept_up_to_the_timeout(lab):
    run = lab.run(lab.command("sh", "-c", "while :; do printf .; sleep .01; done", timeout_s=0.4))
    assert run.outcome.stop_reason is StopReason.TIMEOUT
    assert 3 < len(run.stdout) == run.outcome.stdout.seen_bytes
    assert set(run.stdout) == set(b".")


def test_a_full_pipe_on_one_stream_does_not_block_the_other(lab):
    program = "import os; os.write(2, bytes(1 << 20)); os.write(1, b'after')"
    run = lab.run(lab.command(sys.executable, "-I", "-S", "-c", program, cap=2 << 20))
    assert run.outcome.exit_code == 0
    assert run.stdout == b"after" and len(run.stderr) == 1 << 20


def test_a_pipe_held_by_a_stranger_costs_the_drain_window_and_no_more(lab, monkeypatch):
    """Somebody outside the tree holds our pipe open and writes: the window is absolute, data does not move it."""
    program = (
        "import os, socket, time\n"
        "with socket.socket(socket.AF_UNIX) as door:\n"
        "    door.connect('door'); socket.send_fds(door, [b'x'], [1]); door.recv(1)\n"
    )
    monkeypatch.chdir(lab.work)  # a socket's path is short
    door = socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.listen()
    stop = threading.Event()

    def hold() -> None:
        visitor, _ = door.accept()
        with visitor:
            _, descriptors, _, _ = socket.recv_fds(visitor, 1, 1)
            visitor.send(b"x")
        while not stop.wait(0.01):
            try:
                os.write(descriptors[0], b"stranger\n")
            except OSError:
                break
        os.close(descriptors[0])

    lab.start(lab.command(sys.executable, "-I", "-S", "-c", program))
    holder = threading.Thread(target=hold)
    holder.start()
    try:
        run = lab.collect()
    finally:
        stop.set()
        holder.join()
        door.close()
    assert run.outcome.exit_code == 0
    assert 0.05 < run.elapsed_s < 1.0


class FullDisk:
    """A sink that fails with ENOSPC after its first ``room`` bytes."""

    room = 10

    def __init__(self, path: str) -> None:
        self._file = FileSink(path)
        self._left = self.room

    def write(self, data: bytes) -> None:
        if len(data) > self._left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._left -= len(data)
        self._file.write(data)

    def close(self) -> None:
        self._file.close()


def test_a_full_disk_is_named_and_the_program_still_ends_by_itself(tmp_path):
    lab = Lab(tmp_path, sink_factory=FullDisk)
    with lab.slot:
        run = lab.run(lab.command("sh", "-c", "printf 12345; sleep .1; head -c 100000 /dev/zero; exit 3"))
    assert run.outcome.exit_code == 3
    assert run.stdout == b"12345"
    assert "ENOSPC" in run.outcome.stdout.write_error
    assert run.outcome.stdout.kept_bytes == 5 and run.outcome.stdout.seen_bytes == 100005
    assert run.outcome.stdout.sha256 == hashlib.sha256(b"12345").hexdigest()
    assert run.outcome.recording_errors


def test_the_cap_holds_also_when_nothing_can_be_written(tmp_path):
    lab = Lab(tmp_path, sink_factory=FullDisk)
    with lab.slot:
        run = lab.run(lab.command("yes", cap=4096))
    assert run.outcome.stop_reason is StopReason.OUTPUT_LIMIT
    assert run.outcome.stdout.kept_bytes == 0


def test_an_existing_capture_file_is_not_overwritten(lab):
    command = lab.command("echo", "new")
    with open(command.stdout_path, "w") as file:
        file.write("old")
    run = lab.run(command)
    assert run.stdout == b"old"
    assert "EEXIST" in run.outcome.stdout.write_error


def test_a_folder_that_the_program_took_away_is_named(lab):
    command = lab.command("sh", "-c", "rmdir ../gone; echo late", stdout_path=str(lab.folder / "gone" / "stdout"))
    (lab.folder / "gone").mkdir()
    run = lab.run(command)
    assert run.outcome.exit_code == 0
    assert "ENOENT" in run.outcome.stdout.write_error
