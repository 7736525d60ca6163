"""A session: the task, the grants, and the events on standard output.

Owns the order of events and the refusal of what was not granted. It decides nothing
about the task; a policy does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from .tools import Result, Tools

TOOL_NAMES = ("read", "list", "search", "write", "edit", "execute")


@dataclass(frozen=True, slots=True)
class Task:
    """The task object of the contract."""

    instruction: str
    tools: tuple[str, ...]
    max_steps: int
    sampling_seed: int

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Task:
        """Read a task. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        if value["contract"] != "core-agent/1":
            raise ValueError(f"contract {value['contract']!r} is not core-agent/1")
        return cls(str(value["instruction"]), tuple(value["tools"]), int(value["max_steps"]), int(value["sampling_seed"]))


class OutOfSteps(Exception):
    """The task's ``max_steps`` calls are used up."""


class Session:
    """Emits events and does calls within the grants."""

    def __init__(self, task: Task, workspace: str) -> None:
        self.task = task
        self._tools = Tools(workspace)
        self._steps = 0

    def emit(self, kind: str, /, **fields: object) -> None:
        """Write one event and flush: a session that is killed has told all it did."""
        sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")
        sys.stdout.flush()

    def call(self, tool: str, arguments: Mapping[str, object], name: str | None = None) -> Result:
        """Do one call, or deny it when it was not granted. Raises :class:`OutOfSteps`."""
        if self._steps >= self.task.max_steps:
            raise OutOfSteps(f"{self._steps} steps")
        self._steps += 1
        name = name or f"call-{self._steps}"
        self.emit("tool_call", id=name, tool=tool, arguments=dict(arguments))
        if tool not in self.task.tools:
            self.emit("denied", id=name, tool=tool)
            return Result(False, f"the tool {tool!r} was not granted")
        result = self._tools.call(tool, arguments)
        self.emit("tool_result", id=name, ok=result.ok, exit_code=result.exit_code, output=result.output)
        return result

    def final(self, status: str, answer: str) -> None:
        """The last event."""
        self.emit("final", status=status, answer=answer)
