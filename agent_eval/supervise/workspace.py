"""What a folder holds, before and after somebody else worked in it.

Owns the bounded walk (:func:`snapshot`) and the reading of what was added or
changed (:func:`capture`); the records and their comparison (:func:`difference`)
live in ``tree_records`` and are offered here too. Nothing is followed: a symlink is a name with a target, a FIFO,
socket or device is never opened, and every step goes through a directory
descriptor, so that a tree that changes underneath cannot lead the walk elsewhere.
It does not decide which change is allowed, and it changes nothing itself.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator

from agent_eval.supervise.tree_records import (
    Captured,
    Change,
    Entry,
    Omission,
    Snapshot,
    difference,
    display_path,
)

__all__ = ["Captured", "Change", "Entry", "Omission", "Snapshot", "capture", "difference", "display_path", "snapshot"]

MAX_ENTRIES = 20_000
MAX_DEPTH = 64
MAX_HASHED_BYTES = 1 << 30
MAX_CAPTURED_FILE_BYTES = 1 << 20
MAX_CAPTURED_BYTES = 8 << 20

_BLOCK_BYTES = 1 << 18
_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character-device",
    stat.S_IFBLK: "block-device",
}


def snapshot(
    root: str,
    *,
    max_entries: int = MAX_ENTRIES,
    max_depth: int = MAX_DEPTH,
    max_hashed_bytes: int = MAX_HASHED_BYTES,
) -> Snapshot:
    """Walk ``root`` without following anything and digest every regular file.

    A root that is gone or is no directory any more is one entry that says so. Raises nothing for what the
    tree holds; ``limit`` of the result says when it held too much.
    """
    walk = _Walk(max_entries, max_depth, max_hashed_bytes)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(root, flags)
    except OSError as error:
        walk.entries.append(_root_without_walk(root, error))
        return walk.result()
    try:
        walk.entries.append(Entry(b".", "directory", _mode(os.fstat(descriptor))))
        walk.folder(descriptor, b"", 0)
    finally:
        os.close(descriptor)
    return walk.result()


def capture(
    root: str,
    changes: tuple[Change, ...],
    keep: Callable[[str, bytes], object],
    *,
    max_file_bytes: int = MAX_CAPTURED_FILE_BYTES,
    max_bytes: int = MAX_CAPTURED_BYTES,
) -> Captured:
    """Hand the content of every added or changed regular file to ``keep(sha256, data)``, each content once.

    Files over ``max_file_bytes``, and files that would bring the total over ``max_bytes``, are left out and
    named. Content whose digest is no longer that of the snapshot is left out as ``changed-since-snapshot``.
    """
    kept: dict[str, int] = {}
    omitted = []
    for change in changes:
        entry = change.after
        if entry is None or entry.type != "file" or not (change.kind == "added" or {"type", "content"} & set(change.what)):
            continue
        if entry.sha256 in kept:
            continue
        data, why = _content(root, entry, max_file_bytes, max_bytes - sum(kept.values()))
        if data is None or entry.sha256 is None:
            omitted.append(Omission(entry.path, why, entry.size_bytes, entry.sha256))
        else:
            keep(entry.sha256, data)
            kept[entry.sha256] = len(data)
    return Captured(tuple(kept), sum(kept.values()), tuple(omitted))


class _LimitReached(Exception):
    """Ends a walk; carries the name of the limit."""


class _Walk:
    """The state of one walk: what was seen and how much may still be seen."""

    def __init__(self, max_entries: int, max_depth: int, max_hashed_bytes: int) -> None:
        self.entries: list[Entry] = []
        self.limit: str | None = None
        self._max_entries = max_entries
        self._max_depth = max_depth
        self._hash_left = max_hashed_bytes
        self._max_hashed_bytes = max_hashed_bytes

    def result(self) -> Snapshot:
        ordered = sorted(self.entries, key=lambda entry: entry.path)
        return Snapshot(tuple(ordered), self._max_hashed_bytes - self._hash_left, self.limit)

    def folder(self, descriptor: int, prefix: bytes, depth: int) -> None:
        try:
            self._folder(descriptor, prefix, depth)
        except _LimitReached as reached:
            self.limit = str(reached)

    def _folder(self, descriptor: int, prefix: bytes, depth: int) -> None:
        for name in self._names(descriptor, prefix):
            if len(self.entries) >= self._max_entries:
                raise _LimitReached("entries")
            path = prefix + os.fsencode(name)
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError as error:
                self.entries.append(Entry(path, "unknown", error=_errno_name(error)))
                continue
            if stat.S_ISDIR(status.st_mode):
                self._subfolder(descriptor, name, path, status, depth + 1)
            else:
                self.entries.append(self._leaf(descriptor, name, path, status))

    def _names(self, descriptor: int, prefix: bytes) -> list[str]:
        # A folder of a million names is not read to its end only to be refused.
        room = self._max_entries - len(self.entries)
        names: list[str] = []
        try:
            with os.scandir(descriptor) as found:
                for item in found:
                    names.append(item.name)
                    if len(names) > room:
                        break
        except OSError as error:
            self.entries.append(Entry(prefix + b"?", "unknown", error=_errno_name(error)))
        names.sort(key=os.fsencode)
        return names

    def _subfolder(self, parent: int, name: str, path: bytes, status: os.stat_result, depth: int) -> None:
        if depth > self._max_depth:
            raise _LimitReached("depth")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=parent)
        except OSError as error:
            self.entries.append(Entry(path, "directory", _mode(status), error=_errno_name(error)))
            return
        try:
            self.entries.append(Entry(path, "directory", _mode(status)))
            self._folder(descriptor, path + b"/", depth)
        finally:
            os.close(descriptor)

    def _leaf(self, parent: int, name: str, path: bytes, status: os.stat_result) -> Entry:
        kind = _TYPES.get(stat.S_IFMT(status.st_mode), "unknown")
        links = status.st_nlink if status.st_nlink > 1 else None
        if kind == "symlink":
            try:
                target = os.fsencode(os.readlink(name, dir_fd=parent))
            except OSError as error:
                return Entry(path, kind, error=_errno_name(error))
            return Entry(path, kind, target=target)
        if kind != "file":
            return Entry(path, kind, _mode(status))
        size_bytes, digest, trouble = self._digest(parent, name, status.st_size)
        return Entry(path, kind, _mode(status), size_bytes, digest, links=links, error=trouble)

    def _digest(self, parent: int, name: str, size_bytes: int) -> tuple[int, str | None, str | None]:
        if size_bytes > self._hash_left:
            raise _LimitReached("hashed-bytes")
        try:
            descriptor = _open_file(name, parent)
        except OSError as error:
            return size_bytes, None, _errno_name(error)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return size_bytes, None, "changed-while-read"
            digest, total = hashlib.sha256(), 0
            for block in _blocks(descriptor):
                total += len(block)
                # A file that grows while it is read must not carry the walk past its bound.
                if total > self._hash_left:
                    raise _LimitReached("hashed-bytes")
                digest.update(block)
        except OSError as error:
            return size_bytes, None, _errno_name(error)
        finally:
            os.close(descriptor)
        self._hash_left -= total
        return total, digest.hexdigest(), None


def _blocks(descriptor: int) -> Iterator[bytes]:
    while block := os.read(descriptor, _BLOCK_BYTES):
        yield block


def _open_file(name: str | bytes, parent: int) -> int:
    # O_NONBLOCK: a FIFO that took the file's place since it was looked at must not block.
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)


def _content(root: str, entry: Entry, max_bytes: int, room_bytes: int) -> tuple[bytes | None, str]:
    """The content that the snapshot digested, or ``None`` and why not."""
    if entry.sha256 is None or entry.size_bytes is None:
        return None, entry.error or "unreadable"
    if entry.size_bytes > max_bytes:
        return None, "over-file-limit"
    if entry.size_bytes > room_bytes:
        return None, "over-total-limit"
    return _read_again(root, entry, entry.size_bytes + 1)


def _read_again(root: str, entry: Entry, wanted: int) -> tuple[bytes | None, str]:
    opened: list[int] = []
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    *folders, name = entry.path.split(b"/")
    try:
        opened.append(os.open(root, flags))
        for folder in folders:
            opened.append(os.open(folder, flags, dir_fd=opened[-1]))
        opened.append(_open_file(name, opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            return None, "changed-since-snapshot"
        data = b""
        while len(data) < wanted and (block := os.read(opened[-1], wanted - len(data))):
            data += block
    except OSError as error:
        return None, _errno_name(error)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        return None, "changed-since-snapshot"
    return data, ""


def _root_without_walk(root: str, error: OSError) -> Entry:
    try:
        status = os.lstat(root)
    except OSError as gone:
        return Entry(b".", "missing", error=_errno_name(gone))
    kind = _TYPES.get(stat.S_IFMT(status.st_mode), "unknown")
    return Entry(b".", kind, _mode(status), error=_errno_name(error))


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"


def _errno_name(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "vanished"
    return errno.errorcode.get(error.errno or 0, "unknown-error")
