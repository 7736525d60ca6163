"""The exit codes of ``run.py``: part of the public interface.

Owns the closed set and the sentence that explains each. Which one holds is decided
from counts in ``measure.summary`` and by the command line.
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What the number means; the first that holds, in the order of ``DESIGN 5``."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    EVIDENCE = 3
    NOT_JUDGED = 4
    INCOMPLETE = 5
    INTERNAL = 70
    HANGUP = 129
    INTERRUPTED = 130
    QUIT = 131
    TERMINATED = 143


MEANING: dict[int, str] = {
    ExitCode.PASSED: "every planned trial passed",
    ExitCode.FAILED: "at least one trial failed",
    ExitCode.USAGE: "usage or input is invalid; nothing ran",
    ExitCode.EVIDENCE: "the evidence does not hold or could not be sealed",
    ExitCode.NOT_JUDGED: "nothing could be judged",
    ExitCode.INCOMPLETE: "incomplete: some passed, none failed, some are void or were not run",
    ExitCode.INTERNAL: "internal error",
    ExitCode.HANGUP: "interrupted by SIGHUP",
    ExitCode.INTERRUPTED: "interrupted by SIGINT",
    ExitCode.QUIT: "interrupted by SIGQUIT",
    ExitCode.TERMINATED: "interrupted by SIGTERM",
}
