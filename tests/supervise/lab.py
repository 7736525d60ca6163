"""A lab for hostile programs: one slot, one folder, and a look at who is alive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_eval.records.outcome import Outcome
from agent_eval.supervise import linux
from agent_eval.supervise.capture import FileSink, SinkFactory
from agent_eval.supervise.command import Command
from agent_eval.supervise.environment import MARK_VARIABLE, build_environment
from agent_eval.supervise.scratch import Scratch
from agent_eval.supervise.slot import Slot

PROGRAMS = Path(__file__).parent.parent / "programs"
ALIVE_WITHIN_S = 5.0


def marked_processes(mark: str) -> set[int]:
    """Everybody alive who carries the marker variable with this value, as far as we may look."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and linux.has_variable(int(name), wanted):
            facts = linux.facts_of(int(name))
            if facts is not None and facts.alive:
                found.add(int(name))
    return found


def wait_until(condition, within_s: float = ALIVE_WITHIN_S) -> bool:
    """Ask again and again until ``condition`` holds; False when it never did."""
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def another_users_python() -> str | None:
    """A Python that every user of this machine may run and that is new enough; ``None`` when there is none."""
    interpreter = "/usr/bin/python3"
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    if not os.path.exists(interpreter) or subprocess.run([interpreter, "-c", check]).returncode != 0:
        return None
    return interpreter


@contextmanager
def public_copy(*names: str) -> Iterator[Path]:
    """A folder that every user may read, with copies of these parts of the repository.

    Not below pytest's own folder: that is private, and made so again by every other run of pytest.
    """
    with Scratch("/tmp") as scratch:
        os.chmod(scratch.path, 0o755)
        for name in names:
            source, target = PROGRAMS.parents[1] / name, f"{scratch.path}/{name}"
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        subprocess.run(["chmod", "-R", "a+rX", scratch.path], check=True)
        yield Path(scratch.path)


@dataclass(frozen=True)
class Run:
    """One finished run: its outcome, how long the caller waited, and the bytes that were kept."""

    outcome: Outcome
    elapsed_s: float
    stdout: bytes
    stderr: bytes
    report: bytes | None


class Lab:
    """Runs programs under one slot and knows all processes that they were seen with."""

    def __init__(self, folder: Path, sink_factory: SinkFactory = FileSink) -> None:
        self.folder = folder
        self.mark = f"lab-{os.urandom(8).hex()}"
        self.slot = Slot(self.mark, sink_factory=sink_factory)
        self.work = folder / "work"
        self.work.mkdir()
        os.mkfifo(self.work / "gate")
        self._seen: set[tuple[int, int]] = set()
        self._count = 0
        self._command: Command | None = None
        self._began = 0.0

    def command(self, *argv: str, timeout_s: float = 20.0, grace_s: float = 0.2, cap: int = 1 << 20, **other) -> Command:
        """A command whose captures lie in the lab's folder; ``{report}`` in ``argv`` is the report's place."""
        self._count += 1
        scratch = self.folder / f"scratch-{self._count}"
        scratch.mkdir()
        source = str(scratch / "report.json")
        values = {
            "argv": tuple(word.replace("{report}", source) for word in argv),
            "cwd": str(self.work),
            "env": {**build_environment(home=str(self.work), tmpdir=str(self.work)), "PATH": "/usr/local/bin:/usr/bin:/bin"},
            "timeout_s": timeout_s,
            "max_output_bytes": cap,
            "grace_s": grace_s,
            "stdout_path": str(self.folder / f"stdout-{self._count}"),
            "stderr_path": str(self.folder / f"stderr-{self._count}"),
            "report_source": source,
            "report_path": str(self.folder / f"report-{self._count}"),
        }
        return Command(**{**values, **other})

    def program(self, name: str, *arguments: str, **limits) -> Command:
        """One of ``tests/programs``, e.g. ``processes background``."""
        return self.command(sys.executable, "-I", "-S", str(PROGRAMS / f"{name}.py"), *arguments, **limits)

    def start(self, command: Command) -> None:
        self._command = command
        self._began = time.monotonic()
        self.slot.start(command)

    def collect(self) -> Run:
        outcome = self.slot.collect()
        elapsed_s = time.monotonic() - self._began
        command = self._command
        return Run(
            outcome,
            elapsed_s,
            _bytes(command.stdout_path) or b"",
            _bytes(command.stderr_path) or b"",
            _bytes(command.report_path),
        )

    def run(self, command: Command) -> Run:
        self.start(command)
        return self.collect()

    def open_gate(self) -> None:
        """Let the program behind the gate go on."""
        fd = os.open(self.work / "gate", os.O_WRONLY)
        os.close(fd)

    def alive(self) -> set[int]:
        """The running trial's processes, escaped and unmarked ones included, as seen now."""
        guardian = self.slot.guardian
        below = linux.descendants_of(linux.children_of(guardian), time.monotonic() + 5) if guardian else []
        for facts in below:
            if facts.alive:
                self._seen.add((facts.pid, facts.start_ticks))
        for pid in marked_processes(self.mark):
            facts = linux.facts_of(pid)
            if facts is not None:
                self._seen.add((pid, facts.start_ticks))
        return {facts.pid for facts in below if facts.alive} | marked_processes(self.mark)

    def see_alive(self, count: int) -> None:
        """The test of the test: what is to be killed is there at all."""
        assert wait_until(lambda: len(self.alive()) >= count), f"{len(self.alive())} alive, expected {count}"

    def see_output(self, text: bytes) -> None:
        """Wait until the running program has printed ``text``."""
        path = self._command.stdout_path
        assert wait_until(lambda: text in (_bytes(path) or b"")), f"never printed {text!r}"

    def survivors(self) -> set[int]:
        """Who is left of everybody ever seen, or carries the mark."""
        left = set(marked_processes(self.mark))
        for pid, start_ticks in self._seen:
            facts = linux.facts_of(pid)
            if facts is not None and facts.start_ticks == start_ticks and facts.alive:
                left.add(pid)
        return left


def _bytes(path: str | None) -> bytes | None:
    try:
        return Path(path).read_bytes() if path else None
    except FileNotFoundError:
        return None
