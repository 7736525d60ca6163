"""Reading untrusted JSON field by field while collecting every problem.

Owns the small reader that the adapter schema is written in. It knows JSON types
and paths, not what an adapter is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from agent_eval import Problem

_MISSING = object()


class Section:
    """One JSON object of the document: each field is taken once, the rest is unknown.

    ``where`` is the file name and the JSON pointer of the object. Problems go into
    the list that all sections of one document share.
    """

    def __init__(self, value: object, where: str, problems: list[Problem]) -> None:
        self.where = where
        self.problems = problems
        self._taken: set[str] = set()
        self._value: Mapping[str, object] = {}
        if isinstance(value, dict):
            self._value = value
        else:
            self.problem("", f"is {kind_of(value)}", "write an object")

    def problem(self, field: str, what: str, fix: str = "") -> None:
        """Note a problem with ``field`` of this object (empty: with the object itself)."""
        self.problems.append(Problem(f"{self.where}/{field}" if field else self.where, what, fix))

    def raw(self, field: str, default: object = _MISSING) -> object:
        """The field as it stands; a problem when it is missing and has no default."""
        self._taken.add(field)
        if field in self._value:
            return self._value[field]
        if default is _MISSING:
            self.problem(field, "is missing", "add it")
            return None
        return default

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self._value.get(field) is not None

    def section(self, field: str, *, required: bool = True) -> Section:
        """An object inside this one; an empty one when it is optional and not there."""
        value = self.raw(field) if required else self.raw(field, {})
        if value is None and (not required or field not in self._value):
            value = {}
        return Section(value, f"{self.where}/{field}", self.problems)

    def text(self, field: str, default: str | None = None) -> str:
        """A string that is not empty."""
        value = self.raw(field) if default is None else self.raw(field, default)
        if isinstance(value, str) and (value or default == ""):
            return value
        if field in self._value:
            self.problem(field, f"is {kind_of(value)}", "write a text that is not empty")
        return default or ""

    def texts(self, field: str, *, required: bool = True) -> tuple[str, ...]:
        """A list of strings."""
        value = self.raw(field) if required else self.raw(field, [])
        if isinstance(value, list):
            for index, item in enumerate(value):
                if not isinstance(item, str):
                    self.problem(f"{field}/{index}", f"is {kind_of(item)}", "write a text")
            return tuple(item for item in value if isinstance(item, str))
        if field in self._value:
            self.problem(field, f"is {kind_of(value)}", "write a list of texts")
        return ()

    def choice(self, field: str, allowed: Iterable[str], default: str | None = None) -> str:
        """One of a closed set of words."""
        words = list(allowed)
        value = self.raw(field) if default is None else self.raw(field, default)
        if value in words:
            return str(value)
        if field in self._value:
            self.problem(field, f"is {value!r}" if isinstance(value, str) else f"is {kind_of(value)}",
                         "one of: " + ", ".join(words))
        return default or words[0]

    def flag(self, field: str, default: bool | None = None) -> bool:
        """A Boolean."""
        value = self.raw(field) if default is None else self.raw(field, default)
        if isinstance(value, bool):
            return value
        if field in self._value:
            self.problem(field, f"is {kind_of(value)}", "write true or false")
        return bool(default)

    def number(self, field: str, default: float, low: float, high: float) -> float:
        """A number from ``low`` to ``high``."""
        value = self.raw(field, default)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.problem(field, f"is {value!r}", f"write a number from {low:g} to {high:g}")
        return default

    def exit_codes(self, field: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """A list of exit codes, 0 to 255, not empty."""
        value = self.raw(field, list(default))
        good = isinstance(value, list) and value and all(is_exit_code(item) for item in value)
        if good:
            return tuple(value)
        self.problem(field, f"is {value!r}", "write a list of exit codes from 0 to 255")
        return default

    def text_map(self, field: str) -> dict[str, str]:
        """An object of strings; empty when not there."""
        value = self.raw(field, {})
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problem(field, f"is {kind_of(value)}", "write an object of texts")
            return {}
        for key, item in value.items():
            if not isinstance(item, str):
                self.problem(f"{field}/{key}", f"is {kind_of(item)}", "write a text")
        return {key: item for key, item in value.items() if isinstance(item, str)}

    def finish(self) -> None:
        """Note every field that nobody took."""
        for field in self._value:
            if field not in self._taken:
                near = difflib.get_close_matches(field, self._taken, 1)
                self.problem(field, "is not a field known here", f"did you mean {near[0]!r}?" if near else "remove it")


def is_exit_code(value: object) -> bool:
    """Whether ``value`` is an exit code that a process can have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255


def kind_of(value: object) -> str:
    """What a JSON value is, in words for a message."""
    if value is None:
        return "null"
    names = {bool: "a Boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    if value == "":
        return "an empty text"
    return names.get(type(value), type(value).__name__)
