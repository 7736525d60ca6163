"""From a trial's run to its judged record.

Owns judging with the consumer's function and writing ``trial.json``, also when evidence
could not be written. It starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from agent_eval.evidence.writer import EvidenceWriter, TrialFolder
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.grade.void import EVIDENCE_TAMPERED, RECORDING_FAILED, judge_trial
from agent_eval.records import credentials
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.records.plan import PlannedCase, PlannedRun
from agent_eval.supervise.scratch import Scratch
from agent_eval.supervise.scratch_pool import ScratchPool
from agent_eval.trials.consumer import Consumer
from agent_eval.trials.execution import Execution
from agent_eval.trials.identity import IdentityTracker
from agent_eval.trials.tampering import Places, brought_about_by_subject, is_moved, is_replaced, read_regular

_MAX_SIGHTINGS = 20


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """What the run keeps of a trial after its record is on disk.

    ``recorded`` is false when no record could be written; ``kept_scratch`` is the path of a scratch that was not deleted.
    """

    case_id: str
    number: int
    judgment: Judgment
    outcome: Outcome | None
    recorded: bool
    kept_scratch: str | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """What all trials of a run share."""

    consumer: Consumer
    planned: PlannedRun
    plan: dict
    writer: EvidenceWriter
    identity: IdentityTracker
    grader: tuple[tuple[str, str], ...]
    sync: bool
    scratches: ScratchPool
    on_start: Callable[[str, int], None]
    on_finish: Callable[[FinishedTrial], None]
    keep_scratch: bool = False


class Recording:
    """Judges and records one trial whose run has ended.

    ``places`` say where the evidence was on disk when the trial started and when it ended, ``None`` when it did not run here.
    """

    def __init__(
        self,
        run: RunState,
        case: PlannedCase,
        number: int,
        folder: TrialFolder | None,
        scratch: Scratch | None,
        places: Places | None,
    ) -> None:
        self._run = run
        self._case = case
        self._number = number
        self._folder = folder
        self._scratch = scratch
        self._places = places
        self._judgment: Judgment | None = None
        self._recorded = False

    def record(self, execution: Execution) -> None:
        """Judge the trial and write its record."""
        if execution.errors or execution.tampered or self._folder is None or is_moved(self._places):
            self._judgment, self._recorded = self._finish_badly(execution)
            return
        try:
            self._judgment, self._recorded = self._record(execution, None), True
        except OSError as error:
            execution.note(error)
            self._judgment, self._recorded = self._finish_badly(execution)

    def close(self, execution: Execution) -> None:
        """After :meth:`record`: give the scratch back, and tell the run."""
        assert self._judgment is not None
        outcome = execution.result.outcome
        kept = None
        if self._scratch is not None:
            if self._run.keep_scratch:
                kept = self._scratch.path
                self._scratch.leave()
                self._put_reports_back(self._scratch)
            else:
                self._run.scratches.give_back(self._scratch, all_ended=_all_ended(outcome))
        self._run.on_finish(FinishedTrial(self._case.id, self._number, self._judgment, outcome, self._recorded, kept))

    def _put_reports_back(self, scratch: Scratch) -> None:
        # A report is moved into the evidence; who looks at a kept scratch wants to see what the program left there.
        for name in scratch.forget_expected():
            data = self._read_back(name)
            if data is None:
                continue
            try:
                with open(f"{scratch.path}/{name}", "xb") as stream:
                    stream.write(data)
            except OSError:  # it is there still, or the disk is full: the evidence has it anyway
                continue

    def _record(self, execution: Execution, recording: dict | None) -> Judgment:
        assert self._folder is not None
        result = execution.result
        record: dict[str, object] = {
            **result.record,
            "case_id": self._case.id,
            "number": self._number,
            "request": execution.request,
            "identity": result.identity,
            "outcome": None if result.outcome is None else result.outcome.to_json(),
            "scratch": {"entries": execution.held[0], "bytes": execution.held[1]},
        }
        sightings = self._credential_shapes()
        if sightings:
            record["credential_shapes"] = sightings
        if execution.interrupted:
            record["interrupted"] = True
        if recording is not None:
            record["recording"] = recording
        if execution.lost is not None:
            record["worker_lost"] = execution.lost
        evidence = TrialEvidence(self._run.plan, self._case.id, self._number, self._case.data, record, self._read_back, result.outcome)
        judgment = judge_trial(self._run.consumer.judge, evidence, "retained", self._run.grader)
        self._run.writer.finish(self._folder, {**record, "judgment": judgment.to_json()}, sync=self._run.sync)
        return judgment

    def _credential_shapes(self) -> list[dict[str, object]]:
        """Where captured bytes hold something shaped like a credential: file, pattern and offset, never the value."""
        return [
            {"file": name, "pattern": sighting.pattern, "offset": sighting.offset}
            for name in self._names()
            for sighting in credentials.find(self._read_back(name) or b"")[:_MAX_SIGHTINGS]
        ]

    def _names(self) -> tuple[str, ...]:
        return () if self._folder is None else tuple(self._folder.files)

    def _read_back(self, name: str) -> bytes | None:
        if self._folder is None or name not in self._folder.files:
            return None
        data = self._folder.contents.get(name)
        return read_regular(os.path.join(self._folder.path, name)) if data is None else data

    def _finish_badly(self, execution: Execution) -> tuple[Judgment, bool]:
        """Record that recording failed, as well as still possible."""
        how = brought_about_by_subject(execution, self._places, self._scratch, self._run.writer.path)
        recording = {"errors": execution.errors, "brought_about_by_subject": how is not None, "how": how}
        if self._folder is not None and not is_replaced(self._places):
            try:
                return self._record(execution, recording), True
            except OSError as error:
                execution.note(error)
        grader = self._run.grader
        if how is not None:
            failure = Failure(EVIDENCE_TAMPERED, ": ".join((how, *execution.errors)))
            return Judgment(Verdict.FAIL, Basis.RECOMPUTED, (failure,), grader=grader), False
        failure = Failure(RECORDING_FAILED, "; ".join(execution.errors))
        return Judgment(Verdict.VOID, Basis.RECOMPUTED, (failure,), cause=RECORDING_FAILED, grader=grader), False


def _all_ended(outcome: Outcome | None) -> bool:
    """Whether every process of a trial is known to be gone: another trial's scratch must not be a survivor's folder."""
    return outcome is None or not (outcome.tree.unreaped or outcome.stop_reason is StopReason.SUPERVISOR_LOST)
