"""What a worker of an executor is asked to do: one trial, under a supervisor process of its own.

Owns what goes out and comes back as plain picklable data, and the worker's side of it: starting the supervisor,
and reading its answer. It writes no evidence and knows nothing of the coordinator but what it was sent.
"""

from __future__ import annotations

import io
import os
import select
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from agent_eval.records import strict_json

if TYPE_CHECKING:
    import subprocess

_RUN_PY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "run.py")
_BLOCK_BYTES = 1 << 20
_LENGTH_BYTES = 8
_OTHER_BYTES = 64 << 20  # of an answer besides files: their names, and the run as JSON
_MAX_ERROR_BYTES = 4096
_END_S = 5.0  # for a supervisor that has answered


@dataclass(frozen=True, slots=True)
class RemoteTrial:
    """One trial as it goes out: the command line that planned it, and which trial of that plan.

    The worker plans again from ``argv`` and refuses when its ``plan_sha256`` differs: then its binary, fixtures or
    code are not the coordinator's. ``cwd`` is where relative paths of ``argv`` start, when the worker has that folder.
    ``bound_s`` is when the worker gives up on its supervisor; ``files_bytes`` is what the trial's files may have together.
    ``nonce`` is new for each request: an answer repeats it.
    """

    argv: tuple[str, ...]
    cwd: str
    task_seed: int | None
    plan_sha256: str
    case_id: str
    number: int
    mark: str
    bound_s: float
    files_bytes: int
    nonce: str


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """What comes back: the run as JSON bytes, which says what it answers, and the captured files; or ``refusal``, in words."""

    execution: bytes = b""
    files: tuple[tuple[str, bytes], ...] = ()
    refusal: str | None = None


def run_remote(trial: RemoteTrial) -> RemoteResult:
    """Called on the worker: run one trial under a supervisor process of its own. Never raises for what the trial does.

    The supervisor is exec'd, never forked from this possibly threaded process, and bounds the trial by the trial's own
    limits even when the coordinator is gone. It holds the read end of a pipe whose other end only this process has:
    when this process dies nobody waits for the answer any more, and the supervisor ends the trial.
    """
    import tempfile

    until = time.monotonic() + trial.bound_s
    lifeline, held = os.pipe()
    try:
        with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as errors:
            request.write(_request(trial))
            request.seek(0)
            with _supervisor(trial, request, errors, lifeline) as process:
                try:
                    return _received(process, trial, until)
                except _NoAnswer as why:
                    return RemoteResult(refusal=_last_line(errors) or str(why))
                finally:
                    _end(process, until)
    except OSError as error:
        return RemoteResult(refusal=f"the worker cannot start a supervisor: {error}")
    finally:
        os.close(lifeline)
        os.close(held)


def _request(trial: RemoteTrial) -> bytes:
    return strict_json.canonical(
        {
            "argv": list(trial.argv),
            "task_seed": trial.task_seed,
            "mark": trial.mark,
            "answers": {"case_id": trial.case_id, "number": trial.number, "plan_sha256": trial.plan_sha256, "nonce": trial.nonce},
        }
    )


def _supervisor(trial: RemoteTrial, request: IO[bytes], errors: IO[bytes], lifeline: int) -> subprocess.Popen[bytes]:
    import subprocess
    import sys

    return subprocess.Popen(
        [sys.executable, _RUN_PY, "worker", "--lifeline", str(lifeline)],
        stdin=request,
        stdout=subprocess.PIPE,
        stderr=errors,
        pass_fds=(lifeline,),
        start_new_session=True,
        cwd=trial.cwd if os.path.isdir(trial.cwd) else None,
    )


class _NoAnswer(Exception):
    """Why a supervisor gave no answer, in words."""


def _end(process: subprocess.Popen[bytes], until: float) -> None:
    import subprocess

    try:
        process.wait(max(0.0, min(_END_S, until - time.monotonic())))
    except subprocess.TimeoutExpired:
        process.kill()


def frame(data: bytes) -> tuple[bytes, bytes]:
    """``data`` as a supervisor sends it, in two pieces: its length, and itself.

    An answer is a frame with a name and one with content for each file, an empty frame, and the run as JSON, or a refusal
    in words.
    """
    return len(data).to_bytes(_LENGTH_BYTES, "big"), data


def _received(process: subprocess.Popen[bytes], trial: RemoteTrial, until: float) -> RemoteResult:
    """The answer of a supervisor, which must have ended by ``until``. Nothing is held twice: files may be large."""
    assert process.stdout is not None
    frames = _Frames(process.stdout.fileno(), trial, until)
    files = []
    while name := frames.following():
        files.append((name.decode("ascii"), frames.following()))
    last = frames.following()
    if not last.startswith(b"{"):
        return RemoteResult(refusal=last.decode("utf-8", "replace"))
    return RemoteResult(last, tuple(files))


class _Frames:
    """Reads frames from a pipe until a moment, and no more bytes than an answer may have."""

    def __init__(self, descriptor: int, trial: RemoteTrial, until: float) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._trial = trial
        self._until = until
        self._room_bytes = trial.files_bytes + _OTHER_BYTES

    def following(self) -> bytes:
        """The content of the next frame."""
        size_bytes = int.from_bytes(self._read(_LENGTH_BYTES), "big")
        if size_bytes > self._room_bytes:
            raise _NoAnswer(f"the worker's supervisor sent more than the {self._trial.files_bytes} bytes of files that the limits allow")
        self._room_bytes -= size_bytes
        return self._read(size_bytes)

    def _read(self, size_bytes: int) -> bytes:
        buffer = io.BytesIO()  # gives what it holds away without a copy
        while (left := size_bytes - buffer.tell()) > 0:
            remaining_s = self._until - time.monotonic()
            if remaining_s <= 0 or not self._poll.poll(remaining_s * 1000.0 + 1.0):
                raise _NoAnswer(f"the worker's supervisor did not end within {self._trial.bound_s:g} s")
            piece = os.read(self._descriptor, min(left, _BLOCK_BYTES))
            if not piece:
                raise _NoAnswer("the worker's supervisor ended without an answer")
            buffer.write(piece)
        return buffer.getvalue()


def _last_line(errors: IO[bytes]) -> str | None:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - _MAX_ERROR_BYTES))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else None


def too_large(total_bytes: int, files_bytes: int) -> str:
    """Words for files of a trial that are more than it may have."""
    return f"its files have {total_bytes} bytes together, more than the {files_bytes} that the limits allow"


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
