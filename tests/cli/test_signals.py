"""Signals to a run, in every phase and twice; terminals and readers that go away. The evidence and the exit code agree."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from agent_eval.evidence.manifest import verify
from tests.supervise.lab import marked_processes, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PASS = 'echo "{\\"passed\\": true}" >"$0"; '
TRIALS = 3


class Run:
    """``run.py check`` as a process in a session of its own, with a place where its trials say how far they are."""

    def __init__(self, folder: pathlib.Path, script: str, *options: str, wrapper: tuple[str, ...] = (), **popen) -> None:
        self.folder = folder
        self.evidence = folder / "evidence"
        case = folder / "case.json"
        command = ["sh", "-c", script, "{report}", str(folder)]
        case.write_text(json.dumps({"id": "case", "scope": "signals", "command": command, "timeout_s": 30}))
        arguments = ["check", "--case", str(case), "--trials", str(TRIALS), "-o", str(self.evidence), *options]
        self.process = subprocess.Popen(
            [*wrapper, sys.executable, str(ROOT / "run.py"), *arguments],
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "start_new_session": True,
                "cwd": folder,
                **popen,
            },
        )

    def see(self, name: str) -> None:
        """Wait for a file: a trial's word, or one of the evidence."""
        assert wait_until((self.folder / name).exists, 20.0), (name, self.process.poll())

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def end(self, within_s: float = 20.0) -> int:
        """The exit code, once everything that must hold for any interrupted run has been checked."""
        output, errors = self.process.communicate(timeout=within_s)
        code = self.process.returncode
        assert b"Traceback" not in (errors or b""), errors
        summary = json.loads((self.evidence / "summary.json").read_text())
        assert summary["exit_code"] == code, (summary["exit_code"], code, errors)
        parts = ("passed", "failed", "void", "interrupted", "unrun")
        assert sum(summary[name] for name in parts) == summary["planned"] == TRIALS
        assert verify(str(self.evidence)).ok
        run_id = json.loads((self.evidence / "plan.json").read_text())["run_id"]
        assert marked_processes(run_id) == set()
        if output is not None:
            assert f"({code}" in output.decode() or f"exit:     {code} " in output.decode()
        return code

    def summary(self) -> dict:
        return json.loads((self.evidence / "summary.json").read_text())

    def trial(self, number: int) -> dict:
        return json.loads((self.evidence / "trials" / "case" / f"{number:03d}" / "trial.json").read_text())


@pytest.fixture(autouse=True)
def _signals_as_in_a_terminal() -> Iterator[None]:
    """A shell's background job ignores SIGINT, and what is ignored here would stay so in the run."""
    before = [(number, signal.signal(number, lambda *_: None)) for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., Run]]:
    made: list[Run] = []

    def make(script: str, *options: str, **more) -> Run:
        made.append(Run(tmp_path, script, *options, **more))
        return made[-1]

    yield make
    for run in made:
        if run.process.poll() is None:
            run.process.kill()
        run.process.wait()
        for stream in (run.process.stdout, run.process.stderr):
            if stream is not None:
                stream.close()


@pytest.mark.parametrize("number", SIGNALS)
def test_before_anything_is_written(start, number):
    """The interpreter may not even have our handlers: either nothing ran and nothing is there, or it is all told."""
    run = start(PASS, "--grace", "0.2")
    time.sleep(0.02)
    run.signal(number)
    run.process.wait(20)
    if (run.evidence / "plan.json").exists():
        run.end()
    else:  # 1 is what the interpreter itself makes of SIGINT while it starts
        assert run.process.returncode in (-number, 128 + number, 1 if number == signal.SIGINT else -number)


@pytest.mark.parametrize("number", SIGNALS)
def test_before_the_first_spawn(start, number):
    run = start("sleep 30; " + PASS, "--grace", "0.2")
    run.see("evidence/plan.json")
    run.signal(number)
    assert run.end() == 128 + number
    assert run.summary()["passed"] == 0


