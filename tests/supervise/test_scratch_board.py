"""After ``kill -9`` of a harness its guardians take its scratch folders away: all of them, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_eval.supervise import scratch_board
from agent_eval.supervise.scratch import Scratch, remove_left_by
from agent_eval.supervise.scratch_board import ScratchBoard, own_board
from agent_eval.supervise.slot import Slot
from tests.supervise.lab import wait_until

ROOT = Path(__file__).resolve().parents[2]
# Leaves what is hard to delete, says that it runs, and stays.
STAYING = 'mkdir -p d/e && touch d/e/f && ln -s / link && chmod 0 d/e d; touch "$1/running-$$"; sleep 60'


class Run:
    """``run.py check`` in a process of its own, whose scratch folders lie in ``scratches``."""

    def __init__(self, folder: Path, *options: str, **cases: str) -> None:
        self.folder = folder
        self.scratches = folder / "scratches"
        self.scratches.mkdir()
        arguments = []
        for name, script in cases.items():
            path = folder / f"{name}.json"
            path.write_text(json.dumps({"id": name, "scope": "scratch", "command": ["sh", "-c", script, "{report}", str(folder)]}))
            arguments += ["--case", str(path)]
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "run.py"), "check", *arguments, "-o", str(folder / "evidence"), "-q", *options],
            cwd=folder, env={**os.environ, "TMPDIR": str(self.scratches)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def held(self) -> set[str]:
        return set(os.listdir(self.scratches))

    def kill_when(self, condition) -> None:
        assert wait_until(condition, 20.0), (self.process.poll(), self.held())
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


@pytest.fixture
def start(tmp_path):
    made = []

    def call(*options: str, **cases: str) -> Run:
        made.append(Run(tmp_path, *options, **cases))
        return made[-1]

    yield call
    for run in made:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait(10)


def test_several_guardians_may_remove_the_same_folders_at_once(tmp_path) -> None:
    for _ in range(10):
        scratch = Scratch(str(tmp_path))
        for index in range(40):
            os.makedirs(f"{scratch.path}/{index}/a/b/c")
            Path(f"{scratch.path}/{index}/a/file").touch()
        removers = []
        for _ in range(4):
            pid = os.fork()
            if pid == 0:
                try:
                    remove_left_by(os.getppid())
                finally:
                    os._exit(0)
            removers.append(pid)
        for pid in removers:
            os.waitpid(pid, 0)
        left = os.listdir(tmp_path)
        scratch.remove()
        assert left == []


@pytest.mark.parametrize("jobs", [1, 3])
def test_running_prepared_and_spare_folders_go(start, tmp_path, jobs: int) -> None:
    run = start("--trials", "5", "-j", str(jobs), quick='echo "{\\"passed\\": true}" >"$0"', staying=STAYING)
    run.kill_when(lambda: len(list(tmp_path.glob("running-*"))) == jobs and len(run.held()) > jobs)
    assert wait_until(lambda: not run.held(), 10.0), run.held()


def test_folders_that_are_kept_for_somebody_stay(run_py, write_case, tmp_path) -> None:
    script = 'test -e "$1/again" || exit 1; mkdir "$1/first-of-them" && exit 1; sleep 60'
    case = write_case(id="kept", command=["sh", "-c", script, "{report}", str(tmp_path)])
    assert run_py("check", "--case", case, "--trials", 2, "-o", "first").returncode == 1
    (tmp_path / "again").touch()
    scratches = tmp_path / "kept"
    scratches.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), "rerun", "first", "--failed", "--keep-workspace", "-o", "second"],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(scratches)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    line = next(line for line in process.stderr if ": kept " in line)
    kept = Path(line.split(": kept ")[1].strip())
    process.kill()
    process.wait(10)
    process.stderr.close()
    assert wait_until(lambda: set(os.listdir(scratches)) == {kept.name}, 10.0), os.listdir(scratches)


def test_a_guardian_that_ends_before_its_harness_removes_nothing(tmp_path) -> None:
    with Slot("mark-of-a-board") as slot, Scratch(str(tmp_path)) as scratch:
        guardian = slot.guardian
        assert guardian is not None
        slot.close()
        assert wait_until(lambda: not os.path.exists(f"/proc/{guardian}"), 5.0)
        assert os.path.isdir(scratch.path)


def test_a_process_that_was_forked_has_a_board_of_its_own(tmp_path) -> None:
    """As a worker of a pool is: its end is not that of the process that it was forked from."""
    with Scratch(str(tmp_path)) as ours:
        before = own_board().paths()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writing, str(Slot("mark-of-a-fork").guardian).encode())
                Scratch(str(tmp_path))
                os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        guardian = int(os.read(reading, 20))
        os.close(reading)
        os.close(writing)
        assert wait_until(lambda: os.listdir(tmp_path) == [os.path.basename(ours.path)], 5.0), os.listdir(tmp_path)
        assert own_board().paths() == before
        with contextlib.suppress(ChildProcessError):  # ours to bury where this process is a subreaper
            os.waitpid(guardian, 0)


def test_the_board_holds_what_there_is(tmp_path) -> None:
    before = own_board().paths()
    scratch = Scratch(str(tmp_path))
    assert scratch.path in own_board().paths()
    scratch.rename()
    assert [path for path in own_board().paths() if path.startswith(str(tmp_path))] == [scratch.path]
    scratch.remove()
    scratch.remove()
    with pytest.raises(FileNotFoundError):
        Scratch(str(tmp_path / "nowhere"))
    other = Scratch(str(tmp_path))
    os.rmdir(other.path)
    with pytest.raises(FileNotFoundError):
        other.rename()
    other.remove()
    assert own_board().paths() == before


def test_only_what_a_scratch_folder_is_called_is_ever_taken_away() -> None:
    board = ScratchBoard()
    for path in ("/tmp", "/tmp/agent-eval-", "/", "agent-eval-" + "0" * 18, "/tmp/agent-eval-" + "0" * 17, "/tmp/agent-eval-" + "0" * 18 + "/home", "/tmp/agent-eval-" + "0" * 18 + "\n"):
        board.add(path)
    assert board.paths() == []
    assert board.add("/" + "x" * 300 + "/agent-eval-" + "0" * 18) is None
    good = f"/tmp/agent-eval-{'0' * 18}"
    index = board.add(good)
    assert board.paths() == [good]
    board.drop(index)
    assert board.paths() == []


def test_more_folders_than_there_is_room_for_are_not_noted() -> None:
    board = ScratchBoard()
    path = f"/tmp/agent-eval-{'0' * 18}"
    noted = [board.add(path) for _ in range(2049)]
    assert noted[-1] is None and len(board.paths()) == 2048
    for index in noted:
        board.drop(index)
    assert board.paths() == [] and board.add(path) is not None


def test_nobody_removes_the_folders_of_a_process_that_it_is_no_fork_of(tmp_path, monkeypatch) -> None:
    with Scratch(str(tmp_path)) as scratch:
        monkeypatch.setattr(scratch_board, "_inherited", own_board())
        remove_left_by(os.getpid() + 1)
        assert os.path.isdir(scratch.path)
        monkeypatch.setattr(scratch_board, "_inherited", None)
        remove_left_by(os.getpid())
        assert os.path.isdir(scratch.path)
