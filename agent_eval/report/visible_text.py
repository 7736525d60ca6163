"""Text from evidence made safe to show: nothing invisible, nothing that a terminal would obey.

Owns: which characters are shown as an escape, how wide a text is on a terminal, and how it is
cut to a width. It does not know colours, tables or HTML (which escapes its own markup).
"""

from __future__ import annotations

# Categories that have no glyph or steer the display: controls, formats (bidi overrides and
# isolates, zero-width, tags), surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# More combining marks than any script stacks on one letter are an attempt to draw over other lines.
_MAX_COMBINING = 4


def escape(text: str) -> str:
    """``text`` with every control, bidi control and escape sequence as visible ASCII (``\\x1b``, ``\\u202e``).

    Printable text of any script stays. Lone surrogates (bytes of a file name that is not UTF-8)
    show as ``\\udc80``. A backslash of the text itself stays single, so the result is for
    reading and is not meant to be parsed back.
    """
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    shown: list[str] = []
    combining = 0
    for character in text:
        category = unicodedata.category(character)
        combining = combining + 1 if category in ("Mn", "Me") else 0
        hidden = category in _HIDDEN_CATEGORIES or combining > _MAX_COMBINING
        odd_space = category == "Zs" and character != " "
        shown.append(_escaped(character) if hidden or odd_space else character)
    return "".join(shown)


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def cells(text: str) -> int:
    """The number of terminal columns that escaped ``text`` takes (wide East Asian characters take two)."""
    if text.isascii():
        return len(text)
    import unicodedata

    total = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
            continue
        total += 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
    return total


def fit(text: str, width: int) -> str:
    """``text`` cut to at most ``width`` columns; a cut ends in ``...`` where there is room for it."""
    if width <= 0:
        return ""
    if cells(text) <= width:
        return text
    ending = "..." if width > 6 else ""
    room = width - len(ending)
    kept: list[str] = []
    for character in text:
        room -= cells(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + ending


def pad(text: str, width: int, *, right: bool = False) -> str:
    """``text`` filled with spaces to ``width`` columns; never cut."""
    filling = " " * max(0, width - cells(text))
    return filling + text if right else text + filling


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def size(number: int | None) -> str:
    """A number of bytes as people read it (``1.5 KiB``); ``unknown`` for ``None``."""
    if number is None:
        return "unknown"
    if number < 1024:
        return count(number, "byte")
    value = float(number)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"


def seconds(value: float | None) -> str:
    """A duration as people read it: ``0.012 s``, ``3.40 s``, ``2:05``, ``1:02:03``; ``-`` for ``None``."""
    if value is None:
        return "-"
    if value < 1:
        return f"{value:.3f} s"
    if value < 100:
        return f"{value:.2f} s"
    return clock(value)


def clock(value: float) -> str:
    """A duration as ``m:ss`` or ``h:mm:ss``."""
    whole = max(0, int(value))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
