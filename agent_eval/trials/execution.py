"""One trial's run: folder, scratch, and the consumer's commands up to their last outcome.

Owns what happens before anything is judged, on this machine or on another one. It does
not wait for processes (the scheduler does), does not judge and does not write a record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from agent_eval.evidence.writer import TrialFolder
from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.records.plan import PlannedCase, PlannedRun
from agent_eval.supervise.command import Command
from agent_eval.supervise.scratch import Scratch
from agent_eval.supervise.scratch_pool import ScratchPool
from agent_eval.trials.consumer import Consumer, Services, TrialContext, TrialResult
from agent_eval.trials.identity import IdentityTracker

Place = tuple[tuple[int, int, int], ...]
"""Where a trial's folder was on disk: device, inode and mode of the evidence directory, of the folders on the way, and of itself."""


@dataclass(slots=True)
class Execution:
    """What a trial's run left, as plain data.

    ``errors`` are failures to write evidence, in words, with their errno in ``error_numbers`` (0 when unknown).
    ``held`` is what the scratch held: entries and bytes. ``tampered`` says how the subject got at its evidence on a worker,
    ``lost`` why a worker's trial did not come back.
    """

    request: dict[str, object] = field(default_factory=dict)
    result: TrialResult = field(default_factory=lambda: TrialResult(None))
    interrupted: bool = False
    errors: list[str] = field(default_factory=list)
    error_numbers: list[int] = field(default_factory=list)
    held: tuple[int, int] = (0, 0)
    tampered: str | None = None
    lost: str | None = None

    def note(self, error: OSError) -> None:
        """Keep a failure to write evidence."""
        name = os.path.basename(str(error.filename or ""))
        self.errors.append(f"{error.strerror or error} ({name})" if name else str(error.strerror or error))
        self.error_numbers.append(error.errno or 0)

    def to_json(self) -> dict[str, object]:
        """The run as plain JSON values, to be sent from one machine to another."""
        outcome = self.result.outcome
        return {
            "request": self.request,
            "outcome": None if outcome is None else outcome.to_json(),
            "identity": self.result.identity,
            "record": self.result.record,
            "interrupted": self.interrupted,
            "errors": self.errors,
            "error_numbers": self.error_numbers,
            "held": list(self.held),
            "tampered": self.tampered,
        }

    @classmethod
    def from_json(cls, value: dict) -> Execution:
        """The run that :meth:`to_json` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        outcome = value["outcome"]
        result = TrialResult(None if outcome is None else Outcome.from_json(outcome), value["identity"], value["record"])
        entries, size_bytes = value["held"]
        errors, numbers = value["errors"], value["error_numbers"]
        return cls(value["request"], result, value["interrupted"], errors, numbers, (entries, size_bytes), value["tampered"])


class TrialRun:
    """Steps a consumer's trial through its commands.

    ``make_folder`` makes the place for captured files in the directory ``evidence``; it raises ``OSError`` when there can be none.
    ``places`` say where that was on disk when the trial started and when it ended.
    """

    def __init__(
        self,
        consumer: Consumer,
        planned: PlannedRun,
        case: PlannedCase,
        number: int,
        identity: IdentityTracker,
        make_folder: Callable[[], TrialFolder],
        evidence: str,
        scratches: ScratchPool,
    ) -> None:
        self.services = Services()
        self.execution = Execution()
        self.folder: TrialFolder | None = None
        self.scratch: Scratch | None = None
        self.case = case
        self.number = number
        self._consumer = consumer
        self._planned = planned
        self._identity = identity
        self._make_folder = make_folder
        self._evidence = evidence
        self._scratches = scratches
        self._way: tuple[str, ...] = ()
        self.places: tuple[Place | None, Place | None] = (None, None)
        self._steps: Generator[Command, Outcome, TrialResult] = _no_steps()

    def prepare(self) -> None:
        """Make the folder and the scratch."""
        try:
            self.folder = self._make_folder()
            if getattr(self._consumer, "uses_scratch", True):
                self.scratch = self._scratches.take()
        except OSError as error:
            self.execution.note(error)

    def start(self) -> Command | None:
        """Run the consumer up to its first command; ``None`` when there is none."""
        here = self._look()
        self.places = (here, here)
        if self.execution.errors:
            return None
        assert self.folder is not None  # prepare() made it, or noted an error
        scratch: Any = self.scratch  # None for a consumer that says it uses none
        context = TrialContext(self.case, self.number, self._planned, self.folder, scratch, self._identity, self.services)
        self._steps = self._consumer.run_trial(context)
        command = self._advance(None)
        if command is not None:
            self.execution.request = _describe(command)
        return command

    def give_up(self, error: OSError) -> None:
        """End the trial because evidence could not be written."""
        self.execution.note(error)
        self._steps.close()

    def resume(self, outcome: Outcome) -> Command | None:
        """Hand an outcome to the consumer; ``None`` when there is nothing more to run."""
        if outcome.stop_reason is StopReason.INTERRUPTED:
            self.execution.interrupted = True
        self.execution.errors.extend(outcome.recording_errors)
        return self._advance(outcome)

    def _advance(self, outcome: Outcome | None) -> Command | None:
        try:
            return next(self._steps) if outcome is None else self._steps.send(outcome)
        except StopIteration as end:
            self.execution.result = end.value
        except OSError as error:
            # Only writing evidence or using the scratch raises here: the record of this trial is not whole.
            self.execution.note(error)
            self.execution.result = TrialResult(outcome)
        self.places = (self.places[0], self._look())
        return None

    def measure(self) -> None:
        """Note what the scratch holds. Apart from the last step, so that the next trial need not wait for it."""
        if self.scratch is not None:
            self.execution.held = self.scratch.usage()

    def _look(self) -> Place | None:
        if self.folder is None:
            return None
        if not self._way:
            folder = self.folder.path
            case = folder.rpartition("/")[0]
            self._way = (self._evidence, case.rpartition("/")[0], case, folder)
        try:
            return tuple([(status.st_dev, status.st_ino, status.st_mode) for status in map(os.lstat, self._way)])
        except OSError:
            return None


def _no_steps() -> Generator[Command, Outcome, TrialResult]:
    return TrialResult(None)
    yield


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