@pytest.mark.parametrize("number", SIGNALS)
def test_while_a_trial_runs(start, number):
    run = start(PASS + 'test -e "$1/first" || { touch "$1/first"; exit 0; }; touch "$1/second"; sleep 30', "--grace", "0.2")
    run.see("second")
    run.signal(number)
    assert run.end() == 128 + number
    assert (run.summary()["passed"], run.summary()["interrupted"], run.summary()["unrun"]) == (1, 1, 1)
    trial = run.trial(2)
    assert trial["outcome"]["stop_reason"] == "interrupted"
    assert (trial["judgment"]["verdict"], trial["judgment"]["cause"]) == ("void", "interrupted")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_twice_within_the_grace(start, number, second):
    """The first one asks, the second one kills: without the grace of 30 s."""
    run = start('trap \'touch "$1/asked"\' TERM; touch "$1/running"; while :; do sleep 0.01; done', "--grace", "30")
    run.see("running")
    run.signal(number)
    run.see("asked")
    began = time.monotonic()
    run.signal(second)
    assert run.end() == 128 + number
    assert time.monotonic() - began < 10
    assert run.trial(1)["outcome"]["signal"] == signal.SIGKILL
    assert [step["signal"] for step in run.trial(1)["outcome"]["stop_steps"]] == ["SIGTERM", "SIGCONT", "SIGKILL"]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 2])
def test_in_the_grace_of_a_timeout(start, number, times):
    """The timeout came first and stays the reason; the run ends as interrupted all the same."""
    script = "trap 'touch \"$1/asked\"' TERM; while :; do sleep 0.01; done"
    run = start(script, "--timeout", "0.3", "--grace", "0.5" if times == 1 else "30")
    run.see("asked")
    for _ in range(times):
        run.signal(number)
        time.sleep(0.05)  # two of a kind at once are one to the kernel
    assert run.end() == 128 + number
    assert run.trial(1)["outcome"]["stop_reason"] == "timeout"
    assert run.summary()["failed"] == 1 and run.summary()["unrun"] == TRIALS - 1


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 2])
def test_in_the_sweep(start, number, times):
    """The leader has gone and left a hundred processes."""
    script = PASS + 'i=0; while [ $i -lt 100 ]; do setsid sleep 60 & i=$((i+1)); done; touch "$1/left"'
    run = start(script, "--grace", "0.2")
    run.see("left")
    for _ in range(times):
        run.signal(number)
        time.sleep(0.002)
    assert run.end() in (0, 128 + number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 2])
def test_while_sealing(start, number, times):
    """Some output makes the seal last a moment; a signal then never aborts it."""
    run = start(PASS + "head -c 1000000 /dev/urandom")
    run.see("evidence/summary.json")
    for _ in range(times):
        run.signal(number)
        time.sleep(0.002)
    assert run.end() in (0, 128 + number)
    assert run.summary()["passed"] == TRIALS


def test_nohup_keeps_a_run_going_through_a_hangup(start):
    script = PASS + 'touch "$1/running"; sleep 0.3'
    wrapper = (sys.executable, "-c", "import os,signal,sys; signal.signal(1, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])")
    run = start(script, wrapper=wrapper)
    run.see("running")
    run.signal(signal.SIGHUP)
    assert run.end() == 0
    assert run.summary()["passed"] == TRIALS


def test_a_terminal_that_closes(start):
    """Our terminal goes away: SIGHUP by the kernel, and a stderr that cannot be written to."""
    leader, follower = pty.openpty()
    run = start(
        'touch "$1/running"; sleep 30', "--grace", "0.2", stdin=follower, stdout=follower, stderr=follower,
        wrapper=(sys.executable, "-c", "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"),
    )  # fmt: skip
    os.close(follower)
    run.see("running")
    os.close(leader)
    assert run.end() == 128 + signal.SIGHUP
    assert run.summary()["interrupted"] == 1


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full"])
def test_progress_that_nobody_can_read(tmp_path, write_case, how):
    case = write_case(command=["sh", "-c", PASS, "{report}"])
    evidence = tmp_path / "evidence"
    line = f'exec "$0" "$1" check --case "$2" --trials 3 -o "$3" {how}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, str(ROOT / "run.py"), str(case), str(evidence)],
        cwd=tmp_path,
        timeout=60,
        capture_output=True,
    )
    assert done.returncode == 0
    assert json.loads((evidence / "summary.json").read_text())["exit_code"] == 0
    assert verify(str(evidence)).ok
