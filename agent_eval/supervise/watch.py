"""One trial inside the guardian: start, watch, stop, sweep, drain, fetch the report.

Owns the order of these steps, on which the promises rest (README, "Ordering rules"). It knows
nothing of the harness but a :class:`Mailbox` that tells of its wishes and of its death.
"""

from __future__ import annotations

import enum
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from agent_eval.records.outcome import Outcome, ReportRecord, StartError, StopReason, StopStep, Tree
from agent_eval.supervise import linux
from agent_eval.supervise.capture import Capture, SinkFactory, Stream
from agent_eval.supervise.command import Command
from agent_eval.supervise.exit_watch import POLL_INTERVAL_S, ExitWatch, has_ended
from agent_eval.supervise.report_file import ReportSpot
from agent_eval.supervise.spawn import StartFailed, failed, start
from agent_eval.supervise.sweep import Census, ChildList, Swept, kill_group, sweep, take_census

DRAIN_WINDOW_S = 0.1  # after the leader's exit; absolute
KILL_LANDS_S = 0.35  # a leader that outlives SIGKILL this long sleeps uninterruptibly
SWEEP_BOUND_S = 0.65  # after SIGKILL, or after an end without it, for the whole tree: a busy machine buries slowly
_RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


class Wish(enum.Enum):
    """What the harness wants of a running trial; ``GONE`` says that there is no harness any more."""

    STOP = enum.auto()
    KILL = enum.auto()
    GONE = enum.auto()


class Mailbox(Protocol):
    """The harness as seen by a trial."""

    def descriptors(self) -> tuple[int, ...]:
        """What to poll."""

    def receive(self, fd: int) -> None:
        """Read the readable ``fd``."""

    def take(self) -> Wish | None:
        """The next wish."""

    @property
    def gone(self) -> bool:
        """Whether there is no harness any more."""


@dataclass(frozen=True, slots=True)
class Host:
    """What a guardian lends to each of its trials."""

    children: ChildList
    mailbox: Mailbox
    publish_leader: Callable[[int], None]
    sink_factory: SinkFactory
    containment: str
    null_fd: int


class _Phase(enum.Enum):
    RUNNING = enum.auto()
    GRACE = enum.auto()
    KILLED = enum.auto()


def supervise(command: Command, host: Host) -> Outcome:
    """Run ``command`` to its known end. Never raises for what the program or its files do."""
    began = time.monotonic()
    capture = Capture(command.max_output_bytes, command.stdout_path, command.stderr_path, host.sink_factory)
    spot: ReportSpot | None = None
    stdin_fd = host.null_fd
    try:
        try:
            if command.report_source is not None:
                spot = ReportSpot(command.report_source)
            if command.stdin_bytes is not None:
                stdin_fd = _filled_file(command.stdin_bytes)
            stdio = (stdin_fd, *capture.open())
        except (OSError, ValueError) as error:
            return _never_started(host, began, _setup_error(error))
        try:
            trial = _Trial(command, host, capture, stdio)
        except StartFailed as failure:
            return _never_started(host, began, failure.error)
        finally:
            os.chdir("/")
        capture.close_write_ends()
        try:
            return trial.finish(trial.await_exit(), spot)
        finally:
            host.publish_leader(0)
    finally:
        capture.close()
        if spot is not None:
            spot.close()
        if stdin_fd != host.null_fd:
            os.close(stdin_fd)


