"""Trials on other machines, through any ``concurrent.futures.Executor`` (PEP 3148).

Owns sending trials out, waiting for them and recording what comes back. The coordinator
alone writes evidence. A trial that does not come back is void and never retried.
"""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable, Iterator

from agent_eval.evidence import layout
from agent_eval.evidence.writer import TrialFolder
from agent_eval.records import strict_json
from agent_eval.records.plan import PlannedCase
from agent_eval.trials.execution import Execution
from agent_eval.trials.interrupt import Interrupt
from agent_eval.trials.recording import Recording, RunState
from agent_eval.trials.remote_call import RemoteResult, RemoteTrial, run_remote

WORKER_MARGIN_S = 30.0
_SLICE_S = 0.1
_MAX_WORDS = 2000  # of an engine's error: a traceback of another machine is no evidence

_Sent = tuple[PlannedCase, int, float]


class RemoteRun:
    """Keeps at most ``jobs`` trials outstanding on an executor and records each as it comes back."""

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
        self._executor = executor
        self._jobs = jobs
        self._interrupt = interrupt
        self._argv = argv
        self._tick = tick
        self._cwd = os.getcwd()
        self._out: dict[concurrent.futures.Future[RemoteResult], _Sent] = {}
        self._broken: str | None = None

    def run(self, trials: Iterator[tuple[PlannedCase, int]], stop: Callable[[], bool]) -> None:
        """Do the trials in order until there are none left, ``stop()`` says so, or an interrupt comes."""
        exhausted = False
        while True:
            while len(self._out) < self._jobs and not exhausted and not self._interrupt.requested and not stop():
                following = next(trials, None)
                if following is None:
                    exhausted = True
                else:
                    self._send(*following)
            if not self._out:
                return
            if self._interrupt.requested:
                self._abandon()
                return
            self._wait()

    def _send(self, case: PlannedCase, number: int) -> None:
        self._run.on_start(case.id, number)
        try:
            self._run.writer.journal("started", case_id=case.id, number=number, request={"executor": type(self._executor).__name__})
        except OSError as error:
            execution = Execution()
            execution.note(error)
            self._lose(case, number, "could not be sent", execution)
            return
        if self._broken is None:
            self._submit(case, number)
        else:
            self._lose(case, number, self._broken)

    def _submit(self, case: PlannedCase, number: int) -> None:
        bound_s = self._bound_s(case)
        plan = self._run.plan
        trial = RemoteTrial(
            self._argv, self._cwd, plan["task_seed"], plan["plan_sha256"], case.id, number, plan["run_id"], bound_s
        )
        try:
            self._out[self._executor.submit(run_remote, trial)] = (case, number, time.monotonic() + bound_s)
        except RuntimeError as error:  # the pool is broken or was shut down
            self._broken = _words(error)
            self._lose(case, number, self._broken)
        except (OSError, ValueError, TypeError) as error:  # no process, connection or serialisation: for this trial
            self._lose(case, number, _words(error))

    def _bound_s(self, case: PlannedCase) -> float:
        limits = self._run.planned.limits
        return (case.commands_s or limits.timeout_s + limits.grace_s) + WORKER_MARGIN_S

    def _wait(self) -> None:
        if self._tick is not None:
            self._tick()
        done, _ = concurrent.futures.wait(self._out, timeout=_SLICE_S, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            case, number, _ = self._out.pop(future)
            if future.cancelled():
                self._fail(case, number, "the engine cancelled it")
            elif (error := future.exception()) is not None:
                self._fail(case, number, _words(error))
            else:
                self._record(case, number, future.result())
        now = time.monotonic()
        for future in [f for f, (_, _, until) in self._out.items() if until <= now]:
            case, number, _ = self._out.pop(future)
            future.cancel()
            self._lose(case, number, f"not back within {self._bound_s(case):g} s")

    def _fail(self, case: PlannedCase, number: int, why: str) -> None:
        # A terminal's Ctrl-C reaches the engine's local processes too: their end is the interrupt's.
        self._lose(case, number, why, Execution(interrupted=self._interrupt.requested))

    def _abandon(self) -> None:
        for future, (case, number, _) in self._out.items():
            future.cancel()
            self._lose(case, number, "the run was interrupted", Execution(interrupted=True))
        self._out.clear()

    def _record(self, case: PlannedCase, number: int, result: object) -> None:
        if not isinstance(result, RemoteResult):
            self._lose(case, number, f"a {type(result).__name__} came back")
            return
        if result.refusal is not None:
            self._lose(case, number, result.refusal)
            return
        try:
            execution = Execution.from_json(strict_json.parse_object(result.execution))
        except (KeyError, TypeError, ValueError) as error:
            self._lose(case, number, f"what came back is no trial ({_words(error)})")
            return
        if unsafe := [name for name, _ in result.files if not layout.is_safe_path(name)]:
            self._lose(case, number, f"what came back has a file that no trial has ({unsafe[0]!r})")
            return
        if execution.interrupted:  # not by this run, or nothing would be waiting for it
            execution.interrupted = False
            execution.lost = "the worker was told to stop"
        self._write(case, number, execution, result.files)

    def _lose(self, case: PlannedCase, number: int, why: str, execution: Execution | None = None) -> None:
        execution = execution or Execution()
        execution.lost = why
        self._write(case, number, execution)

    def _write(self, case: PlannedCase, number: int, execution: Execution, files: tuple[tuple[str, bytes], ...] = ()) -> None:
        folder: TrialFolder | None = None
        try:
            folder = self._run.writer.trial(case.id, number)
            for name, data in files:
                folder.write(name, data)
        except OSError as error:
            execution.note(error)
        recording = Recording(self._run, case, number, folder, None, None)
        recording.record(execution)
        recording.close(execution)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_WORDS]
