"""One thread that keeps N slots busy.

Owns waiting: for outcomes, for signals, for the services of running trials. It does
not know what a task is for; a task yields commands and is handed their outcomes.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.supervise.command import Command
from agent_eval.supervise.slot import Slot
from agent_eval.trials.consumer import Services
from agent_eval.trials.interrupt import Interrupt

_TICK_S = 0.1
_SAME_MOMENT_S = 0.1


class Task(Protocol):
    """Something that runs commands one after another and then has something to write down."""

    services: Services

    def prepare(self) -> None:
        """Make folders. Looks at nothing that an earlier task may still change."""

    def start(self) -> Command | None:
        """The first command, ``None`` when the task needs none."""

    def resume(self, outcome: Outcome) -> Command | None:
        """The next command after ``outcome``, ``None`` when there is none."""

    def complete(self) -> Iterator[None]:
        """Write down what the task found, after its last command. In steps: between them running commands are looked after."""

    def discard(self) -> None:
        """Undo :meth:`prepare` of a task that is not going to start."""


class Scheduler:
    """Runs tasks on slots until there are none left or an interrupt stops them.

    While commands run, finished tasks are completed and the next ones prepared, so that a slot does not wait for
    the disk. With ``strict`` each task is completed before another starts, for callers whose ``stop`` depends on it.
    After the first interrupt no task is started and each running command is stopped; commands that a task still
    yields (its cleanup) run. After the second every running command is killed.
    """

    def __init__(
        self, slots: list[Slot], interrupt: Interrupt, tick: Callable[[], None] | None = None, *, strict: bool = False
    ) -> None:
        self._idle = list(slots)
        self._active: dict[Slot, Task] = {}
        self._by_descriptor: dict[int, Slot] = {}
        self._prepared: deque[Task] = deque()
        self._ended: deque[Iterator[None]] = deque()
        self._interrupt = interrupt
        self._acted_on = 0
        self._tick = tick
        self._strict = strict
        self._poll = select.poll()
        self._poll.register(interrupt.fileno(), select.POLLIN)
        self._served: dict[int, tuple[Task, Callable[[], None]]] = {}

    def run(self, tasks: Iterator[Task], stop: Callable[[], bool]) -> None:
        """Run tasks in order until they end, ``stop()`` says so, or an interrupt comes; returns when no slot is busy."""
        slots = len(self._idle)
        while True:
            self._fill(tasks, stop)
            while self._work(tasks, slots):
                if self._active and self._poll.poll(0):
                    break
            if self._active:
                self._wait()
            elif self._interrupt.requested or stop() or not (self._prepared or self._prepare(tasks)):
                break
        for task in self._prepared:
            task.discard()

    def _work(self, tasks: Iterator[Task], slots: int) -> bool:
        """One piece of what no slot waits for: a step of completing the task that ended first, or a task prepared; false when there is none."""
        if self._ended:
            if next(self._ended[0], self) is self:
                self._ended.popleft()
            return True
        return not self._strict and not self._interrupt.requested and len(self._prepared) < slots and self._prepare(tasks)

    def _prepare(self, tasks: Iterator[Task]) -> bool:
        """Have one more task ready; false when there is none any more."""
        task = next(tasks, None)
        if task is None:
            return False
        task.prepare()
        self._prepared.append(task)
        return True

    def _fill(self, tasks: Iterator[Task], stop: Callable[[], bool]) -> None:
        while self._idle and not (self._strict and self._ended) and not self._interrupt.requested and not stop():
            if not self._prepared and not self._prepare(tasks):
                return
            task = self._prepared.popleft()
            self._place(task, task.start(), self._idle.pop())

    def _place(self, task: Task, command: Command | None, slot: Slot) -> None:
        if command is None:
            self._idle.append(slot)
            self._sync_services(task, ended=True)
            self._ended.append(task.complete())
            return
        self._sync_services(task)
        slot.start(command)
        self._active[slot] = task
        fileno = slot.fileno()
        if fileno >= 0:  # otherwise its deadline has passed already, and it is collected at once
            self._by_descriptor[fileno] = slot
            self._poll.register(fileno, select.POLLIN)
        if self._interrupt.count > 1:
            slot.kill()

    def _sync_services(self, task: Task, *, ended: bool = False) -> None:
        if not self._served and not task.services.callbacks:
            return
        wanted = {} if ended else task.services.callbacks
        for fileno in [f for f, (owner, _) in self._served.items() if owner is task and f not in wanted]:
            self._poll.unregister(fileno)
            del self._served[fileno]
        for fileno, callback in wanted.items():
            if fileno not in self._served:
                self._served[fileno] = (task, callback)
                self._poll.register(fileno, select.POLLIN)

    def _wait(self) -> None:
        remaining = min([slot.deadline() for slot in self._active]) - time.monotonic()
        if self._tick is not None:
            self._tick()
            remaining = min(remaining, _TICK_S)
        for fileno, _ in self._poll.poll(max(0.0, remaining) * 1000.0 + 1.0):
            if fileno in self._by_descriptor:
                self._collect(self._by_descriptor[fileno])
            elif fileno in self._served:
                task, callback = self._served[fileno]
                callback()
                self._sync_services(task)
            else:
                self._interrupt.drain()
        self._act_on_interrupt()
        now = time.monotonic()
        for slot in [slot for slot in self._active if slot.deadline() <= now]:
            self._collect(slot)

    def _collect(self, slot: Slot) -> None:
        task = self._active.pop(slot)
        fileno = slot.fileno()
        if self._by_descriptor.pop(fileno, None) is not None:
            self._poll.unregister(fileno)
        self._place(task, task.resume(self._attributed(slot.collect())), slot)

    def _attributed(self, outcome: Outcome) -> Outcome:
        # Slurm's scancel and systemd's stop signal every process of a job at once, the trial's before ours or after:
        # a trial that ended by the signal that interrupts the run has not failed.
        number = outcome.signal or (outcome.exit_code or 0) - 128
        if outcome.stop_reason is None and number > 0 and self._interrupt.came_as(number, _SAME_MOMENT_S):
            return replace(outcome, stop_reason=StopReason.INTERRUPTED)
        return outcome

    def _act_on_interrupt(self) -> None:
        count = self._interrupt.count
        if count == self._acted_on:
            return
        for slot in self._active:
            if count == 1:
                slot.stop()
            else:
                slot.kill()
        self._acted_on = count
