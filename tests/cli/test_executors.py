"""Engines that fail, hang, answer late or nonsense; coordinators that are interrupted or killed. Each trial has one record, and nothing is left."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from agent_eval.cli.parsing import add_run_options
from agent_eval.evidence.manifest import verify
from tests.supervise.lab import marked_processes, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
CHECKER = str(PROGRAMS / "checker.py")
POOL = "concurrent.futures:ProcessPoolExecutor"
COUNTS = ("planned", "passed", "failed", "void", "interrupted", "unrun")
# The subject's parent is the guardian, and the guardian's the supervisor.
_TERM_SUPERVISOR = (
    "import os, signal\n"
    "pid = os.getppid()\n"
    "for _ in range(2):\n"
    "    pid = int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n"
    "os.kill(pid, signal.SIGTERM)\n"
)
PASS = 'echo "{\\"passed\\": true}" >"$0"; '


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    (tmp_path / "engine").mkdir()
    return {"PYTHONPATH": f"{ROOT}{os.pathsep}{PROGRAMS}", "ENGINE_FOLDER": str(tmp_path / "engine")}


@pytest.fixture
def run(run_py, environment) -> Callable[..., tuple[subprocess.CompletedProcess[str], dict]]:
    """One ``check`` on an engine: the process and its summary. The directory is always whole."""

    def call(engine: str, *arguments: object, **more) -> tuple[subprocess.CompletedProcess[str], dict]:
        done = run_py("check", *arguments, "--executor", engine, "--json", env=environment, **more)
        assert done.stdout, done.stderr
        assert "Traceback" not in done.stderr
        summary = json.loads(done.stdout)
        assert verify(summary["path"]).ok
        assert sum(summary[name] for name in COUNTS[1:]) == summary["planned"]
        assert summary["exit_code"] == done.returncode
        return done, summary

    return call


def trial(summary: dict, number: int, case: str = "case") -> dict:
    return json.loads((pathlib.Path(summary["path"]) / "trials" / case / f"{number:03d}" / "trial.json").read_text())


def causes(summary: dict) -> list[str | None]:
    return [trial(summary, number)["judgment"]["cause"] for number in range(1, summary["planned"] + 1)]


@pytest.mark.parametrize("engine", ["spawn", "forkserver", "elsewhere", "Detached"])
def test_workers_that_share_nothing_with_the_coordinator(run, write_case, tmp_path, engine):
    """Another interpreter, another folder: paths of the command line still mean what they meant."""
    write_case(command=[sys.executable, CHECKER, "{report}", "say", "x" * 3000])
    _, summary = run(f"engines:{engine}", "--case", "case.case.json", "--max-output-bytes", "1024")
    assert summary["failed"] == 1
    assert trial(summary, 1)["judgment"]["failures"][0]["reason"] == "output-limit"
    assert (pathlib.Path(summary["path"]) / "trials/case/001/stdout.bin").read_bytes() == b"x" * 1024


def test_engines_that_fail_in_every_way(run, write_case, tmp_path):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    done, summary = run("engines:bad", "--case", case, "--trials", 12)
    assert done.returncode == 4
    assert causes(summary) == ["worker-lost"] * 12
    details = [trial(summary, number)["judgment"]["failures"][0]["detail"] for number in range(1, 13)]
    for detail, word in zip(details, (
        "no more processes", "cannot be sent", "MemoryError", "KeyboardInterrupt", "CancelledError", "cancelled it", "NoneType",
        "no trial", "no trial", "no", "shut down", "shut down",
    ), strict=True):  # fmt: skip
        assert word in detail


def test_futures_that_nobody_completes_and_an_engine_that_does_not_end(run, write_case):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"], timeout_s=0.2, cleanup=["true"])
    began = time.monotonic()
    _, summary = run("engines:Never", "--case", case, "--trials", 3, "-j", 3, "--grace", "0.1")
    assert causes(summary) == ["worker-lost"] * 3
    assert "not back within 0.9 s" in trial(summary, 1)["judgment"]["failures"][0]["detail"]
    assert time.monotonic() - began < 30


def test_an_engine_that_leaves_a_thread_behind(run, write_case):
    began = time.monotonic()
    done, summary = run("engines:Lingering", "--case", write_case(command=[sys.executable, CHECKER, "{report}", "pass"]))
    assert (done.returncode, summary["passed"]) == (0, 1)
    assert time.monotonic() - began < 30


def test_an_error_after_the_engine_was_made_is_said_and_ends(run_py, write_case, environment, tmp_path):
    (tmp_path / "out").mkdir()
    began = time.monotonic()
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    done = run_py("check", "--case", case, "--executor", "engines:Never", "-o", "out", env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("error: out: exists already")
    assert time.monotonic() - began < 30


def test_a_result_that_comes_after_its_trial_was_given_up(run, write_case):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    _, summary = run("engines:Late", "--case", case, "--trials", 2, "-j", 1, "--timeout", "3", "--grace", "0")
    assert causes(summary) == ["worker-lost", None]
    assert (summary["void"], summary["passed"]) == (1, 1)
    journal = (pathlib.Path(summary["path"]) / "journal.jsonl").read_text()
    assert journal.count('"event":"finished"') == 2


@pytest.mark.parametrize("engine", ["engines:unreachable", "nowhere_at_all:x", ":", "engines:no_such_name", "engines:CHECKER"])
def test_a_factory_that_makes_no_engine_is_refused_before_anything_is_written(run_py, write_case, environment, tmp_path, engine):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    done = run_py("check", "--case", case, "--executor", engine, "-o", "out", env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --executor: ")
    assert not (tmp_path / "out").exists()


def test_an_engine_is_only_made_for_trials(run_py, write_case, environment, tmp_path):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    made = tmp_path / "engine" / "made"
    for arguments, code in ((["--case", case, "--dry-run"], 0), (["--case", "absent"], 2), (["--case", case, "--trials", 0], 2)):
        assert run_py("check", *arguments, "--executor", "engines:noted", env=environment).returncode == code
        assert not made.exists()
    assert run_py("check", "--case", case, "--executor", "engines:noted", env=environment).returncode == 0
    assert made.exists()


def test_an_agent_on_workers_is_judged_as_here(run_py, environment):
    arguments = ["core-agent", "--binary", ROOT / "consumers" / "core_agent" / "reference_agent.py", "--case", "edit", "--case", "repair", "--json"]
    here, there = (run_py(*arguments, *more, env=environment) for more in ([], ["-j", 2, "--executor", POOL]))
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    for case in ("edit@1", "repair@1"):
        mine, theirs = (trial(json.loads(done.stdout), 1, case) for done in (here, there))
        assert {**mine["judgment"], "grader": None} == {**theirs["judgment"], "grader": None}
        assert mine.keys() == theirs.keys()
        assert [n for n in mine["files"] if "/" not in n] == [n for n in theirs["files"] if "/" not in n]
    assert run_py("regrade", json.loads(there.stdout)["path"]).returncode == 0


def test_a_trial_of_an_agent_is_waited_for_until_its_hidden_check_has_ended():
    """One that times out and hangs in the check as well is a failure, not a lost worker."""
    from consumers.core_agent.consumer import CONSUMER

    parser = argparse.ArgumentParser()
    add_run_options(parser)
    CONSUMER.add_arguments(parser)
    binary = str(ROOT / "consumers" / "core_agent" / "reference_agent.py")
    planned = CONSUMER.plan(parser.parse_args(["--binary", binary, "--case", "edit", "--case", "repair", "--timeout", "7", "--grace", "2"]))
    bounds = {case.id: case.commands_s for case in planned.cases}
    assert bounds["edit@1"] == 9
    assert bounds["repair@1"] > 9 + 2 * 10


class Coordinator:
    """``check`` on an engine as a process that can be signalled; its trials say where they are in ``folder``."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str], engine: str, script: str, *options: str) -> None:
        self.folder = folder
        self.evidence = folder / "evidence"
        case = folder / "case.json"
        case.write_text(json.dumps({"id": "case", "scope": "engines", "command": ["sh", "-c", script, "{report}", str(folder)]}))
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "run.py"), "check", "--case", str(case), "-o", str(self.evidence), *(["--executor", engine] if engine else []), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, **environment},
        )

    def see(self, name: str) -> None:
        wait_until(lambda: (self.folder / name).exists() or self.process.poll() is not None, 30.0)
        assert (self.folder / name).exists(), (name, self.process.poll(), self.process.poll() is not None and self.process.communicate())

    def trials_left(self) -> set[int]:
        return marked_processes(json.loads((self.evidence / "plan.json").read_text())["run_id"])

    def others_left(self) -> set[int]:
        """Workers and supervisors: whoever belongs to the session of the coordinator or has its folder in the environment."""
        wanted = os.fsencode(f"ENGINE_FOLDER={self.folder}/engine")
        found = set()
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (os.getpid(), self.process.pid):
                try:
                    alive = pathlib.Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                    command = pathlib.Path("/proc", name, "environ").read_bytes()
                except OSError:
                    continue
                if alive and wanted in command.split(b"\0"):
                    found.add(int(name))
        return found


