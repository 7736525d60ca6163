"""Engines that lie, raise what they like or block: every trial that was sent out is counted once, as what it is, and the directory is whole."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from agent_eval.evidence.manifest import verify
from tests.supervise.lab import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
CHECKER = str(PROGRAMS / "checker.py")
COUNTS = ("passed", "failed", "void", "interrupted", "unrun")


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    (tmp_path / "engine").mkdir()
    return {"PYTHONPATH": f"{ROOT}{os.pathsep}{PROGRAMS}", "ENGINE_FOLDER": str(tmp_path / "engine")}


@pytest.fixture
def run(run_py, environment):
    """One ``check``: the process and its summary. The directory is always whole, and each trial counted once."""

    def call(engine: str, *arguments: object) -> tuple[subprocess.CompletedProcess[str], dict]:
        done = run_py("check", *arguments, "--executor", f"lying_engines:{engine}", "--json", env=environment)
        assert done.stdout, done.stderr
        assert "Traceback" not in done.stderr
        summary = json.loads(done.stdout)
        assert verify(summary["path"]).ok
        assert sum(summary[name] for name in COUNTS) == summary["planned"]
        assert summary["exit_code"] == done.returncode
        events = [json.loads(line) for line in (pathlib.Path(summary["path"]) / "journal.jsonl").read_text().splitlines()]
        counted = {kind: Counter((e["case_id"], e["number"]) for e in events if e["event"] == kind) for kind in ("started", "finished")}
        assert counted["started"] == counted["finished"]
        assert set(counted["started"].values()) <= {1}
        assert len(counted["started"]) == summary["planned"] - summary["unrun"]
        return done, summary

    return call


@pytest.fixture
def cases(write_case):
    """One case that passes and one that fails, by their own words."""
    return [
        argument
        for name, how in (("good", "pass"), ("bad", "fail"))
        for argument in ("--case", write_case(id=name, command=[sys.executable, CHECKER, "{report}", how]))
    ]


def judgments(summary: dict, case: str) -> list[dict]:
    folders = sorted((pathlib.Path(summary["path"]) / "trials" / case).iterdir())
    return [json.loads((folder / "trial.json").read_text())["judgment"] for folder in folders]


def details(summary: dict, case: str = "case") -> list[str]:
    return [judgment["failures"][0]["detail"] for judgment in judgments(summary, case) if judgment["cause"] == "worker-lost"]


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_engine_that_takes_equal_calls_for_one(run, run_py, cases, jobs):
    """Only the trial that really ran has a verdict of its own; the checker that fails never passes."""
    done, summary = run("Same", *cases, "--trials", 2, "-j", jobs)
    assert [summary[name] for name in COUNTS] == [1, 0, 3, 0, 0]
    assert done.returncode == 5
    assert [judgment["verdict"] for judgment in judgments(summary, "bad")] == ["void", "void"]
    assert all("another request" in detail and "'good', trial 1" in detail for detail in details(summary, "bad"))


def test_results_that_are_exchanged(run, run_py, cases):
    done, summary = run("Swapped", *cases, "-j", 2)
    assert [summary[name] for name in COUNTS] == [0, 0, 2, 0, 0]
    assert done.returncode == 4
    for case in ("good", "bad"):
        (record,) = (pathlib.Path(summary["path"]) / "trials" / case / "001").iterdir()
        assert record.name == "trial.json"
        assert json.loads(record.read_text())["outcome"] is None
    assert run_py("regrade", summary["path"]).returncode == 4


def test_an_answer_that_was_given_before(run, cases):
    _, summary = run("Stale", *cases, "--trials", 2)
    assert [[judgment["verdict"] for judgment in judgments(summary, case)] for case in ("good", "bad")] == [["pass", "void"], ["fail", "void"]]


def test_whatever_submit_does_is_about_one_trial(run, write_case):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"], timeout_s=20)
    done, summary = run("raising", "--case", case, "--trials", 11, "--grace", "0")
    assert [summary[name] for name in COUNTS] == [1, 0, 10, 0, 0]
    words = (
        "PicklingError: cannot be pickled", "KeyError: 'no such queue'", "SystemExit: 0", "KeyboardInterrupt", "GeneratorExit",
        "Silent (it cannot be put in words)", "a lone \\ud800 surrogate", "submit gave a NoneType", "SystemExit: 0", "TimeoutError",
    )  # fmt: skip
    for detail, word in zip(details(summary), words, strict=True):
        assert word in detail


def test_whatever_comes_back_is_looked_at(run, write_case):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    done, summary = run("lies", "--case", case, "--trials", 19, "--max-output-bytes", "1KiB")
    assert [summary[name] for name in COUNTS] == [1, 0, 18, 0, 0]
    words = (
        "it.errors is 5, not an array", "it.identity is None", "cannot be judged (KeyError: 'before')", "cannot be judged (EvidenceFault",
        "it.record sets interrupted", "it.record sets judgment", "it.outcome.wall_s is -5", "it.outcome.exit_code is '0'", "an exit code and a signal",
        "pairs of a name and bytes", "other files than it names", "pairs of a name and bytes", "came back changed", "a file that no trial has ('trial.json')",
        "more than the 1024 that the limits allow", "a NoneType instead of bytes", "a lone \\ud800 surrogate", "half a result",
    )  # fmt: skip
    for detail, word in zip(details(summary), words, strict=True):
        assert word in detail
    kept = sum(path.stat().st_size for path in pathlib.Path(summary["path"]).rglob("*"))
    assert kept < 1 << 20


@pytest.mark.parametrize("engine", ["leaves", "cancels", "wants_a_key"])
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_factory_that_raises_anything_is_one_line(run_py, write_case, environment, tmp_path, engine, more):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    done = run_py("check", "--case", case, "--executor", f"lying_engines:{engine}", "-o", "out", *more, env=environment)
    if more:
        assert (done.returncode, done.stderr) == (0, "")  # it is only looked for
    else:
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: --executor: lying_engines:{engine}: ")
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("engine", "word"),
    [("exits:f", "SystemExit: 0"), ("says:f", "SystemExit: no scheduler"), ("nowhere_at_all:x", "ModuleNotFound"), (":", "ValueError"), ("os:sep", "cannot be called")],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_module_that_ends_the_interpreter_is_no_success(run_py, write_case, environment, tmp_path, engine, word, more):
    (tmp_path / "engine" / "exits.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "engine" / "says.py").write_text("import sys\nsys.exit('no scheduler')\n")
    environment["PYTHONPATH"] += f"{os.pathsep}{tmp_path}/engine"
    case = write_case(command=[sys.executable, CHECKER, "{report}", "fail"])
    done = run_py("check", "--case", case, "--executor", engine, "-o", "out", *more, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: --executor: {engine}")
    assert word in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_engine_that_cannot_be_shut_down_is_a_note(run, write_case):
    done, summary = run("NotShutDown", "--case", write_case(command=[sys.executable, CHECKER, "{report}", "pass"]))
    assert done.returncode == 0
    assert "note: the engine was not shut down: SystemExit: 0\n" in done.stderr


def test_a_submit_that_blocks_for_a_while(run, write_case, environment):
    """The trial is given up in time, never runs, and those behind it do."""
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"], timeout_s=20)
    _, summary = run("BlockedOnce", "--case", case, "--trials", 3, "--grace", "0")
    assert [summary[name] for name in COUNTS] == [2, 0, 1, 0, 0]
    assert details(summary) == ["not taken by the engine within 1 s"]
    assert (pathlib.Path(environment["ENGINE_FOLDER"]) / "taken").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_submit_that_blocks_keeps_no_signal_waiting(write_case, environment, tmp_path, number):
    case = write_case(command=[sys.executable, CHECKER, "{report}", "pass"])
    command = [sys.executable, str(ROOT / "run.py"), "check", "--case", case, "--trials", "3", "-j", "2", "-o", "out", "--executor", "lying_engines:Blocked"]
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert wait_until(lambda: '"started"' in _text(tmp_path / "out" / "journal.jsonl"), 20.0)
        began = time.monotonic()
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert time.monotonic() - began < 10
    assert process.returncode == 128 + number, errors
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [summary[name] for name in COUNTS] == [0, 0, 0, 1, 2]
    assert verify(str(tmp_path / "out")).ok


def _text(path: pathlib.Path) -> str:
    return path.read_text() if path.exists() else ""


def test_what_is_back_when_an_interrupt_comes_is_what_it_is(run, cases):
    """Two failures and a pass: none of them is drawn again by a rerun of what was interrupted."""
    done, summary = run("InterruptedAtTheThird", *cases, "--trials", 2, "-j", 4)
    assert done.returncode == 130
    assert [summary[name] for name in COUNTS] == [2, 1, 0, 0, 1]


def test_memory_and_processes_of_a_coordinator(run, write_case, environment):
    """A large output is held once; the coordinator starts nothing of its own that could be forked beside an engine's threads."""
    script = 'head -c 33554000 /dev/zero; echo "{\\"passed\\": true}" >"$0"'
    case = write_case(command=["sh", "-c", script, "{report}"])
    _, summary = run("Measured", "--case", case, "--trials", 2, "--max-output-bytes", "32MiB")
    assert summary["passed"] == 2
    measured = json.loads((pathlib.Path(environment["ENGINE_FOLDER"]) / "measured").read_text())
    assert measured["peak_bytes"] < 120 << 20
    assert measured["children"] == []


