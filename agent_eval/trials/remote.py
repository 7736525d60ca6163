"""Trials on other machines, through any ``concurrent.futures.Executor`` (PEP 3148).

Owns what goes out and comes back as plain picklable data, and waiting for it. The worker
starts an exec'd supervisor of its own, which adopts no stranger's children; the coordinator
alone writes evidence. A trial that does not come back is void and never retried.
"""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from agent_eval.evidence.writer import TrialFolder
from agent_eval.records import strict_json
from agent_eval.records.plan import PlannedCase
from agent_eval.trials.execution import Execution
from agent_eval.trials.interrupt import Interrupt
from agent_eval.trials.recording import Recording, RunState

WORKER_MARGIN_S = 30.0
_SLICE_S = 0.1
_RUN_PY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "run.py")


@dataclass(frozen=True, slots=True)
class RemoteTrial:
    """One trial as it goes out: the command line that planned it, and which trial of that plan.

    The worker plans again from ``argv`` and refuses when its ``plan_sha256`` differs: then its binary, fixtures or
    code are not the coordinator's. ``bound_s`` is when the worker gives up on its supervisor.
    """

    argv: tuple[str, ...]
    task_seed: int | None
    plan_sha256: str
    case_id: str
    number: int
    mark: str
    bound_s: float


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """What comes back: the run as JSON bytes and the captured files; or ``refusal``, in words."""

    execution: bytes = b""
    files: tuple[tuple[str, bytes], ...] = ()
    refusal: str | None = None


def run_remote(trial: RemoteTrial) -> RemoteResult:
    """Called on the worker: run one trial under a supervisor process of its own. Never raises for what the trial does.

    The supervisor is exec'd, never forked from this possibly threaded process, and bounds the trial by the trial's own
    limits even when this worker or the coordinator is gone.
    """
    import base64
    import subprocess
    import sys

    request = strict_json.canonical(
        {
            "argv": list(trial.argv),
            "task_seed": trial.task_seed,
            "plan_sha256": trial.plan_sha256,
            "case_id": trial.case_id,
            "number": trial.number,
            "mark": trial.mark,
        }
    )
    process = subprocess.Popen(
        [sys.executable, _RUN_PY, "worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(request, timeout=trial.bound_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return RemoteResult(refusal=f"the worker's supervisor did not end within {trial.bound_s:g} s")
    try:
        answer = strict_json.parse_object(output)
    except strict_json.JsonError:
        text = errors.decode("utf-8", "replace").strip().splitlines()
        return RemoteResult(refusal=text[-1] if text else "the worker's supervisor said nothing")
    if "refusal" in answer:
        return RemoteResult(refusal=str(answer["refusal"]))
    files = tuple((name, base64.b64decode(data)) for name, data in answer["files"].items())
    return RemoteResult(strict_json.canonical(answer["execution"]), files)


class RemoteRun:
    """Keeps at most ``jobs`` trials outstanding on an executor and records each as it comes back."""

    def __init__(self, run: RunState, executor: concurrent.futures.Executor, jobs: int, interrupt: Interrupt, argv: tuple[str, ...]) -> None:
        self._run = run
        self._executor = executor
        self._jobs = jobs
        self._interrupt = interrupt
        self._argv = argv
        limits = run.planned.limits
        self._bound_s = limits.timeout_s + limits.grace_s + WORKER_MARGIN_S
        self._out: dict[concurrent.futures.Future, tuple[PlannedCase, int, float]] = {}
        self._broken: str | None = None

    def run(self, trials: Iterator[tuple[PlannedCase, int]], stop) -> None:
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
        trial = RemoteTrial(
            self._argv, self._run.plan["task_seed"], self._run.plan["plan_sha256"], case.id, number,
            self._run.plan["run_id"], self._bound_s,
        )
        request = {"executor": type(self._executor).__name__}
        execution = Execution()
        try:
            self._run.writer.journal("started", case_id=case.id, number=number, request=request)
            if self._broken is None:
                self._out[self._executor.submit(run_remote, trial)] = (case, number, time.monotonic() + self._bound_s)
                return
        except OSError as error:
            execution.note(error)
        except RuntimeError as error:  # the pool is broken or was shut down
            self._broken = f"{type(error).__name__}: {error}"
        self._lose(case, number, self._broken or "could not be sent", execution)

    def _wait(self) -> None:
        done, _ = concurrent.futures.wait(self._out, timeout=_SLICE_S, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            case, number, _ = self._out.pop(future)
            error = future.exception()
            if error is not None:
                self._lose(case, number, f"{type(error).__name__}: {error}")
            else:
                self._record(case, number, future.result())
        now = time.monotonic()
        for future in [f for f, (_, _, until) in self._out.items() if until <= now]:
            case, number, _ = self._out.pop(future)
            future.cancel()
            self._lose(case, number, f"not back within {self._bound_s:g} s")

    def _abandon(self) -> None:
        for future, (case, number, _) in self._out.items():
            future.cancel()
            self._lose(case, number, "the run was interrupted", Execution(interrupted=True))
        self._out.clear()

    def _record(self, case: PlannedCase, number: int, result: RemoteResult) -> None:
        if result.refusal is not None:
            self._lose(case, number, result.refusal)
            return
        execution = Execution.from_json(strict_json.parse_object(result.execution))
        folder: TrialFolder | None = None
        try:
            folder = self._run.writer.trial(case.id, number)
            for name, data in result.files:
                folder.write(name, data)
        except OSError as error:
            execution.note(error)
        Recording(self._run, case, number, folder, None, None).complete(execution)

    def _lose(self, case: PlannedCase, number: int, why: str, execution: Execution | None = None) -> None:
        execution = execution or Execution()
        execution.lost = why
        folder: TrialFolder | None = None
        try:
            folder = self._run.writer.trial(case.id, number)
        except OSError as error:
            execution.note(error)
        Recording(self._run, case, number, folder, None, None).complete(execution)
