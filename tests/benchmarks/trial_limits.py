"""Rows of what happens at a limit: reaction to a timeout, who survives it, and a flood of output."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator

from bench import ROOT, Bench
from peers import OUTPUT_CAP_BYTES, Peer
from rounds import Spread, command_seconds, in_rounds
from rows import Goal, Row

LIMIT_S = 0.5
GRACE_S = 0.2
HANG_BOUND_S = 15.0
PEER_ROUNDS = 3
OUR_LIMITS = ("--timeout", f"{LIMIT_S:g}", "--grace", f"{GRACE_S:g}")
FLOOD_WALL = "1 GiB offered: wall"
FLOOD_MEMORY = "1 GiB offered: peak memory of the largest process"
FLOOD_KEPT = "1 GiB offered: kept on disk"
ANY_CODE = tuple(range(256))
# How the program takes SIGTERM, and the grace that a supervisor has to give it in full.
MODES = {"obey": ("SIGTERM obeyed", 0.0), "ignore": ("SIGTERM ignored", GRACE_S), "daemon": ("setsid daemon", 0.0)}


def end_survivors(program: str, settle_s: float) -> int:
    """How many processes of ``program`` are left after ``settle_s``; they are ended by their ids."""
    time.sleep(settle_s)
    left = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/exe") == program:
                left.append(int(name))
        except OSError:
            continue
    for process in left:
        try:
            os.kill(process, 9)
        except ProcessLookupError:
            continue
    return len(left)


def supervised(bench: Bench, argv: tuple[str, ...], timeout_s: float, cap_bytes: int) -> Iterator[float]:
    """Seconds from the start of a command to its outcome, by the supervisor alone, once a round."""
    sys.path.insert(0, ROOT)
    from agent_eval.supervise.command import Command
    from agent_eval.supervise.slot import Slot

    folder = bench.fresh("supervised")
    with Slot("benchmark") as slot:
        for number in range(bench.rounds):
            command = Command(argv, folder, {}, timeout_s, cap_bytes, GRACE_S, stdout_path=os.path.join(folder, str(number)))
            began = time.perf_counter()
            slot.run(command)
            yield time.perf_counter() - began


def slot_rows(bench: Bench, mode: str) -> list[Row]:
    """The supervisor alone: from the limit to the outcome."""
    described, grace_s = MODES[mode]
    late, left = [], []
    for spent in supervised(bench, (bench.programs.hang, "x", mode), LIMIT_S, 1 << 20):
        late.append((spent - LIMIT_S - grace_s) * 1e3)
        left.append(end_survivors(bench.programs.hang, 0.0))
    work = f"timeout, {described}: beyond limit and grace"
    note = f"grace {GRACE_S:g} s used" if grace_s else "no grace used"
    return [
        Row(work, "ours, supervisor alone", Spread.of(late), " ms", goal=Goal(25, " ms"), note=note),
        Row(work, "ours, supervisor alone", Spread.of(left), " survivors", goal=Goal(0, "", every_round=True)),
    ]


def part_of(bench: Bench) -> dict[str, Peer | None]:
    """Who takes part, by name: ours as ``None`` and the peers that have a limit."""
    return {"ours": None} | {peer.name: peer for peer in bench.peers if peer.limits}


def ours_oftener(
    bench: Bench, names: list[str], measure: Callable[[str], float], *, peer_rounds: int = PEER_ROUNDS
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Ours in every round, the peers, some of which take seconds, in a few: nothing here is a ratio within a round."""
    values, reasons = in_rounds([name for name in names if name == "ours"], bench.rounds, measure)
    others, other_reasons = in_rounds([name for name in names if name != "ours"], min(bench.rounds, peer_rounds), measure)
    return values | others, reasons | other_reasons


