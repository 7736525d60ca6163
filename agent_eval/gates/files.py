"""The file operations that a lineage is written by: the write seam of this room.

Every change of a ledger, a blob or a live file is one call on one object of this class, so that a test can
stop the process before, within and after any of them. It knows nothing of what is written.
"""

from __future__ import annotations

import os


class Files:
    """Real file operations, each durable when it returns where its name says so. Each raises ``OSError``."""

    __slots__ = ()

    def flush(self, descriptor: int) -> None:
        """Make what was written through a descriptor durable."""
        os.fsync(descriptor)

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        """Create a directory that must not exist."""
        os.mkdir(path, mode)

    def create(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create a file that must not exist, with exactly ``data`` and ``mode``, and sync it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            _write_all(descriptor, data)
            os.fchmod(descriptor, mode)  # open() subtracts the umask; a restored file has its own mode
            self.flush(descriptor)
        finally:
            os.close(descriptor)

    def append(self, path: str, data: bytes) -> None:
        """Add ``data`` to the end of an existing file and sync it."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _write_all(descriptor, data)
            self.flush(descriptor)
        finally:
            os.close(descriptor)

    def truncate(self, path: str, size_bytes: int) -> None:
        """Cut a file to ``size_bytes`` and sync it."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.ftruncate(descriptor, size_bytes)
            self.flush(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        """Put a complete file under its final name, replacing what is there."""
        os.rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.flush(descriptor)
        finally:
            os.close(descriptor)


def replace_file(files: Files, path: str, data: bytes, mode: int = 0o600) -> None:
    """Give ``path`` exactly ``data`` and ``mode``: a reader sees the old file or the new one, never a part.

    The temporary name is fixed, so that what a crash left behind is found and removed by the next attempt.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.agent-eval-new")
    if os.path.lexists(temporary):
        files.remove(temporary)
    files.create(temporary, data, mode)
    files.rename(temporary, path)
    files.sync_directory(directory or ".")


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
