"""Programs that cannot be started, and what those find that can."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_eval.records.outcome import Outcome
from agent_eval.supervise.environment import MARK_VARIABLE, build_environment

ROOT = Path(__file__).parents[2]


def executable(path: Path, content: bytes, mode: int = 0o755) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        (b"", 0o755, errno.ENOEXEC),
        (b"echo hi\n", 0o755, errno.ENOEXEC),
        (b"\x7fELF garbage", 0o755, errno.ENOEXEC),
        (b"#!/nope\n", 0o755, errno.ENOENT),
    ],
)
def test_files_that_are_no_programs(lab, content, mode, expected):
    path = executable(lab.work / "program", content, mode)
    run = lab.run(lab.command(path))
    assert (run.outcome.start_error.stage, run.outcome.start_error.errno) == ("exec", expected)
    assert path in run.outcome.start_error.message
    assert run.outcome.exit_code is None and run.outcome.signal is None and not run.outcome.status_lost
    if expected == errno.ENOENT:
        assert "interpreter" in run.outcome.start_error.message


def test_a_script_that_interprets_itself(lab):
    path = lab.work / "loop"
    executable(path, f"#!{path}\n".encode())
    assert lab.run(lab.command(str(path))).outcome.start_error.errno in (errno.ELOOP, errno.ENOEXEC)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("/nonexistent/program",), errno.ENOENT),
        (("no-such-program-anywhere",), errno.ENOENT),
        (("/etc",), errno.EACCES),
        (("/etc/passwd",), errno.EACCES),
        (("/etc/passwd/x",), errno.ENOTDIR),
        (("",), errno.EACCES),
        (("true", "x" * 131072), errno.E2BIG),
        (("true", *["y" * 100_000] * 40), errno.E2BIG),
    ],
)
def test_programs_that_cannot_be_executed(lab, argv, expected):
    outcome = lab.run(lab.command(*argv)).outcome
    assert (outcome.start_error.stage, outcome.start_error.errno) == ("exec", expected)


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({"argv": ()}, "argv"),
        ({"argv": ("true", "a\0b")}, "argv"),
        ({"argv": ("true", "\ud800")}, "argv"),
        ({"argv": ("true", 7)}, "argv"),
        ({"argv": ("true", Path("/x"))}, "argv"),
        ({"env": {"A=B": "c"}}, "env"),
        ({"env": {"A": "b\0c"}}, "env"),
        ({"env": {"A": "\udfff\ud800"}}, "env"),
        ({"cwd": "/nonexistent/folder"}, "cwd"),
        ({"cwd": "/etc/passwd"}, "cwd"),
        ({"cwd": "/etc\0"}, "cwd"),
        ({"report_source": "/nonexistent/folder/report"}, "setup"),
    ],
)
def test_values_that_no_program_can_be_given(lab, change, stage):
    command = lab.command("true")
    values = {name: getattr(command, name) for name in command.__slots__}
    outcome = lab.run(type(command)(**{**values, **change})).outcome
    assert outcome.start_error.stage == stage
    assert outcome.start_error.message
    assert Outcome.from_json(outcome.to_json()) == outcome
    assert lab.run(lab.command("true")).outcome.exit_code == 0


def test_bytes_that_are_not_text_pass_through(lab):
    odd = os.fsdecode(b"\xff\xfe")
    run = lab.run(lab.command("printf", "%s", odd))
    assert run.stdout == b"\xff\xfe"


def test_a_program_still_open_for_writing(lab):
    path = lab.work / "busy"
    shutil.copy("/bin/true", path)
    with open(path, "ab"):
        outcome = lab.run(lab.command(str(path))).outcome
    assert outcome.start_error.errno == errno.ETXTBSY
    assert lab.run(lab.command(str(path))).outcome.exit_code == 0


def test_a_program_is_searched_along_the_path_it_will_have(lab):
    (lab.work / "bin").mkdir()
    (lab.work / "locked").mkdir()
    executable(lab.work / "bin" / "tool", b"#!/bin/sh\necho found\n")
    executable(lab.work / "locked" / "tool", b"#!/bin/sh\necho wrong\n", 0o644)
    path = f"{lab.work}/missing:{lab.work}/locked:{lab.work}/bin:/usr/bin:/bin"
    environment = {**build_environment(home="/", tmpdir="/tmp"), "PATH": path}
    assert lab.run(lab.command("tool", env=environment)).stdout == b"found\n"
    outcome = lab.run(lab.command("tool", env={**environment, "PATH": f"{lab.work}/locked"})).outcome
    assert outcome.start_error.errno == errno.EACCES


def test_a_program_finds_nothing_of_ours(lab, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HARNESS", "canary")
    monkeypatch.setenv("PASSED_BY_NAME", "yes")
    monkeypatch.setenv("LC_PAPER", "C")
    leak = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(leak, True)
    old_handlers = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGHUP, signal.SIGUSR2)]
    try:
        environment = build_environment(home="/h", tmpdir="/t", pass_names=["PASSED_BY_NAME", "NOT_SET"], extra={"EXTRA": "1"})
        run = lab.run(lab.program("inside", env=environment))
    finally:
        for number, handler in old_handlers:
            signal.signal(number, handler)
        os.close(leak)
    found = json.loads(run.stdout)
    assert found["descriptors"] == {"0": "20000", "1": "10000", "2": "10000"}
    assert found["status"]["SigBlk:"].strip("0") == ""
    assert found["dispositions"] in ([], [signal.SIGPIPE], [signal.SIGPIPE, signal.SIGXFSZ])  # what its own Python ignores
    assert found["terminal"] == errno.ENXIO
    assert found["session"] and found["group"]
    assert found["core"] == 0
    assert found["stdin"] == 0
    assert found["cwd"] == str(lab.work)
    assert "canary" not in run.stdout.decode()
    assert found["environment"]["PASSED_BY_NAME"] == "yes" and found["environment"]["EXTRA"] == "1"
    assert found["environment"]["LC_PAPER"] == "C" and found["environment"]["HOME"] == "/h"
    assert "NOT_SET" not in found["environment"]
    assert found["environment"][MARK_VARIABLE] == lab.mark


def test_ignored_signals_do_not_reach_a_program(lab):
    """A shell keeps what it inherited as ignored, so its traps tell: none may be there."""
    run = lab.run(lab.command("sh", "-c", "grep -E 'SigIgn|SigBlk' /proc/self/status"))
    assert [line.split()[1].strip(b"0") for line in run.stdout.splitlines()] == [b"", b""]


@pytest.mark.parametrize("code", [0, 1, 7, 124, 125, 126, 127, 137, 143, 255])
def test_exit_codes_are_plain(lab, code):
    outcome = lab.run(lab.command("sh", "-c", f"exit {code}")).outcome
    assert (outcome.exit_code, outcome.signal, outcome.stop_reason) == (code, None, None)


@pytest.mark.parametrize("number", sorted(signal.valid_signals() - {17, 18, 19, 20, 21, 22, 23, 28}))
def test_every_deadly_signal_is_told_as_itself(lab, number):
    run = lab.run(lab.command("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$; exit 9"))
    assert run.outcome.signal == number
    assert run.outcome.exit_code is None
    assert run.outcome.stop_reason is None
    assert not run.outcome.core_dumped


def test_standard_input_can_be_given(lab):
    data = bytes(range(256)) * 4096
    run = lab.run(lab.command("cat", stdin_bytes=data, cap=2 << 20))
    assert run.stdout == data


def test_nothing_on_standard_input_is_an_end_at_once(lab):
    run = lab.run(lab.command("cat"))
    assert run.outcome.exit_code == 0
    assert run.elapsed_s < 2.0


def test_changes_of_the_program_to_itself_stay_its_own(lab):
    program = "cd /; umask 077; ulimit -n 20; renice -n 19 $$ >/dev/null; exit 0"
    assert lab.run(lab.command("sh", "-c", program)).outcome.exit_code == 0
    run = lab.run(lab.command("sh", "-c", "umask; ulimit -n; nice; pwd"))
    umask = os.umask(0)
    os.umask(umask)
    expected = [f"{umask:04o}", str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]), str(os.nice(0)), str(lab.work)]
    assert run.stdout.decode().split() == expected


def test_usage_is_the_programs_own(lab):
    # Above what the guardian inherited from this process, whatever ran in it before.
    size_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) + (64 << 20)
    run = lab.run(lab.command(sys.executable, "-I", "-S", "-c", f"x = bytearray({size_bytes})\nfor i in range(10**6): pass"))
    assert run.outcome.max_rss_bytes > size_bytes
    assert run.outcome.cpu_user_s + run.outcome.cpu_system_s > 0.01
    assert lab.run(lab.command("true")).outcome.max_rss_bytes is None


@pytest.mark.parametrize("limit", [4, 6, 8, 10, 12, 14, 16])
def test_too_few_descriptors_are_an_outcome(tmp_path, limit):
    outcome = run_limited(tmp_path, f"resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))")
    if outcome.start_error is not None:
        assert outcome.start_error.errno == errno.EMFILE
        assert outcome.start_error.stage in ("setup", "fork")
    else:
        assert outcome.exit_code == 0 or outcome.recording_errors


def test_no_more_processes_are_an_outcome(tmp_path):
    if os.geteuid() == 0:
        change = "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)); os.setgroups([]); os.setgid(65533); os.setuid(65533)"
    else:
        change = "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))"
    outcome = run_limited(tmp_path, change)
    assert outcome.start_error.stage == "fork"
    assert outcome.start_error.errno == errno.EAGAIN


def run_limited(tmp_path: Path, change: str) -> Outcome:
    """One run of ``true`` in a harness process that first does ``change`` to itself."""
    tmp_path.chmod(0o777)
    program = f"""
import json, os, resource, sys
sys.path.insert(0, {str(ROOT)!r})
from agent_eval.supervise.command import Command
from agent_eval.supervise.slot import Slot
import errno, hashlib, traceback, agent_eval.records.outcome
result = os.open("result", os.O_WRONLY | os.O_CREAT, 0o666)
{change}
slot = Slot("limited")
command = Command(argv=("echo", "x"), cwd="/", env={{"PATH": "/usr/bin:/bin"}}, timeout_s=5, max_output_bytes=1024,
                  stdout_path=os.getcwd() + "/stdout")
outcome = slot.run(command)
os.write(result, json.dumps(outcome.to_json()).encode())
slot.close()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return Outcome.from_json(json.loads((tmp_path / "result").read_text()))
