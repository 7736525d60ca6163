"""Engines for tests: small real executors, good and bad. Each callable here is a factory for ``--executor engines:NAME``."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

_WORKER = "import pickle, sys; call, arguments = pickle.load(open(sys.argv[1], 'rb')); pickle.dump(call(*arguments), open(sys.argv[2] + '.new', 'wb')); import os; os.rename(sys.argv[2] + '.new', sys.argv[2])"


class Detached(Executor):
    """A worker process of its own for each call, which outlives the coordinator; as PEP 3148 first had it, without ``cancel_futures``."""

    def submit(self, call, *arguments):
        folder = tempfile.mkdtemp(dir=os.environ["ENGINE_FOLDER"])
        task, result = os.path.join(folder, "task"), os.path.join(folder, "result")
        with open(task, "wb") as stream:
            pickle.dump((call, arguments), stream)
        worker = subprocess.Popen([sys.executable, "-c", _WORKER, task, result], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")
        with open(os.path.join(folder, "pid"), "w") as stream:
            stream.write(str(worker.pid))
        future = Future()
        threading.Thread(target=self._wait, args=(worker, result, future), daemon=True).start()
        return future

    def _wait(self, worker, result, future):
        status = worker.wait()
        if not future.set_running_or_notify_cancel():
            return
        if os.path.exists(result):
            with open(result, "rb") as stream:
                future.set_result(pickle.load(stream))
        else:
            future.set_exception(RuntimeError(f"the worker ended with {status}"))

    def shutdown(self, wait=True):
        """Nothing is kept."""


def elsewhere():
    """Workers that are in another folder than the coordinator."""
    return ProcessPoolExecutor(1, initializer=os.chdir, initargs=("/",))


def spawn():
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def forkserver():
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver"))


def settled():
    """Workers that end with the coordinator, however they were started."""
    from agent_eval.trials.remote_call import settle_pool_worker

    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"), initializer=settle_pool_worker)


class _Bad(Executor):
    """Lives up to none of it, each call in the next way."""

    def __init__(self, ways):
        self._ways = iter(ways)

    def submit(self, call, *arguments):
        return next(self._ways)()


def _failed(error):
    future = Future()
    future.set_exception(error)
    return future


def _returned(value):
    future = Future()
    future.set_result(value)
    return future


def _cancelled():
    future = Future()
    future.cancel()
    future.set_running_or_notify_cancel()
    return future


def _raise(error):
    raise error


def bad():
    from agent_eval.trials.remote_call import RemoteResult

    return _Bad(
        [
            lambda: _raise(OSError(11, "no more processes")),
            lambda: _raise(ValueError("cannot be sent")),
            lambda: _failed(MemoryError()),
            lambda: _failed(KeyboardInterrupt()),
            lambda: _failed(CancelledError()),
            _cancelled,
            lambda: _returned(None),
            lambda: _returned(RemoteResult(b"{}")),
            lambda: _returned(RemoteResult(b"not json")),
            lambda: _returned(RemoteResult(refusal="no")),
            lambda: _raise(RuntimeError("shut down")),
        ]
    )


def _impatient():
    from agent_eval.trials import remote

    remote.WORKER_MARGIN_S = 0.3


class Never(Executor):
    """Futures that nobody completes, and a thread that keeps the interpreter from ending."""

    def __init__(self):
        _impatient()
        threading.Thread(target=time.sleep, args=(600,)).start()

    def submit(self, call, *arguments):
        return Future()

    def shutdown(self, wait=True):
        time.sleep(600 if wait else 0)


class Late(ThreadPoolExecutor):
    """The first result comes after its trial was given up, while the second trial is still awaited."""

    def __init__(self):
        _impatient()
        super().__init__(2)
        self._first = None

    def submit(self, call, trial):
        if self._first is None:
            self._first = super().submit(self._slowly, call, trial)
            return self._first
        return super().submit(self._after_the_first, call, trial)

    def _slowly(self, call, trial):
        result = call(trial)
        time.sleep(trial.bound_s)
        return result

    def _after_the_first(self, call, trial):
        concurrent.futures.wait([self._first])
        return call(trial)


def unreachable():
    raise OSError("no scheduler at tcp://127.0.0.1:1")


def noted():
    """Leaves a trace when it is made at all."""
    open(os.environ["ENGINE_FOLDER"] + "/made", "w").close()
    return ThreadPoolExecutor(1)


class Lingering(ThreadPoolExecutor):
    """Is shut down at once, and leaves a thread that the interpreter would wait for."""

    def __init__(self):
        super().__init__(1)
        threading.Thread(target=time.sleep, args=(600,)).start()
