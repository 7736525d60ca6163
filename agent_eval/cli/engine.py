"""The engine behind ``--executor``: made before the first trial, let go after the last.

Owns finding the factory, and that no thread of an engine keeps a finished run from ending.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import multiprocessing
import os
import sys
import threading

from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput
from agent_eval.trials.remote_call import settle_pool_worker

_END_S = 5.0


def make_executor(text: str, jobs: int) -> concurrent.futures.Executor:
    """The executor that ``MODULE:FACTORY`` makes, called without arguments.

    The class ``ProcessPoolExecutor`` itself gets as many workers as trials may be outstanding, and they end with this
    process however it ends. Raises ``InvalidInput`` when no executor comes of it.
    """
    module, _, name = text.partition(":")
    where, how = "--executor", "give MODULE:FACTORY of a callable that returns an Executor; PYTHONPATH says where MODULE is"
    try:
        factory = getattr(importlib.import_module(module), name)
        if factory is concurrent.futures.ProcessPoolExecutor:
            return factory(max_workers=jobs, initializer=settle_pool_worker)
        made = factory()
    except (ImportError, AttributeError, TypeError, ValueError, SyntaxError, OSError, RuntimeError) as error:
        raise InvalidInput.one(where, f"{text}: {type(error).__name__}: {error}", how) from None
    if not isinstance(made, concurrent.futures.Executor):
        raise InvalidInput.one(where, f"{text} made a {type(made).__name__}, not a concurrent.futures.Executor", how)
    return made


def let_go(executor: concurrent.futures.Executor, code: int) -> None:
    """Shut the engine down; where that takes long, end this process with ``code`` all the same.

    The evidence is sealed and the result printed by now. A trial that was given up may still run: the interpreter would
    wait for the engine's threads, and so for the trial. An interrupted run does not wait at all.
    """
    closing = threading.Thread(target=executor.shutdown, name="engine-shutdown", daemon=True)
    closing.start()
    try:
        closing.join(0.0 if code > ExitCode.INTERNAL else _END_S)
    except KeyboardInterrupt:
        pass
    if closing.is_alive():
        _end_now(code)


def _end_now(code: int) -> None:
    for child in multiprocessing.active_children():  # the engine's: this process starts none of its own that way
        child.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
