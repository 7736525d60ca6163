"""How things are measured: whole commands, in rounds of rotated order, compared only within a round.

These machines are noisy: one absolute time says little, while two commands run one after the other meet the same machine.
Knows nothing of what is measured, of goals or of how a result is shown.
"""

from __future__ import annotations

import os
import select
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


class Unmeasured(Exception):
    """What was to be measured did not do the work; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        kept = list(values)
        return cls(statistics.median(kept), min(kept), max(kept))


def within_rounds(mine: Sequence[float], theirs: Sequence[float]) -> Spread | None:
    """Spread of the ratios ``mine / theirs``, each of the values of one round.

    A round in which either is not positive is noise (a longer run that took less time than a shorter one) and left out;
    ``None`` when that leaves fewer than half of the rounds.
    """
    pairs = list(zip(mine, theirs, strict=True))
    kept = [a / b for a, b in pairs if a > 0 and b > 0]
    return Spread.of(kept) if kept and 2 * len(kept) >= len(pairs) else None


def in_rounds(names: Sequence[str], rounds: int, measure: Callable[[str], float]) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Measure every name once a round, each round beginning one name later.

    Returns the values by name in the order of ``names``, a value for every round, and the reasons of those that raised
    ``Unmeasured`` once; those are not tried again and have no values.
    """
    values: dict[str, list[float]] = {name: [] for name in names}
    reasons: dict[str, str] = {}
    for number in range(rounds):
        first = number % max(1, len(names))
        for name in [*names[first:], *names[:first]]:
            if name in reasons:
                continue
            try:
                values[name].append(measure(name))
            except Unmeasured as problem:
                reasons[name] = str(problem)
                del values[name]
    return values, reasons


def command_seconds(argv: Sequence[str], folder: str, env: Mapping[str, str] | None = None, *, codes: Iterable[int] = (0,), bound_s: float = 300.0) -> float:
    """Wall seconds of a whole command in a session of its own, its output in the file ``log`` of ``folder``.

    Raises ``Unmeasured`` when it ends with another code than ``codes`` or not within ``bound_s``. Waits on a pidfd: a wait
    with a timeout in ``subprocess`` sleeps in steps of up to 50 ms.
    """
    log_path = os.path.join(folder, "log")
    with open(log_path, "ab") as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv, cwd=folder, env=None if env is None else dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        handle = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        ended = poll.poll(bound_s * 1000)
        spent = time.perf_counter() - began
        os.close(handle)
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Unmeasured(f"had not ended after {bound_s:g} s")
    code = process.wait()
    if code not in codes:
        with open(log_path, encoding="utf-8", errors="replace") as stream:
            said = " ".join(stream.read()[-200:].split())
        raise Unmeasured(f"ended with code {code}: {said}")
    return spent
