"""Rows of a user's file: labels, verdicts, outcomes, texts, one item each.

Owns: the accepted file forms, ids, and what counts as a binary value; every problem with its place, all at once.
Does not own: reading the file from disk, nor what rows mean together (`judge_validation`, `contamination`,
`label_errors`, `saturation`).

A file holds JSON lines, one JSON array of objects, one JSON object that maps id to value, one JSON object with a list
under `items`, or (name ending in .csv) comma-separated values with a header. A binary value is true or false, 1 or 0,
"pass" or "fail"; in CSV the same words as text. Anything else is refused, never coerced: bool("false") is True,
int(0.9) is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_eval.records import strict_json
from agent_eval.records.problems import InvalidInput, Problem

UNPARSED = "unparsed"
MAX_BYTES = 256 << 20
_WORDS = {"pass": True, "fail": False}
_CSV_WORDS = {**_WORDS, "true": True, "false": False, "1": True, "0": False}
_RULE = 'give true or false, 1 or 0, "pass" or "fail"'


@dataclass(frozen=True, slots=True)
class Row:
    """One item. `where` says file and line or index; `fields` are as read."""

    where: str
    id: str
    fields: Mapping[str, object]


@dataclass(slots=True)
class Reading:
    """Rows of one file with everything that is wrong with them."""

    name: str
    is_csv: bool = False
    rows: list[Row] = field(default_factory=list)
    splits: dict[str, list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def binary(self, row: Row, names: Sequence[str], *, unparsed_ok: bool = False) -> bool | None:
        """The first of the fields `names` that the row has, as a bool; None for a verdict declared "unparsed".

        Another value is a problem of this reading, and None is returned.
        """
        name = next((name for name in names if name in row.fields), None)
        if name is None:
            self.problems.append(Problem(row.where, f"item {row.id!r} has no {' or '.join(names)}", _RULE))
            return None
        value = row.fields[name]
        if unparsed_ok and value == UNPARSED:
            return None
        if isinstance(value, bool):
            return value
        if type(value) is int and value in (0, 1):
            return bool(value)
        words = _CSV_WORDS if self.is_csv else _WORDS
        if isinstance(value, str) and value in words:
            return words[value]
        fix = _RULE + (', or "unparsed" for an answer that could not be read' if unparsed_ok else "")
        self.problems.append(Problem(row.where, f"{name} of item {row.id!r} is {_show(value)}, which is not binary", fix))
        return None

    def text(self, row: Row, name: str) -> str | None:
        """An optional text field; anything but text is a problem."""
        value = row.fields.get(name)
        if value is None or isinstance(value, str):
            return value or None
        self.problems.append(Problem(row.where, f"{name} of item {row.id!r} is {_show(value)}, which is not text"))
        return None

    def by_id(self) -> dict[str, Row]:
        """The first row of every id, in order."""
        found: dict[str, Row] = {}
        for row in self.rows:
            found.setdefault(row.id, row)
        return found


def _show(value: object) -> str:
    shown = strict_json.canonical(value).decode("ascii")
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def read_rows(name: str, data: bytes) -> Reading:
    """The rows of a file. Raises InvalidInput when it is in none of the accepted forms or holds no row."""
    reading = Reading(name, is_csv=name.lower().endswith(".csv"))
    found = _csv_rows(data, name) if reading.is_csv else _json_rows(reading, data)
    for where, value in found:
        _add(reading, f"{name}, {where}", value)
    if not reading.rows and not reading.problems:
        raise InvalidInput.one(name, "holds no item")
    _report_duplicates(reading)
    return reading


def _add(reading: Reading, where: str, value: object) -> None:
    if not isinstance(value, Mapping):
        reading.problems.append(Problem(where, "is not a JSON object", 'give {"id": ..., ...}'))
        return
    item = value.get("id")
    if type(item) is int:
        item = str(item)
    if not isinstance(item, str) or not item.strip():
        reading.problems.append(Problem(where, "has no id", "give every item an id, as text"))
        return
    reading.rows.append(Row(where, item, value))


def _report_duplicates(reading: Reading) -> None:
    first: dict[str, Row] = {}
    for row in reading.rows:
        other = first.setdefault(row.id, row)
        if other is row:
            continue
        before, after = other.fields.get("split"), row.fields.get("split")
        if before != after:
            what = f"item {row.id!r} is in split {_show(before)} and in split {_show(after)}: the splits overlap"
        else:
            what = f"duplicate id {row.id!r}, first at {other.where.removeprefix(reading.name + ', ')}"
        reading.problems.append(Problem(row.where, what, "every item once"))


def _json_rows(reading: Reading, data: bytes) -> list[tuple[str, object]]:
    try:
        whole = strict_json.parse(data, max_bytes=MAX_BYTES)
    except strict_json.JsonError as error:
        if not _first_line_is_json(data):
            raise InvalidInput.one(reading.name, f"not JSON: {error}", "give JSON lines, a JSON array or .csv") from None
        return _json_lines(reading, data)
    if isinstance(whole, list):
        return [(f"item {index}", value) for index, value in enumerate(whole, 1)]
    if isinstance(whole, Mapping):
        return _object_rows(reading, whole)
    raise InvalidInput.one(reading.name, "holds neither an array nor an object", "give JSON lines, a JSON array or .csv")


def _first_line_is_json(data: bytes) -> bool:
    first = data.strip().split(b"\n", 1)[0]
    try:
        strict_json.parse(first, max_bytes=MAX_BYTES)
    except strict_json.JsonError:
        return False
    return True


def _json_lines(reading: Reading, data: bytes) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for index, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append((f"line {index}", strict_json.parse(line, max_bytes=MAX_BYTES)))
        except strict_json.JsonError as error:
            reading.problems.append(Problem(f"{reading.name}, line {index}", f"not JSON: {error}"))
    return found


def _object_rows(reading: Reading, whole: Mapping[str, object]) -> list[tuple[str, object]]:
    _take_splits(reading, whole.get("splits"))
    for name in ("items", "labels", "verdicts"):
        listed = whole.get(name)
        if isinstance(listed, list):
            return [(f"item {index}", value) for index, value in enumerate(listed, 1)]
    if "id" in whole:
        return [("line 1", whole)]
    rows: list[tuple[str, object]] = []
    for key, value in whole.items():
        if key == "splits":
            continue
        fields = value if isinstance(value, Mapping) else {"label": value, "verdict": value, "passed": value, "text": value}
        rows.append((f"key {key!r}", {**fields, "id": key}))
    return rows


def _take_splits(reading: Reading, splits: object) -> None:
    if splits is None:
        return
    if not isinstance(splits, Mapping) or not all(isinstance(ids, list) for ids in splits.values()):
        reading.problems.append(Problem(f"{reading.name}, splits", "is not an object of lists of ids"))
        return
    reading.splits = {name: [str(item) for item in ids] for name, ids in splits.items()}


def _csv_rows(data: bytes, name: str) -> list[tuple[str, object]]:
    import csv
    import io

    try:
        text = data.decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput.one(name, f"not comma-separated values: {error}") from None
    found: list[tuple[str, object]] = []
    for index, row in enumerate(rows, 2):
        if None in row:
            raise InvalidInput.one(f"{name}, row {index}", "has more cells than the header")
        found.append((f"row {index}", {key: value for key, value in row.items() if value not in (None, "")}))
    return found
