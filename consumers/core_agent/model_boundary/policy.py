"""The scripted model: a deterministic policy that plays a task by the tools an agent offers.

Owns the policies and the translation of logical calls (``read``, ``execute`` ...) to the
agent's real tools. A policy is told the task's declared solution; which step comes next
follows from the number of tool results in the request alone, so that side requests and
repeats do no harm. Before it uses a value that only a tool can have given, it looks
whether a tool gave it: plumbing that loses results is found out.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .exchange import Call, Finish, Reply, Request, Usage

#: Made up, and the same for every response: a scripted model has no tokens.
SCRIPTED_USAGE = Usage(input_tokens=1000, output_tokens=20)


class Conduct(StrEnum):
    """What the scripted model does; all but the first are misbehaviour."""

    HONEST = "honest"
    CLAIMS_SUCCESS = "claims-success"
    FORBIDDEN_TOOL = "forbidden-tool"
    FOLLOWS_INJECTION = "follows-injection"
    LEAVES_PROCESSES = "leaves-processes"
    CUT_STREAM = "cut-stream"
    CUT_QUIETLY = "cut-quietly"
    ERROR_401 = "error-401"
    ERROR_429 = "error-429"
    ERROR_500 = "error-500"
    NO_ANSWER = "no-answer"


_ERRORS = {Conduct.ERROR_401: 401, Conduct.ERROR_429: 429, Conduct.ERROR_500: 500}
_BREAKS_OFF = {*_ERRORS, Conduct.CUT_STREAM, Conduct.CUT_QUIETLY, Conduct.NO_ANSWER}


@dataclass(frozen=True, slots=True)
class LogicalCall:
    """A call in the words of the contract. A ``forced`` one is made even when no tool for it is offered."""

    tool: str
    arguments: Mapping[str, object]
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """What to answer: ``status`` 200 with a reply, or an error with a message.

    ``cut``: only the first part of the answer; ``quietly``: as if that were all of it, so that
    only the API's missing end marker tells.
    """

    reply: Reply = field(default_factory=Reply)
    status: int = 200
    message: str = ""
    cut: bool = False
    quietly: bool = False
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """One trial's policy.

    ``templates`` maps a logical tool to ``{tool, args}`` of the agent (``finish``: how the
    agent ends, where it ends by a call). ``must_see`` are values that only tools give.
    ``after`` is how many steps a policy that breaks off plays before it does.
    """

    conduct: Conduct
    model: str
    workspace: str
    templates: Mapping[str, Mapping[str, object]]
    calls: tuple[LogicalCall, ...]
    answer_text: str
    status: str
    must_see: tuple[str, ...] = ()
    after: int = 0

    @classmethod
    def from_json(cls, value: object) -> Policy:
        """Raises ``ValueError`` or ``KeyError`` for what is no policy."""
        if not isinstance(value, dict):
            raise ValueError("a policy is an object")
        calls = tuple(LogicalCall(item["tool"], item["arguments"], item.get("forced", False)) for item in value["calls"])
        return cls(Conduct(value["conduct"]), value["model"], value["workspace"], value["templates"], calls,
                   value["answer"], value["status"], tuple(value.get("must_see", ())), int(value.get("after", 0)))

    def answer(self, request: Request) -> Script:
        """The answer to ``request``."""
        if not request.tools:
            # A side request: a title, a summary.
            return Script(Reply("A task", usage=SCRIPTED_USAGE))
        step = len(request.results)
        if self.conduct in _BREAKS_OFF and step >= self.after:
            return self._break_off()
        seen = "\n".join(result.text for result in request.results)
        offered = {tool.name for tool in request.tools}
        playable = [call for call in self.calls if call.forced or self._translate(call, offered) is not None]
        if step < len(playable) and not self._unseen(str(playable[step].arguments), seen):
            return Script(self._call(playable[step], offered, step))
        text, status = self._final(step >= len(playable), seen)
        return Script(self._finish(f"{text}\nSTATUS: {status}", offered, step))

    def _break_off(self) -> Script:
        if self.conduct in (Conduct.CUT_STREAM, Conduct.CUT_QUIETLY):
            return Script(Reply("I will", usage=SCRIPTED_USAGE), cut=True, quietly=self.conduct is Conduct.CUT_QUIETLY)
        if self.conduct is Conduct.NO_ANSWER:
            return Script(hangs=True)
        status = _ERRORS[self.conduct]
        return Script(status=status, message=f"scripted model: {status} on purpose")

    def _unseen(self, text: str, seen: str) -> list[str]:
        """Values used in ``text`` that no tool result showed."""
        if self.conduct is Conduct.CLAIMS_SUCCESS:
            return []
        return [value for value in self.must_see if value in text and value not in seen]

    def _final(self, through: bool, seen: str) -> tuple[str, str]:
        if not through or self._unseen(self.answer_text, seen):
            return "A tool did not give what I need.", "failed"
        return self.answer_text, self.status

    def _call(self, call: LogicalCall, offered: set[str], step: int) -> Reply:
        tool, arguments = self._translate(call, offered) or self._native(call)
        made = Call(f"call_{step}", tool, arguments)
        return Reply(calls=(made,), finish=Finish.CALLS, usage=SCRIPTED_USAGE)

    def _finish(self, text: str, offered: set[str], step: int) -> Reply:
        ending = self.templates.get("finish")
        if ending is None or ending["tool"] not in offered:
            return Reply(text, usage=SCRIPTED_USAGE)
        arguments = _fill(ending["args"], {"answer": text, "answer_quoted": shlex.quote(text)})
        return Reply(calls=(Call(f"call_{step}", str(ending["tool"]), arguments),), finish=Finish.CALLS, usage=SCRIPTED_USAGE)

    # translation --------------------------------------------------------------------------

    def _translate(self, call: LogicalCall, offered: set[str]) -> tuple[str, object] | None:
        """The agent's own tool for the call, a shell command where there is none, ``None`` where nothing does."""
        template = self.templates.get(call.tool)
        if template is not None and template["tool"] in offered:
            return self._native(call)
        shell = self.templates.get("execute")
        if shell is not None and shell["tool"] in offered:
            return str(shell["tool"]), _fill(shell["args"], {**self._values(call), "command": shell_command(call)})
        return None

    def _native(self, call: LogicalCall) -> tuple[str, object]:
        template = self.templates.get(call.tool) or {"tool": call.tool, "args": dict(call.arguments)}
        return str(template["tool"]), _fill(template["args"], self._values(call))

    def _values(self, call: LogicalCall) -> dict[str, str]:
        given = call.arguments
        path = str(given.get("path", "."))
        absolute = self.workspace if path in (".", "") else f"{self.workspace}/{path}"
        return {
            "path": path, "abs_path": absolute, "workspace": self.workspace, "glob": "**/*",
            "content": str(given.get("content", "")), "old": str(given.get("old", "")), "new": str(given.get("new", "")),
            "pattern": str(given.get("text", given.get("pattern", ""))), "command": shell_command(call),
        }


