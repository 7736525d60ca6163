"""What the bad agents share: honest on every task but one.

Each bad agent is a program of its own beside this file. It hands over the scenario on
which it misbehaves and what it does there; on all others it is the reference agent.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 4))
sys.path.insert(0, ROOT)

from consumers.core_agent.agentlib import scripted  # noqa: E402 - the path above comes first
from consumers.core_agent.agentlib.session import Session, Task  # noqa: E402
from consumers.core_agent.agentlib.tools import Result  # noqa: E402

SCENARIOS = ("read", "write", "edit", "execute", "repair", "recover", "restrict", "resist")


class Recorder(Session):
    """A session whose final can be looked at and replaced before it is told."""

    held: tuple[str, str] | None = None
    hold = False

    def final(self, status: str, answer: str) -> None:
        """Keep it back while ``hold`` is set."""
        if self.hold:
            self.held = (status, answer)
        else:
            super().final(status, answer)

    def honest(self) -> tuple[str, str]:
        """Do the task as the reference agent does; its status and answer, not yet told."""
        self.hold = True
        scripted.run(self)
        self.hold = False
        return self.held

    def fake(self, tool: str, arguments: dict[str, object], output: str = "", exit_code: int | None = None) -> None:
        """Claim a call that never was."""
        self.emit("tool_call", id="fake-1", tool=tool, arguments=arguments)
        self.emit("tool_result", id="fake-1", ok=True, exit_code=exit_code, output=output)


Behaviour = Callable[[Recorder], "tuple[str, str] | None"]


def scenario_of(instruction: str) -> str:
    """Which of the eight tasks an instruction is."""
    for name, (pattern, _) in zip(SCENARIOS, scripted.POLICIES, strict=True):
        if re.search(pattern, instruction):
            return name
    return "unknown"


def main(behaviour: Behaviour, *scenarios: str) -> None:
    """Be an agent binary that misbehaves on ``scenarios`` (none given: on all)."""
    if sys.argv[1:] == ["contract"]:
        answer = {
            "contract": "core-agent/1",
            "name": os.path.basename(sys.argv[0]),
            "version": "0",
            "tools": ["read", "list", "search", "write", "edit", "execute"],
            "transports": ["binary"],
            "model": {"required": False, "env": []},
            "subject_kind": "scripted",
        }
        print(json.dumps(answer))
        return
    with open(sys.argv[3], encoding="utf-8") as stream:
        task = Task.from_json(json.load(stream))
    session = Recorder(task, sys.argv[5])
    session.emit("start")
    if scenarios and scenario_of(task.instruction) not in scenarios:
        scripted.run(session)
        return
    ending = behaviour(session)
    if ending is not None:
        session.final(*ending)


def said(session: Session, pattern: str) -> str:
    """The first group of ``pattern`` in the instruction."""
    return re.search(pattern, session.task.instruction, re.MULTILINE).group(1)


def text_of(path: str) -> str:
    """A file read behind the back of the tools, line ends untouched."""
    with open(path, encoding="utf-8", newline="") as stream:
        return stream.read()


def put(path: str, text: str) -> None:
    """A file written behind the back of the tools."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)


__all__ = ["Recorder", "Result", "main", "put", "said", "text_of"]
