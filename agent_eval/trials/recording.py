"""From a trial's run to its judged record.

Owns judging with the consumer's function, writing ``trial.json``, and saying who brought
it about when writing failed. It starts nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

from agent_eval.evidence.writer import EvidenceWriter, TrialFolder
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.grade.void import EVIDENCE_TAMPERED, RECORDING_FAILED, judge_trial
from agent_eval.records import credentials
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import PlannedCase, PlannedRun
from agent_eval.supervise.scratch import Scratch
from agent_eval.trials.consumer import Consumer
from agent_eval.trials.execution import Execution
from agent_eval.trials.identity import IdentityTracker

_FULL = (errno.ENOSPC, errno.EDQUOT)
# The folder was made new for the trial, so that only its subject can have put something there (a link is EEXIST or ELOOP, too).
_PLANTED = (os.strerror(errno.EEXIST), os.strerror(errno.ELOOP))
_SMALL_BYTES = 64 * 1024
_MAX_SIGHTINGS = 20
_NOTICEABLE_BYTES = 64 * 1024

Place = tuple[tuple[int, ...], ...]


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
    on_start: Callable[[str, int], None]
    on_finish: Callable[[FinishedTrial], None]
    keep_scratch: bool = False


class Recording:
    """Judges and records one trial whose run has ended.

    ``places`` are :func:`place_of` the evidence when the trial started and when it ended, ``None`` when it did not run here.
    """

    def __init__(
        self,
        run: RunState,
        case: PlannedCase,
        number: int,
        folder: TrialFolder | None,
        scratch: Scratch | None,
        places: tuple[Place | None, Place | None] | None,
    ) -> None:
        self._run = run
        self._case = case
        self._number = number
        self._folder = folder
        self._scratch = scratch
        self._places = places
        self._small: dict[str, bytes] = {}

    def complete(self, execution: Execution) -> None:
        """Write the record, delete the scratch, and tell the run."""
        if execution.errors or self._folder is None or self._is_moved():
            judgment, recorded = self._finish_badly(execution)
        else:
            try:
                judgment, recorded = self._record(execution, None), True
            except OSError as error:
                execution.note(error)
                judgment, recorded = self._finish_badly(execution)
        kept = None
        if self._scratch is not None:
            if self._run.keep_scratch:
                kept = self._scratch.path
            else:
                self._scratch.remove()
        outcome = execution.result.outcome
        self._run.on_finish(FinishedTrial(self._case.id, self._number, judgment, outcome, recorded, kept))

    def _record(self, execution: Execution, recording: dict | None) -> Judgment:
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
        evidence = TrialEvidence(self._run.plan, self._case.id, self._number, self._case.data, record, self._read_back)
        judgment = judge_trial(self._run.consumer.judge, evidence, "retained", self._run.grader)
        self._run.writer.finish(self._folder, {**record, "judgment": judgment.to_json()}, sync=self._run.sync)
        return judgment

    def _credential_shapes(self) -> list[dict[str, object]]:
        """Where captured bytes hold something shaped like a credential: file, pattern and offset, never the value."""
        return [
            {"file": name, "pattern": sighting.pattern, "offset": sighting.offset}
            for name in self._folder.files
            for sighting in credentials.find(self._read_back(name) or b"")[:_MAX_SIGHTINGS]
        ]

    def _read_back(self, name: str) -> bytes | None:
        if name not in self._folder.files:
            return None
        data = self._small.get(name)
        if data is None:
            with open(os.path.join(self._folder.path, name), "rb") as stream:
                data = stream.read()
            if len(data) <= _SMALL_BYTES:
                self._small[name] = data
        return data

    def _finish_badly(self, execution: Execution) -> tuple[Judgment, bool]:
        """Record that recording failed, as well as still possible."""
        how = self._brought_about_by_subject(execution)
        recording = {"errors": execution.errors, "brought_about_by_subject": how is not None, "how": how}
        if self._folder is not None and not self._is_replaced():
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

    def _brought_about_by_subject(self, execution: Execution) -> str | None:
        """How the subject made recording fail, ``None`` when nothing shows that it did."""
        if self._is_moved():
            return "the evidence directory was moved or its mode changed while the trial ran"
        if self._places is not None and any(sign in text for text in execution.errors for sign in _PLANTED):
            return "a file of the trial's record was there before it was written"
        full = any(number in _FULL for number in execution.error_numbers) or any("space" in text for text in execution.errors)
        if full and self._scratch is not None and execution.held[1] >= _NOTICEABLE_BYTES and self._same_disk(self._scratch.path):
            # The scratch goes first: a record can only be written now if that made room.
            self._scratch.remove()
            return "the disk was full until the trial's own files were deleted"
        return None

    def _is_moved(self) -> bool:
        return self._places is not None and self._places[0] != self._places[1]

    def _is_replaced(self) -> bool:
        """Whether the trial's folder is another one than was made: what is written by its path would go elsewhere."""
        if self._places is None:
            return False
        before, after = self._places
        return before is None or after is None or before[:-1] != after[:-1]

    def _same_disk(self, path: str) -> bool:
        try:
            return os.stat(path).st_dev == os.stat(self._run.writer.path).st_dev
        except OSError:
            return False


def place_of(path: str, folder: str) -> Place | None:
    """What identifies an evidence directory and a trial's folder in it on disk; ``None`` when one is not there."""
    try:
        found = [os.stat(place, follow_symlinks=False) for place in (path, os.path.join(path, "trials"), os.path.dirname(folder), folder)]
    except OSError:
        return None
    return *((status.st_dev, status.st_ino) for status in found), tuple(status.st_mode for status in found)
