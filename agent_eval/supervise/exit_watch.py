"""Learning that a child has ended, without reaping it.

Owns the descriptor to poll: a pidfd on Linux, a kqueue on macOS and the BSDs, nothing on
kernels with neither (then :attr:`ExitWatch.fd` is -1 and the caller asks now and then).
"""

from __future__ import annotations

import os
import select
import sys

POLL_INTERVAL_S = 0.005  # where nothing wakes us


class ExitWatch:
    """Watches one child of ours that has not been reaped."""

    __slots__ = ("_kqueue", "fd")

    def __init__(self, pid: int) -> None:
        self._kqueue = None
        self.fd = -1
        if hasattr(os, "pidfd_open"):
            try:
                self.fd = os.pidfd_open(pid)
            except OSError:  # ENOSYS: an older kernel, or a sandbox that hides the call
                return
        elif sys.platform != "linux" and hasattr(select, "kqueue"):
            self._kqueue = select.kqueue()
            event = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT)
            self._kqueue.control([event], 0)
            self.fd = self._kqueue.fileno()

    def close(self) -> None:
        """Close the descriptor."""
        if self._kqueue is not None:
            self._kqueue.close()
        elif self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def has_ended(pid: int) -> bool:
    """Whether the child ``pid`` waits to be reaped; it stays so. A child that someone reaped has ended, too.

    Peeking keeps the process id ours: a signal to the group cannot hit a stranger that got the number
    (bazel issue 11910, cpython issue 127049).
    """
    if not hasattr(os, "waitid"):  # macOS before Python 3.13: the kqueue's word has to do
        return True
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
