"""Engines that break their word, each in its own way; factories for ``--executor lying_engines:NAME``."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from agent_eval.trials.remote_call import RemoteResult


class Here(Executor):
    """Runs each call inside ``submit``."""

    def submit(self, call, trial):
        future = Future()
        future.set_result(call(trial))
        return future


class Same(Here):
    """Takes all calls for one, as an engine does that goes by the function."""

    _first = None

    def submit(self, call, trial):
        self._first = self._first or super().submit(call, trial)
        return self._first


class Swapped(Here):
    """Gives results out in pairs, exchanged."""

    _held = None

    def submit(self, call, trial):
        future, result = Future(), call(trial)
        if self._held is None:
            self._held = future, result
        else:
            other, others = self._held
            other.set_result(result)
            future.set_result(others)
        return future


class Stale(Here):
    """Gives the first answer of a trial for every one: right case, right plan, another request."""

    _known: dict = {}

    def submit(self, call, trial):
        future = Future()
        future.set_result(self._known.setdefault(trial.case_id, call(trial)))
        return future


class _Turns(Here):
    """Each call in the next way; after the last one, honestly."""

    def __init__(self, *ways):
        self._ways = iter(ways)

    def submit(self, call, trial):
        way = next(self._ways, None)
        return super().submit(call, trial) if way is None else way(call, trial)


class Silent(Exception):
    """Cannot be put in words."""

    def __str__(self):
        raise ValueError("no words")


class Deaf(Future):
    """Is done and tells nobody."""

    def add_done_callback(self, call):
        """Forget it."""

    def done(self):
        return True


class Broken(Future):
    """Raises whatever it is asked."""

    def done(self):
        raise KeyError("done")

    def cancelled(self):
        raise SystemExit(0)

    def cancel(self):
        raise SystemExit(0)


def _raising(error):
    def way(call, trial):
        raise error

    return way


def _giving(value):
    return lambda call, trial: value


def _bound_of_the_next(seconds):
    """Trials with a time limit of 20 s that are sent out from now on are given up after ``seconds`` (``None``: 50)."""
    from agent_eval.trials import remote

    remote.WORKER_MARGIN_S = 30.0 if seconds is None else seconds - 20.0


def _and_then(seconds, way):
    def both(call, trial):
        _bound_of_the_next(seconds)
        return way(call, trial)

    return both


def raising():
    return _Turns(
        _raising(pickle.PicklingError("cannot be pickled")),
        _raising(KeyError("no such queue")),
        _raising(SystemExit(0)),
        _raising(KeyboardInterrupt()),
        _raising(GeneratorExit()),
        _raising(Silent()),
        _raising(Exception("a lone \ud800 surrogate")),
        _giving(None),
        _and_then(0.3, _giving(Broken())),
        _and_then(None, _giving(Deaf())),
    )


def _changed(change):
    """The honest answer, changed."""

    def way(call, trial):
        result = call(trial)
        future = Future()
        future.set_result(change(result, json.loads(result.execution)))
        return future

    return way


def _with(**members):
    return _changed(lambda result, answer: RemoteResult(json.dumps({**answer, **members}).encode(), result.files))


def _with_outcome(**members):
    def change(result, answer):
        return RemoteResult(json.dumps({**answer, "outcome": {**answer["outcome"], **members}}).encode(), result.files)

    return _changed(change)


def lies():
    return _Turns(
        _with(errors=5),
        _with(identity=None),
        _with(identity={}),
        _with(outcome=None),
        _with(record={"interrupted": True}),
        _with(record={"judgment": {"verdict": "pass"}}),
        _with_outcome(wall_s=-5),
        _with_outcome(exit_code="0"),
        _with_outcome(exit_code=0, signal=9),
        _changed(lambda result, _: RemoteResult(result.execution, None)),
        _changed(lambda result, _: RemoteResult(result.execution, ())),
        _changed(lambda result, _: RemoteResult(result.execution, (("owner-report.json", "text"),))),
        _changed(lambda result, _: RemoteResult(result.execution, (("owner-report.json", b'{"passed": true, "forged": 1}'),))),
        _changed(lambda result, _: RemoteResult(result.execution, (*result.files, ("trial.json", b"{}")))),
        _changed(lambda result, _: RemoteResult(result.execution, (*result.files, ("large", bytes(64 << 20))))),
        _changed(lambda result, _: RemoteResult(None, result.files)),
        _changed(lambda result, _: RemoteResult(refusal="a lone \ud800 surrogate")),
        _changed(lambda result, _: object.__new__(RemoteResult)),
    )


class Blocked(Executor):
    """Takes nothing, and never says so."""

    def submit(self, call, trial):
        threading.Event().wait()


class BlockedOnce(Here):
    """Does not take the first call until it was given up, and takes it then."""

    def __init__(self):
        _bound_of_the_next(1.0)
        self._began = False

    def submit(self, call, trial):
        if self._began:
            return super().submit(call, trial)
        self._began = True
        _bound_of_the_next(None)
        time.sleep(trial.bound_s + 0.5)
        with open(os.environ["ENGINE_FOLDER"] + "/taken", "w"):
            return Future()


class InterruptedAtTheThird(Here):
    """Ctrl-C comes while the third call is taken; all three are done by then."""

    _calls = 0

    def submit(self, call, trial):
        self._calls += 1
        future = super().submit(call, trial)
        if self._calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return future


class NotShutDown(Here):
    """Raises when it is to end."""

    def shutdown(self, wait=True):
        raise SystemExit(0)


def _parent_of(pid):
    with open(f"/proc/{pid}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[1]


class Measured(ThreadPoolExecutor):
    """Says at its end how large this process was at its largest, and which processes it had itself whenever a call was taken."""

    def __init__(self):
        super().__init__(1)
        self._children: set[int] = set()

    def submit(self, call, trial):
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and int(_parent_of(name)) == os.getpid():
                    self._children.add(int(name))
        return super().submit(call, trial)

    def shutdown(self, wait=True):
        super().shutdown(wait)
        with open("/proc/self/status") as stream:
            peak_kib = int(stream.read().partition("VmHWM:")[2].split()[0])
        with open(os.environ["ENGINE_FOLDER"] + "/measured", "w") as stream:
            json.dump({"peak_bytes": peak_kib * 1024, "children": sorted(self._children)}, stream)


def leaves():
    raise SystemExit(0)


def cancels():
    import asyncio

    raise asyncio.CancelledError


def wants_a_key():
    return {}["key"]
