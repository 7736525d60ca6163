"""Fetching the report that a program was asked to write, when everything it started is gone.

Owns the refusal of every file that is not a plain one within the cap, before a byte of it is
read. It does not look at the contents: whether they are a valid report is decided elsewhere.
A plain file that nobody has open for writing is moved into the evidence: the copy would be the same
bytes, and costs a file and the deletion of another one. Every other one is copied.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable

from agent_eval.records.digests import open_file
from agent_eval.records.outcome import ReportRecord, ReportState
from agent_eval.supervise import linux
from agent_eval.supervise.capture import CHUNK_BYTES, SMALL_BYTES, FileSink, Sink, SinkFactory, describe

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}
_PATH_ONLY = getattr(os, "O_PATH", None)
_ORDINARY_MODE = 0o664  # evidence never holds what is set-uid or anybody's to write


class ReportSpot:
    """The place of one report. Opened before the program starts, so that its folder cannot be swapped for another."""

    __slots__ = ("_folder_fd", "_name")

    def __init__(self, path: str, *, must_be_free: bool = True) -> None:
        """Raises ``OSError``: the folder is not there, or (``EEXIST``) something lies at ``path`` that must be free."""
        folder, self._name = os.path.split(path)
        flags = os.O_DIRECTORY | os.O_CLOEXEC | (_PATH_ONLY or os.O_RDONLY)
        self._folder_fd = os.open(folder or ".", flags)
        if not must_be_free:
            return
        try:
            os.stat(self._name, dir_fd=self._folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError:
            self.close()
            raise
        self.close()
        raise FileExistsError(errno.EEXIST, "a report from before is already there", path)

    def collect(self, target: str, room_bytes: int, sink_factory: SinkFactory) -> ReportRecord:
        """Check the file and make it the new file ``target``, or copy at most ``room_bytes`` of it there."""
        try:
            fd = self._open()
        except FileNotFoundError:
            return ReportRecord(state=ReportState.MISSING)
        except OSError as error:
            return ReportRecord(state=ReportState.REFUSED, reason=f"it cannot be looked at: {describe(error)}")
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                return _refused(f"it is {_kind(facts)}, not a plain file", facts)
            if facts.st_nlink != 1:
                return _refused(f"it has {facts.st_nlink} links: the same file has another name", facts)
            try:
                readable = _reopen(fd)
            except OSError as error:
                return _refused(f"it cannot be read: {describe(error)}", facts)
        finally:
            os.close(fd)
        try:
            if sink_factory is FileSink and facts.st_size <= room_bytes and self._move(readable, facts, target):
                return _read(readable, facts, room_bytes, None)
            mounted = self._mounted(readable, facts)
            if mounted is not None:
                return _refused(f"{mounted} is mounted over it", facts)
            return _read(readable, facts, room_bytes, lambda: sink_factory(target))
        finally:
            os.close(readable)

    def rescue(self, target: str, room_bytes: int, sink_factory: SinkFactory) -> ReportRecord:
        """:meth:`collect` after a process was killed that may have begun with it: the report may lie at ``target`` already, whole or in part."""
        try:
            if not stat.S_ISREG(os.lstat(target).st_mode):
                return self.collect(target, room_bytes, sink_factory)  # says what is wrong with it
            os.stat(self._name, dir_fd=self._folder_fd, follow_symlinks=False)
            os.unlink(target)
        except FileNotFoundError:
            if os.path.lexists(target):
                return _taken_already(target, room_bytes)
        except OSError as error:
            return ReportRecord(state=ReportState.REFUSED, reason=f"it cannot be looked at: {describe(error)}", write_error=describe(error))
        # Never moved from here: a lease that is broken sends a signal, which only a guardian is prepared for.
        return self.collect(target, room_bytes, lambda path: sink_factory(path))

    def _move(self, fd: int, facts: os.stat_result, target: str) -> bool:
        """Give the file that is open as ``fd`` the new name ``target``; false when it has to be copied or refused.

        What something is mounted over cannot be moved (EBUSY), nor to another file system (EXDEV).
        """
        mode = stat.S_IMODE(facts.st_mode)
        if mode & ~_ORDINARY_MODE or not mode & stat.S_IRUSR or facts.st_uid != os.geteuid() or linux.may_be_written(fd):
            return False
        if not linux.rename_new(self._folder_fd, self._name, target):
            return False
        moved = os.stat(target, follow_symlinks=False)
        return (moved.st_ino, moved.st_dev) == (facts.st_ino, facts.st_dev)

    def close(self) -> None:
        """Let go of the folder."""
        if self._folder_fd >= 0:
            os.close(self._folder_fd)
            self._folder_fd = -1

    def _open(self) -> int:
        if _PATH_ONLY is not None:  # opens nothing: a plain O_NOFOLLOW open would open FIFOs and devices
            return os.open(self._name, _PATH_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder_fd)
        facts = os.stat(self._name, dir_fd=self._folder_fd, follow_symlinks=False)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, f"it is {_kind(facts)}")
        return os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder_fd)

    def _mounted(self, fd: int, facts: os.stat_result) -> str | None:
        if facts.st_dev != os.fstat(self._folder_fd).st_dev:
            return "another file system"
        return "another file" if linux.mount_id(fd) != linux.mount_id(self._folder_fd) else None


def _taken_already(path: str, room_bytes: int) -> ReportRecord:
    """The record of a report that was moved to ``path`` before."""
    try:
        with open_file(path) as stream:
            return _read(stream.fileno(), os.fstat(stream.fileno()), room_bytes, None)
    except (OSError, ValueError) as error:
        return ReportRecord(state=ReportState.REFUSED, reason=f"it cannot be read: {error}")


def _kind(facts: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(facts.st_mode), "of an unknown kind")


def _refused(reason: str, facts: os.stat_result) -> ReportRecord:
    return ReportRecord(state=ReportState.REFUSED, reason=reason, size_bytes=facts.st_size, mode=f"{stat.S_IMODE(facts.st_mode):04o}")


def _reopen(fd: int) -> int:
    if _PATH_ONLY is None:
        return os.dup(fd)
    return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def _read(source: int, facts: os.stat_result, room_bytes: int, open_sink: Callable[[], Sink] | None) -> ReportRecord:
    """Read up to the cap, and copy unless the file itself was taken. One over the cap is refused, and the part that fits is kept as evidence."""
    digest = hashlib.sha256()
    copied, reason, write_error, content = 0, None, None, b""
    size = facts.st_size
    sink: Sink | None = None
    try:
        try:
            if open_sink is not None:
                sink = open_sink()
            while copied < room_bytes:
                data = os.read(source, min(CHUNK_BYTES, room_bytes - copied))
                if not data:
                    break
                if sink is not None:
                    sink.write(data)
                digest.update(data)
                copied += len(data)
                content = data
            else:
                size = max(size, copied + len(os.read(source, 1)))
        finally:
            if sink is not None:
                sink.close()
    except OSError as error:
        write_error = describe(error)
    if size > room_bytes:
        reason = f"it holds {size} bytes, over the {room_bytes} that the output cap leaves"
    elif copied != size and write_error is None:
        reason = f"it changed while it was read: {size} bytes before, {copied} read"
    return ReportRecord(
        state=ReportState.REFUSED if reason else ReportState.KEPT,
        reason=reason,
        kept_bytes=copied,
        size_bytes=size,
        mode=f"{stat.S_IMODE(facts.st_mode):04o}",
        sha256=digest.hexdigest() if copied or write_error is None else None,
        write_error=write_error,
        content=content if copied == len(content) <= SMALL_BYTES and write_error is None else None,
    )
