"""Trials on other machines, through any ``concurrent.futures.Executor`` (PEP 3148).

Owns sending trials out, waiting for them and recording what comes back. The coordinator
alone writes evidence. A trial that does not come back is void and never retried; each that was
sent out is recorded exactly once, whatever the engine does.
"""

from __future__ import annotations

import concurrent.futures
import os
import queue
import time
from collections.abc import Callable, Iterator

from agent_eval.evidence.writer import TrialFolder
from agent_eval.records.plan import PlannedCase
from agent_eval.records.problems import EvidenceFault
from agent_eval.trials.engine_calls import EngineThread, Sent, plain, result_of, words
from agent_eval.trials.execution import Execution
from agent_eval.trials.interrupt import Interrupt
from agent_eval.trials.recording import Recording, RunState
from agent_eval.trials.remote_answer import Files, NoAnswer, files_bound, read_answer
from agent_eval.trials.remote_call import RemoteTrial

WORKER_MARGIN_S = 30.0
_SLICE_S = 0.1


class RemoteRun:
    """Keeps at most ``jobs`` trials outstanding on an executor and records each as it comes back.

    One trial at a time is handed to the engine. While the engine takes it nothing else is done here unless something
    comes back: an engine that forks its workers when it is first called forks from a process that stands still.
    """

    def __init__(
        self,
        run: RunState,
        executor: concurrent.futures.Executor,
        jobs: int,
        interrupt: Interrupt,
        argv: tuple[str, ...],
        tick: Callable[[], None] | None = None,
    ) -> None:
        self._run = run
        self._engine = EngineThread(executor)
        self._engine_name = type(executor).__name__
        self._jobs = jobs
        self._interrupt = interrupt
        self._argv = argv
        self._tick = tick
        self._cwd = os.getcwd()
        self._out: dict[Sent, None] = {}
        self._handing: Sent | None = None
        self._broken: str | None = None

    def run(self, trials: Iterator[tuple[PlannedCase, int]], stop: Callable[[], bool]) -> None:
        """Do the trials in order until there are none left, ``stop()`` says so, or an interrupt comes."""
        exhausted = False
        while True:
            if self._may_send() and not exhausted and not stop():
                following = next(trials, None)
                if following is None:
                    exhausted = True
                else:
                    self._send(*following)
                continue
            if self._interrupt.requested:
                self._abandon()
            if not self._out:
                break
            self._wait(_SLICE_S)
        self._engine.close()

    def _may_send(self) -> bool:
        return self._handing is None and len(self._out) < self._jobs and not self._interrupt.requested

    def _send(self, case: PlannedCase, number: int) -> None:
        bound_s = self._bound_s(case)
        plan = self._run.plan
        trial = RemoteTrial(
            self._argv, self._cwd, plan["task_seed"], plan["plan_sha256"], case.id, number, plan["run_id"], bound_s,
            files_bound(self._run.planned.limits, case), os.urandom(16).hex(),
        )
        sent = Sent(case, number, trial, time.monotonic() + bound_s)
        self._run.on_start(case.id, number)
        try:
            self._run.writer.journal("started", case_id=case.id, number=number, request={"executor": self._engine_name})
        except OSError as error:
            execution = Execution()
            execution.note(error)
            self._lose(sent, "could not be sent", execution)
            return
        if self._broken is not None:
            self._lose(sent, self._broken)
            return
        self._out[sent] = None
        self._handing = sent
        self._engine.submit(sent)

    def _bound_s(self, case: PlannedCase) -> float:
        limits = self._run.planned.limits
        return (case.commands_s or limits.timeout_s + limits.grace_s) + WORKER_MARGIN_S

    def _wait(self, timeout_s: float) -> None:
        """Act on what is new, and on what is not back in time."""
        try:
            self._look_at(self._engine.news.get(timeout=timeout_s))
        except queue.Empty:
            if self._tick is not None:
                self._tick()
        now = time.monotonic()
        for sent in [sent for sent in self._out if sent.until <= now]:
            if sent.done:  # with a future that tells nobody
                self._settle(sent)
            else:
                self._give_up(sent, f"not {'back' if sent.taken else 'taken by the engine'} within {sent.trial.bound_s:g} s")

    def _look_at(self, sent: Sent) -> None:
        if sent is self._handing and sent.taken:
            self._handing = None
        if sent not in self._out:
            return  # it has its record: given up, or there were two pieces of news at once
        if sent.error is not None:
            if isinstance(sent.error, RuntimeError):  # the pool is broken or was shut down
                self._broken = words(sent.error)
            self._fail(sent, words(sent.error))
        elif sent.done:
            self._settle(sent)

    def _settle(self, sent: Sent) -> None:
        """Record what came back."""
        result, why = result_of(sent)
        if why is not None:
            self._fail(sent, why)
            return
        try:
            execution, files = read_answer(result, sent.trial, self._run.planned.limits.max_output_bytes)
        except NoAnswer as error:
            self._lose(sent, str(error))
            return
        if execution.interrupted and not self._interrupt.requested:  # not by this run
            execution.interrupted = False
            execution.lost = "the worker was told to stop"
        sent.future = result = None  # large files are not held while they are written
        self._record(sent, execution, files)

    def _fail(self, sent: Sent, why: str) -> None:
        # A terminal's Ctrl-C reaches the engine's local processes too: their end is the interrupt's.
        self._lose(sent, why, Execution(interrupted=self._interrupt.requested))

    def _give_up(self, sent: Sent, why: str) -> None:
        self._engine.cancel(sent)
        if sent is self._handing:  # the next one waits for the engine in its place
            self._handing = None
        self._fail(sent, why)

    def _abandon(self) -> None:
        """The run was interrupted: what is back already is recorded as what it is, the rest is not waited for."""
        until = time.monotonic() + _SLICE_S
        while self._handing is not None and (left_s := until - time.monotonic()) > 0:
            self._wait(left_s)
        for sent in list(self._out):
            if sent.done:
                self._settle(sent)
            else:
                self._give_up(sent, "the run was interrupted")

    def _lose(self, sent: Sent, why: str, execution: Execution | None = None) -> None:
        execution = execution or Execution()
        execution.lost = plain(why)
        self._record(sent, execution, [])

    def _record(self, sent: Sent, execution: Execution, files: Files) -> None:
        """Write the files and the record; ``files`` is emptied on the way."""
        self._out.pop(sent, None)
        folder: TrialFolder | None = None
        try:
            folder = self._run.writer.trial(sent.case.id, sent.number)
            while files:
                folder.write(*files.pop(0))
        except OSError as error:
            execution.note(error)
        recording = Recording(self._run, sent.case, sent.number, folder, None, None)
        try:
            recording.record(execution)
        except (EvidenceFault, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            # A consumer's own part of a record has no shape that is known here. One that its judge cannot read is no trial.
            execution = Execution(lost=f"what came back cannot be judged ({words(error)})")
            recording.record(execution)
        recording.close(execution)
