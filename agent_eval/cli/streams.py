"""Standard streams that cannot bring a run down.

A reader that went away (``| head -1``), a full device or a closed descriptor ends the
output, never the run: the evidence and the exit code still mean what they say. Only of a reader that
went away nothing is said; a command that makes nothing but output fails otherwise.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from agent_eval.records.problems import InvalidInput


class GuardedStream:
    """A text stream whose first failed write silences it.

    ``lost`` says why text did not get out; ``None`` when all did, and when its reader went away. ``closed`` says that there never was
    a descriptor.
    """

    def __init__(self, stream: TextIO, *, closed: bool = False) -> None:
        self._stream = stream
        self._closed = closed
        self.broken = False
        self.lost: str | None = None

    def write(self, text: str) -> int:
        """Write, or do nothing when the reader is gone."""
        if self._closed and text:
            self.lost = "it is closed"
        if not self.broken:
            try:
                return self._stream.write(text)
            except (OSError, ValueError) as error:
                self._silence(error)
        return len(text)

    def flush(self) -> None:
        """Flush, or do nothing when the reader is gone."""
        if not self.broken:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._silence(error)

    def _silence(self, error: OSError | ValueError) -> None:
        self.broken = True
        if not isinstance(error, ConnectionError):
            self.lost = getattr(error, "strerror", None) or str(error)
        try:
            # The interpreter flushes the real stream at exit and would complain once more.
            null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        except (OSError, ValueError):
            pass

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class GuardedStreams:
    """The guarded standard output and error of this process."""

    def __init__(self, closed: tuple[int, ...] = ()) -> None:
        self._before = (sys.stdout, sys.stderr)
        for stream in self._before:
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        sys.stdout, sys.stderr = (GuardedStream(stream, closed=number in closed) for number, stream in enumerate(self._before, 1))

    def finish(self) -> None:
        """Flush both and give the originals back."""
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = self._before


def output_lost() -> str | None:
    """Why what was printed to standard output did not get there, ``None`` when it did or its reader went away."""
    sys.stdout.flush()
    return getattr(sys.stdout, "lost", None)


def require_printed() -> None:
    """For a command that makes nothing but output. Raises ``InvalidInput`` when it did not get there, as for a file that cannot be written."""
    lost = output_lost()
    if lost is not None:
        raise InvalidInput.one("standard output", f"cannot be written ({lost})", "send it where there is room")


def repair_descriptors() -> tuple[int, ...]:
    """Point missing descriptors 0 to 2 at ``/dev/null``; returns which they were.

    Otherwise the next file opened takes one of the numbers and a stray print lands in evidence (cpython 77025).
    """
    missing = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            missing.append(number)
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
    return tuple(missing)


def guard_streams() -> GuardedStreams:
    """Repair the descriptors, then guard what is printed."""
    closed = repair_descriptors()
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.dup(number), "w", encoding="utf-8"))
    return GuardedStreams(closed)
