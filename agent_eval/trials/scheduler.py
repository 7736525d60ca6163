"""One thread that keeps N slots busy.

Owns waiting: for outcomes, for signals, for the services of running trials. It does
not know what a task is for; a task yields commands and is handed their outcomes.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from agent_eval.records.outcome import Outcome
from agent_eval.supervise.command import Command
from agent_eval.supervise.slot import Slot
from agent_eval.trials.consumer import Services
from agent_eval.trials.interrupt import Interrupt

_TICK_S = 0.1


class Task(Protocol):
    """Something that runs commands one after another."""

    services: Services

    def start(self) -> Command | None:
        """The first command, ``None`` when the task is done without any."""

    def resume(self, outcome: Outcome) -> Command | None:
        """The next command after ``outcome``, ``None`` when the task is done."""


class Scheduler:
    """Runs tasks on slots until there are none left or an interrupt stops them.

    After the first interrupt no task is started and each running command is stopped; commands that a
    task still yields (its cleanup) run. After the second every running command is killed.
    """

    def __init__(self, slots: list[Slot], interrupt: Interrupt, tick: Callable[[], None] | None = None) -> None:
        self._idle = list(slots)
        self._active: dict[int, tuple[Slot, Task]] = {}
        self._interrupt = interrupt
        self._acted_on = 0
        self._tick = tick
        self._poll = select.poll()
        self._poll.register(interrupt.fileno(), select.POLLIN)
        self._served: dict[int, tuple[Task, Callable[[], None]]] = {}

    def run(self, tasks: Iterator[Task], stop: Callable[[], bool]) -> None:
        """Run tasks in order until they end, ``stop()`` says so, or an interrupt comes; returns when no slot is busy."""
        exhausted = False
        while True:
            while self._idle and not exhausted and not self._interrupt.requested and not stop():
                task = next(tasks, None)
                if task is None:
                    exhausted = True
                else:
                    self._place(task, task.start())
            if not self._active:
                return
            self._wait()

    def _place(self, task: Task, command: Command | None, slot: Slot | None = None) -> None:
        if command is None:
            if slot is not None:
                self._idle.append(slot)
            self._sync_services(task, ended=True)
            return
        slot = slot or self._idle.pop()
        self._sync_services(task)
        slot.start(command)
        fileno = slot.fileno()
        self._active[fileno] = (slot, task)
        self._poll.register(fileno, select.POLLIN)
        if self._interrupt.count > 1:
            slot.kill()

    def _sync_services(self, task: Task, *, ended: bool = False) -> None:
        wanted = {} if ended else task.services.callbacks
        for fileno in [f for f, (owner, _) in self._served.items() if owner is task and f not in wanted]:
            self._poll.unregister(fileno)
            del self._served[fileno]
        for fileno, callback in wanted.items():
            if fileno not in self._served:
                self._served[fileno] = (task, callback)
                self._poll.register(fileno, select.POLLIN)

    def _wait(self) -> None:
        now = time.monotonic()
        remaining = min(slot.deadline() for slot, _ in self._active.values()) - now
        if self._tick is not None:
            self._tick()
            remaining = min(remaining, _TICK_S)
        for fileno, _ in self._poll.poll(max(0.0, remaining) * 1000.0 + 1.0):
            if fileno in self._active:
                self._collect(fileno)
            elif fileno in self._served:
                self._serve(fileno)
            else:
                self._interrupt.drain()
        self._act_on_interrupt()
        now = time.monotonic()
        for fileno in [f for f, (slot, _) in self._active.items() if slot.deadline() <= now]:
            self._collect(fileno)

    def _serve(self, fileno: int) -> None:
        task, callback = self._served[fileno]
        callback()
        self._sync_services(task)

    def _collect(self, fileno: int) -> None:
        slot, task = self._active.pop(fileno)
        self._poll.unregister(fileno)
        outcome = slot.collect()
        self._place(task, task.resume(outcome), slot)

    def _act_on_interrupt(self) -> None:
        count = self._interrupt.count
        if count == self._acted_on:
            return
        for slot, _ in self._active.values():
            if count == 1:
                slot.stop()
            else:
                slot.kill()
        self._acted_on = count

