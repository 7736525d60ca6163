"""Signals to a command that makes a directory from evidence: it ends, and leaves nothing behind.

Owns the handlers and the words. A run's own signals are ``trials.interrupt``'s: there is something to keep.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from agent_eval.records.exit_codes import MEANING, ExitCode

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Stopped(Exception):
    """The command was asked to end by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stopping:
    """Ends the command at once while it only reads, and where :meth:`check` is called once it writes.

    A signal that our parent made us ignore stays ignored.
    """

    def __init__(self) -> None:
        self._came: int | None = None
        self._writing = False

    def hold(self) -> None:
        """From now on a signal is noticed where :meth:`check` is called: removing what was written must not be cut short."""
        self._writing = True

    def check(self) -> None:
        """Raise :class:`Stopped` when a signal came."""
        if self._came is not None:
            raise Stopped(self._came)

    def note(self, number: int, _frame: FrameType | None) -> None:
        """The handler."""
        self._came = self._came or number
        if not self._writing:
            raise Stopped(number)


def stoppable(command: Callable[[Stopping], int]) -> int:
    """Call ``command`` with the handlers set; says so and returns the signal's exit code when it was stopped."""
    stopping = Stopping()
    before: dict[int, Any] = {}
    try:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, stopping.note)
        return command(stopping)
    except Stopped as stopped:
        code = ExitCode(128 + stopped.number)
        print(f"error: {MEANING[code]}; nothing was kept", file=sys.stderr)
        return code
    finally:
        stopping.hold()
        for before_number, handler in before.items():
            signal.signal(before_number, handler)
