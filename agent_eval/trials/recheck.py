"""Recheck: today's checkers on retained after-states; the subject is never run.

Owns turning a retained run into a run whose trials start from kept after-states. How an
after-state is materialised, and which checkers look at it, is the consumer's.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from agent_eval.evidence import layout
from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.grade.regrade import ChangeList, evidence_of, history_facts, planned_from
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.records.judgment import Judgment
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import PlannedRun
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.supervise.command import Command
from agent_eval.trials.consumer import TrialContext, TrialResult
from agent_eval.trials.recording import FinishedTrial

if TYPE_CHECKING:
    import argparse


class Recheck:
    """A consumer's trials, each replaced by a recheck of what it retained.

    ``changes`` compares the new judgments with the retained ones, filled through :meth:`note`.
    """

    def __init__(self, consumer: Any, reader: EvidenceReader) -> None:
        if not hasattr(consumer, "recheck_trial"):
            raise InvalidInput.one(reader.path, f"{consumer.name} keeps no after-state to check again", "use regrade")
        self.name = consumer.name
        self.summary = consumer.summary
        self.changes = ChangeList()
        self._consumer = consumer
        self._reader = reader

    def has(self, case_id: str, number: int) -> bool:
        """Whether a trial was finished in the source and so can be rechecked."""
        return self._reader.trial(case_id, number) is not None

    def _retained(self, case_id: str, number: int) -> RetainedTrial:
        trial = self._reader.trial(case_id, number)
        if trial is None:
            raise EvidenceFault.one(f"{case_id}/{number:03d}", "is gone since the recheck began")
        return trial

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """None: a recheck is not planned from a command line."""

    def plan(self, args: argparse.Namespace) -> PlannedRun:
        """That of the source."""
        return planned_from(self._reader)

    def run_trial(self, trial: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """Hand the consumer the retained evidence of the trial."""
        retained = self._retained(trial.case.id, trial.number)
        return self._consumer.recheck_trial(evidence_of(self._reader, retained), trial)

    def judge(self, evidence: TrialEvidence, criteria: str) -> Judgment:
        """The consumer's own judgment, by today's criteria."""
        return self._consumer.judge(evidence, "current")

    def note(self, finished: FinishedTrial) -> None:
        """Compare a new judgment with the retained one."""
        retained = self._retained(finished.case_id, finished.number)
        self.changes.add(retained.name, retained.record.get("judgment"), finished.judgment)

    def write_changes(self, writer: EvidenceWriter) -> dict[str, object]:
        """Write ``changes.json`` into the new evidence; returns what the summary says of it."""
        writer.write(layout.CHANGES, self.changes.to_bytes())
        return {"changes": self.changes.counts, "source_sealed": self._reader.sealed, **history_facts(self._reader)}

