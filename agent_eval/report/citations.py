"""What the evidence pointers of a judgment point at.

Owns resolving ``trial.json#/outcome/exit_code`` (a JSON pointer, RFC 6901) and ``events.jsonl#L12`` (a line) in
the files of one trial. A pointer is part of the evidence and may be wrong: then it leads to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.report.records_view import digits

if TYPE_CHECKING:
    from agent_eval.evidence.reader import RetainedTrial

NOTHING = object()
"""Where a pointer leads to nothing; ``None`` would be JSON's null."""
_MAX_FILE_BYTES = 4 << 20
_MAX_LINE_BYTES = 4_000


class Citations:
    """Looks pointers up in one trial; a file is read and parsed once, however often it is cited."""

    def __init__(self, trial: RetainedTrial) -> None:
        self._trial = trial
        self._lines: dict[str, list[bytes]] = {}
        self._documents: dict[str, object] = {"": trial.record, layout.TRIAL_RECORD: trial.record}

    def find(self, pointer: str) -> object:
        """The JSON value or the line of text, :data:`NOTHING` when there is none."""
        name, _, place = pointer.partition("#")
        if place[:1] == "L" and (line := digits(place[1:])) is not None:
            return self._line(name, line)
        value = self._document(name)
        for part in place.strip("/").split("/") if place.strip("/") else ():
            value = _below(value, part.replace("~1", "/").replace("~0", "~"))
        return value

    def _line(self, name: str, number: int) -> object:
        if name not in self._lines:
            self._lines[name] = (self._trial.read(name) or b"").split(b"\n")
        lines = self._lines[name]
        return lines[number - 1][:_MAX_LINE_BYTES].decode("utf-8", "replace") if 0 < number <= len(lines) else NOTHING

    def _document(self, name: str) -> object:
        if name not in self._documents:
            try:
                self._documents[name] = strict_json.parse(self._trial.read(name) or b"", max_bytes=_MAX_FILE_BYTES)
            except strict_json.JsonError:
                self._documents[name] = NOTHING
        return self._documents[name]


def _below(value: object, key: str) -> object:
    if isinstance(value, list) and (index := digits(key)) is not None and index < len(value):
        return value[index]
    if isinstance(value, Mapping) and key in value:
        return value[key]
    return NOTHING
