"""Strict JSON: what Python's parser would let through is refused, and what is written reads back."""

from __future__ import annotations

import json
import random

import pytest

from agent_eval.records.strict_json import JsonError, canonical, parse, parse_object, pretty

REFUSED = {
    "nothing": b"",
    "only white space": b" \n\t",
    "byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "utf-16 without mark": '{"a": 1}'.encode("utf-16-le"),
    "utf-32": '{"a": 1}'.encode("utf-32"),
    "latin-1": b'"\xe9"',
    "half a code point": b'"\xc3"',
    "duplicate key": b'{"passed": false, "passed": true}',
    "duplicate key inside": b'{"a": [{"b": 1, "b": 1}]}',
    "duplicate key by escape": b'{"a": 1, "\\u0061": 2}',
    "NaN": b"[NaN]",
    "Infinity": b"[Infinity]",
    "-Infinity": b"-Infinity",
    "overflow": b"1e999",
    "negative overflow": b"[-1e999]",
    "65 digits": b"1" * 65,
    "5000 digits": b"1" * 5000,
    "negative zero": b"-0",
    "lone surrogate": b'"\\ud800"',
    "lone surrogate in a key": b'{"\\udc00": 1}',
    "reversed pair": b'"\\udc00\\ud800"',
    "trailing data": b"{} {}",
    "trailing comma": b"[1,]",
    "control character": b'"\x01"',
    "raw newline": b'"a\nb"',
    "NUL": b'"\x00"',
    "depth 65": b"[" * 65 + b"]" * 65,
    "depth bomb": b"[" * 100_000,
    "object bomb": b'{"a":' * 100_000,
    "unterminated string": b'"' + b"[" * 200,
    "leading zero": b"01",
    "python words": b"True",
    "comment": b"{} // no",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(JsonError):
        parse(REFUSED[name])


ACCEPTED = {
    "depth 64": b"[" * 64 + b"]" * 64,
    "brackets in a string": b'"' + b"[{" * 500 + b'"',
    "escaped quotes": b'{"a\\"[[": "\\\\"}',
    "64 digits": b"1" * 64,
    "surrogate pair": b'"\\ud83d\\ude00"',
    "utf-8": '"\u00e9\u4e2d"'.encode(),
    "negative zero as a float": b"-0.0",
    "small": b"1e-400",
    "white space around": b" [1] \n",
    "many brackets, shallow": b"[" + b",".join([b"[]"] * 500) + b"]",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_as_python_reads_it(name: str) -> None:
    assert parse(ACCEPTED[name]) == json.loads(ACCEPTED[name])


@pytest.mark.parametrize("data", [b"[]", b"1", b"null", b'"x"', b"true"])
def test_an_object_is_asked_for_by_name(data: bytes) -> None:
    with pytest.raises(JsonError, match="not an object"):
        parse_object(data)


def test_the_size_is_checked_before_anything_else() -> None:
    assert parse(b"[1]", max_bytes=3) == [1]
    with pytest.raises(JsonError, match="at most 2"):
        parse(b"[1]", max_bytes=2)


def value_of(chance: random.Random, depth: int = 0) -> object:
    kind = chance.randrange(7 if depth < 5 else 5)
    if kind == 0:
        return chance.choice([None, True, False])
    if kind == 1:
        return chance.randrange(-(10**20), 10**20)
    if kind == 2:
        return chance.uniform(-1e6, 1e6)
    if kind in (3, 4):
        return "".join(chr(chance.choice([chance.randrange(32, 127), 0x1F600, 0xE9, 0x0A, 0x22, 0x5C])) for _ in range(chance.randrange(9)))
    if kind == 5:
        return [value_of(chance, depth + 1) for _ in range(chance.randrange(5))]
    return {str(chance.randrange(1000)): value_of(chance, depth + 1) for _ in range(chance.randrange(5))}


def test_what_is_written_reads_back_and_is_one_byte_form() -> None:
    chance = random.Random(20261130)
    for _ in range(500):
        value = value_of(chance)
        for write in (canonical, pretty):
            data = write(value)
            assert data.isascii()
            assert parse(data) == value
            assert write(parse(data)) == data


def test_canonical_refuses_what_is_not_json() -> None:
    for value in (float("nan"), float("inf"), {"a": [float("-inf")]}):
        with pytest.raises(ValueError):
            canonical(value)
