"""What a judgment may look at: one trial's retained evidence, and nothing else.

Live judging and regrading hand over the same view, which is why they agree. It opens
no path of its own and knows no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_eval.records.outcome import Outcome


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """One trial as it was kept.

    ``plan`` is ``plan.json``; ``case_bytes`` the case as given; ``record`` is ``trial.json`` without its
    judgment; ``read`` gives the bytes of a file in the trial's folder, ``None`` when there is none of that name.
    ``known_outcome`` is that of ``record``, where somebody has it already.
    """

    plan: dict
    case_id: str
    number: int
    case_bytes: bytes
    record: dict
    read: Callable[[str], bytes | None]
    known_outcome: Outcome | None = None

    @property
    def outcome(self) -> Outcome | None:
        """How the subject's process ended; ``None`` for a trial that runs no process."""
        if self.known_outcome is not None:
            return self.known_outcome
        value = self.record.get("outcome")
        return None if value is None else Outcome.from_json(value)
