"""Reading the ``tools`` of an adapter.

Owns the names of tools, what each can do, how grants are enforced, and how a scripted model
calls them. Problems go into the section's list; nothing here raises.
"""

from __future__ import annotations

from . import template
from .model import LOGICAL_TOOLS, AllowList, CallTemplate, ToolSpec
from .shape import Section, kind_of


def read_tools(section: Section) -> ToolSpec:
    """Names, powers, enforcement and call templates of the CLI's tools."""
    names = _names(section)
    deny, deny_value = _deny(section)
    spec = ToolSpec(
        names=names,
        powers=_powers(section, names),
        allow=_allow(section),
        deny=deny,
        deny_value=deny_value,
        always=section.texts("always", required=False),
        shown=section.text_map("shown"),
        exact=section.flag("exact"),
        on_wire=section.flag("on_wire", False),
        calls=_calls(section),
    )
    section.finish()
    return spec


def _logical(word: str) -> str:
    """``shell`` is another word for ``execute``."""
    return "execute" if word == "shell" else word


def _check_logical(section: Section, field: str, word: str) -> bool:
    if _logical(word) in LOGICAL_TOOLS:
        return True
    section.problem(field, f"{word!r} is no tool of the contract", "one of: " + ", ".join(LOGICAL_TOOLS))
    return False


def _names(section: Section) -> dict[str, tuple[str, ...]]:
    value = section.raw("names")
    if not isinstance(value, dict):
        if section.has("names"):
            section.problem("names", f"is {kind_of(value)}", "write an object: logical name to real name(s)")
        return {}
    names: dict[str, tuple[str, ...]] = {}
    for word, real in value.items():
        listed = real if isinstance(real, list) else [real]
        if not listed or not all(isinstance(item, str) and item for item in listed):
            section.problem(f"names/{word}", "is not a tool name or a list of them")
        elif _check_logical(section, f"names/{word}", word):
            names[_logical(word)] = tuple(listed)
    return names


def _powers(section: Section, names: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """What each real tool can do: a tool that executes can do everything, unless said otherwise."""
    powers: dict[str, tuple[str, ...]] = {}
    for word, reals in names.items():
        for real in reals:
            powers[real] = (*powers.get(real, ()), word)
    powers = {real: LOGICAL_TOOLS if "execute" in words else words for real, words in powers.items()}
    value = section.raw("powers", {})
    if not isinstance(value, dict):
        section.problem("powers", f"is {kind_of(value)}", "write an object: real name to logical names")
        return powers
    for real, words in value.items():
        if not isinstance(words, list):
            section.problem(f"powers/{real}", "is not a list of logical names")
            continue
        if all([_check_logical(section, f"powers/{real}", str(word)) for word in words]):
            powers[real] = tuple(_logical(word) for word in words)
    return powers


def _allow(section: Section) -> AllowList | None:
    if not section.has("allow"):
        section.raw("allow", None)
        return None
    allow = section.section("allow")
    style = allow.choice("style", ("join", "each", "equals", "file"), "join")
    flag = allow.text("flag", "") if style == "file" else allow.text("flag")
    spec = AllowList(flag, style, allow.text("join", ","))
    allow.finish()
    return spec


def _deny(section: Section) -> tuple[dict[str, tuple[str, ...]], object]:
    """``deny``: arguments per logical tool that is to be withheld, and ``value`` for ``{tools_denied_map}``."""
    deny = section.section("deny", required=False)
    value = deny.raw("value", "deny")
    argv = deny.raw("argv", {})
    deny.finish()
    if not isinstance(argv, dict):
        deny.problem("argv", f"is {kind_of(argv)}", "write an object: logical name to arguments")
        return {}, value
    found: dict[str, tuple[str, ...]] = {}
    for word, words in argv.items():
        if not (isinstance(words, list) and all(isinstance(item, str) for item in words)):
            deny.problem(f"argv/{word}", "is not a list of arguments")
        elif _check_logical(deny, f"argv/{word}", word):
            found[_logical(word)] = tuple(words)
    return found, value


def _calls(section: Section) -> dict[str, CallTemplate]:
    value = section.raw("calls", {})
    if not isinstance(value, dict):
        section.problem("calls", f"is {kind_of(value)}", "write an object: logical name to {tool, args}")
        return {}
    calls = {}
    for word in value:
        call = Section(value[word], f"{section.where}/calls/{word}", section.problems)
        tool, arguments = call.text("tool"), call.raw("args")
        call.finish()
        if not isinstance(arguments, dict):
            call.problem("args", f"is {kind_of(arguments)}", "write an object")
            continue
        template.check(call, "args", arguments, template.CALL_NAMES)
        if word == "finish" or _check_logical(section, f"calls/{word}", word):
            calls[_logical(word)] = CallTemplate(tool, arguments)
    return calls
