"""One trial on this machine, as the scheduler runs it: its run, then its record."""

from __future__ import annotations

from collections.abc import Iterator

from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import PlannedCase
from agent_eval.supervise.command import Command
from agent_eval.trials.execution import TrialRun
from agent_eval.trials.recording import Recording, RunState


class TrialTask:
    """A trial of a run; see :class:`agent_eval.trials.scheduler.Task`."""

    def __init__(self, run: RunState, case: PlannedCase, number: int) -> None:
        self._run = run
        self._trial = TrialRun(
            run.consumer, run.planned, case, number, run.identity, lambda: run.writer.trial(case.id, number), run.writer.path, run.scratches
        )
        self.services = self._trial.services

    def prepare(self) -> None:
        """Make the folder and the scratch."""
        self._trial.prepare()

    def discard(self) -> None:
        """Take the folder and the scratch away again: the trial is unrun."""
        if self._trial.scratch is not None:
            self._run.scratches.give_back(self._trial.scratch)
        if self._trial.folder is not None:
            self._run.writer.forget(self._trial.folder)

    def start(self) -> Command | None:
        """The first command, once the journal says that the trial started."""
        trial = self._trial
        self._run.on_start(trial.case.id, trial.number)
        command = trial.start()
        if command is None:
            return None
        try:
            self._run.writer.journal(
                "started", case_id=trial.case.id, number=trial.number, request=trial.execution.request
            )
        except OSError as error:
            trial.give_up(error)
            return None
        return command

    def resume(self, outcome: Outcome) -> Command | None:
        """The next command after ``outcome``, ``None`` when there is none."""
        return self._trial.resume(outcome)

    def complete(self) -> Iterator[None]:
        """Judge and record the trial, then tidy up after it."""
        trial = self._trial
        trial.measure()
        recording = Recording(self._run, trial.case, trial.number, trial.folder, trial.scratch, trial.places)
        recording.record(trial.execution)
        yield
        recording.close(trial.execution)
