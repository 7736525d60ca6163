"""A real tool's arguments in the words of the contract.

Owns the names under which the ten CLIs pass a path, a content and a command. The
original arguments stay as they are; the contract's names are added to them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_PATHS = ("path", "file_path", "filePath", "filename", "dir_path")
_CONTENTS = ("content", "file_text", "new_text", "contents")
_COMMANDS = ("command", "cmd", "commands")
#: With one of these a content is a part of the file, not the whole.
_PARTS = ("old", "old_text", "oldText", "old_string", "oldString", "old_str", "edits", "insert_line")


def in_words_of_contract(arguments: object, workspace: str) -> dict[str, object]:
    """``arguments`` with ``path`` (relative to the workspace), ``content`` and ``command`` where they can be told."""
    if not isinstance(arguments, Mapping):
        return {"value": arguments}
    found = dict(arguments)
    path = _first_text(arguments, _PATHS)
    if path is not None:
        found["path"] = relative(path, workspace)
    else:
        # Something else stands under the name: better no path than a wrong one.
        found.pop("path", None)
    command = _first_text(arguments, _COMMANDS)
    if command is not None:
        found["command"] = command
    content = _first_text(arguments, _CONTENTS)
    if content is not None and not any(arguments.get(name) for name in _PARTS):
        found["content"] = content
    elif "content" in found:
        del found["content"]
    return found


def relative(path: str, workspace: str) -> str:
    """``path`` relative to the workspace when it lies in it, else as it is."""
    if not os.path.isabs(path) or not workspace:
        return os.path.normpath(path) if path else path
    inside = os.path.relpath(os.path.normpath(path), workspace)
    return path if inside.startswith("..") else inside


def _first_text(arguments: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str):
            return value
    return None
