"""Signals to the harness: noticed, never acted on inside a handler.

Owns the handlers. They only count; the scheduler acts. A signal that our parent
made us ignore (``nohup``, a background job) stays ignored.
"""

from __future__ import annotations

import os
import select
import signal
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupt:
    """How often the person asked to stop, and by which signal first.

    ``fileno()`` is readable after a signal, so that a wait ends at once.
    """

    def __init__(self) -> None:
        self.count = 0
        self.signal: int | None = None
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._read

    @property
    def requested(self) -> bool:
        """Whether the run was asked to stop."""
        return self.count > 0

    def __enter__(self) -> Interrupt:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.signal is None:
            self.signal = number

    def came_as(self, number: int | None, within_s: float) -> bool:
        """Whether ``number`` is the signal that asked to stop; waits so long for it when none has come yet."""
        if number not in self._before:
            return False
        if not self.requested:
            poll = select.poll()
            poll.register(self._read, select.POLLIN)
            poll.poll(within_s * 1000.0)
        return self.signal == number

    def drain(self) -> None:
        """Empty the descriptor after it was readable."""
        try:
            while os.read(self._read, 512):
                pass
        except BlockingIOError:
            pass
