"""Reading a child's stdout and stderr under one exact byte cap.

Owns the two pipes and the files their bytes go to. Bytes are written down as they arrive,
hashed on the way and never decoded. It decides nothing: it only tells that the cap was passed.
"""

from __future__ import annotations

import hashlib
import os
import select
import time
from collections.abc import Callable
from typing import Protocol

from agent_eval.records.outcome import StreamRecord

CHUNK_BYTES = 1 << 16  # the capacity of a pipe: one read empties it
SMALL_BYTES = 1 << 13  # content up to this size goes along with the outcome, so that nobody has to open the file for it


class Sink(Protocol):
    """Where kept bytes go: the seam at which tests let a disk fail."""

    def write(self, data: bytes) -> None:
        """Write all of ``data`` or raise ``OSError``."""

    def close(self) -> None:
        """End writing."""


SinkFactory = Callable[[str], Sink]


class FileSink:
    """A new file at ``path``; an existing one is an error, also when it is a dangling link."""

    __slots__ = ("_fd", "_path", "_size_bytes")

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._size_bytes = 0

    def write(self, data: bytes) -> None:
        """Write all of ``data``. What a failing disk took of it is taken back: the file holds what was counted, or is gone."""
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError:
            os.ftruncate(self._fd, self._size_bytes)
            if not self._size_bytes:
                os.unlink(self._path)
            raise
        self._size_bytes += written

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def describe(error: OSError) -> str:
    """An ``OSError`` in one line, with its symbolic name where there is one."""
    import errno

    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    return f"{error.strerror or error} ({code})"


class Stream:
    """One pipe: its read end, what was seen and what was kept."""

    __slots__ = ("_content", "_digest", "_path", "_sink", "_sink_factory", "fd", "kept_bytes", "seen_bytes", "truncated", "write_error")

    def __init__(self, path: str | None, sink_factory: SinkFactory) -> None:
        self._path = path
        self._sink_factory = sink_factory
        self._sink: Sink | None = None
        self._digest: hashlib._Hash | None = None
        self._content: bytes | None = b""
        self.fd = -1
        self.seen_bytes = self.kept_bytes = 0
        self.truncated = False
        self.write_error: str | None = None

    def keep(self, data: bytes) -> None:
        """Write ``data`` down; a failure is remembered, and the stream is drained without keeping from then on."""
        if self._path is None or self.write_error is not None or not data:
            return
        try:
            if self._sink is None:
                self._sink = self._sink_factory(self._path)
            self._sink.write(data)
        except OSError as error:
            self.write_error = describe(error)
            return
        if self._digest is None:
            self._digest = hashlib.sha256()
        self._digest.update(data)
        self.kept_bytes += len(data)
        if self._content is not None:
            self._content = self._content + data if self.kept_bytes <= SMALL_BYTES else None

    def close(self) -> None:
        """Close the pipe and the file."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        sink, self._sink = self._sink, None
        if sink is not None:
            try:
                sink.close()
            except OSError as error:  # EDQUOT and EIO may show only here (NFS)
                self.write_error = describe(error)

    def record(self) -> StreamRecord:
        """What became of the stream."""
        return StreamRecord(
            seen_bytes=self.seen_bytes,
            kept_bytes=self.kept_bytes,
            truncated=self.truncated,
            sha256=self._digest.hexdigest() if self._digest and self.kept_bytes else None,
            write_error=self.write_error,
            content=self._content if self.kept_bytes and self.write_error is None else None,
        )


class Capture:
    """Both streams of one child under one cap."""

    __slots__ = ("_write_ends", "overflowed", "room_bytes", "stderr", "stdout")

    def __init__(self, cap_bytes: int, stdout_path: str | None, stderr_path: str | None, sink_factory: SinkFactory) -> None:
        self.room_bytes = cap_bytes
        self.overflowed = False
        self.stdout = Stream(stdout_path, sink_factory)
        self.stderr = Stream(stderr_path, sink_factory)
        self._write_ends: list[int] = []

    def open(self) -> tuple[int, int]:
        """Make the pipes; returns the child's ends. Raises ``OSError`` when descriptors run out."""
        for stream in (self.stdout, self.stderr):
            stream.fd, write_end = os.pipe()
            self._write_ends.append(write_end)
            # The child can open its end for reading and steal bytes: a blocking read would then wait for ever.
            os.set_blocking(stream.fd, False)
        return self._write_ends[0], self._write_ends[1]

    def close_write_ends(self) -> None:
        """Drop our copies of the child's ends, so that the end of file can arrive."""
        while self._write_ends:
            os.close(self._write_ends.pop())

    def read(self, stream: Stream) -> bool:
        """One read of a readable stream; False when there is nothing now. Closes the pipe at its end.

        Asks for at most one byte more than the cap leaves: that byte proves the overflow.
        """
        room = self.room_bytes
        try:
            data = os.read(stream.fd, min(CHUNK_BYTES, room + 1))
        except BlockingIOError:
            return False
        if not data:
            os.close(stream.fd)
            stream.fd = -1
            return False
        stream.seen_bytes += len(data)
        if len(data) > room:
            stream.truncated = self.overflowed = True
            data = data[:room]
        self.room_bytes = room - len(data)
        stream.keep(data)
        return True

    def drain(self, until: float) -> None:
        """Read what is left until both pipes end, the cap is passed, or the absolute ``until`` (monotonic).

        ``until`` is never moved by data: somebody outside the tree may hold a pipe and write for ever.
        """
        for stream in (self.stdout, self.stderr):
            while stream.fd >= 0 and not self.overflowed:
                if self.read(stream) or stream.fd < 0:
                    if time.monotonic() > until:
                        break
                    continue
                left_s = until - time.monotonic()
                if left_s <= 0:
                    break
                poller = select.poll()
                poller.register(stream.fd, select.POLLIN)
                if not poller.poll(left_s * 1000):
                    break
        if self.overflowed:
            self._mark_cut_streams()

    def _mark_cut_streams(self) -> None:
        # The stream that did not pass the cap may have lost bytes too: one of them proves it.
        for stream in (self.stdout, self.stderr):
            if stream.fd >= 0 and not stream.truncated:
                self.read_surplus(stream)

    def read_surplus(self, stream: Stream) -> None:
        """Take one byte of ``stream`` after the cap was passed; when there is one, the stream is cut."""
        self.room_bytes = 0
        self.read(stream)

    def close(self) -> None:
        """Close every descriptor."""
        self.close_write_ends()
        self.stdout.close()
        self.stderr.close()
