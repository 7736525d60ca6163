"""The guardian: a small process that owns every process of one job slot's trials.

Owns its own set-up after the fork (session, subreaper, signals, descriptors) and the loop that
takes commands and answers with outcomes. It prints nothing, and it outlives everything but
SIGKILL: what kills the harness by name with SIGTERM must not take it along.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from types import FrameType
from typing import Any

from agent_eval.supervise import linux, wire
from agent_eval.supervise.capture import SinkFactory
from agent_eval.supervise.command import Command
from agent_eval.supervise.scratch import remove_left_by
from agent_eval.supervise.sweep import ChildList, sweep
from agent_eval.supervise.watch import Host, Wish, supervise

_DYING_S = 2.0  # of a harness with much memory to give back
CONTAINED = "subreaper"
GROUP_ONLY = "group"
_SWEEP_AT_END_S = 5.0  # nobody waits for it: who died too slowly for the outcome is still buried
# The faults that Python code can only get by being broken keep their default action.
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}
_DEFAULT = {signal.SIGCHLD, signal.SIGCONT, *_FAULTS}


class _HarnessBox:
    """Wishes from the control pipe, and the harness's death from its pidfd or the pipe's end."""

    def __init__(self, control_fd: int, harness_fd: int) -> None:
        self._reader = wire.FrameReader(control_fd)
        self._control_fd = control_fd
        self._harness_fd = harness_fd
        self._frames: deque[tuple[bytes, Any]] = deque()
        self._told = False
        self.gone = False
        self.let_go = False
        """Whether the harness said that it needs this guardian no longer: then its end of the pipe is not the harness's death."""

    def descriptors(self) -> tuple[int, ...]:
        """What to poll; nothing once the harness is gone."""
        if self.gone:
            return ()
        return (self._control_fd,) if self._harness_fd < 0 else (self._control_fd, self._harness_fd)

    def receive(self, fd: int) -> None:
        """Read what is there. The pidfd sees the death even where some copy of the pipe stays open."""
        if fd == self._harness_fd:
            self.gone = True
            return
        for frame in self._reader.read():
            if frame[0] == wire.BYE:
                self.let_go = True
            else:
                self._frames.append(frame)
        self.gone = self.gone or self._reader.ended

    def take(self) -> Wish | None:
        """The next wish about the running trial."""
        if self.gone and not self._told:
            self._told = True
            return Wish.GONE
        if self._frames:
            return Wish.STOP if self._frames.popleft()[0] == wire.STOP else Wish.KILL
        return None

    def next_command(self) -> Command | None:
        """Wait for a command; ``None`` when the harness is gone. Wishes about a trial that has ended are dropped."""
        poller = select.poll()
        for fd in self.descriptors():
            poller.register(fd, select.POLLIN)
        while True:
            while self._frames:
                kind, value = self._frames.popleft()
                if kind == wire.RUN:
                    return Command.from_wire(value)
            if self.gone:
                return None
            for fd, _ in poller.poll():
                self.receive(fd)


def run_guardian(control_fd: int, result_fd: int, harness: int, publish_leader: Callable[[int], None], sink_factory: SinkFactory) -> None:
    """The life of a guardian, called in the fork. The caller ends the process when this returns."""
    os.setsid()
    contained = linux.become_subreaper()
    linux.forbid_inspection()
    _settle_signals()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A stopped guardian whose harness dies is continued, sees the end of the pipe and sweeps.
    linux.on_parent_death(signal.SIGCONT)
    if os.getppid() != harness:
        remove_left_by(harness)
        return
    _keep_only((control_fd, result_fd))
    harness_fd = os.pidfd_open(harness) if hasattr(os, "pidfd_open") else -1
    gc.freeze()
    box = _HarnessBox(control_fd, harness_fd)
    children = ChildList()
    containment = CONTAINED if contained and children.known else GROUP_ONLY
    host = Host(
        children=children,
        mailbox=box,
        publish_leader=publish_leader,
        sink_factory=sink_factory,
        containment=containment,
        null_fd=0,
    )
    try:
        _serve(host, box, result_fd)
    except BaseException:
        import traceback

        sweep(children, time.monotonic() + _SWEEP_AT_END_S)
        os.write(result_fd, wire.encode(wire.FAULT, traceback.format_exc()))
    finally:
        sweep(children, time.monotonic() + _SWEEP_AT_END_S)
        if box.gone and not box.let_go and _is_dead(harness):
            # Of every slot, whose guardians do the same: the last one finds no process of a trial any more.
            remove_left_by(harness)


def _is_dead(harness: int) -> bool:
    """Whether our parent is gone. A process that is killed closes its pipes a moment before its children see it go."""
    until = time.monotonic() + _DYING_S
    while os.getppid() == harness and time.monotonic() < until:
        time.sleep(0.001)
    return os.getppid() != harness


def _serve(host: Host, box: _HarnessBox, result_fd: int) -> None:
    while (command := box.next_command()) is not None:
        outcome = supervise(command, host)
        if box.gone:
            return
        frame = memoryview(wire.encode(wire.RESULT, outcome.to_wire()))
        while frame:
            try:
                frame = frame[os.write(result_fd, frame) :]
            except BrokenPipeError:
                return


def _settle_signals() -> None:
    """Catch and forget what would end us: an ignored signal would stay ignored in the child, a caught one does not."""
    signal.set_wakeup_fd(-1)
    linux.drop_signal_stack()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL if number in _DEFAULT else _overhear)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _overhear(_number: int, _frame: FrameType | None) -> None:
    """Somebody signals by name or group; the guardian's trial and its harness decide when it ends."""


def _keep_only(descriptors: Collection[int]) -> None:
    """Close every inherited descriptor but these, with /dev/null as 0-2.

    A copy of another slot's pipe would hide its end of file, and one of the harness's stdout would keep a
    reader waiting after the harness has ended.
    """
    for number in _open_descriptors():
        if number > 2 and number not in descriptors:
            os.closerange(number, number + 1)  # no error for the one that the listing itself used
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # after the closing: it may need a free number
    for number in range(3):
        os.dup2(null, number)
    os.close(null)


def _open_descriptors() -> Iterable[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(folder)]
        except OSError:
            continue
    return range(3, 4096)  # the limit itself may be a thousand million
