"""How a trial reaches a subject and how its output becomes ``core-agent/1`` events.

Owns the seam: a transport turns a task into a command, and retained bytes into a
transcript. Everything else (workspace, witness, judging) is the same for all of them.
A transport is restored from what the plan retained, so that regrading needs no subject.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..events import Transcript


@dataclass(frozen=True, slots=True)
class Task:
    """What a subject is asked: the task object of the contract, and the folders of its trial.

    ``task_path`` holds the same object as canonical JSON, outside the workspace.
    """

    document: Mapping[str, object]
    task_path: str
    workspace: str
    home: str
    tmpdir: str


@dataclass(frozen=True, slots=True)
class Start:
    """How to start the subject. ``env`` is added to the allow-listed environment; ``stdin_bytes`` ``None`` is ``/dev/null``."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin_bytes: bytes | None = None


class Transport(Protocol):
    """One way to reach a subject. ``stream`` names the file of the trial that keeps its raw standard output."""

    name: str
    stream: str

    def start(self, task: Task) -> Start:
        """The command for one trial. May lay out files in ``task.home``."""

    def transcript(self, raw: bytes) -> Transcript:
        """The events in the retained bytes of ``stream``. Pure."""

    def to_json(self) -> dict[str, object]:
        """What the plan retains under ``subject.transport``; :func:`restore` reads it."""


def restore(description: Mapping[str, object]) -> Transport:
    """The transport of a retained plan. Raises ``KeyError`` for a name that this version does not know."""
    from . import native

    known = {"binary": native.BinaryTransport, "fixture": native.FixtureTransport}
    return known[description["name"]](str(description["program"]))
