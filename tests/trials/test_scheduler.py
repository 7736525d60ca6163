"""The one thread that keeps slots busy: what it does between two outcomes, and in which order."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator

import pytest

from agent_eval.supervise.command import Command
from agent_eval.supervise.slot import Slot
from agent_eval.trials.consumer import Services
from agent_eval.trials.interrupt import Interrupt
from agent_eval.trials.scheduler import Scheduler

WAIT_FOR_FILE = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.001)"


class Note:
    """A task that writes down what happens to it."""

    def __init__(self, name: str, log: list[str], command: Command | None, between=lambda: None) -> None:
        self.services = Services()
        self.name = name
        self._log = log
        self._command = command
        self._between = between

    def prepare(self) -> None:
        self._log.append(f"{self.name} prepared")

    def start(self) -> Command | None:
        self._log.append(f"{self.name} started")
        return self._command

    def resume(self, outcome) -> None:
        assert outcome.exit_code == 0
        self._log.append(f"{self.name} ended")

    def complete(self) -> Iterator[None]:
        self._log.append(f"{self.name} recorded")
        self._between()
        yield
        self._log.append(f"{self.name} tidied")

    def discard(self) -> None:
        self._log.append(f"{self.name} discarded")


def command(tmp_path, *argv: str) -> Command:
    return Command((sys.executable, "-S", "-c", *argv), str(tmp_path), {}, 20.0, 1 << 20)


@pytest.fixture
def slots():
    pair = [Slot("scheduler-test"), Slot("scheduler-test")]
    yield pair
    for slot in pair:
        slot.close()


def test_an_outcome_is_looked_after_between_the_steps_of_completing(tmp_path, slots):
    log: list[str] = []
    flag = tmp_path / "flag"

    def let_the_other_end() -> None:
        flag.write_text("")
        waiting = select.poll()
        for slot in slots:
            waiting.register(slot.fileno(), select.POLLIN)
        assert waiting.poll(20_000)

    tasks = [
        Note("long", log, command(tmp_path, WAIT_FOR_FILE, str(flag))),
        Note("short", log, command(tmp_path, "pass"), let_the_other_end),
    ]
    with Interrupt() as interrupt:
        Scheduler(slots, interrupt).run(iter(tasks), lambda: False)
    assert log[log.index("short recorded") :] == ["short recorded", "long ended", "short tidied", "long recorded", "long tidied"]


def test_strict_completes_each_task_before_another_starts(tmp_path, slots):
    log: list[str] = []
    tasks = [Note(str(number), log, command(tmp_path, "pass")) for number in range(4)]
    with Interrupt() as interrupt:
        Scheduler(slots[:1], interrupt, strict=True).run(iter(tasks), lambda: False)
    words = ("prepared", "started", "ended", "recorded", "tidied")
    assert log == [f"{number} {word}" for number in range(4) for word in words]


def test_a_task_without_a_command_is_completed_all_the_same(slots):
    log: list[str] = []
    with Interrupt() as interrupt:
        Scheduler(slots, interrupt).run(iter([Note(str(number), log, None) for number in range(3)]), lambda: False)
    assert [line for line in log if line.endswith("tidied")] == ["0 tidied", "1 tidied", "2 tidied"]


def test_what_was_prepared_and_is_not_started_is_discarded(tmp_path, slots):
    log: list[str] = []
    ended = []

    def stop() -> bool:
        return any(line.endswith("ended") for line in log)

    tasks = [Note(str(number), log, command(tmp_path, "pass")) for number in range(9)]
    with Interrupt() as interrupt:
        Scheduler(slots[:1], interrupt).run(iter(tasks), stop)
    prepared = [line.split()[0] for line in log if line.endswith("prepared")]
    ended = [line.split()[0] for line in log if line.endswith("tidied")]
    discarded = [line.split()[0] for line in log if line.endswith("discarded")]
    assert ended == ["0"]
    assert prepared == ended + discarded
