"""The file operations that evidence is written by: the seam of this room.

Every write of evidence goes through one object of this class, so that a test can
make any one of them fail or stop the process there, and can read the order of the
calls. It knows nothing of what is written.
"""

from __future__ import annotations

import os


class Files:
    """Real file operations. Each raises ``OSError`` as the system does."""

    __slots__ = ()

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        """Create a directory that must not exist."""
        os.mkdir(path, mode)

    def make_spread_directory(self, path: str) -> None:
        """Create a directory that must not exist and that will hold many folders with files."""
        self.make_directory(path)
        # Imported here because ctypes costs milliseconds that commands which only read need not pay.
        from agent_eval.supervise.linux import spread_subfolders

        spread_subfolders(path)

    def create(self, path: str, data: bytes) -> None:
        """Create a file that must not exist, with ``data``. A file that could not be filled is removed again."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            write_all(descriptor, data)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)

    def open_append(self, path: str) -> int:
        """Create a file that must not exist and return a descriptor that appends to it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags, 0o600)

    def append(self, descriptor: int, line: bytes) -> None:
        """Add one line by one write: a reader never sees half of it but after a crash of the machine."""
        write_all(descriptor, line)

    def sync_file(self, path: str) -> None:
        """Make the content of a file (or the names in a directory) durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self, directory: str) -> None:
        """Make everything written so far to the directory's file system durable, in one call."""
        # Imported here because ctypes costs milliseconds that commands which only read need not pay.
        from agent_eval.supervise.linux import syncfs

        syncfs(directory)

    def rename(self, source: str, target: str) -> None:
        """Put a complete file under its final name."""
        os.rename(source, target)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``; a short write is continued, so that ENOSPC is an error and not a short file."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])
