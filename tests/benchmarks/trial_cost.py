"""Rows of the cost of a no-op trial: serial, with two workers, and durable one by one; ours, the references and every peer.

The cost is marginal, (wall of many - wall of few) / (many - few), so that no tool pays for its start here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from bench import HERE, Bench
from peers import Peer
from rounds import Spread, command_seconds, in_rounds, within_rounds
from rows import Goal, Row

PLAIN = "subprocess.run"
TIMED = "subprocess.run, timeout=60"
OURS = "ours"
DURABLE = "ours, --sync trial"
NOTES = {PLAIN: "capture_output=True; two workers: two processes", TIMED: "the external script's reference; two workers: two threads"}


@dataclass(frozen=True, slots=True)
class Runner:
    """Whole seconds of so many trials, and how many it may be asked for."""

    seconds: Callable[[int], float]
    most_trials: int = 1_000_000


def marginal_ms(runner: Runner, few: int, many: int) -> float:
    """Milliseconds of one trial more."""
    many = min(many, runner.most_trials)
    return (runner.seconds(many) - runner.seconds(few)) / (many - few) * 1e3


def runners(bench: Bench, workers: int) -> dict[str, Runner]:
    """Who takes part, by name, with the references first."""

    def reference(how: str) -> Runner:
        def seconds(trials: int) -> float:
            folder = bench.fresh(f"loop-{how}")
            loop = os.path.join(HERE, "drivers", "loop.py")
            return command_seconds([sys.executable, loop, how, str(trials), str(workers), bench.programs.noop, folder], folder)

        return Runner(seconds)

    def ours(*options: str) -> Runner:
        return Runner(lambda trials: bench.our_seconds(trials, "-j", str(workers), "--timeout", "60", *options))

    def peer(found: Peer) -> Runner:
        return Runner(lambda trials: bench.peer_seconds(found, trials, workers), found.most_trials)

    part = {PLAIN: reference("plain"), TIMED: reference("timed"), OURS: ours()}
    if workers == 1:
        part[DURABLE] = ours("--sync", "trial")
    return part | {found.name: peer(found) for found in bench.peers if workers in found.workers}


def cost_rows(work: str, goals: list[tuple[str, str, Goal]], values: dict[str, list[float]], reasons: dict[str, str]) -> list[Row]:
    """Rows of one work: each goal as ``(who, against, goal)``, then everyone else beside ``subprocess.run``."""

    def row(who: str, against: str, goal: Goal | None) -> Row:
        mine, theirs = values.get(who), values.get(against)
        ratio = within_rounds(mine, theirs) if mine and theirs else None
        note = reasons.get(who) or reasons.get(against) or NOTES.get(who, "")
        if goal is not None and theirs is None and against not in reasons:
            note = f"{against} is not there to compare with"
        elif goal is not None and mine and ratio is None:
            note = "noise: the longer run took no longer; ask for more trials"
        return Row(work, who, Spread.of(mine) if mine else None, " ms", ratio, against, goal, note)

    rows = [row(*goal) for goal in goals]
    judged = {who for who, _, _ in goals}
    return rows + [row(who, "" if who == PLAIN else PLAIN, None) for who in [*values, *reasons] if who not in judged]


def overhead(bench: Bench) -> list[Row]:
    """The serial trial, with the default durability and with every trial durable before the next is reported."""
    part = runners(bench, 1)
    values, reasons = in_rounds(list(part), bench.rounds, lambda name: marginal_ms(part[name], bench.small, bench.trials))
    goals = [(OURS, against, Goal(1.3, "x")) for against in (PLAIN, TIMED)]
    goals += [(OURS, "inspect", Goal(0.2, "x"))]
    goals += [(DURABLE, against, Goal(1.8, "x")) for against in (PLAIN, TIMED)]
    return cost_rows("no-op trial, serial", goals, values, reasons)


def jobs(bench: Bench) -> list[Row]:
    """Two trials at a time."""
    part = runners(bench, 2)
    values, reasons = in_rounds(list(part), bench.rounds, lambda name: marginal_ms(part[name], bench.small, bench.trials))
    goals = [(OURS, against, Goal(1.4, "x")) for against in (PLAIN, TIMED)]
    return cost_rows("no-op trial, --jobs 2", goals, values, reasons)
