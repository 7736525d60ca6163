"""Standard streams that cannot bring a run down.

A reader that went away (``| head -1``), a full device or a closed descriptor ends the
output, never the run: the evidence and the exit code still mean what they say.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO


class GuardedStream:
    """A text stream whose first failed write silences it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.broken = False

    def write(self, text: str) -> int:
        """Write, or do nothing when the reader is gone."""
        if not self.broken:
            try:
                return self._stream.write(text)
            except (OSError, ValueError):
                self._silence()
        return len(text)

    def flush(self) -> None:
        """Flush, or do nothing when the reader is gone."""
        if not self.broken:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._silence()

    def _silence(self) -> None:
        self.broken = True
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

    def __init__(self) -> None:
        self._before = (sys.stdout, sys.stderr)
        for stream in self._before:
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        sys.stdout, sys.stderr = (GuardedStream(stream) for stream in self._before)

    def finish(self) -> None:
        """Flush both and give the originals back."""
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = self._before


def repair_descriptors() -> None:
    """Point missing descriptors 0 to 2 at ``/dev/null``.

    Otherwise the next file opened takes one of the numbers and a stray print lands in evidence (cpython 77025).
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)


def guard_streams() -> GuardedStreams:
    """Repair the descriptors, then guard what is printed."""
    repair_descriptors()
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.dup(number), "w", encoding="utf-8"))
    return GuardedStreams()
