"""The receipt: what an agent run leaves about itself, read strictly.

Owns the shape of a receipt, its paths in normal form, and the order that ``seq``
gives to events and commands. It does not judge: a list that is absent stays absent
(it is never read as empty), and what an absent list means is for the assertions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import strict_json
from .digests import sha256_bytes
from .paths import PathError, collisions, normal_path
from .problems import InvalidInput, Problem

MAX_RECEIPT_BYTES = 1 << 20
_SHA256 = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_ITEM_FIELDS = {
    "events": ("type", "detail", "seq", "startedAt", "endedAt"),
    "commands": ("cmd", "argv", "exitCode", "seq", "startedAt", "endedAt"),
    "artifacts": ("path", "sha256", "role"),
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """One valid receipt.

    ``sections`` are its members with every path in normal form, at the places where the
    receipt has them, so that JSON pointers fit both. ``hidden`` are JSON pointers to what
    the receipt says, or shows by a gap in ``seq``, that it left out.
    """

    run_id: str
    data: bytes
    sha256: str
    sections: dict[str, object]
    hidden: tuple[str, ...] = field(default=())


def read_receipt(data: bytes, where: str) -> Receipt:
    """Read one receipt; raises :class:`InvalidInput` with every problem, each ``where#pointer``.

    Only ``runId`` must be there. Invalid are: bytes that are not one strict JSON object of at
    most 1 MiB, unknown members, wrong types (an exit code that is a string, Boolean, float
    or null), paths that are absolute or escape, and ``seq`` that repeats or goes back.
    """
    if len(data) > MAX_RECEIPT_BYTES:
        raise InvalidInput.one(
            where,
            f"a receipt of {len(data)} bytes (sha256 {sha256_bytes(data)}), at most {MAX_RECEIPT_BYTES} are scored",
            "record what mattered, not the transcript; the file is left as it is",
        )
    try:
        value = strict_json.parse_object(data)
    except strict_json.JsonError as error:
        raise InvalidInput.one(where, f"not a receipt: {error}") from None
    redacted = _redactions(value.get("redactions"))
    reader = _Reader(where, frozenset(redacted))
    sections = reader.sections(value)
    if reader.problems:
        raise InvalidInput(reader.problems)
    hidden = redacted + (("/events", "/commands") if _has_gap(sections) else ())
    return Receipt(str(value["runId"]), data, sha256_bytes(data), sections, hidden)


def _redactions(value: Any) -> tuple[str, ...]:
    """The pointers of ``redactions``, as far as they are well formed; the reader reports the rest."""
    if not isinstance(value, list):
        return ()
    pointers = (item.get("path") if isinstance(item, dict) else item for item in value)
    return tuple(pointer for pointer in pointers if isinstance(pointer, str))


def _numbers(items: object) -> list[int]:
    return [item["seq"] for item in items if "seq" in item] if isinstance(items, list) else []


def _has_gap(sections: dict[str, object]) -> bool:
    """Whether the shared counter, which starts at 0, skips a number although both lists are there: something was taken out."""
    if "events" not in sections or "commands" not in sections:
        return False
    numbers = _numbers(sections["events"]) + _numbers(sections["commands"])
    return bool(numbers) and max(numbers) + 1 != len(numbers)


class _Reader:
    """Walks one receipt and collects every problem."""

    def __init__(self, where: str, redacted: frozenset[str]) -> None:
        self.where = where
        self.redacted = redacted
        self.problems: list[Problem] = []

    def problem(self, pointer: str, what: str, fix: str = "") -> None:
        self.problems.append(Problem(f"{self.where}#{pointer}", what, fix))

    def sections(self, value: dict[str, object]) -> dict[str, object]:
        """The members, with paths normalised. Incomplete when there are problems."""
        for name in value:
            if name not in _MEMBERS:
                self.problem(f"/{name}", "unknown member", f"a receipt has {', '.join(_MEMBERS)}")
        if "runId" not in value:
            self.problem("/runId", "is missing", "every receipt names its run")
        known = {name: item for name, item in value.items() if name in _MEMBERS}
        result = {name: self.member(name, item) for name, item in known.items()}
        if not self.problems:
            self._check_seq(result)
        return result

    def member(self, name: str, value: Any) -> object:
        if f"/{name}" in self.redacted and value in (None, "[redacted]"):
            return value
        return _MEMBERS[name](self, f"/{name}", value)

    def expect(self, good: bool, pointer: str, what: str, fix: str = "") -> bool:
        if not good and pointer not in self.redacted:
            self.problem(pointer, what, fix)
        return good

    def _check_seq(self, sections: dict[str, object]) -> None:
        seen: dict[int, str] = {}
        for name in ("events", "commands"):
            items = sections.get(name)
            if not isinstance(items, list):
                continue
            numbered = [index for index, item in enumerate(items) if "seq" in item]
            if 0 < len(numbered) < len(items):
                self.problem(f"/{name}", "some items have seq and some have none", "number all of them, or none")
            last = -1
            for index in numbered:
                pointer, number = f"/{name}/{index}/seq", items[index]["seq"]
                if number in seen:
                    self.problem(pointer, f"seq {number} is already at {seen[number]}", "events and commands share one counter")
                elif number <= last:
                    self.problem(pointer, f"seq {number} does not come after {last}", "list what happened in order")
                seen[number] = pointer
                last = number


def _text(reader: _Reader, pointer: str, value: Any) -> object:
    reader.expect(isinstance(value, str) and value != "", pointer, "must be a non-empty string")
    return value


def _run_id(reader: _Reader, pointer: str, value: Any) -> object:
    good = isinstance(value, str) and value.strip() != "" and len(value) <= 200
    reader.expect(good, pointer, "must be a string of 1 to 200 characters that is not blank")
    return value


def _boolean(reader: _Reader, pointer: str, value: Any) -> object:
    reader.expect(isinstance(value, bool), pointer, "must be true or false")
    return value


def _items(reader: _Reader, pointer: str, value: Any) -> Iterator[tuple[str, Any]]:
    if reader.expect(isinstance(value, list), pointer, "must be a list", "leave the member out when it was not recorded"):
        yield from ((f"{pointer}/{index}", item) for index, item in enumerate(value))


def _texts(reader: _Reader, pointer: str, value: Any) -> object:
    for place, item in _items(reader, pointer, value):
        reader.expect(isinstance(item, str), place, "must be a string")
    return value


def _paths(reader: _Reader, pointer: str, value: Any) -> object:
    result: list[object] = []
    for place, item in _items(reader, pointer, value):
        result.append(_path(reader, place, item))
    texts = [path for path in result if isinstance(path, str)]
    for first, second in collisions(texts):
        reader.problem(pointer, f"{first!r} and {second!r} are one file where case or Unicode form does not count")
    return result


def _path(reader: _Reader, pointer: str, value: Any) -> object:
    if not reader.expect(isinstance(value, str), pointer, "must be a path (a string)"):
        return value
    try:
        return normal_path(value)
    except PathError as error:
        reader.expect(False, pointer, str(error), "write paths relative to the root of the repository")
        return value


def _objects(name: str, check: Callable[[_Reader, str, dict], dict]) -> Callable[[_Reader, str, Any], object]:
    known = {key.replace("_", "").lower(): key for key in _ITEM_FIELDS[name]}

    def read(reader: _Reader, pointer: str, value: Any) -> object:
        result: list[object] = []
        for place, item in _items(reader, pointer, value):
            if place in reader.redacted and not isinstance(item, dict):
                result.append({})
                continue
            if not reader.expect(isinstance(item, dict), place, "must be an object"):
                continue
            for key in item:
                # Other members are the business of whoever wrote them; a near miss is a typing error that hides evidence.
                near = known.get(key.replace("_", "").lower(), key)
                reader.expect(near == key, f"{place}/{key}", f"unknown member, close to {near!r}", f"write {near!r}")
            result.append(check(reader, place, item))
        return result

    return read


def _has(item: dict, key: str, reader: _Reader, place: str) -> bool:
    return key in item and f"{place}/{key}" not in reader.redacted


def _stamp(reader: _Reader, place: str, item: dict) -> None:
    if _has(item, "seq", reader, place):
        good = type(item["seq"]) is int and item["seq"] >= 0
        reader.expect(good, f"{place}/seq", "must be an integer from 0")
    for key in ("startedAt", "endedAt"):
        if _has(item, key, reader, place):
            _text(reader, f"{place}/{key}", item[key])


def _event(reader: _Reader, place: str, item: dict) -> dict:
    good = isinstance(item.get("type"), str) and item["type"] != ""
    reader.expect(good, f"{place}/type", "must be a non-empty string")
    if _has(item, "detail", reader, place):
        reader.expect(isinstance(item["detail"], str), f"{place}/detail", "must be a string")
    _stamp(reader, place, item)
    return item


def _command(reader: _Reader, place: str, item: dict) -> dict:
    redacted = f"{place}/cmd" in reader.redacted or f"{place}/argv" in reader.redacted
    reader.expect("cmd" in item or "argv" in item or redacted, place, "needs 'cmd' or 'argv'")
    if _has(item, "cmd", reader, place):
        _text(reader, f"{place}/cmd", item["cmd"])
    if _has(item, "argv", reader, place):
        argv = item["argv"]
        good = isinstance(argv, list) and bool(argv) and all(isinstance(word, str) for word in argv)
        reader.expect(good, f"{place}/argv", "must be a non-empty list of strings")
    if _has(item, "exitCode", reader, place):
        good = type(item["exitCode"]) is int
        reader.expect(good, f"{place}/exitCode", "must be an integer", "write 0, not \"0\", false, 0.0 or null; leave it out when unknown")
    _stamp(reader, place, item)
    return item


def _artifact(reader: _Reader, place: str, item: dict) -> dict:
    if _has(item, "sha256", reader, place):
        good = isinstance(item["sha256"], str) and _SHA256.fullmatch(item["sha256"]) is not None
        reader.expect(good, f"{place}/sha256", "must be 64 lower-case hexadecimal digits")
    if _has(item, "role", reader, place):
        _text(reader, f"{place}/role", item["role"])
    return {**item, "path": _path(reader, f"{place}/path", item.get("path"))}


def _cost(reader: _Reader, pointer: str, value: Any) -> object:
    if reader.expect(isinstance(value, dict), pointer, "must be an object of numbers"):
        for name, amount in value.items():
            good = type(amount) in (int, float) and amount >= 0
            reader.expect(good, f"{pointer}/{name}", "must be a number from 0")
    return value


def _suite(reader: _Reader, pointer: str, value: Any) -> object:
    if reader.expect(isinstance(value, dict), pointer, "must be an object"):
        for name in value:
            reader.expect(name in ("id", "revision", "digest"), f"{pointer}/{name}", "unknown member")
        if _has(value, "id", reader, pointer):
            _text(reader, f"{pointer}/id", value["id"])
        if _has(value, "revision", reader, pointer):
            reader.expect(type(value["revision"]) is int, f"{pointer}/revision", "must be an integer")
        if _has(value, "digest", reader, pointer):
            good = isinstance(value["digest"], str) and _SHA256.fullmatch(value["digest"]) is not None
            reader.expect(good, f"{pointer}/digest", "must be 64 lower-case hexadecimal digits")
    return value


def _agent(reader: _Reader, pointer: str, value: Any) -> object:
    reader.expect(isinstance(value, dict), pointer, "must be an object")
    return value


def _redaction_list(reader: _Reader, pointer: str, value: Any) -> object:
    for place, item in _items(reader, pointer, value):
        path = item.get("path") if isinstance(item, dict) else item
        good = isinstance(path, str) and (path == "" or path.startswith("/"))
        reader.expect(good, place, "must be a JSON pointer, or an object with one as 'path'")
    return value


_MEMBERS: dict[str, Callable[[_Reader, str, Any], object]] = {
    "runId": _run_id,
    "events": _objects("events", _event),
    "commands": _objects("commands", _command),
    "filesTouched": _paths,
    "promotedPages": _paths,
    "notes": _texts,
    "startedAt": _text,
    "endedAt": _text,
    "artifacts": _objects("artifacts", _artifact),
    "cost": _cost,
    "interrupted": _boolean,
    "suite": _suite,
    "agent": _agent,
    "redactions": _redaction_list,
}
