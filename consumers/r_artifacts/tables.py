"""Reading a CSV table that R wrote: bounded decompression, lines, fields, numbers.

Owns every fault of *form* (truncated gzip, wrong column count, unparsable number, NaN, Inf, a fraction in the counts)
and says it with file, line and column; and the deviations of form that are accepted and said: CRLF, a BOM, quoted
fields, an unnamed id column, several gzip members. Does not compare one table with another.

Columns are `array('d')` with NaN for NA (a `NaN` in the text is a fault: R's write.csv never writes one), so that
64,102 genes stay small and quick in pure Python.
"""

from __future__ import annotations

import csv
import math
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_TABLE_BYTES = 512 * 1024 * 1024     # after decompression
MAX_LINE_BYTES = 1024 * 1024
MAX_ROWS = 500_000
MAX_MEMBERS = 65_536    # bgzip makes one of 64 KiB: eight times what MAX_TABLE_BYTES needs
_MAX_FAULTS = 20                        # said of one table
_CHUNK = 1 << 20
_FEED = 1 << 14         # compressed bytes at a time: a member's end copies what was fed beyond it, so little is
_BOM = b"\xef\xbb\xbf"
_PLAIN = b"0123456789.+-eE,"            # bytes of a row on which float() can be trusted
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_SPECIAL = re.compile(rb"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)
_MAX_COUNT = 2**31 - 1                  # R's largest integer
NAN = math.nan


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table must look like: the id column and, in order, the others with their kinds.

    A kind is `number`, `number?` (may be NA), `count`, `logical?`, `text` or `text?`. `rest` is the kind of any
    number of further columns; without it the columns are exactly these.
    """

    id_name: str
    columns: tuple[tuple[str, str], ...] = ()
    rest: str | None = None
    last: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Table:
    """One table that was read: ids in file order and columns by name."""

    path: str
    ids: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    numbers: dict[str, array] = field(default_factory=dict)
    texts: dict[str, list[str | None]] = field(default_factory=dict)
    faults: list[tuple[int | None, str | None, str]] = field(default_factory=list)   # line, column, what
    accepted: set[str] = field(default_factory=set)

    def fault(self, line: int | None, column: str | None, what: str) -> None:
        if len(self.faults) < _MAX_FAULTS:
            self.faults.append((line, column, what))


class _Unreadable(Exception):
    """The rest of the file cannot be read."""


def _pieces(data: bytes, compressed: bool, table: Table) -> Iterator[bytes]:
    """The content in pieces of about 1 MiB, never more than MAX_TABLE_BYTES in all."""
    if not compressed:
        for start in range(0, len(data), _CHUNK):
            yield data[start:start + _CHUNK]
        return
    members, total, view, at = 0, 0, memoryview(data), 0
    while at < len(data):
        if data[at:at + 2] != b"\x1f\x8b":
            raise _Unreadable("is not gzip" if not members else f"has {len(data) - at} bytes after the gzip member")
        member, members = zlib.decompressobj(31), members + 1
        if members > MAX_MEMBERS:
            raise _Unreadable(f"has more than {MAX_MEMBERS} gzip members")
        while not member.eof:
            pending: bytes | memoryview = member.unconsumed_tail
            if not pending:
                pending, at = view[at:at + _FEED], min(at + _FEED, len(data))
            piece = member.decompress(pending, _CHUNK)
            total += len(piece)
            if total > MAX_TABLE_BYTES:
                raise _Unreadable(f"decompresses to more than {MAX_TABLE_BYTES} bytes (a decompression bomb?)")
            if piece:
                yield piece
            elif not pending and not member.eof:
                raise _Unreadable("is a truncated gzip file")
        at -= len(member.unused_data)
    if members > 1:
        table.accepted.add(f"{members} gzip members")


def _lines(data: bytes, compressed: bool, table: Table) -> Iterator[bytes]:
    """Lines without their ends. CRLF and a BOM are taken off and said."""
    rest, first = b"", True
    try:
        for piece in _pieces(data, compressed, table):
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE_BYTES:
                raise _Unreadable(f"has a line of more than {MAX_LINE_BYTES} bytes")
            if first and lines and lines[0].startswith(_BOM):
                lines[0] = lines[0][len(_BOM):]
                table.accepted.add("a BOM")
            first = first and not lines
            if piece.find(b"\r") < 0 and (not lines or not lines[0].endswith(b"\r")):
                yield from lines
                continue
            for line in lines:
                if line.endswith(b"\r"):
                    line = line[:-1]
                    table.accepted.add("CRLF line ends")
                yield line
    except zlib.error as error:
        raise _Unreadable(f"is damaged gzip: {error}") from error
    if rest:
        yield rest.removesuffix(b"\r")


def _fields(line: bytes, table: Table) -> list[bytes] | None:
    """The fields of one line; None where the quotes do not close."""
    if b'"' not in line:
        return line.split(b",")
    table.accepted.add("quoted fields")
    try:
        rows = list(csv.reader([line.decode("utf-8", "surrogateescape")], strict=True))
    except csv.Error:
        return None
    return [one.encode("utf-8", "surrogateescape") for one in rows[0]] if len(rows) == 1 else None


def read_table(path: str, data: bytes, shape: Shape) -> Table:
    """Read one table. With any fault the columns are not to be used."""
    table = Table(path)
    compressed = path.endswith(".gz")
    try:
        lines = _lines(data, compressed, table)
        header = next(lines, None)
        kinds = _header(header, shape, table) if header is not None else table.fault(None, None, "is empty")
        if kinds is not None:
            _rows(lines, kinds, table)
    except _Unreadable as error:
        table.fault(None, None, str(error))
    return table


def _header(line: bytes, shape: Shape, table: Table) -> list[str] | None:
    """Column names into the table; the kinds of the columns, or None with a fault."""
    fields = _fields(line, table)
    try:
        names = [one.decode("utf-8") for one in fields or ()]
    except UnicodeDecodeError:
        names = []
    if not names:
        return table.fault(1, None, "the header is not UTF-8 text with closed quotes")
    if names[0] == "":
        table.accepted.add("an unnamed id column")
    elif names[0] != shape.id_name:
        return table.fault(1, names[0], f"the first column must be {shape.id_name} (or unnamed, as write.csv does)")
    kinds = [*shape.columns, *shape.last]
    wanted = [name for name, _ in kinds]
    found = names[1:]
    if shape.rest is not None:
        middle = found[len(shape.columns):len(found) - len(shape.last)] if len(found) >= len(kinds) else []
        kinds = [*shape.columns, *((name, shape.rest) for name in middle), *shape.last]
        wanted = [name for name, _ in kinds]
    if found != wanted:
        return table.fault(1, None, f"the columns are {', '.join(found)[:200]}; expected {', '.join(wanted)[:200]}"
                                    + (" and others" if shape.rest else ""))
    if len(set(found)) != len(found):
        twice = next(name for name in found if found.count(name) > 1)
        return table.fault(1, twice, "is there twice")
    if any(not name for name in found):
        return table.fault(1, None, "has a column without a name")
    table.names = found
    return [kind for _, kind in kinds]


def _rows(lines: Iterator[bytes], kinds: list[str], table: Table) -> None:
    """All rows into columns; the quick way for rows of plain numbers, the careful way for all others."""
    width, flat, ids = len(kinds), array("d"), table.ids
    only_counts = set(kinds) == {"count"}
    quick = all(kind.startswith("number") for kind in kinds) or only_counts
    allowed = b"0123456789," if only_counts else _PLAIN
    texts: dict[int, list[str | None]] = {at: [] for at, kind in enumerate(kinds) if kind.startswith("text")}
    empty, all_missing = [NAN] * width, b",".join([b"NA"] * width)
    may_miss = all(kind.endswith("?") for kind in kinds)
    for number, line in enumerate(lines, 2):
        name, _, rest = line.partition(b",")
        if name[:1] == b'"' and name[-1:] == b'"' and len(name) > 1 and b'"' not in name[1:-1] and b'"' not in rest:
            name = name[1:-1]
            table.accepted.add("quoted fields")
        if quick and b'"' not in name and not rest.translate(None, allowed):
            try:
                values = [*map(float, rest.split(b","))]
            except ValueError:
                values = []
        elif may_miss and rest == all_missing and b'"' not in name:
            values = empty
            for column in texts.values():
                column.append(None)
        else:
            values = []
        if len(values) != width:
            values, name = _careful(line, number, kinds, texts, table)
        flat.extend(values)
        try:
            ids.append(name.decode("utf-8"))
        except UnicodeDecodeError:
            table.fault(number, "1", "the id is not UTF-8")
        if not name:
            table.fault(number, "1", "the id is empty")
        if len(ids) > MAX_ROWS:
            raise _Unreadable(f"has more than {MAX_ROWS} rows")
        if len(table.faults) >= _MAX_FAULTS:
            return
    if not table.faults:
        _columns(flat, kinds, texts, table)


def _columns(flat: array, kinds: list[str], texts: dict[int, list[str | None]], table: Table) -> None:
    width = len(kinds)
    for at, (name, kind) in enumerate(zip(table.names, kinds)):
        if kind.startswith("text"):
            table.texts[name] = texts[at]
            continue
        column = flat[at::width]
        if any(map(math.isinf, column)):
            row = next(row for row, value in enumerate(column) if math.isinf(value))
            table.fault(row + 2, name, "the number is too large for a double")
        if kind == "count" and len(column) and max(column) > _MAX_COUNT:
            row = next(row for row, value in enumerate(column) if value > _MAX_COUNT)
            table.fault(row + 2, name, f"the count is larger than R's largest integer {_MAX_COUNT}")
        table.numbers[name] = column


def _careful(line: bytes, number: int, kinds: list[str], texts: dict[int, list[str | None]],
             table: Table) -> tuple[list[float], bytes]:
    """One row, field by field, with a fault for each field that is wrong; and its id."""
    fields = _fields(line, table)
    if fields is None:
        table.fault(number, None, "the quotes do not close on this line")
        return [NAN] * len(kinds), b"?"
    if len(fields) != len(kinds) + 1:
        table.fault(number, None, f"has {len(fields)} columns, expected {len(kinds) + 1}")
        return [NAN] * len(kinds), fields[0] or b"?"
    values: list[float] = []
    for at, (text, kind) in enumerate(zip(fields[1:], kinds)):
        if kind.startswith("text"):
            values.append(NAN)
            texts[at].append(_text(text, kind, number, table.names[at], table))
            continue
        if text == b"NA" and kind.endswith("?"):
            values.append(NAN)
            continue
        try:
            values.append(_number(text, kind))
        except ValueError as error:
            table.fault(number, table.names[at], str(error))
            values.append(NAN)
    return values, fields[0]


def _text(text: bytes, kind: str, number: int, column: str, table: Table) -> str | None:
    if kind == "text?" and text == b"NA":
        return None
    try:
        value = text.decode("utf-8")
    except UnicodeDecodeError:
        value = ""
    if not value or text == b"NA":
        table.fault(number, column, "is empty, NA or not UTF-8")
    return value


def _number(text: bytes, kind: str) -> float:
    """One number of a kind; ValueError says what is wrong with it."""
    if kind == "logical?":
        if text not in (b"TRUE", b"FALSE"):
            raise ValueError(f"{_shown(text)} is not TRUE, FALSE or NA")
        return float(text == b"TRUE")
    if text.translate(None, _PLAIN) or not _NUMBER.match(text):
        if text == b"NA":
            raise ValueError("NA is not allowed here")
        if _SPECIAL.match(text):
            raise ValueError(f"{_shown(text)} is not a finite number")
        raise ValueError(f"{_shown(text)} is not a number" if text else "the field is empty")
    value = float(text)
    if kind == "count":
        if value < 0:
            raise ValueError(f"{_shown(text)} is negative; a count is a whole number from 0")
        # write.csv writes a whole double as 1e+05 and readr as 6e3: whole all the same.
        if math.isfinite(value) and value != math.floor(value):
            raise ValueError(f"{_shown(text)} is a fraction; a count is a whole number from 0")
    return value


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
