"""Placeholders: ``{workspace}`` and the like in argument lists, files and calls.

Owns which placeholders exist and how they expand. Only the names listed here are
placeholders, so JSON and shell braces in a template stay as they are; ``{{name}}``
gives ``{name}``. A string that is exactly one placeholder takes the value with its
type (a list stays a list); inside an argument list such a list is spliced in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .shape import Section

#: Known when a trial starts.
TRIAL_NAMES: Mapping[str, str] = {
    "bin": "the binary, absolute",
    "pkg_root": "the folder of the package that the binary belongs to",
    "workspace": "the trial's workspace, also the working folder",
    "home": "the trial's HOME",
    "tmpdir": "the trial's TMPDIR",
    "prompt": "the instruction",
    "model": "the model's name",
    "base_url": "the model boundary with /v1, the base that OpenAI clients want",
    "origin": "the model boundary without /v1",
    "api_key": "a dummy key: the boundary adds the real one",
    "tools_args": "arguments that enforce the grants (spliced)",
    "tools_granted": "real names of granted tools (a list)",
    "tools_denied": "real names of tools that are not granted (a list)",
    "tools_denied_map": "object: real name of each tool that is not granted to tools.deny.value",
    "timeout_s": "the trial's time limit in whole seconds",
    "events_file": "a path in private scratch for events that are not on stdout",
}

#: Known when a scripted model makes a call.
CALL_NAMES: Mapping[str, str] = {
    "path": "the path relative to the workspace",
    "abs_path": "the path, absolute",
    "workspace": "the workspace, absolute",
    "content": "the content to write",
    "old": "the text to replace",
    "new": "the replacement",
    "command": "the shell command",
    "pattern": "the text to search for",
    "glob": "a file pattern",
    "answer": "the final answer with its status line (finish only)",
    "answer_quoted": "the same as one shell word (finish only)",
}

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


def check(section: Section, field: str, value: object, names: Mapping[str, str] = TRIAL_NAMES) -> None:
    """Note every placeholder in ``value`` that does not exist."""
    for where, text in _strings(value, field):
        for match in _PLACEHOLDER.finditer(text):
            if match[2] and match[2] not in names:
                section.problem(where, f"uses {{{match[2]}}}, which is no placeholder",
                                "one of: " + ", ".join(names) + "; or write {{" + match[2] + "}} to mean the text")


def _strings(value: object, where: str) -> Iterable[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, f"{where}/{index}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{where}/{key}", key
            yield from _strings(item, f"{where}/{key}")


def fill(value: object, values: Mapping[str, object]) -> object:
    """``value`` with every placeholder replaced, at any depth, keys included."""
    if isinstance(value, str):
        return _fill_text(value, values)
    if isinstance(value, list):
        return [fill(item, values) for item in value]
    if isinstance(value, dict):
        return {str(_fill_text(key, values)): fill(item, values) for key, item in value.items()}
    return value


def fill_argv(argv: Iterable[str], values: Mapping[str, object]) -> list[str]:
    """An argument list, with list values spliced in."""
    words: list[str] = []
    for argument in argv:
        filled = _fill_text(argument, values)
        words.extend(str(item) for item in filled) if isinstance(filled, (list, tuple)) else words.append(str(filled))
    return words


def _fill_text(text: str, values: Mapping[str, object]) -> object:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole and whole[2]:
        value = values[whole[2]]
        return list(value) if isinstance(value, tuple) else value

    def replace(match: re.Match[str]) -> str:
        return "{" + match[1] + "}" if match[1] else str(values[match[2]])

    return _PLACEHOLDER.sub(replace, text)
