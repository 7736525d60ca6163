"""A run: from a plan to a sealed directory.

Owns the sequence directory, plan, slots, trials, summary, seal, and what happens to it
when a signal comes or a write fails. It does not know how a summary is computed or shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent_eval.evidence.files import Files
from agent_eval.evidence.location import new_directory
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.grade.evaluator import evaluator_record, grader_record
from agent_eval.records.judgment import Judgment
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import PlannedCase, PlannedRun, planned_numbers
from agent_eval.records.problems import EvidenceFault, Problem
from agent_eval.supervise.scratch_pool import ScratchPool
from agent_eval.supervise.slot import Slot
from agent_eval.trials.consumer import Consumer
from agent_eval.trials.identity import IdentityTracker
from agent_eval.trials.interrupt import Interrupt
from agent_eval.trials.recording import FinishedTrial, RunState
from agent_eval.trials.scheduler import Scheduler
from agent_eval.trials.trial import TrialTask

if TYPE_CHECKING:
    from concurrent.futures import Executor


class Counter(Protocol):
    """Adds up trials and makes the summary; ``measure.summary.Tally`` is the one there is."""

    failed: int

    def add(self, case_id: str, number: int, judgment: Judgment, outcome: Outcome | None, *, recorded: bool = True) -> None:
        """Count one trial."""

    def summary(self, *, signal: int | None = None, facts: dict[str, object] | None = None) -> dict[str, object]:
        """The content of ``summary.json``."""


class Observer(Protocol):
    """Is told what happens while the run goes on; it must not raise."""

    tick: Callable[[], None] | None

    def begun(self, path: str, plan: dict) -> None:
        """The plan is on disk."""

    def started(self, case_id: str, number: int) -> None:
        """A trial starts."""

    def finished(self, trial: FinishedTrial) -> None:
        """A trial is recorded."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run, as opposed to what: none of it is part of ``plan_sha256``.

    ``wanted`` tells which planned trials can be done at all; the others stay unrun. ``plan_facts`` are further keys
    of ``plan.json``; ``chosen`` among them (a shard, a rerun) makes those trials the whole of this run.
    With ``executor`` trials run on its workers, at most ``jobs`` outstanding. ``keep_scratch`` leaves trial folders for a
    person to look at. ``before_seal`` may write further files of the run; it returns further facts for the summary.
    """

    argv: tuple[str, ...]
    output: str | None = None
    jobs: int = 1
    max_fail: int | None = None
    sync: bool = False
    consumer_folder: str | None = None
    wanted: Callable[[str, int], bool] | None = None
    plan_facts: dict[str, object] | None = None
    executor: Executor | None = None
    keep_scratch: bool = False
    before_seal: Callable[[EvidenceWriter], dict[str, object]] | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run left. ``seal`` is ``None`` and ``faults`` says why when it could not be sealed."""

    path: str
    plan: dict
    summary: dict
    seal: str | None
    faults: tuple[Problem, ...] = ()


def run(
    consumer: Consumer,
    planned: PlannedRun,
    options: RunOptions,
    observer: Observer,
    counter_for: Callable[[dict], Counter],
    files: Files | None = None,
) -> RunResult:
    """Do the planned trials in a new evidence directory and seal it.

    Raises ``InvalidInput`` when the directory cannot be made and ``EvidenceFault`` when the plan cannot be
    written: nothing ran then. A fault while sealing comes back in the result.
    """
    evaluator = evaluator_record(options.consumer_folder)
    plan = make_plan(consumer.name, planned, options.argv, evaluator, **(options.plan_facts or {}))
    writer = new_directory(options.output, files)
    counter = counter_for(plan)
    with Interrupt() as interrupt, ScratchPool() as scratches:
        writer.write_plan(plan, ((case.id, case.data) for case in planned.cases))
        observer.begun(writer.path, plan)

        def on_finish(trial: FinishedTrial) -> None:
            counter.add(trial.case_id, trial.number, trial.judgment, trial.outcome, recorded=trial.recorded)
            observer.finished(trial)

        grader = grader_record(consumer.name, evaluator)
        state = RunState(
            consumer, planned, plan, writer, IdentityTracker(), grader, options.sync, scratches,
            observer.started, on_finish, options.keep_scratch,
        )
        _run_trials(state, options, interrupt, counter, observer.tick)
        if interrupt.requested:
            _note_interrupt(writer, interrupt)
        summary, seal, faults = _seal(state, counter, interrupt, options.before_seal)
    return RunResult(writer.path, plan, summary, seal, faults)


def _run_trials(
    state: RunState, options: RunOptions, interrupt: Interrupt, counter: Counter, tick: Callable[[], None] | None
) -> None:
    def stop() -> bool:
        return options.max_fail is not None and counter.failed >= options.max_fail

    trials = _chosen_trials(state, options.wanted)
    slots: list[Slot] = []
    try:
        if options.executor is not None:
            from agent_eval.trials.remote import RemoteRun

            RemoteRun(state, options.executor, options.jobs, interrupt, options.argv, tick).run(trials, stop)
            return
        for _ in range(min(options.jobs, max(1, state.planned.planned))):
            slots.append(Slot(state.plan["run_id"]))
        scheduler = Scheduler(slots, interrupt, tick, strict=options.max_fail is not None)
        scheduler.run((TrialTask(state, case, number) for case, number in trials), stop)
    finally:
        for slot in slots:
            slot.close()
        finish = getattr(state.consumer, "finish", None)
        if finish is not None:
            finish(state.planned)


def _note_interrupt(writer: EvidenceWriter, interrupt: Interrupt) -> None:
    try:
        writer.journal("interrupted", signal=interrupt.signal)
    except OSError:
        return  # the summary says it too, and a journal that cannot be written keeps the directory from being sealed


def _chosen_trials(state: RunState, wanted: Callable[[str, int], bool] | None) -> Iterator[tuple[PlannedCase, int]]:
    for case in state.planned.cases:
        for number in planned_numbers(state.plan, case.id):
            if wanted is None or wanted(case.id, number):
                yield case, number


def _seal(
    state: RunState,
    counter: Counter,
    interrupt: Interrupt,
    before_seal: Callable[[EvidenceWriter], dict[str, object]] | None,
) -> tuple[dict, str | None, tuple[Problem, ...]]:
    facts: dict[str, object] = {}
    faults: tuple[Problem, ...] = tuple(
        Problem(path, "an identity file changed without a trace", "the directory is left unsealed")
        for path in state.identity.changed_unseen()
    )
    if before_seal is not None:
        try:
            facts = before_seal(state.writer)
        except OSError as error:
            faults += (Problem(state.writer.path, f"could not be written ({error.strerror})", "the directory is left unsealed"),)
    own = getattr(state.consumer, "summary_facts", None)
    if own is not None:
        facts = {**own(state.planned), **(facts or {})}
    summary = counter.summary(signal=interrupt.signal, facts=facts)
    seal = None
    try:
        if not faults:
            seal = state.writer.seal(summary)
    except EvidenceFault as fault:
        faults = fault.problems
    state.writer.close()
    return summary, seal, faults
