"""Ending every descendant of the guardian, exactly.

Owns the loop "kill my children until there are none". The guardian is a subreaper, so whatever
loses its parent becomes its child; a child that only we can reap keeps its number, so no signal can
hit a stranger. Runs only in a process all of whose children are the trial's.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass

from agent_eval.records.outcome import Unreaped
from agent_eval.supervise import linux

COUNT_WINDOW_S = 0.03  # counting a wide tree must not give a fork bomb the time to grow
_NAP_S = 0.02  # a missed wake-up costs no more than this
_FULL_PAGE_BYTES = 2048  # a shorter answer is the end of the list


@dataclass(frozen=True, slots=True)
class Census:
    """Descendants alive beside the leader at one moment: all of them, and those outside its group."""

    alive: int = 0
    outside_group: int = 0


@dataclass(frozen=True, slots=True)
class Swept:
    """``killed`` ended by our signal; ``left`` could not be ended."""

    killed: int = 0
    left: tuple[Unreaped, ...] = ()


class ChildList:
    """The calling process's children, read cheaply again and again. Make it in the process that uses it."""

    __slots__ = ("_fd",)

    def __init__(self) -> None:
        try:
            # Single-threaded: the only task has the number of the process.
            self._fd = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    @property
    def known(self) -> bool:
        """Whether this system tells."""
        return self._fd >= 0

    def read(self) -> tuple[int, ...]:
        """The children now, zombies included."""
        if self._fd < 0:
            return ()
        data = chunk = os.pread(self._fd, 1 << 16, 0)
        while len(chunk) > _FULL_PAGE_BYTES:  # the kernel hands out a page at a time
            chunk = os.pread(self._fd, 1 << 16, len(data))
            data += chunk
        return tuple(int(word) for word in data.split())


def take_census(children: Iterable[int], leader: int) -> Census:
    """Count what lives below ``children``, the ``leader`` itself left out."""
    roots = tuple(pid for pid in children if pid != leader)
    if not roots:
        return Census()
    found = linux.descendants_of(roots, time.monotonic() + COUNT_WINDOW_S)
    alive = [facts for facts in found if facts.alive and facts.pid != leader]
    return Census(alive=len(alive), outside_group=sum(facts.group != leader for facts in alive))


def kill_group(leader: int, number: int) -> None:
    """Signal the leader's group. The leader must not have been reaped: that keeps the group's number ours.

    ESRCH is a group that is gone already; EPERM is what macOS says of one that holds only zombies
    (meson issue 3569), and what a group of another user's processes answers: the sweep names those.
    """
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass


def sweep(children: ChildList, until: float) -> Swept:
    """Kill and reap until there are no children, or until ``until`` (monotonic)."""
    killed, empty = _reap_ended(set())
    if empty:
        return Swept(killed)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))  # to be waited for
    try:
        return _sweep_living(children, until, killed)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))


def _sweep_living(children: ChildList, until: float, killed: int) -> Swept:
    struck: set[int] = set()  # a second signal to the same process would cost a wide tree its square
    refused: set[int] = set()
    while True:
        present = set(children.read())
        for pid in present - struck - refused:
            try:
                os.kill(pid, signal.SIGKILL)
                struck.add(pid)
            except PermissionError:  # it became another user (sudo)
                refused.add(pid)
            except ProcessLookupError:
                pass
        count, empty = _reap_ended(struck)
        killed += count
        if empty:
            return Swept(killed)
        if (refused and present <= refused) or time.monotonic() >= until or not children.known:
            return Swept(killed, _name_living(children))
        _wait_for_child(min(_NAP_S, until - time.monotonic()))


def _name_living(children: ChildList) -> tuple[Unreaped, ...]:
    """Everybody below us, also who is not our own child yet."""
    below = linux.descendants_of(children.read(), time.monotonic() + COUNT_WINDOW_S)
    return name_processes(facts.pid for facts in below)


def _reap_ended(struck: set[int]) -> tuple[int, bool]:
    """Reap who has ended; how many of them SIGKILL ended, and whether nobody is left.

    Takes them out of ``struck``: their numbers may come back.
    """
    killed = 0
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return killed, True
        if pid == 0:
            return killed, False
        struck.discard(pid)
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _wait_for_child(seconds: float) -> None:
    if seconds <= 0:
        return
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait((signal.SIGCHLD,), seconds)
    else:
        time.sleep(min(seconds, 0.001))


def name_processes(pids: Iterable[int]) -> tuple[Unreaped, ...]:
    """Who could not be ended, for the record."""
    named = []
    for pid in pids:
        facts = linux.facts_of(pid)
        if facts is None or facts.alive:
            named.append(Unreaped(pid=pid, name=facts.name if facts else None, wchan=linux.wait_channel(pid)))
    return tuple(named)
