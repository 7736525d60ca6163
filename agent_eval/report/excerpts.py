"""Bounded excerpts of bytes: as escaped text where they are text, as a hex view where they are not.

Owns: how much of a long output a report shows, where it is cut, and the words that say what was
cut. It reads no file and does not decide where an excerpt is placed.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_eval.report.visible_text import escape

MAX_LINE_CHARACTERS = 2_000
_HEX_ROW_BYTES = 16
# One row of a hex view is 76 characters for 16 bytes.
_HEX_ROW_COST = 80
_TEXT_CONTROLS = b"\t\n\r\x0b\x0c\x1b\x08\x07"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """``head`` and ``tail`` are what is shown; between them ``omitted_bytes`` are not.

    ``form`` is ``text``, ``hex`` or ``empty``; ``total_bytes`` counts what is retained.
    """

    form: str
    head: str
    tail: str
    total_bytes: int
    omitted_bytes: int

    def to_json(self) -> dict[str, object]:
        """The excerpt as the page's script reads it."""
        shown: dict[str, object] = {"form": self.form, "head": self.head, "bytes": self.total_bytes}
        if self.omitted_bytes:
            shown |= {"tail": self.tail, "omitted": self.omitted_bytes}
        return shown


def excerpt(data: bytes, budget: int) -> Excerpt:
    """An excerpt of ``data`` that takes about ``budget`` bytes when written into a page.

    The beginning and the end are kept, two to one: a program says at the start what it is and at
    the end why it stopped.
    """
    if not data:
        return Excerpt("empty", "", "", 0, 0)
    if is_text(data):
        return _text_excerpt(data, budget)
    rows = max(1, budget // _HEX_ROW_COST)
    if len(data) <= rows * _HEX_ROW_BYTES:
        return Excerpt("hex", hex_view(data), "", len(data), 0)
    head_bytes = max(1, rows * 2 // 3) * _HEX_ROW_BYTES
    # Rows keep multiples of 16 as their offsets, so the tail starts on one.
    tail_start = max(head_bytes, (len(data) - (rows - rows * 2 // 3) * _HEX_ROW_BYTES) // 16 * 16)
    return Excerpt(
        "hex", hex_view(data[:head_bytes]), hex_view(data[tail_start:], tail_start), len(data), tail_start - head_bytes
    )


def is_text(data: bytes) -> bool:
    """Whether ``data`` is UTF-8 (a character cut at the end allowed) with few control bytes."""
    sample = data[:65_536]
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(sample) - error.start > 3:
            return False
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return b"\x00" not in sample and controls * 20 <= len(sample)


_CONTROL_BYTES = bytes(code for code in range(32) if code not in _TEXT_CONTROLS)


def _text_excerpt(data: bytes, budget: int) -> Excerpt:
    room = min(len(data), max(64, budget))
    while True:
        if room >= len(data):
            head, tail, omitted = _shown(data), "", 0
        else:
            head_bytes = room * 2 // 3
            tail_start = len(data) - (room - head_bytes)
            head, tail, omitted = _shown(data[:head_bytes]), _shown(data[tail_start:]), tail_start - head_bytes
        cost = _cost(head) + _cost(tail)
        if cost <= max(96, budget) or room <= 64:
            return Excerpt("text", head, tail, len(data), omitted)
        room = max(64, min(room - 1, room * budget // cost))


def _shown(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return "\n".join(_shown_line(line) for line in lines)


def _shown_line(line: str) -> str:
    cut = line[:MAX_LINE_CHARACTERS]
    shown = "\t".join(escape(part) for part in cut.split("\t"))
    left = len(line) - len(cut)
    return f"{shown} [... {left} more characters on this line]" if left else shown


def _cost(shown: str) -> int:
    """What ``shown`` takes inside a script element: markup characters are written as six."""
    marks = sum(shown.count(character) for character in "<>&")
    return len(shown.encode("utf-8", "replace")) + 5 * marks + shown.count("\\") + shown.count('"') + shown.count("\n")


def hex_view(data: bytes, offset: int = 0) -> str:
    """``data`` as the usual hex dump: offset, sixteen bytes, printable ASCII."""
    rows = []
    for start in range(0, len(data), _HEX_ROW_BYTES):
        row = data[start : start + _HEX_ROW_BYTES]
        left, right = row[:8].hex(" "), row[8:].hex(" ")
        printable = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{offset + start:08x}  {left:<23}  {right:<23}  {printable}")
    return "\n".join(rows)
