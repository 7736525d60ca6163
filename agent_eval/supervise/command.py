"""What to supervise: one program, where it runs, and its limits.

Owns the typed request that crosses from the harness to the guardian. Ranges of
limits are the business of the command line; here they only have to be numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STDIN_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run under a :class:`~agent_eval.supervise.slot.Slot`.

    ``env`` is complete: nothing is inherited, and the slot adds only its marker variable.
    ``max_output_bytes`` caps stdout, stderr and report together. ``stdout_path`` and
    ``stderr_path`` are created exclusively, and only when a byte arrives; ``None`` counts and
    caps a stream without keeping it. ``report_source`` is the absolute path, in private scratch,
    that the program was asked to write; it is moved or copied to ``report_path`` when the whole tree is gone.
    ``stdin_bytes`` is at most 1 MiB; ``None`` means ``/dev/null``. Paths are absolute.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    timeout_s: float
    max_output_bytes: int
    grace_s: float = 1.0
    stdout_path: str | None = None
    stderr_path: str | None = None
    report_source: str | None = None
    report_path: str | None = None
    stdin_bytes: bytes | None = None

    def __post_init__(self) -> None:
        if not self.timeout_s > 0 or not self.grace_s >= 0 or not self.max_output_bytes > 0:
            raise ValueError("a command needs a timeout and an output cap above 0, and a grace of at least 0 s")
        if self.stdin_bytes is not None and len(self.stdin_bytes) > STDIN_LIMIT_BYTES:
            raise ValueError(f"standard input holds at most {STDIN_LIMIT_BYTES} bytes")
        if (self.report_source is None) != (self.report_path is None):
            raise ValueError("report_source and report_path go together")

    def to_wire(self, mark_variable: str, mark: str) -> tuple[object, ...]:
        """The request as plain values for the guardian, with the marker variable in its environment."""
        return (
            tuple(self.argv),
            self.cwd,
            {**self.env, mark_variable: mark},
            self.timeout_s,
            self.max_output_bytes,
            self.grace_s,
            self.stdout_path,
            self.stderr_path,
            self.report_source,
            self.report_path,
            self.stdin_bytes,
        )

    @classmethod
    def from_wire(cls, values: tuple[Any, ...]) -> Command:
        """The request that :meth:`to_wire` sent."""
        return cls(*values)
