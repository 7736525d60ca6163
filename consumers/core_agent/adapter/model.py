"""What an adapter is, once it has been read: frozen records, no behaviour.

Owns the types between reading (``schema``) and use. All texts may still hold
placeholders such as ``{workspace}``; ``template`` fills them in per trial.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

FORMAT = "agent-adapter/1"

#: The tools of the ``core-agent/1`` contract, in its order.
LOGICAL_TOOLS = ("read", "list", "search", "write", "edit", "execute")


class ModelApi(StrEnum):
    """The wire format that the CLI speaks to its model."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class Emit(StrEnum):
    """What a rule makes of an event of the CLI."""

    START = "start"
    MESSAGE = "message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    DENIED = "denied"
    USAGE = "usage"
    ERROR = "error"
    ANSWER = "answer"
    END = "end"


@dataclass(frozen=True, slots=True)
class Execution:
    """How the CLI is started. ``files`` maps a path template to text or JSON; ``closing`` ends the instruction."""

    argv: tuple[str, ...]
    pre: tuple[tuple[str, ...], ...]
    cwd: str
    env: Mapping[str, str]
    files: Mapping[str, object]
    closing: str


@dataclass(frozen=True, slots=True)
class Probe:
    """How the version is asked for. ``expression`` has one group: the version; ``env`` overrides the adapter's."""

    argv: tuple[str, ...]
    ok: tuple[int, ...]
    expression: re.Pattern[str]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IdentitySpec:
    """Which bytes fix what ran.

    ``behind`` are paths, relative to the real path of the binary's package root, at which
    the program behind a launcher lies; the first that exists counts. ``tree`` is the folder
    whose every file counts, ``interpreter`` what must run it (``node>=20.6``).
    """

    files: tuple[str, ...]
    behind: tuple[str, ...]
    tree: str | None
    interpreter: str | None
    version: Probe | None


@dataclass(frozen=True, slots=True)
class AllowList:
    """How granted tools are named on the command line.

    ``style``: ``join`` one flag and one joined value, ``each`` the flag before every name,
    ``equals`` ``flag=name`` for every name, ``file`` through a file template only.
    """

    flag: str
    style: str
    join: str


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """A logical call as the CLI's model would make it: real tool name and arguments."""

    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Tools of the CLI: names, what each can do, and how grants are enforced.

    ``exact`` is whether a tool that is not granted can be kept from the model. ``on_wire``
    is true for a CLI that still offers such a tool and denies the call instead.
    ``always`` are tools which stay whatever is asked. ``shown`` maps another name that the
    CLI's events use for a tool to the tool's own.
    """

    names: Mapping[str, tuple[str, ...]]
    powers: Mapping[str, tuple[str, ...]]
    allow: AllowList | None
    deny: Mapping[str, tuple[str, ...]]
    deny_value: object
    always: tuple[str, ...]
    shown: Mapping[str, str]
    exact: bool
    on_wire: bool
    calls: Mapping[str, CallTemplate]


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition: the value at ``pointer`` under ``test`` with ``operand``."""

    pointer: str
    test: str
    operand: object


@dataclass(frozen=True, slots=True)
class Rule:
    """When an event matches, what is emitted and where its fields come from.

    With ``each`` the rule is applied to every element of the list there; ``where`` are the
    conditions on the element and ``@/`` the root of its pointers. ``once`` drops a second
    event of the same kind and id. ``mode``: ``sum`` or ``last`` for usage, ``append`` for
    a message that comes in pieces.
    """

    when: tuple[Matcher, ...]
    each: str | None
    where: tuple[Matcher, ...]
    emit: Emit
    fields: Mapping[str, object]
    once: bool
    mode: str


@dataclass(frozen=True, slots=True)
class EventSpec:
    """Where the CLI's events are and what they mean."""

    source: str
    path: str | None
    format: str
    records: str | None
    rules: tuple[Rule, ...]
    ignore: tuple[tuple[Matcher, ...], ...]
    required: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutcomeSpec:
    """How far the exit code can be believed. ``exit_map`` names codes with a known meaning."""

    exit_ok: tuple[int, ...]
    exit_trusted: bool
    exit_map: Mapping[int, str]
    error_if_event: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One agent CLI. ``model`` is the model's name where none is given; ``sha256`` is of the file's bytes."""

    name: str
    about: str
    tried_version: str | None
    tried_on: str | None
    execution: Execution
    identity: IdentitySpec
    model_api: ModelApi
    model: str
    retry_bounded: bool
    tools: ToolSpec
    events: EventSpec
    outcome: OutcomeSpec
    wall_s: float | None
    grace_s: float | None
    max_model_requests: int | None
    daemons: tuple[str, ...]
    sha256: str