def shell_command(call: LogicalCall) -> str:
    """A POSIX shell command that does what the call asks."""
    given = call.arguments
    path = shlex.quote(str(given.get("path", ".")))
    if call.tool == "execute":
        argv = given.get("argv")
        return shlex.join(map(str, argv)) if isinstance(argv, list) else str(given.get("command", ""))
    if call.tool == "read":
        return f"cat {path}"
    if call.tool == "list":
        return f"find {path} -type f | sort"
    if call.tool == "search":
        return f"grep -rn -F -e {shlex.quote(str(given.get('text', given.get('pattern', ''))))} {path}"
    if call.tool == "write":
        return f"mkdir -p \"$(dirname {path})\" && printf %s {shlex.quote(str(given.get('content', '')))} > {path}"
    program = (
        "import sys; path, old, new = sys.argv[1:]; text = open(path, newline='').read(); "
        "assert text.count(old) == 1; open(path, 'w', newline='').write(text.replace(old, new))"
    )
    words = ["python3", "-c", program, str(given.get("path", "")), str(given.get("old", "")), str(given.get("new", ""))]
    return shlex.join(words)


def _fill(value: object, values: Mapping[str, str]) -> object:
    """``value`` with ``{name}`` replaced in every text. Only these names: everything else is meant as it is."""
    if isinstance(value, str):
        if value.startswith("{") and value.endswith("}") and value[1:-1] in values:
            return values[value[1:-1]]
        for name, text in values.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, list):
        return [_fill(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, values) for key, item in value.items()}
    return value
