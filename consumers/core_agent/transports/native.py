"""The two transports that speak the contract themselves: an agent binary, and a fixture before an agent library."""

from __future__ import annotations

from collections.abc import Mapping

from agent_eval import Judgment, Outcome, TrialEvidence, TrialFolder, strict_json

from ..events import Transcript, parse_events
from . import Start, Task


class NativeTransport:
    """What both have in common: their standard output is the transcript."""

    stream = stdout_name = "events.jsonl"

    def __init__(self, program: str) -> None:
        self.program = program

    def transcript(self, raw: bytes, record: Mapping[str, object]) -> Transcript:
        """The events as they were written."""
        return parse_events(raw)

    def finish(self, task: Task, outcome: Outcome, folder: TrialFolder) -> dict[str, object]:
        """Nothing beside the streams is kept."""
        return {}

    def close(self) -> None:
        """Nothing outlives a trial."""

    def totals(self) -> dict[str, object]:
        """The contract's agents count their own tokens, trial by trial."""
        return {}

    def wants_control(self, record: Mapping[str, object]) -> bool:
        """The contract's agents say themselves what they deny."""
        return False

    def effective_grants(self, granted: list[str], record: Mapping[str, object]) -> list[str]:
        """The grants: an agent of the contract gets no other tool."""
        return granted

    def amend(self, judgment: Judgment, evidence: TrialEvidence, case: Mapping[str, object]) -> Judgment:
        """As it is."""
        return judgment

    def to_json(self) -> dict[str, object]:
        """Name and program; the program's path is for people, nothing is started from it."""
        return {"name": self.name, "program": self.program}


class BinaryTransport(NativeTransport):
    """``BINARY run --task FILE --workspace DIR``."""

    name = "binary"

    def start(self, task: Task) -> Start:
        """The contract's command, in the workspace."""
        argv = (self.program, "run", "--task", task.task_path, "--workspace", task.workspace)
        return Start(argv, task.workspace)


class FixtureTransport(NativeTransport):
    """``FIXTURE`` with the task on standard input; the task also says where the workspace is."""

    name = "fixture"

    def start(self, task: Task) -> Start:
        """The fixture without arguments, in the workspace."""
        document = {**task.document, "workspace": task.workspace}
        return Start((self.program,), task.workspace, stdin_bytes=strict_json.canonical(document) + b"\n")
