"""Factories for ``run.py --executor dask_engine:NAME``; the scheduler's address is in DASK_SCHEDULER.

The coordinator and every worker need the project (and this module, for ``once``) on PYTHONPATH.
"""

from __future__ import annotations

import concurrent.futures
import os

import distributed


def plain() -> concurrent.futures.Executor:
    """Dask's own executor. The scheduler must run with ``distributed.scheduler.allowed-failures: 0``."""
    return distributed.Client(os.environ["DASK_SCHEDULER"]).get_executor(pure=False, retries=0)


class Once(concurrent.futures.Executor):
    """Runs a call at most once whatever the scheduler is set to: its first worker claims it, in the scheduler's memory.

    ``allowed-failures: 0`` says nothing of a result that was lost with its worker after the trial had ended and before
    the coordinator had it: Dask computes that again. Here the second worker finds the claim and refuses.
    """

    def __init__(self, inner: concurrent.futures.Executor) -> None:
        self._inner = inner

    def submit(self, call, /, *arguments):
        """Send a call off."""
        return self._inner.submit(_claim_and_call, os.urandom(12).hex(), call, *arguments)

    def shutdown(self, wait: bool = True) -> None:
        """End the inner one."""
        self._inner.shutdown(wait=wait)


def once() -> concurrent.futures.Executor:
    """As :func:`plain`, each trial at most once under any settings."""
    return Once(plain())


def _claim_and_call(name: str, call, *arguments):
    claim = distributed.Event(name)
    if claim.is_set():
        raise RuntimeError("this trial was started before, on a worker that was lost: it does not run again")
    claim.set()
    return call(*arguments)