@pytest.fixture
def start(tmp_path, environment) -> Iterator[Callable[..., Coordinator]]:
    made: list[Coordinator] = []

    def make(engine: str, script: str, *options: str) -> Coordinator:
        made.append(Coordinator(tmp_path, environment, engine, script, *options))
        return made[-1]

    yield make
    for coordinator in made:
        if coordinator.process.poll() is None:
            coordinator.process.kill()
        coordinator.process.communicate()


SLEEPS = 'touch "$1/running.$$"; touch "$1/running"; sleep 120'


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        (POOL, signal.SIGINT),
        (POOL, signal.SIGTERM),
        ("concurrent.futures:ThreadPoolExecutor", signal.SIGINT),
        ("engines:spawn", signal.SIGINT),
        ("engines:Detached", signal.SIGTERM),
    ],
)
def test_an_interrupt_with_trials_out(start, engine, number):
    """Sealed and over at once, although the trials could run for a minute more; those of local workers end with it."""
    limit_s = "3" if engine == "engines:Detached" else "100"  # workers elsewhere do not hear of it
    run = start(engine, SLEEPS, "--trials", "4", "-j", "2", "--timeout", limit_s, "--grace", "0.2")
    run.see("running")
    began = time.monotonic()
    os.killpg(run.process.pid, number)  # as a terminal does
    _, errors = run.process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert run.process.returncode == 128 + number, errors
    assert b"Traceback" not in errors
    summary = json.loads((run.evidence / "summary.json").read_text())
    assert (summary["interrupted"], summary["unrun"], summary["planned"]) == (2, 2, 4)
    assert verify(str(run.evidence)).ok
    assert wait_until(lambda: not run.trials_left() and not run.others_left(), 15.0), (run.trials_left(), run.others_left())


