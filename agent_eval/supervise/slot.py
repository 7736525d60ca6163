"""A job slot as the harness sees it: start a command, be told when to collect, never hang.

Owns the guardian's life (fork, replacement, end), the outer deadline and the outcome of a trial
whose guardian was lost. Everything that touches the trial's processes happens in the guardian.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import select
import stat
import struct
import time
from typing import Any

from agent_eval.records.clock import now_at
from agent_eval.records.outcome import Outcome, ReportRecord, ReportState, StartError, StopReason, StreamRecord, Tree
from agent_eval.supervise import linux, wire
from agent_eval.supervise.capture import CHUNK_BYTES, FileSink, SinkFactory, describe
from agent_eval.supervise.command import Command
from agent_eval.supervise.environment import MARK_VARIABLE
from agent_eval.supervise.guardian import CONTAINED, GROUP_ONLY, run_guardian
from agent_eval.supervise.orphans import LostTrial, Recovered, end_child, has_been_reaped, recover
from agent_eval.supervise.process import children_are_ours
from agent_eval.supervise.report_file import ReportSpot
from agent_eval.supervise.scratch_board import own_board
from agent_eval.supervise.watch import status_fields

OUTER_MARGIN_S = 0.85  # beyond timeout and grace; a guardian that is well needs at most 0.75 of it
RECOVERY_BOUND_S = 0.12  # for our own sweep after that: together below the promised second
_UNHURRIED_S = 0.8
_IDLE_END_S = 0.5

_live_guardians: set[int] = set()  # of all slots of this process: never strangers, never orphans
_LEADER = struct.Struct("<q")


class Slot:
    """One guardian, reused for one trial after another. Single-threaded callers only: it forks.

    ``mark`` is the value of the marker variable that every supervised process carries.
    ``sink_factory`` opens the files that captured bytes go to: the seam for failing disks.
    """

    def __init__(self, mark: str, *, sink_factory: SinkFactory = FileSink) -> None:
        self._mark = mark
        self._sink_factory = sink_factory
        self._contained = linux.become_subreaper()
        self._board = mmap.mmap(-1, mmap.PAGESIZE)  # shared with the guardian: the leader's pid survives its death
        self._guardian = 0
        self._control = self._result = -1
        self._reader = wire.FrameReader(-1)
        self._command: Command | None = None
        self._refusal: StartError | None = None
        self._strays: set[int] = set()  # not ended in their trial, and the guardian that was left with them
        self._unfinished: list[LostTrial] = []  # trials whose own sweep ran out of time
        self._started = self._deadline = self._started_boot = 0.0
        self._started_at = ""
        self.fault: str | None = None
        """Traceback of a guardian that broke: a defect of this code, for its developers."""
        try:
            self._launch()
        except OSError:  # no processes or descriptors left: the trial that meets it again says so
            self._guardian = 0

    @property
    def guardian(self) -> int | None:
        """The guardian's process id, ``None`` while there is none."""
        return self._guardian or None

    def start(self, command: Command) -> None:
        """Send ``command`` off and return at once. Nothing is raised for what cannot be started: :meth:`collect` tells."""
        if self._command is not None:
            raise RuntimeError("this slot is running a command")
        if self._strays or self._unfinished:
            self._bury_strays()
        self._command = command
        self._refusal = None
        self._started = now = time.monotonic()
        self._started_boot = linux.boot_clock()
        self._deadline = now + command.timeout_s + command.grace_s + OUTER_MARGIN_S
        try:
            frame = wire.encode(wire.RUN, command.to_wire(MARK_VARIABLE, self._mark))
            if not self._guardian or not wire.send_all(self._control, frame, now + OUTER_MARGIN_S):
                self._retire()  # it was killed while it was idle
                self._launch()
                wire.send_all(self._control, frame, now + OUTER_MARGIN_S)
        except OSError as error:
            self._refusal = StartError(stage="fork", message=f"a guardian: {describe(error)}", errno=error.errno)
        except ValueError as error:  # a value that is neither text nor number
            self._refusal = StartError(stage="argv", message=str(error))
        self._started_at = now_at()

    def fileno(self) -> int:
        """A descriptor that is readable when the outcome is there or the guardian is gone; -1 when that is so already."""
        return -1 if self._refusal is not None else self._result

    def deadline(self) -> float:
        """The ``time.monotonic()`` value at which :meth:`collect` is due even when nothing is readable."""
        return self._started if self._refusal is not None else self._deadline

    def collect(self) -> Outcome:
        """The outcome; waits for it until :meth:`deadline`. When the guardian is lost, sweeps and says so."""
        command = self._running()
        self._command = None
        if self._refusal is not None:
            tree = Tree(containment=CONTAINED if self._contained else GROUP_ONLY)
            return Outcome(tree=tree, started_at=self._started_at, wall_s=0.0, start_error=self._refusal)
        value = self._await_result()
        if value is None:
            return self._lost(command)
        outcome = Outcome.from_wire(value, self._started_at)
        if outcome.tree.unreaped:
            # Its next trial must not meet them. Without a harness it goes on burying them for a while.
            self._strays.update((self._guardian, *(process.pid for process in outcome.tree.unreaped)))
            self._hang_up()
        return outcome

    def stop(self) -> None:
        """End the running command gently: SIGTERM, SIGCONT, grace, SIGKILL. Again has no further effect."""
        self._wish(wire.STOP, self._running().grace_s)

    def kill(self) -> None:
        """End the running command now."""
        self._running()
        self._wish(wire.KILL, 0.0)

    def run(self, command: Command) -> Outcome:
        """Start, wait and collect."""
        self.start(command)
        return self.collect()

    def close(self) -> None:
        """End what is running and the guardian."""
        if self._command is not None:
            self.kill()
            self.collect()
        self._retire()
        self._bury_strays()
        for guardian in self._strays & _live_guardians:
            end_child(guardian, time.monotonic() + _IDLE_END_S)
            _live_guardians.discard(guardian)

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _running(self) -> Command:
        if self._command is None:
            raise RuntimeError("this slot is not running a command")
        return self._command

    def _wish(self, kind: bytes, grace_s: float) -> None:
        if self._refusal is None:
            now = time.monotonic()
            wire.send_all(self._control, wire.encode(kind), now)
            self._deadline = min(self._deadline, now + grace_s + OUTER_MARGIN_S)

    def _launch(self) -> None:
        """Fork a guardian; raises ``OSError`` when there are no processes or descriptors left."""
        harness = os.getpid()
        made: list[int] = []
        try:
            for _ in range(2):
                made.extend(os.pipe())
            control_read, control_write, result_read, result_write = made
            self._publish_leader(0)
            own_board()  # made before the fork that shall share it
            guardian = os.fork()
        except OSError:
            for fd in made:
                os.close(fd)
            raise
        if guardian == 0:
            try:
                run_guardian(control_read, result_write, harness, self._publish_leader, self._sink_factory)
            finally:
                os._exit(0)
        os.close(control_read)
        os.close(result_write)
        os.set_blocking(control_write, False)
        os.set_blocking(result_read, False)
        self._guardian, self._control, self._result = guardian, control_write, result_read
        self._reader = wire.FrameReader(result_read)
        _live_guardians.add(guardian)

    def _publish_leader(self, pid: int) -> None:
        _LEADER.pack_into(self._board, 0, pid)

    def _await_result(self) -> tuple[Any, ...] | None:
        while True:
            # Read before waiting: the caller mostly comes because there is something.
            for kind, value in self._reader.read():
                if kind == wire.RESULT:
                    return value
                self.fault = value
            if self._reader.ended:
                return None
            poller = select.poll()
            poller.register(self._result, select.POLLIN)
            if not poller.poll(max(0.0, self._deadline - time.monotonic()) * 1000) and time.monotonic() >= self._deadline:
                return None

    def _lost(self, command: Command) -> Outcome:
        """The guardian is dead or does not answer: sweep ourselves, and save what it had written down."""
        learned = time.monotonic()
        # A guardian that was killed, not waited for in vain, leaves more time until the promised second.
        recovered = self._recover(learned + max(RECOVERY_BOUND_S, min(_UNHURRIED_S, self._deadline - learned)))
        self._retire()
        stdout, stderr = _written(command.stdout_path), _written(command.stderr_path)
        room_bytes = max(0, command.max_output_bytes - stdout.kept_bytes - stderr.kept_bytes)
        return Outcome(
            tree=Tree(containment=CONTAINED if self._contained else GROUP_ONLY, killed=recovered.killed, unreaped=recovered.left),
            started_at=self._started_at,
            wall_s=learned - self._started,
            stop_reason=StopReason.SUPERVISOR_LOST,
            stdout=stdout,
            stderr=stderr,
            report=self._rescue_report(command, room_bytes),
            **status_fields(recovered.leader_status),
        )

    def _recover(self, until: float) -> Recovered:
        (leader,) = _LEADER.unpack_from(self._board)
        lost = LostTrial(
            guardian=self._guardian,
            leader=leader,
            started_ticks=linux.ticks(self._started_boot),
            mark_assignment=os.fsencode(f"{MARK_VARIABLE}={self._mark}"),
            other_guardians=_live_guardians - {self._guardian},
            all_orphans_are_ours=children_are_ours(),
        )
        recovered = recover(lost, until)
        if not recovered.complete:
            self._unfinished.append(lost)
        return recovered

    def _rescue_report(self, command: Command, room_bytes: int) -> ReportRecord:
        if command.report_source is None or command.report_path is None:
            return ReportRecord()
        try:
            spot = ReportSpot(command.report_source, must_be_free=False)
        except OSError:
            return ReportRecord(state=ReportState.MISSING)
        try:
            return spot.rescue(command.report_path, room_bytes, self._sink_factory)
        finally:
            spot.close()

    def _retire(self) -> None:
        """Let the guardian go: it ends by itself at the end of its pipe, unless it has to be ended."""
        guardian = self._guardian
        self._hang_up()
        if not guardian:
            return
        until = time.monotonic() + _IDLE_END_S
        while not has_been_reaped(guardian) and time.monotonic() < until:
            time.sleep(0.001)
        end_child(guardian, until)
        _live_guardians.discard(guardian)

    def _hang_up(self) -> None:
        if self._control >= 0:
            with contextlib.suppress(OSError):  # it is gone, or does not read
                os.write(self._control, wire.encode(wire.BYE))
        for fd in (self._control, self._result):
            if fd >= 0:
                os.close(fd)
        self._control = self._result = -1
        self._guardian = 0

    def _bury_strays(self) -> None:
        until = time.monotonic() + RECOVERY_BOUND_S
        self._unfinished = [lost for lost in self._unfinished if not recover(lost, until).complete]
        for pid in tuple(self._strays):
            if has_been_reaped(pid) and linux.facts_of(pid) is None:
                self._strays.discard(pid)
                _live_guardians.discard(pid)


def _written(path: str | None) -> StreamRecord:
    """What a lost guardian left of a stream. It may have seen more than it kept, which nobody knows any more.

    A file that it made and wrote nothing to is deleted: there is one only where a byte was kept.
    """
    if path is None:
        return StreamRecord()
    digest = hashlib.sha256()
    kept = 0
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return StreamRecord()
    except OSError as error:
        return StreamRecord(write_error=describe(error))
    try:
        while data := os.read(fd, CHUNK_BYTES):
            digest.update(data)
            kept += len(data)
        if not kept and stat.S_ISREG(os.fstat(fd).st_mode):
            os.unlink(path)
    except OSError as error:
        return StreamRecord(write_error=describe(error))
    finally:
        os.close(fd)
    return StreamRecord(seen_bytes=kept, kept_bytes=kept, sha256=digest.hexdigest() if kept else None)
