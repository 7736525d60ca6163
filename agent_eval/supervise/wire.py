"""Frames between harness and guardian: one byte of kind, four of length, marshalled values.

Owns the encoding on the two pipes. ``marshal`` is safe here and the fastest there is: both
ends are the same interpreter, one the fork of the other, and no third process holds the pipes.
"""

from __future__ import annotations

import marshal
import os
import select
import struct
import time
from typing import Any

RUN = b"R"  # harness -> guardian: a command's wire values
STOP = b"S"  # harness -> guardian: end the command gently
KILL = b"K"  # harness -> guardian: end the command now
BYE = b"B"  # harness -> guardian: no command follows, and the harness lives on
RESULT = b"O"  # guardian -> harness: an outcome's wire values
FAULT = b"F"  # guardian -> harness: the guardian broke; its traceback as text

_HEADER = struct.Struct("<cI")
_READ_BYTES = 1 << 16


def encode(kind: bytes, value: Any = None) -> bytes:
    """One frame."""
    body = marshal.dumps(value)
    return _HEADER.pack(kind, len(body)) + body


def send_all(fd: int, frame: bytes, until: float) -> bool:
    """Write ``frame`` to a non-blocking pipe; False when the reader is gone or does not read until ``until``."""
    view = memoryview(frame)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            poller = select.poll()
            poller.register(fd, select.POLLOUT)
            poller.poll(left_s * 1000)
        except BrokenPipeError:
            return False
    return True


class FrameReader:
    """Collects frames from one pipe; ``ended`` says that its writer is gone."""

    __slots__ = ("_buffer", "ended", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = b""
        self.ended = False

    def read(self) -> list[tuple[bytes, Any]]:
        """One read of the pipe, which must be readable; the frames that it completed."""
        try:
            chunk = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return []
        if not chunk:
            self.ended = True
            return []
        self._buffer = self._buffer + chunk if self._buffer else chunk
        frames = []
        while len(self._buffer) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer)
            end = _HEADER.size + length
            if len(self._buffer) < end:
                break
            frames.append((kind, marshal.loads(self._buffer[_HEADER.size : end])))
            self._buffer = self._buffer[end:]
        return frames
