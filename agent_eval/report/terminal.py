"""What a person sees in a terminal: the live line, the final table, the closing lines.

Owns: colour decisions, the progress display (which writes to the stream that it is given) and
the texts that ``cli`` prints at the end. It reads no file and counts nothing that the
summary already counts. Text from evidence goes through :func:`escape`, always.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from agent_eval.report.tables import TrialRow, closing_lines, summary_table
from agent_eval.report.visible_text import cells, clock, escape, fit, seconds

__all__ = [
    "COLOR_MODES",
    "Paint",
    "Progress",
    "TrialRow",
    "closing_lines",
    "escape",
    "summary_table",
    "use_color",
]

COLOR_MODES = ("auto", "always", "never")
REDRAW_INTERVAL_S = 0.1
_DEFAULT_COLUMNS = 80
_COUNTED = ("pass", "fail", "void", "interrupted")
_CODES = {"pass": "32", "fail": "31", "void": "33", "interrupted": "33", "bold": "1", "dim": "2"}


def use_color(mode: str, stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether to colour what goes to ``stream``.

    ``always`` and ``never`` decide alone; ``auto`` asks for a terminal, a ``NO_COLOR`` that is unset
    or empty (no-color.org) and a ``TERM`` other than ``dumb``.
    """
    if mode in ("always", "never"):
        return mode == "always"
    environ = os.environ if environ is None else environ
    return _is_terminal(stream) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class Paint:
    """Colours words when it may; the identity otherwise. The text must be escaped already."""

    __slots__ = ("enabled",)

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, style: str, text: str) -> str:
        """``text`` in ``style``: a verdict word, ``bold`` or ``dim``; another style changes nothing."""
        code = _CODES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and code else text


class Progress:
    """Shows how far a run is: one live line on a terminal, one line per finished trial elsewhere.

    ``planned`` counts trials. ``color`` is one of :data:`COLOR_MODES`. ``quiet`` shows nothing.
    ``clock_s`` is the monotonic clock. Writing never raises: a reader that went away (a
    closed terminal, a broken pipe) ends the display and not the run.
    """

    def __init__(
        self,
        stream: TextIO,
        planned: int,
        color: str = "auto",
        quiet: bool = False,
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._planned = planned
        self._paint = Paint(use_color(color, stream))
        self._quiet = quiet
        self._live = _is_terminal(stream) and os.environ.get("TERM") != "dumb"
        self._clock_s = clock_s
        self._began_s = clock_s()
        self._drawn_s: float | None = None
        self._shown = False
        self._running: dict[tuple[str, int], None] = {}
        self._counts = dict.fromkeys(_COUNTED, 0)

    def started(self, case_id: str, number: int) -> None:
        """A trial began."""
        self._running[case_id, number] = None
        self.tick()

    def finished(self, case_id: str, number: int, verdict: str, reasons: Iterable[str], wall_s: float | None) -> None:
        """A trial ended. A void whose cause is ``interrupted`` (in ``reasons``) counts as interrupted."""
        words = tuple(reasons)
        self._running.pop((case_id, number), None)
        shown = "interrupted" if str(verdict) == "void" and "interrupted" in words else str(verdict)
        self._counts[shown] += 1
        if self._live:
            self.tick()
        else:
            self._write_line(case_id, number, shown, words, wall_s)

    def tick(self) -> None:
        """Redraw the live line when a tenth of a second has passed; nothing without a terminal."""
        if self._quiet or not self._live:
            return
        now_s = self._clock_s()
        if self._drawn_s is not None and now_s - self._drawn_s < REDRAW_INTERVAL_S:
            return
        self._drawn_s = now_s
        self._shown = True
        self._write("\r\x1b[2K" + self._live_line(now_s - self._began_s))

    def close(self) -> None:
        """Remove the live line, so that what follows starts on an empty line."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[2K")
        self._quiet = True

    def _live_line(self, elapsed_s: float) -> str:
        done = sum(self._counts.values())
        counts = [f"{done}/{self._planned}"]
        for style, word in (("pass", "passed"), ("fail", "failed"), ("void", "void")):
            counts.append(f"{self._counts[style]} {word}")
        if self._counts["interrupted"]:
            counts.append(f"{self._counts['interrupted']} interrupted")
        timing = [clock(elapsed_s)]
        if 0 < done < self._planned:
            timing.append(f"about {clock(elapsed_s / done * (self._planned - done))} left")
        return self._assemble(counts, self._current(), timing)

    def _current(self) -> str:
        if not self._running:
            return ""
        case_id, number = next(iter(self._running))
        more = len(self._running) - 1
        return escape(f"{case_id}/{number:03d}") + (f" +{more}" if more else "")

    def _assemble(self, counts: list[str], current: str, timing: list[str]) -> str:
        # One column stays free: a line as wide as the screen wraps on some terminals.
        width = self._columns() - 1
        tail = "  " + "  ".join(timing)
        head = "  ".join(counts)
        if cells(head + tail) > width:
            return fit(head, width)
        room = width - cells(head + tail) - 2
        middle = "  " + fit(current, room) if current and room >= 8 else ""
        styled = "  ".join(self._colored(part) for part in counts)
        return styled + middle + self._paint("dim", tail)

    def _colored(self, part: str) -> str:
        number, _, word = part.partition(" ")
        style = {"passed": "pass", "failed": "fail"}.get(word, word)
        return part if number == "0" else self._paint(style, part)

    def _write_line(
        self, case_id: str, number: int, verdict: str, reasons: tuple[str, ...], wall_s: float | None
    ) -> None:
        if self._quiet:
            return
        done = sum(self._counts.values())
        why = ", ".join(escape(word) for word in reasons if word != verdict)
        line = f"[{done}/{self._planned}] {self._paint(verdict, verdict)} {escape(f'{case_id}/{number:03d}')}"
        self._write(f"{line} {seconds(wall_s)}{f'  {why}' if why else ''}\n")

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _DEFAULT_COLUMNS
        except (OSError, ValueError, AttributeError):
            return _DEFAULT_COLUMNS

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):
            self._quiet = True


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False
