"""One writer at a time: the lock of a lineage.

Owns an advisory lock on ``lock`` in the lineage directory. The system drops it when its holder ends, however
that happens, so that no stale lock is ever left.
"""

from __future__ import annotations

import fcntl
import os
import time

from agent_eval.records.problems import InvalidInput

_PAUSE_S = 0.02


class LineageLock:
    """Held between ``acquire`` and ``release``."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, lineage: str) -> None:
        self._path = os.path.join(lineage, "lock")
        self._descriptor = -1

    def acquire(self, wait_s: float) -> None:
        """Take the lock, waiting at most ``wait_s``. Raises :class:`InvalidInput` when another command keeps it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        limit = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= limit:
                    os.close(descriptor)
                    raise InvalidInput.one(
                        os.path.dirname(self._path),
                        "another command is writing to this lineage",
                        "try again when it has ended",
                    ) from None
                time.sleep(_PAUSE_S)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; calling it twice is harmless."""
        if self._descriptor >= 0:
            # Unlocked by name, not only by closing: a process forked meanwhile holds the same open file.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = -1
