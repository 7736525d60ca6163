"""One trial from its folder to its record.

Owns the order of a trial: folder, scratch, the consumer's commands, recording,
judgment. It does not wait for processes (the scheduler does) and does not judge.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass

from agent_eval.evidence.writer import EvidenceWriter, TrialFolder
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.grade.void import judge_trial
from agent_eval.records import credentials
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.records.plan import PlannedCase, PlannedRun
from agent_eval.supervise.command import Command
from agent_eval.supervise.scratch import Scratch
from agent_eval.trials.consumer import Consumer, Services, TrialContext, TrialResult
from agent_eval.trials.identity import IdentityTracker

_FULL = (errno.ENOSPC, errno.EDQUOT)
_SMALL_BYTES = 64 * 1024
_MAX_SIGHTINGS = 20


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """What the run keeps of a trial after its record is on disk."""

    case_id: str
    number: int
    judgment: Judgment
    outcome: Outcome | None
    recorded: bool


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


class TrialTask:
    """A trial as the scheduler runs it."""

    def __init__(self, run: RunState, case: PlannedCase, number: int) -> None:
        self.services = Services()
        self._run = run
        self._case = case
        self._number = number
        self._folder: TrialFolder | None = None
        self._scratch: Scratch | None = None
        self._steps: Generator[Command, Outcome, TrialResult] | None = None
        self._request: dict[str, object] = {}
        self._interrupted = False
        self._errors: list[str] = []
        self._lost: list[int] = []
        self._small: dict[str, bytes] = {}
        self._place: tuple[int, ...] | None = None
        self._result = TrialResult(None)

    def prepare(self) -> None:
        """Make the folder and the scratch."""
        try:
            self._folder = self._run.writer.trial(self._case.id, self._number)
            self._scratch = Scratch()
        except OSError as error:
            self._note(error)

    def discard(self) -> None:
        """Take the folder and the scratch away again: the trial is unrun."""
        if self._scratch is not None:
            self._scratch.remove()
        if self._folder is not None:
            self._run.writer.forget(self._folder)

    def start(self) -> Command | None:
        """Run the consumer up to its first command; ``None`` when there is none."""
        self._run.on_start(self._case.id, self._number)
        if self._errors:
            return None
        self._place = _place_of(self._run.writer.path)
        context = TrialContext(
            self._case, self._number, self._run.planned, self._folder, self._scratch, self._run.identity, self.services
        )
        self._steps = self._run.consumer.run_trial(context)
        command = self._advance(None)
        if command is None:
            return None
        self._request = _describe(command)
        try:
            self._run.writer.journal("started", case_id=self._case.id, number=self._number, request=self._request)
        except OSError as error:
            self._note(error)
            self._steps.close()
            return None
        return command

    def resume(self, outcome: Outcome) -> Command | None:
        """Hand an outcome to the consumer; ``None`` when there is nothing more to run."""
        if outcome.stop_reason is StopReason.INTERRUPTED:
            self._interrupted = True
        self._errors.extend(outcome.recording_errors)
        return self._advance(outcome)

    def _advance(self, outcome: Outcome | None) -> Command | None:
        try:
            return next(self._steps) if outcome is None else self._steps.send(outcome)
        except StopIteration as end:
            self._result = end.value
        except OSError as error:
            # Only writing evidence or using the scratch raises here: the record of this trial is not whole.
            self._note(error)
            self._result = TrialResult(outcome)
        return None

    def _note(self, error: OSError) -> None:
        self._errors.append(f"{error.strerror or error} ({os.path.basename(str(error.filename or ''))})".replace(" ()", ""))
        self._lost.append(error.errno or 0)

    def complete(self) -> None:
        """Judge and record the trial."""
        result = self._result
        held = self._scratch.usage() if self._scratch is not None else (0, 0)
        if self._errors or self._folder is None:
            judgment, recorded = self._finish_badly(result, held)
        else:
            try:
                judgment, recorded = self._record(result, held, None), True
            except OSError as error:
                self._note(error)
                judgment, recorded = self._finish_badly(result, held)
        if self._scratch is not None:
            self._scratch.remove()
        self._run.on_finish(FinishedTrial(self._case.id, self._number, judgment, result.outcome, recorded))

    def _record(self, result: TrialResult, held: tuple[int, int], recording: dict | None) -> Judgment:
        record: dict[str, object] = {
            **result.record,
            "case_id": self._case.id,
            "number": self._number,
            "request": self._request,
            "identity": result.identity,
            "outcome": None if result.outcome is None else result.outcome.to_json(),
            "scratch": {"entries": held[0], "bytes": held[1]},
        }
        sightings = self._credential_shapes()
        if sightings:
            record["credential_shapes"] = sightings
        if self._interrupted:
            record["interrupted"] = True
        if recording is not None:
            record["recording"] = recording
        evidence = TrialEvidence(
            self._run.plan, self._case.id, self._number, self._case.data, record, self._read_back
        )
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

    def _finish_badly(self, result: TrialResult, held: tuple[int, int]) -> tuple[Judgment, bool]:
        """Record that recording failed, as well as still possible, and say who brought it about."""
        how = None
        if self._place is not None and _place_of(self._run.writer.path) != self._place:
            how = "the evidence directory was moved or its mode changed while the trial ran"
        elif any(number in _FULL for number in self._lost) or any("space" in text for text in self._errors):
            # The scratch goes first: when writing works again, it was the subject that filled the disk.
            if self._scratch is not None and held[1] > 0:
                self._scratch.remove()
                how = "the disk was full until the trial's own files were deleted"
        recording = {"errors": self._errors, "brought_about_by_subject": how is not None, "how": how}
        if self._folder is not None:
            try:
                return self._record(result, held, recording), True
            except OSError as error:
                self._note(error)
        failure = Failure("recording-failed", "; ".join(self._errors))
        return Judgment(Verdict.VOID, Basis.RECOMPUTED, (failure,), cause="recording-failed", grader=self._run.grader), False


def _describe(command: Command) -> dict[str, object]:
    return {
        "argv": [os.fsencode(argument).decode("utf-8", "backslashreplace") for argument in command.argv],
        "cwd": command.cwd,
        "env_names": sorted(command.env),
        "limits": {
            "timeout_s": command.timeout_s,
            "max_output_bytes": command.max_output_bytes,
            "grace_s": command.grace_s,
        },
    }


def _place_of(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
        inner = os.stat(os.path.join(path, "trials"))
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mode, inner.st_ino, inner.st_mode