def _filled_file(data: bytes) -> int:
    """A file without a name that holds ``data`` and is read from its start."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile(buffering=0) as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _setup_error(error: OSError | ValueError) -> StartError:
    if isinstance(error, OSError):
        return failed("setup", error, str(error.filename or "preparing the trial")).error
    return StartError(stage="setup", message=str(error))


def _never_started(host: Host, began: float, error: StartError) -> Outcome:
    tree = Tree(containment=host.containment)
    return Outcome(tree=tree, started_at="", wall_s=time.monotonic() - began, start_error=error)


class _Trial:
    """A started program until its end."""

    def __init__(self, command: Command, host: Host, capture: Capture, stdio: tuple[int, int, int]) -> None:
        """Starts it; raises :class:`StartFailed`."""
        self._command = command
        self._host = host
        self._capture = capture
        self._slept = linux.sleep_clock()
        self._started = time.monotonic()
        self._leader = start(command.argv, command.env, command.cwd, stdio)
        host.publish_leader(self._leader)
        self._phase = _Phase.RUNNING
        self._deadline = self._started + command.timeout_s
        self._killed_at: float | None = None
        self._stop_reason: StopReason | None = None
        self._steps: list[StopStep] = []

    def await_exit(self) -> bool:
        """Capture and watch the limits until the leader has ended; False when SIGKILL did not end it."""
        watch = ExitWatch(self._leader)
        poller = select.poll()
        if watch.fd >= 0:
            poller.register(watch.fd, select.POLLIN)
        for fd in self._host.mailbox.descriptors():
            poller.register(fd, select.POLLIN)
        streams = {stream.fd: stream for stream in (self._capture.stdout, self._capture.stderr)}
        for fd in streams:
            poller.register(fd, select.POLLIN)
        try:
            while True:
                self._heed_harness()
                if self._turn(poller, streams, watch):
                    return True
                if time.monotonic() >= self._deadline and not self._next_phase():
                    return False
        finally:
            watch.close()

    def _turn(self, poller: select.poll, streams: dict[int, Stream], watch: ExitWatch) -> bool:
        """Wait for one event or the next deadline; whether the leader has ended."""
        wait_s = max(0.0, self._deadline - time.monotonic())
        if watch.fd < 0:
            wait_s = min(wait_s, POLL_INTERVAL_S)
        ended = False
        for fd, _ in poller.poll(math.ceil(wait_s * 1000)):
            if fd == watch.fd:
                ended = True
            elif fd in streams:
                self._capture.read(streams[fd])
                if streams[fd].fd < 0:
                    poller.unregister(fd)
                    del streams[fd]
            else:
                self._receive(fd, poller)
        if self._capture.overflowed and streams:
            for fd in streams:
                poller.unregister(fd)
            streams.clear()
            if not ended:
                self._kill(StopReason.OUTPUT_LIMIT)
        return ended or (watch.fd < 0 and has_ended(self._leader))

    def _receive(self, fd: int, poller: select.poll) -> None:
        mailbox = self._host.mailbox
        before = mailbox.descriptors()
        mailbox.receive(fd)
        if not mailbox.descriptors():
            for number in before:
                poller.unregister(number)

    def _heed_harness(self) -> None:
        while (wish := self._host.mailbox.take()) is not None:
            if wish is Wish.STOP:
                self._stop(StopReason.INTERRUPTED)
            else:
                self._kill(StopReason.INTERRUPTED)

    def _next_phase(self) -> bool:
        """The deadline of this phase has passed; False when there is nothing stronger left."""
        if self._phase is _Phase.RUNNING:
            self._stop(StopReason.TIMEOUT)
        elif self._phase is _Phase.GRACE:
            self._kill(StopReason.TIMEOUT)
        else:
            return False
        return True

    def _stop(self, reason: StopReason) -> None:
        if self._phase is not _Phase.RUNNING:
            return
        self._stop_reason = reason
        # A stopped process keeps SIGTERM pending until it is continued.
        for number in (signal.SIGTERM, signal.SIGCONT):
            self._send(number)
        self._phase = _Phase.GRACE
        self._deadline = time.monotonic() + self._command.grace_s

    def _kill(self, reason: StopReason) -> None:
        if self._phase is _Phase.KILLED:
            return
        self._stop_reason = self._stop_reason or reason
        self._send(signal.SIGKILL)
        self._phase = _Phase.KILLED
        self._killed_at = time.monotonic()
        self._deadline = self._killed_at + KILL_LANDS_S

    def _send(self, number: signal.Signals) -> None:
        kill_group(self._leader, number)
        self._steps.append(StopStep(signal=number.name, at_s=time.monotonic() - self._started))

    def finish(self, ended: bool, spot: ReportSpot | None) -> Outcome:
        """Take stock, kill, reap, sweep, drain, and only then look at the report."""
        learned = time.monotonic()
        wall_s = learned - self._started
        suspended_s = max(0.0, linux.sleep_clock() - self._slept)
        census = take_census(self._host.children.read(), self._leader) if ended else Census()
        ended_by_itself = self._stop_reason is None
        status: int | None = None
        usage: resource.struct_rusage | None = None
        if ended:
            kill_group(self._leader, signal.SIGKILL)
            try:
                _, status, usage = os.wait4(self._leader, 0)
            except ChildProcessError:  # somebody reaped it: the status is lost, not 0
                status = None
        swept = sweep(self._host.children, (self._killed_at or learned) + SWEEP_BOUND_S)
        self._capture.drain(learned + DRAIN_WINDOW_S)
        if self._capture.overflowed and self._stop_reason is None:
            self._stop_reason = StopReason.OUTPUT_LIMIT
        self._capture.close()
        report = ReportRecord()
        if spot is not None and self._command.report_path is not None and not self._host.mailbox.gone:
            report = spot.collect(self._command.report_path, self._capture.room_bytes, self._host.sink_factory)
        return Outcome(
            tree=self._tree(census, swept, ended_by_itself),
            started_at="",
            wall_s=wall_s,
            suspended_s=suspended_s if suspended_s > 0.001 else 0.0,
            stop_reason=self._stop_reason,
            stop_steps=tuple(self._steps),
            stdout=self._capture.stdout.record(),
            stderr=self._capture.stderr.record(),
            report=report,
            **status_fields(status),
            **_usage_fields(usage),
        )

    def _tree(self, census: Census, swept: Swept, ended_by_itself: bool) -> Tree:
        return Tree(
            containment=self._host.containment,
            leaked=census.alive if ended_by_itself else 0,
            escaped=census.outside_group,
            killed=swept.killed,
            unreaped=swept.left,
        )


def status_fields(status: int | None) -> dict[str, Any]:
    """The status of ``wait4`` as fields of an outcome; ``None`` is a lost status."""
    if status is None:
        return {"status_lost": True}
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status), "core_dumped": os.WCOREDUMP(status)}
    return {"exit_code": os.WEXITSTATUS(status)}


def _usage_fields(usage: resource.struct_rusage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    # Until its exec the child counts as large as its spawner: a smaller figure says nothing.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = usage.ru_maxrss * _RSS_UNIT_BYTES if usage.ru_maxrss > own else None
    return {"cpu_user_s": usage.ru_utime, "cpu_system_s": usage.ru_stime, "max_rss_bytes": peak}
