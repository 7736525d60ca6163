"""A bounded unified diff of two texts.

Owns: when a diff is made and how it is cut. Python's ``difflib`` is quadratic on
unrelated texts, so sizes are limited first. It does not find files.
"""

from __future__ import annotations

from agent_eval.report.excerpts import is_text
from agent_eval.report.visible_text import escape

MAX_DIFF_BYTES = 256 * 1024
MAX_DIFF_LINES = 4_000
_MAX_SHOWN_CHARACTERS = 400


def unified(before: bytes, after: bytes, max_lines: int) -> tuple[list[str], str]:
    """The lines of a unified diff with three lines of context, and a note (empty when it is complete).

    Each line is escaped and starts with ``@``, a space, ``+`` or ``-``. No lines and a note when the contents
    are not text or too long to compare.
    """
    if not (is_text(before) and is_text(after)):
        return [], "not text: compared by digest only"
    old, new = _lines(before), _lines(after)
    if len(before) + len(after) > MAX_DIFF_BYTES or len(old) + len(new) > MAX_DIFF_LINES:
        return [], "too long to compare line by line: compared by digest only"
    import difflib

    shown: list[str] = []
    for line in difflib.unified_diff(old, new, n=3, lineterm=""):
        if line.startswith(("--- ", "+++ ")) and len(shown) < 2 and not any(s.startswith("@") for s in shown):
            continue
        if len(shown) >= max_lines:
            return shown, f"the first {max_lines} lines of the difference"
        shown.append(line[:1] + _shown(line[1:]))
    return shown, ""


def _lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    elif lines:
        lines[-1] += " [no end of line]"
    return lines


def _shown(line: str) -> str:
    cut = "\t".join(escape(part) for part in line[:_MAX_SHOWN_CHARACTERS].split("\t"))
    left = len(line) - _MAX_SHOWN_CHARACTERS
    return f"{cut} [... {left} more characters]" if left > 0 else cut