@pytest.mark.parametrize("engine", [POOL, "concurrent.futures:ThreadPoolExecutor", "engines:settled"])
def test_a_killed_coordinator_leaves_no_trial_on_its_own_workers(start, engine):
    run = start(engine, SLEEPS, "--trials", "3", "-j", "2", "--timeout", "100", "--grace", "0.2")
    run.see("running")
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not run.trials_left() and not run.others_left(), 10.0), (run.trials_left(), run.others_left())


def test_a_trial_elsewhere_ends_at_its_own_limits_when_the_coordinator_is_killed(start):
    """An engine of its own machine goes on: the trial stops by itself, its tree with it."""
    run = start("engines:Detached", "trap '' TERM; setsid sleep 120 & touch \"$1/running\"; sleep 120", "--timeout", "4", "--grace", "0.2")
    run.see("running")
    run.process.kill()
    run.process.wait()
    assert run.trials_left()
    assert wait_until(lambda: not run.trials_left() and not run.others_left(), 20.0), (run.trials_left(), run.others_left())
    assert not (run.evidence / "manifest-sha256.txt").exists()


def test_a_worker_that_is_killed_takes_its_trial_along(start):
    """Nobody waits for the answer any more: the trial ends long before its limit, and only the lost one is void."""
    script = 'test -e "$1/first" || { touch "$1/first"; sleep 120; }; ' + PASS
    run = start("engines:Detached", script, "--trials", "3", "--timeout", "100", "--grace", "0.2", "--json")
    run.see("first")
    (worker,) = [int(path.read_text()) for path in (run.folder / "engine").glob("*/pid")]
    os.kill(worker, signal.SIGKILL)
    output, _ = run.process.communicate(timeout=30)
    summary = json.loads(output)
    assert (summary["void"], summary["passed"]) == (1, 2)
    assert causes(summary) == ["worker-lost", None, None]
    assert verify(str(run.evidence)).ok
    assert wait_until(lambda: not run.trials_left() and not run.others_left(), 10.0)


