"""The outcome: how a process ended and what it used, without an opinion.

Owns the typed record and its JSON form (``trial.json``, key ``outcome``). It does
not judge: 124 and 137 are plain exit codes here, and a leak is not a timeout.
"""

from __future__ import annotations

import enum
from dataclasses import astuple, dataclass, field
from typing import Any


class StopReason(enum.StrEnum):
    """Why the harness stopped the process; ``None`` in an outcome means that it did not."""

    TIMEOUT = "timeout"
    OUTPUT_LIMIT = "output-limit"
    INTERRUPTED = "interrupted"
    SUPERVISOR_LOST = "supervisor-lost"


class ReportState(enum.StrEnum):
    """What became of the file that the checker was asked to write."""

    NONE = "none"  # the command was not asked for a report
    MISSING = "missing"
    KEPT = "kept"
    REFUSED = "refused"  # something is there that is not a plain file within the cap


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One captured stream.

    ``seen_bytes`` counts what was read from the pipe, the surplus byte that proves an
    overflow included; ``kept_bytes`` what was retained; ``truncated`` says that the cap cut it.
    ``sha256`` is of the kept bytes, ``None`` when nothing was written. ``write_error`` names
    the failure when the bytes could not be written down. ``content`` is the kept bytes where they
    are few and at hand; it is not part of the record.
    """

    seen_bytes: int = 0
    kept_bytes: int = 0
    truncated: bool = False
    sha256: str | None = None
    write_error: str | None = None
    content: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """The owner report as a file: its state, and why it was refused.

    ``size_bytes`` and ``mode`` (octal text) are those of the file that was found, ``None``
    when there was none. ``write_error`` is set when a good report could not be copied. ``content`` is as in :class:`StreamRecord`.
    """

    state: ReportState = ReportState.NONE
    reason: str | None = None
    kept_bytes: int = 0
    size_bytes: int | None = None
    mode: str | None = None
    sha256: str | None = None
    write_error: str | None = None
    content: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StartError:
    """Why the program never ran. ``stage`` is ``cwd``, ``argv``, ``env``, ``exec``, ``fork`` or ``setup``."""

    stage: str
    message: str
    errno: int | None = None


@dataclass(frozen=True, slots=True)
class StopStep:
    """A signal that the supervisor sent; ``at_s`` counts from the start of the process."""

    signal: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Unreaped:
    """A descendant that could not be ended (uninterruptible sleep, another user)."""

    pid: int
    name: str | None = None
    wchan: str | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """What became of the process tree.

    ``containment`` is ``subreaper`` or ``group`` (the weaker one, where the system has no more).
    ``leaked`` counts descendants alive when the leader had ended by itself (0 when we ended it); ``escaped`` those that were
    then alive outside the leader's process group, also when we ended it; ``killed`` those that the sweep ended. Counts are of processes seen.
    """

    containment: str
    leaked: int = 0
    escaped: int = 0
    killed: int = 0
    unreaped: tuple[Unreaped, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one supervised command ended.

    Exactly one of ``exit_code`` and ``signal`` is set; neither when it never started
    (``start_error``) or its status was lost (``status_lost``). ``wall_s`` is monotonic,
    ``suspended_s`` the time that the machine slept meanwhile. ``max_rss_bytes`` is ``None``
    unless it is above the spawner's own, because the kernel reports the larger of the two.
    CPU times are those of the leader and of the children that it waited for.
    """

    tree: Tree
    started_at: str
    wall_s: float
    exit_code: int | None = None
    signal: int | None = None
    core_dumped: bool = False
    status_lost: bool = False
    start_error: StartError | None = None
    stop_reason: StopReason | None = None
    stop_steps: tuple[StopStep, ...] = ()
    suspended_s: float = 0.0
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    max_rss_bytes: int | None = None
    stdout: StreamRecord = field(default_factory=StreamRecord)
    stderr: StreamRecord = field(default_factory=StreamRecord)
    report: ReportRecord = field(default_factory=ReportRecord)

    @property
    def recording_errors(self) -> tuple[str, ...]:
        """What could not be written down, in words; empty when everything was."""
        parts = (("stdout", self.stdout), ("stderr", self.stderr), ("report", self.report))
        return tuple(f"{name}: {part.write_error}" for name, part in parts if part.write_error)

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values."""
        tree, report, error = self.tree, self.report, self.start_error
        return {
            "tree": {
                "containment": tree.containment,
                "leaked": tree.leaked,
                "escaped": tree.escaped,
                "killed": tree.killed,
                "unreaped": [{"pid": u.pid, "name": u.name, "wchan": u.wchan} for u in tree.unreaped],
            },
            "started_at": self.started_at,
            "wall_s": self.wall_s,
            "suspended_s": self.suspended_s,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "core_dumped": self.core_dumped,
            "status_lost": self.status_lost,
            "start_error": None if error is None else {"stage": error.stage, "message": error.message, "errno": error.errno},
            "stop_reason": self.stop_reason.value if self.stop_reason else None,
            "stop_steps": [{"signal": step.signal, "at_s": step.at_s} for step in self.stop_steps],
            "cpu_user_s": self.cpu_user_s,
            "cpu_system_s": self.cpu_system_s,
            "max_rss_bytes": self.max_rss_bytes,
            "stdout": _stream(self.stdout),
            "stderr": _stream(self.stderr),
            "report": {
                "state": report.state.value,
                "reason": report.reason,
                "kept_bytes": report.kept_bytes,
                "size_bytes": report.size_bytes,
                "mode": report.mode,
                "sha256": report.sha256,
                "write_error": report.write_error,
            },
        }

    @classmethod
    def from_json(cls, value: dict) -> Outcome:
        """The record that :meth:`to_json` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        plain = dict(value)
        tree = dict(plain.pop("tree"))
        tree["unreaped"] = tuple(Unreaped(**item) for item in tree["unreaped"])
        report = dict(plain.pop("report"))
        error, reason = plain.pop("start_error"), plain.pop("stop_reason")
        return cls(
            tree=Tree(**tree),
            start_error=StartError(**error) if error else None,
            stop_reason=StopReason(reason) if reason else None,
            stop_steps=tuple(StopStep(**step) for step in plain.pop("stop_steps")),
            stdout=StreamRecord(**plain.pop("stdout"), content=None),
            stderr=StreamRecord(**plain.pop("stderr"), content=None),
            report=ReportRecord(state=ReportState(report.pop("state")), **report, content=None),
            **plain,
        )

    def to_wire(self) -> tuple[object, ...]:
        """Everything as nested plain tuples, ``content`` included, for another process of this same code."""
        tree, stdout, stderr, report = self.tree, self.stdout, self.stderr, self.report
        return (
            (tree.containment, tree.leaked, tree.escaped, tree.killed, tuple(astuple(process) for process in tree.unreaped)),
            (stdout.seen_bytes, stdout.kept_bytes, stdout.truncated, stdout.sha256, stdout.write_error, stdout.content),
            (stderr.seen_bytes, stderr.kept_bytes, stderr.truncated, stderr.sha256, stderr.write_error, stderr.content),
            report.state.value,
            (report.reason, report.kept_bytes, report.size_bytes, report.mode, report.sha256, report.write_error, report.content),
            self.stop_reason.value if self.stop_reason else None,
            tuple(astuple(step) for step in self.stop_steps),
            astuple(self.start_error) if self.start_error else None,
            (self.wall_s, self.exit_code, self.signal, self.core_dumped, self.status_lost),
            (self.suspended_s, self.cpu_user_s, self.cpu_system_s, self.max_rss_bytes),
        )

    @classmethod
    def from_wire(cls, values: tuple[Any, ...], started_at: str) -> Outcome:
        """The outcome that :meth:`to_wire` gave, with the time that its sender does not know."""
        (containment, leaked, escaped, killed, unreaped), stdout, stderr, state, report, reason, steps, error, ending, usage = values
        wall_s, exit_code, signal, core_dumped, status_lost = ending
        suspended_s, cpu_user_s, cpu_system_s, max_rss_bytes = usage
        return cls(
            Tree(containment, leaked, escaped, killed, tuple(Unreaped(*process) for process in unreaped)),
            started_at,
            wall_s,
            exit_code,
            signal,
            core_dumped,
            status_lost,
            StartError(*error) if error else None,
            StopReason(reason) if reason else None,
            tuple(StopStep(*step) for step in steps),
            suspended_s,
            cpu_user_s,
            cpu_system_s,
            max_rss_bytes,
            StreamRecord(*stdout),
            StreamRecord(*stderr),
            ReportRecord(ReportState(state), *report),
        )


def _stream(record: StreamRecord) -> dict[str, object]:
    return {
        "seen_bytes": record.seen_bytes,
        "kept_bytes": record.kept_bytes,
        "truncated": record.truncated,
        "sha256": record.sha256,
        "write_error": record.write_error,
    }
