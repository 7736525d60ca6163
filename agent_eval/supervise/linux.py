"""What the standard library does not offer of Linux: prctl, syncfs and the facts in ``/proc``.

Owns every use of ``ctypes`` and every read of ``/proc``. On another system each function says
that it has nothing (``False``, an empty tuple, ``None``), and callers fall back to the group.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_SS_DISABLE = 2

IS_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if IS_LINUX else None
_statx = getattr(_libc, "statx", None)  # glibc 2.28, musl 1.2.5
_statx_buffer = ctypes.create_string_buffer(256)
_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")
_AT_EMPTY_PATH = 0x1000
_STATX_MNT_ID = 0x1000
_renameat2 = getattr(_libc, "renameat2", None)  # glibc 2.28, musl 1.2.6
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
# ioctl numbers hold their direction in bits that a few old architectures order differently.
_GENERIC_IOCTL_MACHINES = ("x86_64", "aarch64", "riscv64")
_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS, _FS_TOPDIR_FL = 0x80086601, 0x40086602, 0x00020000
_STX_MNT_ID_OFFSET = 0x90


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One line of ``/proc/<pid>/stat``, as far as it is needed. ``start_ticks`` count from boot."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """False for a zombie, which only waits to be reaped."""
        return self.state not in "ZX"


def _prctl(option: int, value: int) -> bool:
    # Variadic in C: every argument has to be passed as an unsigned long.
    if _libc is None:
        return False
    zero = ctypes.c_ulong(0)
    return _libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero) == 0


def become_subreaper() -> bool:
    """Let orphaned descendants become our children instead of those of process 1. Not inherited by fork."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_inspection() -> bool:
    """Keep other processes of the same ordinary user out of our ``/proc/<pid>/fd`` and memory."""
    return _prctl(_PR_SET_DUMPABLE, 0)


def on_parent_death(signal_number: int) -> bool:
    """Have the kernel send us ``signal_number`` when the thread that forked us ends."""
    return _prctl(_PR_SET_PDEATHSIG, signal_number)


def drop_signal_stack() -> None:
    """Run signal handlers on the ordinary stack again.

    ``faulthandler`` (pytest, ``-X dev``) leaves a small alternate one: a burst of different signals nests on it
    until it overflows, and the process dies of SIGSEGV (seen with six at once and AVX-512 frames).
    """
    if _libc is not None:
        _libc.sigaltstack(struct.pack("@PiN", 0, _SS_DISABLE, 0), None)


def syncfs(path: str) -> None:
    """Flush the whole file system that holds ``path`` to its disk; raises ``OSError`` when that fails.

    Where the call does not exist, the portable ``sync`` stands in for it.
    """
    if _libc is None or not hasattr(_libc, "syncfs"):
        os.sync()
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(fd)


def mount_id(fd: int) -> int | None:
    """Which mount ``fd`` lies on: tells a file bound over another one of the same file system. ``None``: unknown."""
    if _statx is None or _statx(fd, b"", _AT_EMPTY_PATH, _STATX_MNT_ID, _statx_buffer) != 0:
        return None
    if not _U32.unpack_from(_statx_buffer, 0)[0] & _STATX_MNT_ID:  # a kernel before 5.8
        return None
    return _U64.unpack_from(_statx_buffer, _STX_MNT_ID_OFFSET)[0]


def spread_subfolders(path: str) -> bool:
    """Have ext4 place each folder made in ``path`` in a block group of its own choice (chattr +T); false where that is not known.

    Without it all of them share the group of ``path``, in which ext4 passes over the inodes deleted in the last minutes
    one by one whenever it looks for a free one: up to 0.7 ms for every file that is made.
    """
    if not IS_LINUX or os.uname().machine not in _GENERIC_IOCTL_MACHINES:
        return False
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flags = _U64.unpack(fcntl.ioctl(fd, _FS_IOC_GETFLAGS, bytes(_U64.size)))[0]
        fcntl.ioctl(fd, _FS_IOC_SETFLAGS, _U64.pack(flags | _FS_TOPDIR_FL))
    except OSError:  # another file system
        return False
    finally:
        os.close(fd)
    return True


def rename_new(folder_fd: int, name: str, target: str) -> bool:
    """Move ``name`` in the open folder to the path ``target``, which must not exist; false when that cannot be done in one step."""
    if _renameat2 is None:
        return False
    return _renameat2(folder_fd, os.fsencode(name), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) == 0


def may_be_written(fd: int) -> bool:
    """Whether somebody may have the file ``fd`` (opened for reading only) open for writing, a writable mapping included.

    The kernel grants a read lease on a file only while there is no writer (fcntl(2), F_SETLEASE).
    """
    if not IS_LINUX:
        return True
    import fcntl

    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:  # EAGAIN: there is one; others: this file system or owner has no leases
        return True
    return False


def facts_of(pid: int) -> ProcessFacts | None:
    """What the kernel says of ``pid``; ``None`` when it is gone."""
    data = _slurp(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name is in brackets and may hold brackets and blanks itself: the last one closes it.
    head, _, tail = data.rpartition(b")")
    name = head.partition(b"(")[2].decode("utf-8", "backslashreplace")
    fields = tail.split()
    return ProcessFacts(
        pid=pid,
        name=name,
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
    )


def children_of(pid: int) -> tuple[int, ...]:
    """The children of every thread of ``pid``; empty when it is gone or the kernel does not tell."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return ()
    found: list[int] = []
    for thread in threads:
        found.extend(int(word) for word in _slurp(f"/proc/{pid}/task/{thread}/children").split())
    return tuple(found)


def descendants_of(roots: tuple[int, ...], until: float) -> list[ProcessFacts]:
    """The facts of ``roots`` and of all below them, as seen in one walk that ends at ``until`` (monotonic)."""
    seen: dict[int, ProcessFacts] = {}
    queue = list(roots)
    while queue and time.monotonic() < until:
        pid = queue.pop()
        facts = facts_of(pid) if pid not in seen else None
        if facts is None:
            continue
        seen[pid] = facts
        if facts.alive:
            queue.extend(children_of(pid))
    return list(seen.values())


def has_variable(pid: int, assignment: bytes) -> bool:
    """Whether ``NAME=value`` is in the environment that ``pid`` was started with, as far as we may look."""
    return assignment in _slurp(f"/proc/{pid}/environ").split(b"\0")


def wait_channel(pid: int) -> str | None:
    """Where in the kernel ``pid`` sleeps, when the kernel tells."""
    text = _slurp(f"/proc/{pid}/wchan").decode("ascii", "replace").strip()
    return text if text not in ("", "0") else None


def sleep_clock() -> float:
    """Seconds that the machine has slept since it was started; 0 where the system does not tell."""
    if not IS_LINUX:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def boot_clock() -> float:
    """Seconds since boot, those of sleep included; 0 where the system does not tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if IS_LINUX else 0.0


def ticks(boot_seconds: float) -> int:
    """A moment of :func:`boot_clock` in the unit of :attr:`ProcessFacts.start_ticks`."""
    return int(boot_seconds * os.sysconf("SC_CLK_TCK"))


def _slurp(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while chunk := os.read(fd, 1 << 16):
            parts.append(chunk)
        return b"".join(parts)
    except OSError:  # ESRCH: it ended between the open and the read
        return b""
    finally:
        os.close(fd)
