"""The lines of a manifest: a digest, two spaces, a relative path.

Owns their form and their order. It compares nothing.
"""

from __future__ import annotations

import re
from typing import BinaryIO

DIGEST = re.compile(r"[0-9a-f]{64}")
LINE = re.compile(r"([0-9a-f]{64})  (.+)\n")
_PATH_START = 66  # after the digest and two spaces


def is_ordered(stream: BinaryIO) -> bool:
    """Whether the lines are in the byte order of their paths. Leaves the stream at its start."""
    previous = b""
    try:
        for line in stream:
            path = line[_PATH_START:]
            if path < previous:
                return False
            previous = path
        return True
    finally:
        stream.seek(0)
