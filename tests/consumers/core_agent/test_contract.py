"""Conformance of an agent's program to ``core-agent/1``.

    RHO_EVAL_CORE_BINARY=/abs/agent python3 -m pytest tests/consumers/core_agent/test_contract.py

Without the variable the reference agent is tried. What a program's model needs is taken from the
environment by the names in its contract. No task here needs skill: whether an agent is any good is
what the scenarios are for.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import time

import pytest

from consumers.core_agent.contract import Contract, read_contract
from consumers.core_agent.events import Transcript, parse_events
from tests.consumers.core_agent.runs import REFERENCE

BINARY = pathlib.Path(os.environ.get("RHO_EVAL_CORE_BINARY") or REFERENCE).absolute()
TIMEOUT_S = 300.0
TASK = {
    "contract": "core-agent/1",
    "instruction": "Read the file notes.txt and answer with the word that it holds. Change nothing.",
    "tools": ["read", "list", "search"],
    "max_steps": 20,
    "sampling_seed": 7,
}


def ask_contract(cwd: pathlib.Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(BINARY), "contract"], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=10)


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    done = ask_contract(tmp_path_factory.mktemp("contract"))
    assert done.returncode == 0, done.stderr
    return read_contract(done.stdout)


class Trial:
    """One run of the program in folders of its own."""

    def __init__(self, root: pathlib.Path, contract: Contract) -> None:
        self.workspace, self.home, self.tmp = (root / name for name in ("workspace", "home", "tmp"))
        for folder in (self.workspace, self.home, self.tmp):
            folder.mkdir()
        self.task_path = root / "task.json"
        names = ("PATH", "LANG", *contract.model_env)
        self.env = {name: os.environ[name] for name in names if name in os.environ}
        self.env |= {"HOME": str(self.home), "TMPDIR": str(self.tmp)}
        (self.workspace / "notes.txt").write_text("heliotrope\n")

    def run(self, **changes: object) -> tuple[subprocess.CompletedProcess[bytes], Transcript]:
        return self.run_text(json.dumps({**TASK, "task_id": os.urandom(8).hex(), **changes}))

    def run_text(self, task: str) -> tuple[subprocess.CompletedProcess[bytes], Transcript]:
        self.task_path.write_text(task)
        done = subprocess.run(self.argv(), cwd=self.workspace, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
        return done, parse_events(done.stdout)

    def argv(self) -> list[str]:
        return [str(BINARY), "run", "--task", str(self.task_path), "--workspace", str(self.workspace)]


@pytest.fixture
def trial(tmp_path: pathlib.Path, contract: Contract) -> Trial:
    if contract.model_required and (unset := [name for name in contract.model_env if name not in os.environ]):
        pytest.skip(f"skipped: the agent's model needs {', '.join(unset)}")
    return Trial(tmp_path, contract)


def test_the_contract_is_valid_and_offers_the_binary_transport(contract: Contract) -> None:
    assert "binary" in contract.transports
    assert all(os.path.isfile(path) for path in contract.identity_files)


def test_the_contract_is_the_same_twice_and_from_anywhere(tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert ask_contract(tmp_path).stdout == ask_contract(tmp_path / "elsewhere").stdout


def test_the_contract_needs_no_environment(tmp_path: pathlib.Path) -> None:
    bare = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = ask_contract(tmp_path, bare)
    assert done.returncode == 0, done.stderr
    read_contract(done.stdout)


def test_the_contract_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    ask_contract(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_a_whole_transcript(trial: Trial) -> None:
    done, transcript = trial.run()
    assert [f"{fact.name} (line {fact.line}): {fact.detail}" for fact in transcript.facts] == []
    assert transcript.final is not None
    assert done.returncode == 0


def test_calls_use_tools_of_the_contract(trial: Trial, contract: Contract) -> None:
    _, transcript = trial.run()
    assert {event["tool"] for event in transcript.events if event["type"] == "tool_call"} <= set(contract.tools)


@pytest.mark.parametrize("granted", [["read"], ["list"], ["read", "write"]])
def test_nothing_ungranted_takes_effect(trial: Trial, granted: list[str]) -> None:
    _, transcript = trial.run(tools=granted)
    tools = {event["id"]: event["tool"] for event in transcript.events if event["type"] == "tool_call"}
    effective = {tools[event["id"]] for event in transcript.events if event["type"] == "tool_result" and event["ok"]}
    assert effective <= set(granted)
    denied = {event["tool"] for event in transcript.events if event["type"] == "denied"}
    assert not denied & set(granted)


def test_a_workspace_without_write_grants_stays_as_it_was(trial: Trial) -> None:
    trial.run()
    assert [path.name for path in trial.workspace.iterdir()] == ["notes.txt"]
    assert (trial.workspace / "notes.txt").read_text() == "heliotrope\n"


def test_the_task_file_stays_as_it_was(trial: Trial) -> None:
    trial.run()
    before = trial.task_path.read_bytes()
    trial.run(task_id=json.loads(before)["task_id"])
    assert trial.task_path.read_bytes() == before


def test_the_number_of_steps_is_bounded(trial: Trial) -> None:
    done, transcript = trial.run(max_steps=1)
    assert sum(event["type"] == "tool_call" for event in transcript.events) <= 1
    assert transcript.final is not None
    assert done.returncode == 0


def test_a_task_that_is_none_is_refused(trial: Trial) -> None:
    for text in ("", "{}", "[1]", "{"):
        done, transcript = trial.run_text(text)
        assert done.returncode != 0
        assert transcript.final is None


def test_another_contract_is_refused(trial: Trial) -> None:
    done, transcript = trial.run(contract="core-agent/99")
    assert done.returncode != 0
    assert transcript.final is None


def test_it_ends_soon_after_it_is_told_to(trial: Trial) -> None:
    trial.task_path.write_text(json.dumps({**TASK, "task_id": "x"}))
    with subprocess.Popen(trial.argv(), cwd=trial.workspace, env=trial.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.terminate()
        begun = time.monotonic()
        process.communicate(timeout=30)
    assert time.monotonic() - begun < 10
