"""SHA-256 digests of bytes and files, lower-case hex.

Owns reading a regular file for its digest. It does not decide which files matter.
"""

from __future__ import annotations

import hashlib
import os
import stat

_BLOCK_BYTES = 1 << 18


def sha256_bytes(data: bytes) -> str:
    """Lower-case hex SHA-256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def sha256_descriptor(descriptor: int, size_bytes: int) -> tuple[str, int]:
    """Digest and byte count of an open file read from its current position to its end.

    ``size_bytes`` is what ``fstat`` said: a small file takes one read, which is what
    makes hashing thousands of small files cheap. A file that grows is read to its end.
    """
    if size_bytes < _BLOCK_BYTES:
        data = os.read(descriptor, size_bytes + 1)
        if len(data) <= size_bytes and not os.read(descriptor, 1):
            return hashlib.sha256(data).hexdigest(), len(data)
        digest, total = hashlib.sha256(data), len(data)
    else:
        digest, total = hashlib.sha256(), 0
        os.lseek(descriptor, 0, os.SEEK_SET)
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
    # O_NONBLOCK: a FIFO that took the file's place must not block the harness.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{os.fspath(path)} is not a regular file")
        return sha256_descriptor(descriptor, status.st_size)[0]
    finally:
        os.close(descriptor)
