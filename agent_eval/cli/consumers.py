"""Finding consumers by their folders; only the one that was named is imported."""

from __future__ import annotations

import importlib
import os
from typing import Any

from agent_eval.records.problems import InvalidInput

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FOLDER = os.path.join(ROOT, "consumers")


def command_names() -> list[str]:
    """Commands that are consumers, sorted: the folder's name with ``_`` as ``-``."""
    try:
        names = sorted(os.listdir(_FOLDER))
    except OSError:
        return []
    return [name.replace("_", "-") for name in names if os.path.isfile(os.path.join(_FOLDER, name, "consumer.py"))]


def folder_of(command: str) -> str:
    """The consumer's folder."""
    return os.path.join(_FOLDER, command.replace("-", "_"))


def load(command: str) -> Any:
    """The ``CONSUMER`` of a command. Raises ``InvalidInput`` when there is no such consumer."""
    if command not in command_names():
        known = ", ".join(command_names()) or "none"
        raise InvalidInput.one(command, "no such consumer", f"consumers here: {known}")
    return importlib.import_module(f"consumers.{command.replace('-', '_')}.consumer").CONSUMER


def summary_of(command: str) -> str:
    """The first line of the consumer module's docstring, read without importing it."""
    with open(os.path.join(folder_of(command), "consumer.py"), encoding="utf-8") as stream:
        first = stream.readline()
    return first.strip().strip('"').replace("`", "").rstrip(".")