TAMPER = """
import json, os, pathlib, shutil, sys, time
report, how = sys.argv[1:]
print("hello", flush=True)
folder = next(pathlib.Path(report).parents[1].glob("agent-eval-*/evidence/trials/case/001"))
until = time.monotonic() + 10
while not (folder / "stdout.bin").exists() and time.monotonic() < until:
    time.sleep(0.01)
if how == "append":
    (folder / "stdout.bin").open("a").write("more")
elif how == "fifo":
    (folder / "stdout.bin").unlink()
    os.mkfifo(folder / "stdout.bin")
elif how == "plant":
    (folder / "owner-report.json").write_text('{"passed": true}')
elif how == "remove":
    shutil.rmtree(folder)
elif how == "huge":
    os.truncate(folder / "stdout.bin", 1 << 40)
json.dump({"passed": how != "nothing"}, open(report, "w"))
"""


@pytest.mark.parametrize("how", ["append", "fifo", "plant", "remove", "huge"])
def test_a_subject_that_gets_at_its_evidence_on_the_worker_fails(run, write_case, tmp_path, environment, how):
    """It must not make a void of a failure, nor have its own words come back as what was captured."""
    (tmp_path / "tamper.py").write_text(TAMPER)
    (tmp_path / "tmp").mkdir()
    environment["TMPDIR"] = str(tmp_path / "tmp")
    case = write_case(command=[sys.executable, str(tmp_path / "tamper.py"), "{report}", how])
    done, summary = run(POOL, "--case", case)
    assert done.returncode == 1
    assert [failure["reason"] for failure in trial(summary, 1)["judgment"]["failures"]] == ["evidence-tampered"]
    assert run_names(summary) <= {"trial.json", "stdout.bin", "owner-report.json"}
    assert list((tmp_path / "tmp").iterdir()) == []


def run_names(summary: dict) -> set[str]:
    return {path.name for path in (pathlib.Path(summary["path"]) / "trials/case/001").iterdir()}


@pytest.mark.parametrize("first", ["subject", "harness"])
@pytest.mark.parametrize("ending", ["", "trap 'exit 143' TERM; "])
def test_a_cluster_that_signals_every_process_of_a_job(start, first, ending):
    """The trial gets the same SIGTERM as the run, a moment earlier or later: it was interrupted and did not fail."""
    run = start("", ending + 'echo $$ >"$1/pid.new"; mv "$1/pid.new" "$1/pid"; while :; do sleep 0.01; done', "--trials", "2")
    run.see("pid")
    pids = [int((run.folder / "pid").read_text()), run.process.pid]
    for pid in pids if first == "subject" else reversed(pids):
        with contextlib.suppress(ProcessLookupError):  # the harness may have ended the subject already
            os.kill(pid, signal.SIGTERM)
    run.process.communicate(timeout=20)
    assert run.process.returncode == 143
    summary = json.loads((run.evidence / "summary.json").read_text())
    assert (summary["interrupted"], summary["failed"], summary["unrun"]) == (1, 0, 1)
    assert json.loads((run.evidence / "trials/case/001/trial.json").read_text())["outcome"]["stop_reason"] == "interrupted"


def test_a_trial_that_ends_by_a_signal_of_its_own_fails(run_py, write_case):
    done = run_py("check", "--case", write_case(command=["sh", "-c", "kill -TERM $$", "{report}"]), "--trials", 2, "--json")
    assert (done.returncode, json.loads(done.stdout)["failed"]) == (1, 2)


def test_a_supervisor_that_was_told_to_stop_is_a_lost_worker(start):
    """Only an interrupt of this run makes a trial interrupted."""
    script = 'touch "$1/running"; ' + shlex.join([sys.executable, "-c", _TERM_SUPERVISOR]) + "; sleep 120"
    run = start(POOL, script, "--timeout", "60", "--grace", "0.2", "--json")
    output, errors = run.process.communicate(timeout=30)
    summary = json.loads(output)
    assert (summary["void"], summary["interrupted"]) == (1, 0), errors
    assert causes(summary) == ["worker-lost"]
