"""Files that `judge` and `audit` read and the one they may write: found, bounded, never overwritten."""

from __future__ import annotations

import os

from agent_eval.measure.rows import MAX_BYTES, Reading, read_rows
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import InvalidInput


def read_bytes(path: str, option: str) -> bytes:
    """A regular file's bytes, at most 256 MiB. Raises InvalidInput naming `option`."""
    try:
        if not os.path.isfile(path):
            what = "is not a regular file" if os.path.exists(path) else "does not exist"
            raise InvalidInput.one(option, f"{path} {what}", "name a file")
        if os.path.getsize(path) > MAX_BYTES:
            raise InvalidInput.one(option, f"{path} is larger than {MAX_BYTES >> 20} MiB", "split it")
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError) as error:
        raise InvalidInput.one(option, f"{path} cannot be read ({error})", "") from None


def read_file(path: str, option: str) -> tuple[Reading, str]:
    """The rows of a file and its SHA-256."""
    data = read_bytes(path, option)
    return read_rows(os.path.basename(path), data), sha256_bytes(data)


def write_new(path: str, data: bytes, option: str) -> None:
    """Write a file that does not exist yet. Raises InvalidInput when it does or cannot be made."""
    try:
        with open(path, "xb") as stream:
            stream.write(data)
    except FileExistsError:
        raise InvalidInput.one(option, f"{path} exists already", "name a new file: nothing is overwritten") from None
    except (OSError, ValueError) as error:
        raise InvalidInput.one(option, f"{path} cannot be written ({error})", "") from None
