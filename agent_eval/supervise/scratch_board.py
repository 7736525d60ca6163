"""Which scratch folders a harness has just now, where its guardians can still read it when it was killed.

Owns a piece of memory that every later fork shares. The harness alone writes; nothing here makes
or deletes a folder. A program under supervision has no part of it: exec takes the memory away.
"""

from __future__ import annotations

import mmap
import os
import re
import struct

NAME_PREFIX = "agent-eval-"
_NAME = re.compile(rf"/{NAME_PREFIX}[0-9a-f]{{18}}\Z")
_RECORDS = 2048  # 256 jobs at once have four folders each at most: running, prepared, ended and spare
_RECORD_BYTES = 256
_LENGTH = struct.Struct("<H")


class ScratchBoard:
    """Paths of scratch folders. A path too long for a record, or one too many, is not noted: then nobody removes it after a kill."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._memory = mmap.mmap(-1, _RECORDS * _RECORD_BYTES)
        self._free = list(range(_RECORDS - 1, -1, -1))

    def add(self, path: str) -> int | None:
        """Note a folder that is about to be made; returns what :meth:`drop` takes."""
        data = os.fsencode(path)
        if not self._free or len(data) > _RECORD_BYTES - _LENGTH.size:
            return None
        index = self._free.pop()
        place = index * _RECORD_BYTES
        self._memory[place + _LENGTH.size : place + _LENGTH.size + len(data)] = data
        # Last: whoever is killed before it has written no path, rather than the beginning of one.
        _LENGTH.pack_into(self._memory, place, len(data))
        return index

    def drop(self, index: int | None) -> None:
        """Forget a folder that is gone, or that is to be kept."""
        if index is not None:
            _LENGTH.pack_into(self._memory, index * _RECORD_BYTES, 0)
            self._free.append(index)

    def paths(self) -> list[str]:
        """What is noted now. Only names that a scratch folder has: what is wrong here must not be deleted."""
        found = []
        for place in range(0, len(self._memory), _RECORD_BYTES):
            (length,) = _LENGTH.unpack_from(self._memory, place)
            path = os.fsdecode(self._memory[place + _LENGTH.size : place + _LENGTH.size + length]) if length else ""
            if path.startswith("/") and _NAME.search(path):
                found.append(path)
        return found


_board: ScratchBoard | None = None
_inherited: ScratchBoard | None = None


def own_board() -> ScratchBoard:
    """The board of this process, made when it is first asked for."""
    global _board
    if _board is None:
        _board = ScratchBoard()
    return _board


def left_by(harness: int) -> list[str]:
    """For a fork of the process ``harness``, which is dead: the folders that it had. Those of any other process are nobody's business."""
    return [] if _inherited is None or _inherited.owner != harness else _inherited.paths()


def _start_anew() -> None:
    global _board, _inherited
    _board, _inherited = None, _board


# A fork that makes scratch folders (a worker of a pool) notes them on a board of its own.
os.register_at_fork(after_in_child=_start_anew)
