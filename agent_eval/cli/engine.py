"""The engine behind ``--executor``: found and made before the first trial, let go after the last.

Owns finding the factory, turning whatever it raises into one line, and that no thread of an engine keeps a finished
run from ending.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from agent_eval.cli.run_display import run_and_print
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.plan import PlannedRun
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.report.visible_text import escape
from agent_eval.trials.consumer import Consumer
from agent_eval.trials.engine_calls import words
from agent_eval.trials.remote_call import settle_pool_worker
from agent_eval.trials.run import RunOptions

_END_S = 5.0
_WHERE = "--executor"
_HOW = "give MODULE:FACTORY of a callable that returns an Executor; PYTHONPATH says where MODULE is"


def find_factory(text: str) -> Callable[[], object]:
    """The callable that ``MODULE:FACTORY`` names; it is not called. Raises ``InvalidInput`` when there is none."""
    module, _, name = text.partition(":")
    try:
        factory: object = getattr(importlib.import_module(module), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that calls sys.exit(0) must not end a run as a success
        _refuse(text, error)
    if not callable(factory):
        raise InvalidInput.one(_WHERE, f"{text} is a {type(factory).__name__}, and cannot be called", _HOW)
    return factory


def make_executor(text: str, jobs: int) -> concurrent.futures.Executor:
    """The executor that ``MODULE:FACTORY`` makes, called without arguments.

    The class ``ProcessPoolExecutor`` itself gets as many workers as trials may be outstanding, and they end with this
    process however it ends. Raises ``InvalidInput`` when no executor comes of it.
    """
    factory = find_factory(text)
    try:
        if factory is concurrent.futures.ProcessPoolExecutor:
            return _forked_pool(jobs)
        made = factory()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _refuse(text, error)
    if not isinstance(made, concurrent.futures.Executor):
        raise InvalidInput.one(_WHERE, f"{text} made a {type(made).__name__}, not a concurrent.futures.Executor", _HOW)
    return made


def _forked_pool(jobs: int) -> concurrent.futures.Executor:
    # Forked where that is the custom: workers started in another way leave a folder and semaphores when all is killed.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    pool = concurrent.futures.ProcessPoolExecutor(jobs, context, settle_pool_worker)
    # The first call forks all of them: now, while this process has one thread and no evidence open.
    pool.submit(int)
    return pool


def _refuse(text: str, error: BaseException) -> NoReturn:
    raise InvalidInput.one(_WHERE, f"{text}: {words(error)}", _HOW) from None


def run_through(text: str, consumer: Consumer, planned: PlannedRun, options: RunOptions, args: argparse.Namespace) -> int:
    """Make the engine that ``text`` names, run and print, and let go of it; returns the exit code."""
    executor = make_executor(text, args.jobs)
    try:
        code = run_and_print(consumer, planned, replace(options, executor=executor), args)
    except BaseException as error:
        _shut_down(executor)
        threading.Thread(target=_end_after_main, args=(_code_of(error),), name="engine-end", daemon=True).start()
        raise
    let_go(executor, code)
    return code


def let_go(executor: concurrent.futures.Executor, code: int) -> None:
    """Shut the engine down; where that takes long, end this process with ``code`` all the same. What it raises is a note.

    The evidence is sealed and the result printed by now. A trial that was given up may still run: the interpreter would
    wait for the engine's threads, and so for the trial. An interrupted run does not wait at all.
    """
    until = time.monotonic() + (0.0 if code > ExitCode.INTERNAL else _END_S)
    closing = _shut_down(executor)
    try:
        closing.join(max(0.0, until - time.monotonic()))
        left = closing.is_alive() or _threads_left(until)
    except KeyboardInterrupt:
        left = True
    if left:
        _end_now(code)


def _end_after_main(code: int) -> None:
    """For a run that ended in an error, which the main thread prints before it ends: then no thread of the engine is waited for for long."""
    threading.main_thread().join()
    if _threads_left(time.monotonic() + _END_S):
        _end_now(code)


def _threads_left(until: float) -> bool:
    """Whether there are threads, at the moment ``until`` still, that the interpreter would wait for."""
    waited_for = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in waited_for:
        thread.join(max(0.0, until - time.monotonic()))
    return any(thread.is_alive() for thread in waited_for)


def _code_of(error: BaseException) -> int:
    codes = ((InvalidInput, ExitCode.USAGE), (EvidenceFault, ExitCode.EVIDENCE), (KeyboardInterrupt, ExitCode.INTERRUPTED))
    return next((code for kind, code in codes if isinstance(error, kind)), ExitCode.INTERNAL)


def _shut_down(executor: concurrent.futures.Executor) -> threading.Thread:
    def call() -> None:
        try:
            executor.shutdown()
        except BaseException as error:
            print(f"note: the engine was not shut down: {escape(words(error))}", file=sys.stderr)

    closing = threading.Thread(target=call, name="engine-shutdown", daemon=True)
    closing.start()
    return closing


def _end_now(code: int) -> None:
    for child in multiprocessing.active_children():  # the engine's: this process starts none of its own that way
        child.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
