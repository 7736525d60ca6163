"""Errors that a person can act on: what, where, what to do.

Owns the two typed errors that cross every boundary of the project. It does not
print them and does not choose an exit code; the command line does both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    ``where`` names the argument, file or JSON path; ``what`` says what is wrong
    with it; ``fix`` says what to do and may be empty when ``what`` says it.
    """

    where: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.fix}" if self.fix else text


class _ProblemError(Exception):
    """Carries every problem found, so that a person mends them all at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        if not self.problems:
            raise ValueError("an error needs at least one problem")
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type, tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)

    @classmethod
    def one(cls, where: str, what: str, fix: str = "") -> _ProblemError:
        """The error for a single problem."""
        return cls([Problem(where, what, fix)])


class InvalidInput(_ProblemError):
    """Usage or input is invalid: nothing was run (exit code 2)."""


class EvidenceFault(_ProblemError):
    """Evidence does not hold, or could not be written or sealed (exit code 3)."""


def raise_if(problems: list[Problem]) -> None:
    """Raise :class:`InvalidInput` with all ``problems``; do nothing when there are none."""
    if problems:
        raise InvalidInput(problems)
