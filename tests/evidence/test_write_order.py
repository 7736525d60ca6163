"""What is durable before what, read off the seam's calls; and what a failing call leaves behind."""

from __future__ import annotations

import errno
import os
import pathlib

import pytest

from agent_eval.evidence.files import Files
from agent_eval.evidence.manifest import verify
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.status import status
from agent_eval.records.problems import EvidenceFault, InvalidInput


class Recorder(Files):
    """Real operations, written down; the one numbered ``fail_at`` fails as a full disk would."""

    __slots__ = ("calls", "fail_at")

    def __init__(self, fail_at: int | None = None) -> None:
        self.calls: list[tuple[str, str]] = []
        self.fail_at = fail_at

    def _note(self, name: str, path: object) -> None:
        self.calls.append((name, os.path.basename(str(path))))
        if self.fail_at is not None and len(self.calls) == self.fail_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        self._note("make_directory", path)
        super().make_directory(path, mode)

    def create(self, path: str, data: bytes) -> None:
        self._note("create", path)
        super().create(path, data)

    def open_append(self, path: str) -> int:
        self._note("open_append", path)
        return super().open_append(path)

    def append(self, descriptor: int, line: bytes) -> None:
        self._note("append", os.readlink(f"/proc/self/fd/{descriptor}"))
        super().append(descriptor, line)

    def sync_file(self, path: str) -> None:
        self._note("sync_file", path)
        super().sync_file(path)

    def sync_all(self, directory: str) -> None:
        self._note("sync_all", directory)
        super().sync_all(directory)

    def rename(self, source: str, target: str) -> None:
        self._note("rename", target)
        super().rename(source, target)


def test_power_loss_order(write_run) -> None:
    files = Recorder()
    writer = write_run(files=files)
    writer.seal({})
    calls = files.calls
    plan = calls.index(("rename", "plan.json"))
    assert calls.index(("sync_file", "plan.json.draft")) < plan
    assert calls[plan + 1] == ("sync_file", os.path.basename(writer.path))
    assert plan < calls.index(("make_directory", "001")), "the plan is durable before anything runs"
    everything = calls.index(("sync_all", os.path.basename(writer.path)))
    last_write = max(i for i, (name, what) in enumerate(calls) if name in ("create", "append") and "manifest" not in what)
    draft = calls.index(("open_append", "manifest-sha256.txt.draft"))
    rename = calls.index(("rename", "manifest-sha256.txt"))
    assert last_write < everything < draft < calls.index(("sync_file", "manifest-sha256.txt.draft")) < rename
    assert calls[rename + 1 :] == [("sync_file", os.path.basename(writer.path))], "and the manifest before the seal is returned"


def test_the_number_of_calls_of_a_trial_is_what_it_was(write_run, tmp_path) -> None:
    """Guards the cost: a folder, two files, a journal line at the start, a record and a line at the end."""
    files = Recorder()
    writer = write_run(files=files, trials=1)
    one = len(files.calls)
    files.calls.clear()
    folder = writer.trial("a", 2)
    writer.journal("started", case_id="a", number=2, request={})
    folder.write("stdout.bin", b"x")
    writer.finish(folder, {"case_id": "a", "number": 2, "judgment": {"verdict": "pass", "cause": None}})
    assert files.calls == [
        ("make_directory", "002"),
        ("append", "journal.jsonl"),
        ("create", "stdout.bin"),
        ("create", "trial.json"),
        ("append", "journal.jsonl"),
    ]
    assert one > 5


def test_each_trial_is_durable_with_sync(write_run) -> None:
    files = Recorder()
    writer = write_run(files=files, trials=1)
    folder = writer.trial("a", 2)
    files.calls.clear()
    writer.finish(folder, {"case_id": "a", "number": 2, "judgment": {"verdict": "pass", "cause": None}}, sync=True)
    assert [name for name, _ in files.calls] == ["create", "append", "sync_all"]


def number_of_calls(write_run) -> int:
    files = Recorder()
    write_run("measure", files).seal({})
    return len(files.calls)


def test_a_failure_at_any_write_leaves_an_honest_directory(write_run, tmp_path) -> None:
    for number in range(1, number_of_calls(write_run) + 1):
        name = f"run{number}"
        path = tmp_path / name
        with pytest.raises((EvidenceFault, InvalidInput, OSError)):
            write_run(name, Recorder(number)).seal({})
        if not path.exists():
            continue
        found = verify(str(path))
        assert found.unsealed, number
        assert not list(path.rglob("*.json")) or not any(file.stat().st_size == 0 for file in path.rglob("*.json"))
        if (path / "plan.json").exists():
            counts = status(EvidenceReader.open(str(path), unsealed_ok=True, check=False))
            parts = sum(counts[part] for part in ("passed", "failed", "void", "interrupted", "unrun"))
            assert parts == counts["planned"] == 4, number
            assert counts["passed"] == len(list(EvidenceReader.open(str(path), unsealed_ok=True).trials()))


def test_a_journal_line_that_fails_half_way_is_taken_back(write_run) -> None:
    class HalfLine(Files):
        __slots__ = ("half",)

        def append(self, descriptor: int, line: bytes) -> None:
            if getattr(self, "half", False):
                os.write(descriptor, line[: len(line) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            super().append(descriptor, line)

    files = HalfLine()
    writer = write_run(files=files, trials=1)
    folder = writer.trial("a", 2)
    files.half = True
    with pytest.raises(OSError):
        writer.finish(folder, {"case_id": "a", "number": 2, "judgment": {"verdict": "pass", "cause": None}})
    files.half = False
    writer.journal("started", case_id="b-1", number=1)
    lines = (pathlib.Path(writer.path) / "journal.jsonl").read_bytes().splitlines()
    assert all(line.endswith(b"}") for line in lines)
    assert not (pathlib.Path(folder.path) / "trial.json").exists()
