"""File operations that kill their process, or raise, at a chosen place: the double for crash tests.

Operations are counted from 0; at operation ``stop_at`` the process ends ``before`` it, ``within`` it (half of the
bytes are written) or ``after`` it.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

from agent_eval.gates.files import Files


class StoppingFiles(Files):
    """Real operations up to a chosen one."""

    def __init__(self, stop_at: int = -1, place: str = "before") -> None:
        self.stop_at, self.place, self.count = stop_at, place, 0
        self.names: list[str] = []

    def flush(self, descriptor: int) -> None:
        """A killed process loses nothing that the kernel has; only a power cut would."""

    def _step(self, name: str, operation: Callable[[], None], half: Callable[[], None] | None = None) -> None:
        here = self.count == self.stop_at
        self.count += 1
        self.names.append(name)
        if here and self.place == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if here and self.place == "within" and half is not None:
            half()
            os.kill(os.getpid(), signal.SIGKILL)
        operation()
        if here:
            os.kill(os.getpid(), signal.SIGKILL)

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        self._step("make_directory", lambda: Files.make_directory(self, path, mode))

    def create(self, path: str, data: bytes, mode: int = 0o600) -> None:
        half = lambda: Files.create(self, path, data[: len(data) // 2], 0o600)  # noqa: E731
        self._step(f"create {os.path.basename(path)[:24]}", lambda: Files.create(self, path, data, mode), half)

    def append(self, path: str, data: bytes) -> None:
        self._step("append", lambda: Files.append(self, path, data), lambda: Files.append(self, path, data[: len(data) // 2]))

    def truncate(self, path: str, size_bytes: int) -> None:
        self._step("truncate", lambda: Files.truncate(self, path, size_bytes))

    def rename(self, source: str, target: str) -> None:
        self._step("rename", lambda: Files.rename(self, source, target))

    def remove(self, path: str) -> None:
        self._step("remove", lambda: Files.remove(self, path))

    def sync_directory(self, path: str) -> None:
        self._step("sync_directory", lambda: Files.sync_directory(self, path))


class FailingFiles(Files):
    """Real operations but one, which fails as on a full disk, after half of its bytes."""

    def __init__(self, fail_at: int) -> None:
        self.fail_at, self.count = fail_at, 0

    def flush(self, descriptor: int) -> None:
        """Not needed here."""

    def _fails(self) -> bool:
        self.count += 1
        return self.count - 1 == self.fail_at

    def create(self, path: str, data: bytes, mode: int = 0o600) -> None:
        if self._fails():
            super().create(path, data[: len(data) // 2], mode)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().create(path, data, mode)

    def append(self, path: str, data: bytes) -> None:
        if self._fails():
            super().append(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().append(path, data)

    def rename(self, source: str, target: str) -> None:
        if self._fails():
            raise OSError(errno.EIO, os.strerror(errno.EIO), target)
        super().rename(source, target)


def killed_at(work: Callable[[Files], object], stop_at: int, place: str) -> bool:
    """Run ``work`` in a child that kills itself there; False when it ended before it came so far."""
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            work(StoppingFiles(stop_at, place))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the child failed instead of being killed"
    return False
