"""Finding adapters: those that come with the project, and a user's own file.

Owns the folder of shipped adapters and the choice by name or path.
"""

from __future__ import annotations

import difflib
import os

from agent_eval import InvalidInput
from .model import Adapter
from .schema import MAX_ADAPTER_BYTES, read_adapter

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "adapters")


def names() -> list[str]:
    """The names of the shipped adapters, sorted."""
    return sorted(entry[: -len(".json")] for entry in os.listdir(FOLDER) if entry.endswith(".json"))


def load(choice: str) -> Adapter:
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


def _read(path: str) -> Adapter:
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_ADAPTER_BYTES + 1)
    except OSError as error:
        raise InvalidInput.one("--adapter", f"{path}: {error.strerror}", "give an adapter's name or a readable file") from None
    return read_adapter(data, name)


def listing() -> list[dict[str, object]]:
    """One row per shipped adapter, for ``list adapters``."""
    rows = []
    for name in names():
        adapter = load(name)
        rows.append({
            "name": adapter.name,
            "tried_version": adapter.tried_version,
            "tried_on": adapter.tried_on,
            "model_api": str(adapter.model_api),
            "exact": adapter.tools.exact,
            "exit_trusted": adapter.outcome.exit_trusted,
            "about": adapter.about,
        })
    return rows
