"""SHA-256 digests of bytes and files, lower-case hex.

Owns reading a regular file for its digest. It does not decide which files matter.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import BinaryIO

_BLOCK_BYTES = 1 << 18
# O_NONBLOCK: a FIFO that took the file's place must not block the harness.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def sha256_bytes(data: bytes) -> str:
    """Lower-case hex SHA-256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def sha256_descriptor(descriptor: int, size_bytes: int) -> tuple[str, int]:
    """Digest and byte count of an open regular file at its start, read to its end.

    ``size_bytes`` is what ``fstat`` said: a small file takes one read, which is what
    makes hashing thousands of small files cheap. A file that grows is read to its end.
    """
    if size_bytes < _BLOCK_BYTES:
        # One byte more was asked for than there should be: exactly the size means that the file ended there.
        data = os.read(descriptor, size_bytes + 1)
        if len(data) == size_bytes:
            return hashlib.sha256(data).hexdigest(), size_bytes
        digest, total = hashlib.sha256(data), len(data)
    else:
        digest, total = hashlib.sha256(), 0
    buffer = bytearray(_BLOCK_BYTES)
    view = memoryview(buffer)
    while count := os.readv(descriptor, [buffer]):
        digest.update(view[:count])
        total += count
    return digest.hexdigest(), total


def sha256_file(path: str | os.PathLike[str], *, dir_fd: int | None = None) -> str:
    """Digest of the regular file at ``path``; a final symlink is not followed.

    Raises ``OSError`` when it cannot be opened and ``ValueError`` when it is not a regular file.
    """
    descriptor = os.open(path, _FLAGS, dir_fd=dir_fd)
    try:
        return sha256_descriptor(descriptor, _regular_size(descriptor, path))[0]
    finally:
        os.close(descriptor)


def read_file(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> bytes:
    """Content of the regular file at ``path``; a final symlink is not followed.

    Raises ``OSError`` when it cannot be opened or read and ``ValueError`` when it is not a regular file or larger than ``max_bytes``.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        size_bytes = _regular_size(descriptor, path)
        if max_bytes is not None and size_bytes > max_bytes:
            raise ValueError(f"{os.fspath(path)} has {size_bytes} bytes, at most {max_bytes} are read")
        data = os.read(descriptor, size_bytes + 1)
        if len(data) == size_bytes:
            return data
        parts = [data]
        while more := os.read(descriptor, _BLOCK_BYTES):
            parts.append(more)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """The regular file at ``path``, to be read piece by piece; raises as :func:`read_file` does."""
    descriptor = os.open(path, _FLAGS)
    try:
        _regular_size(descriptor, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _regular_size(descriptor: int, path: str | os.PathLike[str]) -> int:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{os.fspath(path)} is not a regular file")
    return status.st_size
