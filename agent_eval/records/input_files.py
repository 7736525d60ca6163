"""Reading a file that a person named: a plain one, of bounded size, or one clear error.

A FIFO would block for ever and a device would never end; neither is read. It does not
look at the content.
"""

from __future__ import annotations

import os
import stat

from agent_eval.records.problems import InvalidInput

DEFAULT_MAX_BYTES = 64 << 20


def read_input(path: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES, fix: str = "") -> bytes:
    """The bytes of the regular file at ``path``; links are followed. Raises ``InvalidInput`` with ``fix`` as what to do."""
    where = os.fspath(path)
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise InvalidInput.one(where, f"cannot be read ({getattr(error, 'strerror', None) or error})", fix) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput.one(where, "is not a regular file", fix)
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(max_bytes + 1)
    except OSError as error:
        raise InvalidInput.one(where, f"cannot be read ({error.strerror})", fix) from None
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise InvalidInput.one(where, f"is larger than {max_bytes} bytes", fix)
    return data
