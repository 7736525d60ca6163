"""Calling an engine that may block, raise or give back anything.

Owns the one thread from which an engine is called, so that neither signals nor the time limits of other trials
wait for it, and what a trial that was sent out is known by. It judges no answer and records nothing.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_eval.records.plan import PlannedCase
from agent_eval.trials.remote_call import RemoteTrial, run_remote

_MAX_WORDS = 2000  # of an engine's error: a traceback of another machine is no evidence


@dataclass(eq=False, slots=True)
class Sent:
    """One trial on its way: what was asked, and what the engine did with it.

    ``until`` (monotonic) is when it is given up. ``future`` or ``error`` is set when the engine has taken it or has not.
    Two trials may have the same future, from an engine that takes equal calls for one: each is still its own.
    """

    case: PlannedCase
    number: int
    trial: RemoteTrial
    until: float
    given_up: bool = False
    future: concurrent.futures.Future[Any] | None = None
    error: BaseException | None = None

    @property
    def taken(self) -> bool:
        """Whether the engine has answered the call, one way or the other."""
        return self.future is not None or self.error is not None

    @property
    def done(self) -> bool:
        """Whether something came back."""
        try:
            return self.future is not None and self.future.done()
        except Exception:  # a future of the engine's own make may raise anything: asked for its result it will say so
            return True


class EngineThread:
    """Calls an engine in one thread, in order.

    ``news`` gets a trial whenever something about it is new. What the engine raises is never an end of this process:
    a ``SystemExit`` or ``KeyboardInterrupt`` in this thread is the engine's own, real signals go to the main thread.
    """

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self.news: queue.SimpleQueue[Sent] = queue.SimpleQueue()
        self._executor = executor
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="engine-calls", daemon=True).start()

    def submit(self, sent: Sent) -> None:
        """Hand a trial to the engine."""
        self._calls.put(lambda: self._submit(sent))

    def cancel(self, sent: Sent) -> None:
        """Tell the engine, when it listens again, that nobody waits for a trial any more."""
        sent.given_up = True
        if sent.future is not None:
            self._calls.put(lambda: _cancel(sent))

    def close(self) -> None:
        """Let the thread end when it has nothing left to do."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    def _submit(self, sent: Sent) -> None:
        if sent.given_up:
            return  # it has its record: it must not run any more
        try:
            future: object = self._executor.submit(run_remote, sent.trial)
            if not isinstance(future, concurrent.futures.Future):
                raise TypeError(f"submit gave a {type(future).__name__}, not a Future")
            future.add_done_callback(lambda _: self.news.put(sent))
            sent.future = future
        except BaseException as error:
            sent.error = error
        if sent.given_up:
            _cancel(sent)
        self.news.put(sent)


def _cancel(sent: Sent) -> None:
    if sent.future is None:
        return
    try:
        sent.future.cancel()
    except BaseException:
        return  # the trial has its record; what an engine says to its being called off changes nothing


def result_of(sent: Sent) -> tuple[object, str | None]:
    """What came back for a trial that is done; or ``None`` and, in words, why nothing did."""
    assert sent.future is not None
    try:
        if sent.future.cancelled():
            return None, "the engine cancelled it"
        error = sent.future.exception(timeout=0)
        return (sent.future.result(timeout=0), None) if error is None else (None, words(error))
    except BaseException as error:  # the handlers of a run raise nothing: this is the engine's
        return None, words(error)


def words(error: BaseException) -> str:
    """An error of an engine in words that can be written down, whatever its own words are."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = f"{type(error).__name__} (it cannot be put in words)"
    return plain(text)


def plain(text: str) -> str:
    """``text`` as it can be written down: bounded, without lone surrogates."""
    return text[:_MAX_WORDS].encode("utf-8", "backslashreplace").decode("utf-8")
