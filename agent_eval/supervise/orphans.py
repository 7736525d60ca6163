"""The harness's own sweep, for when a guardian is dead or does not answer.

Owns telling the lost trial's processes from strangers. Here "all my children" would be wrong:
other slots' guardians are children too, and to process 1 the kernel gives the orphans of strangers.
Only our own children are signalled, because only their numbers cannot pass to somebody else.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from agent_eval.records.outcome import Unreaped
from agent_eval.supervise import linux
from agent_eval.supervise.sweep import kill_group, name_processes

_NAP_S = 0.001
_STOP_LANDS_S = 0.02


@dataclass(slots=True)
class LostTrial:
    """What the harness knows of a trial whose guardian it lost."""

    guardian: int  # 0 when it has been reaped
    leader: int  # 0 when nothing was started
    started_ticks: int
    mark_assignment: bytes
    other_guardians: Collection[int]
    all_orphans_are_ours: bool
    family: set[tuple[int, int]] = field(default_factory=set)  # (pid, start ticks): numbers are used again


@dataclass(frozen=True, slots=True)
class Recovered:
    """``leader_status`` is the wait status when the leader could be reaped here; ``complete`` says that nobody of the trial is left."""

    killed: int
    leader_status: int | None
    left: tuple[Unreaped, ...]
    complete: bool


def recover(lost: LostTrial, until: float) -> Recovered:
    """End the guardian and everything below it, bounded by ``until`` (monotonic)."""
    guardian_left: tuple[Unreaped, ...] = ()
    if lost.guardian:
        below = linux.descendants_of(linux.children_of(lost.guardian), until)
        lost.family.update((facts.pid, facts.start_ticks) for facts in below)
        if end_child(lost.guardian, until):
            lost.guardian = 0  # its number may come back
        else:
            guardian_left = name_processes((lost.guardian,))
    if lost.leader and not linux.IS_LINUX:
        kill_group(lost.leader, signal.SIGKILL)
    killed, leader_status = 0, None
    while True:
        orphans = _our_orphans(lost)
        for pid in orphans:
            _kill_with_family(pid, lost)
        reaped = 0
        for pid in orphans:
            status = _reap(pid)
            if status is None:
                continue
            reaped += 1
            if pid == lost.leader:
                leader_status = status
            else:
                killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if not orphans or time.monotonic() >= until:
            break
        if not reaped:
            time.sleep(_NAP_S)
    left = (*guardian_left, *name_processes(orphans), *name_processes(_doubtful_orphans(lost)))
    return Recovered(killed=killed, leader_status=leader_status, left=left, complete=not orphans and not guardian_left)


def end_child(pid: int, until: float) -> bool:
    """SIGKILL our child ``pid`` and reap it; False when it does not end until ``until`` (monotonic)."""
    while not has_been_reaped(pid):
        os.kill(pid, signal.SIGKILL)  # not reaped: the number is still its own
        if time.monotonic() >= until:
            return False
        time.sleep(_NAP_S)
    return True


def has_been_reaped(pid: int) -> bool:
    """Reap our child ``pid`` if it has ended; True also when it is no child of ours any more."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _reap(pid: int) -> int | None:
    try:
        reaped, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return status if reaped else None


def _own_children(lost: LostTrial) -> list[linux.ProcessFacts]:
    own_session = os.getsid(0)
    found = []
    for pid in linux.children_of(os.getpid()):
        if pid == lost.guardian or pid in lost.other_guardians:
            continue
        facts = linux.facts_of(pid)
        # A guardian leads its own session, and a session cannot be rejoined: who is in ours is no descendant of it.
        if facts is not None and facts.session != own_session:
            found.append(facts)
    return found


def _our_orphans(lost: LostTrial) -> list[int]:
    return [facts.pid for facts in _own_children(lost) if _is_ours(facts, lost)]


def _is_ours(facts: linux.ProcessFacts, lost: LostTrial) -> bool:
    if (facts.pid, facts.start_ticks) in lost.family:
        return True
    if facts.start_ticks < lost.started_ticks:
        return False
    if lost.leader and lost.leader in (facts.pid, facts.group, facts.session):
        return True
    return lost.all_orphans_are_ours or linux.has_variable(facts.pid, lost.mark_assignment)


def _doubtful_orphans(lost: LostTrial) -> list[int]:
    """Orphans that came during the trial and bear no sign of it: named, because they may be ours; never signalled."""
    return [
        facts.pid for facts in _own_children(lost) if facts.alive and facts.start_ticks >= lost.started_ticks and not _is_ours(facts, lost)
    ]


def _kill_with_family(pid: int, lost: LostTrial) -> None:
    """Stop, note all below, then kill: a stopped process can start nobody that we would not know."""
    try:
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + _STOP_LANDS_S
        while (facts := linux.facts_of(pid)) is not None and facts.state not in "TtZXD" and time.monotonic() < until:
            pass
        lost.family.update((below.pid, below.start_ticks) for below in linux.descendants_of((pid,), until))
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
