"""Input files of the gates: read strictly, checked completely, every problem with its JSON path.

Owns reading JSON and JSON Lines and checking objects against a table of fields. Unknown fields are refused: a
misspelt ``critcal`` would otherwise switch a veto off without a word. It does not know what the values mean.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.grade.fields import Field, Form, is_integer, is_number, is_text
from agent_eval.records import strict_json
from agent_eval.records.problems import InvalidInput, Problem

MAX_INPUT_BYTES = 64 << 20

NAME = Form(
    "a name of at most 200 printable characters",
    lambda value: is_text(value) and len(value) <= 200 and value.isprintable() and value.strip() == value,
)
DIGEST = Form(
    "a SHA-256 digest in lower-case hex",
    lambda value: isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef"),
)
RATE = Form("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
LEVEL = Form("a number above 0 and below 1", lambda value: is_number(value) and 0 < value < 1)
BINARY = Form("0 or 1 (an integer, not true, false or text)", lambda value: is_integer(value) and value in (0, 1))
OBJECT = Form("an object", lambda value: isinstance(value, dict))
NON_EMPTY_OBJECT = Form("an object that is not empty", lambda value: isinstance(value, dict) and bool(value))
OBJECTS = Form("a non-empty list", lambda value: isinstance(value, list) and bool(value))


@dataclass(frozen=True, slots=True)
class Row:
    """One record of an input file and where it stands."""

    where: str
    value: dict


def read_bytes(path: str) -> bytes:
    """The bytes of an input file. Raises InvalidInput when it cannot be read or is larger than 64 MiB."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_INPUT_BYTES + 1)
    except OSError as error:
        raise InvalidInput.one(path, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_INPUT_BYTES:
        raise InvalidInput.one(path, f"has more than {MAX_INPUT_BYTES} bytes")
    return data


def read_object(path: str) -> dict[str, Any]:
    """The JSON object in a file."""
    return parsed(read_bytes(path), path)


def parsed(data: bytes, path: str) -> dict[str, Any]:
    """The JSON object in bytes that were read from ``path``: what is kept is what was judged."""
    try:
        return strict_json.parse_object(data)
    except strict_json.JsonError as error:
        raise InvalidInput.one(path, f"is not strict JSON: {error}") from None


def rows(data: bytes, name: str) -> list[Row]:
    """The objects of a JSON array or of JSON Lines; every malformed row is a problem, none is skipped."""
    if data.lstrip(b" \t\r\n").startswith(b"["):
        try:
            values: Any = strict_json.parse(data)
        except strict_json.JsonError as error:
            raise InvalidInput.one(name, f"is not strict JSON: {error}") from None
        found = [Row(f"{name}#/{index}", value) for index, value in enumerate(values)]
        bad = [Problem(row.where, "is not an object") for row in found if not isinstance(row.value, dict)]
        return _complete(found, bad, name)
    found, bad = [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip(b" \t\r"):
            continue
        try:
            found.append(Row(f"{name}#L{number}", strict_json.parse_object(line.rstrip(b"\r"))))
        except strict_json.JsonError as error:
            bad.append(Problem(f"{name}#L{number}", f"is not a JSON object: {error}"))
    return _complete(found, bad, name)


def _complete(found: list[Row], bad: list[Problem], name: str) -> list[Row]:
    if bad:
        raise InvalidInput(bad)
    if not found:
        raise InvalidInput.one(name, "holds no record")
    return found


def object_problems(value: object, where: str, fields: Mapping[str, Field]) -> list[Problem]:
    """Everything that is wrong with an object: not an object, unknown, missing and ill-formed fields."""
    if not isinstance(value, dict):
        return [Problem(where, "must be an object")]
    if "format" in fields and "format" in value and fields["format"].form.accepts(value["format"]) is not True:
        return fields["format"].form.problems(value["format"], f"{where}/format")  # another document: its fields say nothing
    problems = []
    for name in value:
        if name not in fields:
            problems.append(Problem(f"{where}/{name}", "is not a known field", f"known: {', '.join(fields)}"))
    for name, described in fields.items():
        if name in value:
            problems += described.form.problems(value[name], f"{where}/{name}")
        elif described.required:
            problems.append(Problem(f"{where}/{name}", "is missing", f"it {described.summary}"))
    return problems


def duplicates(found: list[Row], key: str) -> list[Problem]:
    """A problem for every row whose ``key`` was used by an earlier one."""
    first: dict[object, str] = {}
    problems = []
    for row in found:
        identity = row.value.get(key)
        if isinstance(identity, str) and identity in first:
            problems.append(Problem(f"{row.where}/{key}", f"{identity!r} is used already at {first[identity]}"))
        elif isinstance(identity, str):
            first[identity] = row.where
    return problems


def filled(value: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """``value`` with the default of every absent field that has one."""
    defaults = {name: item.default for name, item in fields.items() if item.default is not None}
    return {**defaults, **value}


def beside(path: str, relative: str) -> str:
    """``relative`` seen from the folder of the file at ``path``."""
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(path)), relative))


def same_person(one: str, other: str) -> bool:
    """Whether two names are one identity: case, width, spacing and invisible characters do not make another person."""
    return _identity(one) == _identity(other)


def _identity(name: str) -> str:
    import unicodedata

    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in folded if unicodedata.category(character)[0] in "LNPS")
