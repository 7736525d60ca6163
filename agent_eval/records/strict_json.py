"""Strict JSON in, canonical JSON out.

Python's own parser takes duplicate keys (the last wins), NaN, UTF-16, a BOM and
documents that end in a RecursionError. Each of those has let a harness read
something else than what a checker wrote, so each is an error here. It does not
know what any document means.
"""

from __future__ import annotations

import io
import json
import re

MAX_DEPTH = 64
MAX_INT_DIGITS = 64

_SURROGATE = re.compile("[\ud800-\udfff]")
# Strings are skipped whole, so that brackets inside them do not count as depth.
# The possessive form keeps the scan linear on unterminated strings.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class JsonError(ValueError):
    """Bytes that are not one strict JSON document.

    ``what`` is the reason in words; ``offset`` is the byte (or character) at
    which it was seen, ``None`` when the reason has no single place.
    """

    def __init__(self, what: str, offset: int | None = None) -> None:
        self.what = what
        self.offset = offset
        super().__init__(what if offset is None else f"{what} (at offset {offset})")


def parse(data: bytes, *, max_bytes: int | None = None) -> object:
    """Read one JSON document, strictly.

    Raises :class:`JsonError` for: more than ``max_bytes``, a BOM, text that is not
    UTF-8, nothing at all, depth over 64, duplicate keys, NaN, Infinity, a number
    that overflows to infinity, integers of more than 64 digits, ``-0`` written as an
    integer, lone surrogates, control characters in strings, and trailing data.
    """
    if max_bytes is not None and len(data) > max_bytes:
        raise JsonError(f"{len(data)} bytes, at most {max_bytes} are read")
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise JsonError("starts with a byte order mark", 0)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError("not UTF-8", error.start) from None
    if not text.strip(" \t\r\n"):
        raise JsonError("empty")
    _check_depth(data)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, error.pos) from None
    except RecursionError:
        raise JsonError(f"nested deeper than {MAX_DEPTH}") from None
    # Surrogates can only come from \u escapes: the text itself was valid UTF-8.
    if "\\u" in text or "\\U" in text:
        _check_surrogates(value)
    return value


def parse_object(data: bytes, *, max_bytes: int | None = None) -> dict[str, object]:
    """Read one JSON document whose top level must be an object. Raises :class:`JsonError`."""
    value = parse(data, max_bytes=max_bytes)
    if not isinstance(value, dict):
        raise JsonError(f"the top level is {_name(value)}, not an object")
    return value


def canonical(value: object) -> bytes:
    """The one byte form of a value that digests are taken of.

    Sorted keys, ASCII-escaped, no spaces, no end of line. Raises ``ValueError`` for NaN and Infinity.
    """
    return _CANONICAL.encode(value).encode("ascii")


def pretty(value: object) -> bytes:
    """What evidence files hold: canonical order, one space of indentation, one end of line."""
    # Joined as they come: held together, the pieces of a large summary take ten times the room of its text.
    text = io.StringIO()
    text.writelines(_PRETTY.iterencode(value))
    text.write("\n")
    return text.getvalue().encode("ascii")


def _check_depth(data: bytes) -> None:
    # A document of n brackets is at most n deep: most reports end here.
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRUCTURE.finditer(data):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonError(f"nested deeper than {MAX_DEPTH}", match.start())
        elif token in (b"]", b"}"):
            depth -= 1


def _check_surrogates(value: object) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                raise JsonError("a string holds a lone surrogate")
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"duplicate key {key!r}")
            seen.add(key)
    return result


def _no_constant(text: str) -> object:
    raise JsonError(f"{text} is not JSON")


def _bounded_int(text: str) -> int:
    if len(text) > MAX_INT_DIGITS:
        raise JsonError(f"an integer of {len(text.lstrip('-'))} digits, at most {MAX_INT_DIGITS} are read")
    if text == "-0":
        raise JsonError("-0 is not an integer that can be written back")
    return int(text)


def _finite_float(text: str) -> float:
    value = float(text)
    if value - value != 0.0:
        raise JsonError(f"{text[:40]} overflows a double")
    return value


def _name(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "a Boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), type(value).__name__)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys,
    parse_constant=_no_constant,
    parse_int=_bounded_int,
    parse_float=_finite_float,
    strict=True,
)
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_PRETTY = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False, indent=1)