def command_rows(bench: Bench, mode: str) -> list[Row]:
    """Whole commands: wall - limit - grace - the wall of the same command for one no-op trial, just before it."""
    described, grace_s = MODES[mode]
    work = f"timeout, {described}: beyond limit and grace"
    survivors: dict[str, list[float]] = {}
    part = part_of(bench)

    def late_ms(name: str) -> float:
        peer = part[name]
        usual_s = bench.our_seconds(1, *OUR_LIMITS) if peer is None else bench.peer_seconds(peer, 1, 1)
        try:
            if peer is None:
                folder = bench.fresh(name)
                command = bench.check_command(folder, 1, [bench.programs.hang, "{report}", mode], *OUR_LIMITS)
                spent, limit_s = command_seconds(command, folder, codes=(1,), bound_s=HANG_BOUND_S), LIMIT_S + grace_s
            else:
                limit_s = 1.0 if peer.whole_seconds else LIMIT_S
                job = bench.job(name, 1, 1, bench.programs.hang, (mode,), limit_s)
                spent = bench.run_peer(peer, job, codes=ANY_CODE, bound_s=HANG_BOUND_S)
        finally:
            survivors.setdefault(name, []).append(end_survivors(bench.programs.hang, 0.3 if peer else 0.0))
        return (spent - limit_s - usual_s) * 1e3

    values, reasons = ours_oftener(bench, list(part), late_ms)
    rows = []
    for name in part:
        found = Spread.of(values[name]) if name in values else None
        left = int(max(survivors.get(name, [0])))
        note = "; ".join(filter(None, [reasons.get(name), f"survivors: {left}" if left else ""]))
        rows.append(Row(work, f"{name}, whole command", found, " ms", goal=Goal(25, " ms") if name == "ours" else None, note=note))
    left_by_ours = Spread.of(survivors["ours"]) if "ours" in values else None
    return [*rows, Row(work, "ours, whole command", left_by_ours, " survivors", goal=Goal(0, "", every_round=True))]


def timeout(bench: Bench) -> list[Row]:
    """All modes."""
    return [row for mode in MODES for row in slot_rows(bench, mode) + command_rows(bench, mode)]


def flood(bench: Bench) -> list[Row]:
    """A GiB offered where 8 MiB may be kept: wall of the whole command, peak memory, bytes kept."""
    memory: dict[str, list[float]] = {}
    kept: dict[str, list[float]] = {}

    def measured(name: str, run: Callable[[list[str]], tuple[float, str]]) -> float:
        peak = os.path.join(bench.fresh("peak"), "kib")
        spent, folder = run([bench.programs.peak, peak])
        with open(peak, encoding="ascii") as stream:
            memory.setdefault(name, []).append(int(stream.read()) / 1024)
        kept.setdefault(name, []).append(_kept_bytes(folder, ours=name == "ours") / (1 << 20))
        return spent

    def our_run(before: list[str]) -> tuple[float, str]:
        folder = bench.fresh("flood")
        command = bench.check_command(folder, 1, [bench.programs.flood, "{report}"], "--max-output-bytes", "8MiB")
        return command_seconds([*before, *command], folder, codes=(1,)), folder

    def peer_run(peer: Peer, before: list[str]) -> tuple[float, str]:
        job = bench.job(peer.name, 1, 1, bench.programs.flood)
        return bench.run_peer(peer, job, codes=ANY_CODE, bound_s=60.0, before=before), job.folder

    part = {"ours": our_run} | {peer.name: lambda before, peer=peer: peer_run(peer, before) for peer in bench.peers if peer.flood}
    values, reasons = ours_oftener(bench, list(part), lambda name: measured(name, part[name]), peer_rounds=1)
    goals = {FLOOD_WALL: Goal(0.15, " s"), FLOOD_MEMORY: Goal(45, " MiB")}
    rows = []
    for work, found, unit in ((FLOOD_WALL, values, " s"), (FLOOD_MEMORY, memory, " MiB"), (FLOOD_KEPT, kept, " MiB")):
        for name in part:
            measured_here = Spread.of(found[name]) if name in values else None
            rows.append(Row(work, f"{name}, whole command" if work == FLOOD_WALL else name, measured_here, unit, goal=goals.get(work) if name == "ours" else None, note=reasons.get(name, "")))
    alone = supervised(bench, (bench.programs.flood,), 60.0, OUTPUT_CAP_BYTES)
    rows.insert(0, Row(FLOOD_WALL, "ours, supervisor alone", Spread.of(alone), " s", goal=goals[FLOOD_WALL], note="from its start to its outcome"))
    off = [abs(value * (1 << 20) - OUTPUT_CAP_BYTES) for value in kept.get("ours", ())]
    exact = Goal(0, " bytes", every_round=True)
    rows.append(Row(FLOOD_KEPT, "ours, off the cap of 8 MiB", Spread.of(off) if off else None, " bytes", goal=exact))
    return rows


def _kept_bytes(folder: str, *, ours: bool) -> int:
    """Bytes of output on disk: ours in the trial's stdout, a peer's in everything that it wrote; large files are emptied."""
    if ours:
        return os.path.getsize(os.path.join(folder, "out", "trials", "c0", "001", "stdout.bin"))
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            size_here = os.lstat(path).st_size
            size += size_here
            if size_here > 64 << 20:
                os.truncate(path, 0)
    return size
