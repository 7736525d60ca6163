"""Finding adapters: those that come with the project, and a user's own file.

Owns the folder of shipped adapters and the choice by name or path.
"""

from __future__ import annotations

import difflib
import os

from agent_eval import InvalidInput, read_input

from .model import Adapter
from .schema import MAX_ADAPTER_BYTES, read_adapter

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "adapters")


def names() -> list[str]:
    """The names of the shipped adapters, sorted."""
    return sorted(entry[: -len(".json")] for entry in os.listdir(FOLDER) if entry.endswith(".json"))


def load(choice: str) -> Adapter:
    """The adapter alone: see :func:`load_with_bytes`."""
    return load_with_bytes(choice)[0]


def load_with_bytes(choice: str) -> tuple[Adapter, bytes]:
    """The shipped adapter of that name, or the one in the file at that path.

    A choice with a slash or that ends in ``.json`` is a path. Raises :class:`InvalidInput`
    with every problem of the adapter.
    """
    if "/" in choice or choice.endswith(".json"):
        return _read(choice)
    known = names()
    if choice not in known:
        near = difflib.get_close_matches(choice, known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InvalidInput.one("--adapter", f"there is no adapter {choice!r}",
                               f"{hint}one of {', '.join(known)}, or a path to your own")
    return _read(os.path.join(FOLDER, f"{choice}.json"))


def _read(path: str) -> tuple[Adapter, bytes]:
    name = os.path.basename(path)
    data = read_input(path, max_bytes=MAX_ADAPTER_BYTES, fix="give an adapter's name or a readable file")
    return read_adapter(data, name), data


def listing() -> list[dict[str, str]]:
    """A row for each shipped adapter, for ``list adapters``."""
    rows = []
    for name in names():
        adapter = load(name)
        tried = f"tried with {adapter.tried_version} on {adapter.tried_on}" if adapter.tried_version else "not tried"
        tools = "exact tool list" if adapter.tools.exact else "tools cannot be withheld"
        rows.append({"name": adapter.name, "line": f"{tried}; {adapter.model_api}; {tools}. {adapter.about}"})
    return rows