FORKS = """
import os, threading
os.register_at_fork(before=lambda: open(os.environ["ENGINE_FOLDER"] + f"/fork.{os.getpid()}.{os.urandom(4).hex()}.{threading.active_count()}", "w").close())
"""


def test_nothing_is_forked_from_a_process_with_threads(run_py, write_case, environment, tmp_path):
    """Neither the workers of the pool nor the guardians of their supervisors."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FORKS)
    environment["PYTHONPATH"] = f"{tmp_path / 'site'}{os.pathsep}{ROOT}"
    case = write_case(command=["sh", "-c", 'echo "{\\"passed\\": true}" >"$0"', "{report}"])
    done = run_py("check", "--case", case, "--trials", 4, "-j", 2, "--executor", "concurrent.futures:ProcessPoolExecutor", env=environment)
    assert done.returncode == 0, done.stderr
    forks = [path.name.split(".") for path in (tmp_path / "engine").iterdir()]
    assert len(forks) >= 2 + 4  # two workers, and a guardian for each trial
    assert {threads for *_, threads in forks} == {"1"}


@pytest.mark.parametrize("request_", [b"", b"{}", b"nonsense", b'{"argv":[],"task_seed":null,"mark":"m","answers":{"case_id":"c","number":1,"plan_sha256":"' + b"0" * 64 + b'","nonce":"n"}}'])
def test_a_worker_without_a_request(request_):
    done = subprocess.run([sys.executable, ROOT / "run.py", "worker"], input=request_, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: run.py worker: ")
    assert done.stderr.count(b"\n") == 1
