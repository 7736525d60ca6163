"""Scratch folders for one trial after another.

Owns which folder may be used again: one that its trial left exactly as it was made. Everything
else is removed by :class:`~agent_eval.supervise.scratch.Scratch` itself.
"""

from __future__ import annotations

import os

from agent_eval.supervise.scratch import FOLDER_FLAGS, Scratch

_Facts = tuple[object, ...]


class ScratchPool:
    """Hands out private scratch folders and takes them back; as a context manager it removes the spare ones at the end.

    A folder used again gets a new unguessable name. That costs a fifth of a new one, and leaves no deleted inode: ext4
    passes over those of the last minutes one by one whenever it looks for a free one, which makes every later file
    of a long run dearer (up to 0.7 ms each, measured with 8,000 of them in a block group).
    """

    def __init__(self) -> None:
        self._spare: list[Scratch] = []
        self._made: dict[Scratch, _Facts] = {}

    def take(self) -> Scratch:
        """An empty scratch folder. Raises ``OSError`` when none can be made."""
        while self._spare:
            scratch = self._spare.pop()
            try:
                scratch.rename()
            except OSError:  # a cleaner of old files took it
                self._remove(scratch)
                continue
            if _facts_when_empty(scratch.path) == self._made[scratch]:  # only now: other trials ran meanwhile
                scratch.seen_empty = False
                return scratch
            self._remove(scratch)
        scratch = Scratch()
        facts = _facts_when_empty(scratch.path)
        if facts is not None:
            self._made[scratch] = facts
        return scratch

    def give_back(self, scratch: Scratch, *, all_ended: bool = True) -> None:
        """Keep ``scratch`` for another trial when nothing of this one is left in it and ``all_ended`` is said of its processes, else remove it."""
        expected = scratch.forget_expected()
        made = self._made.get(scratch)
        if all_ended and made is not None and (scratch.seen_empty or _facts_when_empty(scratch.path, expected) == made):
            self._spare.append(scratch)
        else:
            self._remove(scratch)

    def close(self) -> None:
        """Remove the spare folders."""
        while self._spare:
            self._remove(self._spare.pop())

    def __enter__(self) -> ScratchPool:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _remove(self, scratch: Scratch) -> None:
        self._made.pop(scratch, None)
        scratch.remove()


def _facts_when_empty(path: str, deletable: tuple[str, ...] = ()) -> _Facts | None:
    """What tells an empty folder from another one, and from itself after a chmod, chown or setfacl; ``None`` when it is not empty.

    Files named ``deletable`` are deleted first.
    """
    try:
        fd = os.open(path, FOLDER_FLAGS)
    except OSError:
        return None
    try:
        for name in os.listdir(fd):
            if name not in deletable:
                return None
            os.unlink(name, dir_fd=fd)
        status = os.fstat(fd)
        attributes = tuple((name, os.getxattr(fd, name)) for name in os.listxattr(fd)) if hasattr(os, "listxattr") else ()
        return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid, attributes
    except OSError:
        return None
    finally:
        os.close(fd)
