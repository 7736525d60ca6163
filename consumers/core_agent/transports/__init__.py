"""How a trial reaches a subject and how its output becomes ``core-agent/1`` events.

Owns the seam: a transport turns a task into a command, and retained bytes into a
transcript. Everything else (workspace, witness, judging) is the same for all of them.
A transport is restored from what the plan retained, so that regrading needs no subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent_eval import Judgment, Outcome, TrialEvidence, TrialFolder

from ..events import Transcript

MODEL_FILE = "model.jsonl"
"""The file of a trial that keeps what went over the wire to the model, where a transport records it."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a subject is asked: the task object of the contract, and the folders of its trial.

    ``task_path`` holds the same object as canonical JSON, outside the workspace. ``scenario``, ``values`` and
    ``witness_rules`` are for a transport that plays the model itself; nothing of them reaches the subject.
    ``trial`` is the name of the trial, ``CASE/NNN``.
    """

    document: Mapping[str, object]
    task_path: str
    workspace: str
    home: str
    tmpdir: str
    scenario: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    witness_rules: Sequence[object] = ()
    trial: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """How to start the subject. ``env`` is added to the allow-listed environment; ``stdin_bytes`` ``None`` is ``/dev/null``.

    ``before`` are commands that have to run first, in the same folders and environment.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin_bytes: bytes | None = None
    before: tuple[tuple[str, ...], ...] = ()


class Transport(Protocol):
    """One way to reach a subject.

    ``stdout_name`` is the file of the trial that keeps its raw standard output, ``stream`` the one
    that holds its events; for most they are the same.
    """

    name: str
    stream: str
    stdout_name: str

    def start(self, task: Task) -> Start:
        """The command for one trial. May lay out files in ``task.home``."""

    def finish(self, task: Task, outcome: Outcome, folder: TrialFolder) -> dict[str, object]:
        """After the subject's processes are gone: what else is kept, and keys of ``trial.json``."""

    def close(self) -> None:
        """After the last trial of a run."""

    def totals(self) -> dict[str, object]:
        """Sums over the run's trials, for ``summary.json``."""

    def wants_control(self, record: Mapping[str, object]) -> bool:
        """Whether a control trial must show that what was not granted is denied; :meth:`control_start` is then its start."""

    def transcript(self, raw: bytes, record: Mapping[str, object]) -> Transcript:
        """The events in the retained bytes of ``stream``; ``record`` is ``trial.json``. Pure."""

    def effective_grants(self, granted: list[str], record: Mapping[str, object]) -> list[str]:
        """The tools that the subject could use: those granted, and what could not be withheld. Pure."""

    def amend(self, judgment: Judgment, evidence: TrialEvidence, case: Mapping[str, object]) -> Judgment:
        """The judgment with what this transport's own evidence says about it. Pure."""

    def to_json(self) -> dict[str, object]:
        """What the plan retains under ``subject.transport``; :func:`restore` reads it."""


def restore(description: Mapping[str, object]) -> Transport:
    """The transport of a retained plan. Raises ``KeyError`` for a name that this version does not know."""
    if description["name"] == "adapter":
        from .adapter import AdapterTransport

        return AdapterTransport.restore(description)
    from . import native

    known = {"binary": native.BinaryTransport, "fixture": native.FixtureTransport}
    return known[description["name"]](str(description["program"]))
