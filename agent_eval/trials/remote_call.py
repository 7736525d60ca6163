"""What a worker of an executor is asked to do: one trial, under a supervisor process of its own.

Owns what goes out and comes back as plain picklable data, and the worker's side of it. It
writes no evidence and knows nothing of the coordinator but what it was sent.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from agent_eval.records import strict_json

_RUN_PY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "run.py")


@dataclass(frozen=True, slots=True)
class RemoteTrial:
    """One trial as it goes out: the command line that planned it, and which trial of that plan.

    The worker plans again from ``argv`` and refuses when its ``plan_sha256`` differs: then its binary, fixtures or
    code are not the coordinator's. ``cwd`` is where relative paths of ``argv`` start, when the worker has that folder.
    ``bound_s`` is when the worker gives up on its supervisor.
    """

    argv: tuple[str, ...]
    cwd: str
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
    limits even when the coordinator is gone. It holds the read end of a pipe whose other end only this process has:
    when this process dies nobody waits for the answer any more, and the supervisor ends the trial.
    """
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
    lifeline, held = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                [sys.executable, _RUN_PY, "worker", "--lifeline", str(lifeline)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(lifeline,),
                start_new_session=True,
                cwd=trial.cwd if os.path.isdir(trial.cwd) else None,
            )
        finally:
            os.close(lifeline)
        with process:
            try:
                output, errors = process.communicate(request, timeout=trial.bound_s)
            except subprocess.TimeoutExpired:
                process.kill()
                return RemoteResult(refusal=f"the worker's supervisor did not end within {trial.bound_s:g} s")
    except OSError as error:
        return RemoteResult(refusal=f"the worker cannot start a supervisor: {error}")
    finally:
        os.close(held)
    return _result(output, errors, process.returncode)


def _result(output: bytes, errors: bytes, status: int) -> RemoteResult:
    import base64

    try:
        answer: dict[str, Any] = strict_json.parse_object(output)
    except strict_json.JsonError:
        text = errors.decode("utf-8", "replace").strip().splitlines()
        return RemoteResult(refusal=text[-1] if text else f"the worker's supervisor ended without an answer (status {status})")
    if "refusal" in answer:
        return RemoteResult(refusal=str(answer["refusal"]))
    files = tuple((name, base64.b64decode(data)) for name, data in answer["files"].items())
    return RemoteResult(strict_json.canonical(answer["execution"]), files)


def settle_pool_worker() -> None:
    """The ``initializer`` of a ``ProcessPoolExecutor`` whose workers end when the coordinator does, however it ends.

    Workers of a pool otherwise wait for ever when their parent was killed (each holds the write end of the queue that
    it reads), and a forked one keeps the coordinator's signal handlers, so that SIGTERM does not end it.
    """
    import multiprocessing
    import multiprocessing.connection
    import signal
    import threading

    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the coordinator
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def follow() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, name="end-with-coordinator", daemon=True).start()
