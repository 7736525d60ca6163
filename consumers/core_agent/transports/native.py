"""The two transports that speak the contract themselves: an agent binary, and a fixture before an agent library."""

from __future__ import annotations

from agent_eval import strict_json

from ..events import Transcript, parse_events
from . import Start, Task


class _Native:
    """What both have in common: their standard output is the transcript."""

    stream = "events.jsonl"

    def __init__(self, program: str) -> None:
        self.program = program

    def transcript(self, raw: bytes) -> Transcript:
        """The events as they were written."""
        return parse_events(raw)

    def to_json(self) -> dict[str, object]:
        """Name and program; the program's path is for people, nothing is started from it."""
        return {"name": self.name, "program": self.program}


class BinaryTransport(_Native):
    """``BINARY run --task FILE --workspace DIR``."""

    name = "binary"

    def start(self, task: Task) -> Start:
        """The contract's command, in the workspace."""
        argv = (self.program, "run", "--task", task.task_path, "--workspace", task.workspace)
        return Start(argv, task.workspace)


class FixtureTransport(_Native):
    """``FIXTURE`` with the task on standard input; the task also says where the workspace is."""

    name = "fixture"

    def start(self, task: Task) -> Start:
        """The fixture without arguments, in the workspace."""
        document = {**task.document, "workspace": task.workspace}
        return Start((self.program,), task.workspace, stdin_bytes=strict_json.canonical(document) + b"\n")
