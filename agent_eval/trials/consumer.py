"""The seam between the harness and a domain: what a consumer provides and is handed.

Owns the protocol. The smallest example of it is the generic owner check.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent_eval.evidence.writer import TrialFolder
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.records.judgment import Judgment
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import PlannedCase, PlannedRun
from agent_eval.supervise.command import Command
from agent_eval.supervise.scratch import Scratch
from agent_eval.trials.identity import IdentityTracker

if TYPE_CHECKING:
    import argparse


class Services:
    """Descriptors that a trial wants served while its processes run, such as a witness socket.

    A callback runs in the harness's one thread and must not block.
    """

    def __init__(self) -> None:
        self.callbacks: dict[int, Callable[[], None]] = {}

    def add(self, fileno: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` whenever ``fileno`` is readable, until :meth:`remove` or the trial's end."""
        self.callbacks[fileno] = callback

    def remove(self, fileno: int) -> None:
        """Stop serving ``fileno``; the caller closes it."""
        self.callbacks.pop(fileno, None)


@dataclass(slots=True)
class TrialContext:
    """What one trial works with.

    ``folder`` is its place in the evidence; ``scratch`` is private, empty, of a name of its own, and nothing of it is left after (``None`` for a consumer that uses none).
    """

    case: PlannedCase
    number: int
    planned: PlannedRun
    folder: TrialFolder
    scratch: Scratch
    identity: IdentityTracker
    services: Services


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a trial leaves for its record.

    ``outcome`` is that of the subject's process, ``None`` for a trial that runs none. ``identity`` is
    ``{before, after, reused, reused_after}``: two looks at the same files, and the paths whose digest was taken earlier in the run. ``record`` holds the consumer's own keys of ``trial.json``, plain JSON.
    """

    outcome: Outcome | None
    identity: dict[str, object] = field(default_factory=dict)
    record: dict[str, object] = field(default_factory=dict)


class Consumer(Protocol):
    """One domain: what to run and how to judge it. Found as ``CONSUMER`` in ``consumers/<name>/consumer.py``.

    Optional: ``run(args) -> int | None`` takes over modes that run no trials (``None``: go on with a run);
    ``recheck_trial(evidence, context)`` is ``run_trial`` for ``recheck``; ``summary_facts(planned)`` gives further keys
    of ``summary.json``; ``finish(planned)`` is called when the last trial of a run has ended, however it ended; ``uses_scratch = False`` spares trials that run no process their scratch folder; ``list_items(what)`` gives (name, one line) pairs for ``list cases`` and ``list adapters``.
    """

    name: str
    summary: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the consumer's own options."""

    def plan(self, args: argparse.Namespace) -> PlannedRun:
        """Validate everything and fix the plan; runs no trial. Raises ``InvalidInput`` with every problem."""

    def run_trial(self, trial: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """Yield commands to supervise, receive their outcomes, return what to record. No judging here."""

    def judge(self, evidence: TrialEvidence, criteria: str) -> Judgment:
        """A pure function of the retained evidence; live judging and regrading both call it."""
