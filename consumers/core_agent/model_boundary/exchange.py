"""One exchange with a model in neutral words, whatever API carried it.

Owns the records that the API modules read into and write from. It knows no wire format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Finish(StrEnum):
    """How a model's response ended."""

    STOP = "stop"
    CALLS = "calls"
    LENGTH = "length"
    FILTERED = "filtered"
    CUT = "cut"
    ERROR = "error"
    NO_ANSWER = "no-answer"
    CLIENT_CLOSED = "client-closed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool offered to the model. ``schema`` is the JSON schema of its arguments."""

    name: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model asked for."""

    id: str
    name: str
    arguments: object


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the agent sent back for a call. ``error`` is ``None`` where the API has no such flag."""

    id: str
    text: str
    error: bool | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a response: the whole conversation so far.

    ``user_text`` is the text of every user message, in order; ``calls`` and ``results`` are
    those of the conversation that the request carries.
    """

    model: str
    stream: bool
    system: str
    user_text: tuple[str, ...]
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...]
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the API counts them; ``None`` is unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's response. ``complete`` is whether the API's own end marker came."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    complete: bool = True


@dataclass(slots=True)
class Collected:
    """A reply while it is still coming in."""

    text: list[str] = field(default_factory=list)
    ids: dict[object, str] = field(default_factory=dict)
    names: dict[object, str] = field(default_factory=dict)
    arguments: dict[object, list[str]] = field(default_factory=dict)
    finish: Finish | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    ended: bool = False
    failed: bool = False

    def call(self, key: object, *, name: str | None = None, identity: str | None = None, piece: str | None = None) -> None:
        """Note a part of the call ``key``."""
        self.arguments.setdefault(key, [])
        if name:
            self.names[key] = name
        if identity:
            self.ids[key] = identity
        if piece:
            self.arguments[key].append(piece)

    def tokens(self, given: object, made: object) -> None:
        """Note token counts; what is not a number leaves the earlier count."""
        if isinstance(given, int) and not isinstance(given, bool):
            self.input_tokens = given
        if isinstance(made, int) and not isinstance(made, bool):
            self.output_tokens = made

    def reply(self) -> Reply:
        """The reply as far as it came."""
        calls = tuple(
            Call(self.ids.get(key, ""), self.names.get(key, ""), parsed("".join(pieces)))
            for key, pieces in self.arguments.items()
        )
        if self.failed:
            finish = Finish.ERROR
        elif not self.ended:
            finish = Finish.CUT
        else:
            finish = self.finish or (Finish.CALLS if calls else Finish.STOP)
        if finish is Finish.STOP and calls:
            finish = Finish.CALLS
        usage = Usage(self.input_tokens, self.output_tokens)
        return Reply("".join(self.text), calls, finish, usage, self.ended and not self.failed)


def parsed(text: str) -> object:
    """Arguments as JSON where they are that, else the text itself."""
    try:
        return json.loads(text) if text else {}
    except (json.JSONDecodeError, RecursionError):
        return text


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text of its blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(block) for block in content)
    if isinstance(content, dict):
        for key in ("text", "content", "output"):
            if isinstance(content.get(key), (str, list)):
                return text_of(content[key])
    return ""


def dicts(value: object) -> list[dict[str, object]]:
    """The objects of a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def word(value: object) -> str:
    """A string, or empty."""
    return value if isinstance(value, str) else ""
