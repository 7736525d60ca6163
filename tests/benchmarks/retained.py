"""Rows of what reads evidence again: ``verify`` and ``regrade`` beside ``inspect score``, and the run of 100,000 trials."""

from __future__ import annotations

import os
import shutil
import sys

from bench import MOST_TRIALS_OF_A_CASE, RUN_PY, Bench
from peers import DRIVERS, base_environment
from place import room_for
from rounds import Spread, Unmeasured, command_seconds, in_rounds, within_rounds
from rows import Bound, Goal, Row

TRIALS = 1000
SOAK_TRIALS = 100_000
# What one no-op trial leaves behind, rounded up: two copies (the run and its regrade), three files and two folders each.
BYTES_OF_A_TRIAL, FILES_OF_A_TRIAL = 40_000, 10
INSPECT = "inspect score"


def regrade(bench: Bench) -> list[Row]:
    """Trials per second over 1,000 retained trials; all are whole commands."""
    folder = bench.fresh("retained")
    command_seconds(bench.check_command(folder, TRIALS, [bench.programs.noop, "{report}"]), folder)
    evidence = os.path.join(folder, "out")
    reasons: dict[str, str] = {}
    scored = None
    try:
        scored = _inspect_log(bench)
    except Unmeasured as problem:
        reasons[INSPECT] = str(problem)

    def rate(name: str) -> float:
        if name == INSPECT:
            target = os.path.join(bench.fresh("scored"), "scored.eval")
            place = os.path.dirname(os.path.dirname(scored))
            argv = [bench.tools["inspect"], "score", scored, "--scorer", "rescore.py@rescore", "--action", "overwrite"]
            return TRIALS / command_seconds([*argv, "--output-file", target, "--display", "none"], place, base_environment(place))
        extra = ["-o", os.path.join(bench.fresh("regrade"), "out")] if name == "regrade" else []
        return TRIALS / command_seconds([sys.executable, RUN_PY, name, evidence, *extra], folder)

    names = ["verify", "regrade"] + ([INSPECT] if scored else [])
    values, failed = in_rounds(names, bench.rounds, rate)
    reasons |= failed
    rows = []
    for name in ("verify", "regrade"):
        ratio = within_rounds(values[name], values[INSPECT]) if name in values and INSPECT in values else None
        note = reasons.get(name) or reasons.get(INSPECT, "")
        found = Spread.of(values[name]) if name in values else None
        rows.append(Row(f"{TRIALS:,} retained trials", f"ours, {name}", found, "/s", ratio, INSPECT, Goal(10, "x", Bound.AT_LEAST), note))
    found = Spread.of(values[INSPECT]) if INSPECT in values else None
    return [*rows, Row(f"{TRIALS:,} retained trials", INSPECT, found, "/s", note=reasons.get(INSPECT, ""))]


def _inspect_log(bench: Bench) -> str:
    """A log of inspect over as many samples, with the scorer that is to score it again beside it."""
    peer = next((peer for peer in bench.peers if peer.name == "inspect"), None)
    if peer is None:
        raise Unmeasured("inspect is not there to compare with")
    job = bench.job("inspect", TRIALS, 2, bench.programs.noop)
    bench.run_peer(peer, job)
    shutil.copy(os.path.join(DRIVERS, "inspect_rescore.py"), os.path.join(job.folder, "rescore.py"))
    logs = os.path.join(job.folder, "logs")
    found = [name for name in os.listdir(logs) if name.endswith(".eval")]
    if not found:
        raise Unmeasured("inspect left no log")
    return os.path.join(logs, found[0])


def _soak_run(bench: Bench, trials: int, of_a_case: int = MOST_TRIALS_OF_A_CASE) -> tuple[float, float, str]:
    """Seconds, peak MiB and the folder of one run."""
    folder = bench.fresh(f"soak{trials}")
    peak = os.path.join(folder, "kib")
    command = bench.check_command(folder, trials, [bench.programs.noop, "{report}"], most_of_a_case=of_a_case)
    spent = command_seconds([bench.programs.peak, peak, *command], folder, bound_s=3600)
    with open(peak, encoding="ascii") as stream:
        return spent, int(stream.read()) / 1024, folder


def soak(bench: Bench) -> list[Row]:
    """100,000 trials in one run: cost per trial and memory beside 1,000, and whether what reads the result is linear."""
    lacking = room_for(bench.folder, size_bytes=SOAK_TRIALS * BYTES_OF_A_TRIAL, files=SOAK_TRIALS * FILES_OF_A_TRIAL)
    work = f"{SOAK_TRIALS:,} trials in one run"
    if lacking:
        return [Row(work, "ours", None, " ms", None, f"{TRIALS:,} trials", Goal(1.2, "x"), f"not run: {lacking}")]
    start_s, _, _ = _soak_run(bench, bench.small)
    few_s, few_mib, _ = _soak_run(bench, TRIALS)
    _, _, middle = _soak_run(bench, SOAK_TRIALS // 10)
    cases = SOAK_TRIALS // MOST_TRIALS_OF_A_CASE
    _, once_mib, _ = _soak_run(bench, cases, 1)
    many_s, many_mib, many = _soak_run(bench, SOAK_TRIALS)
    few_ms, many_ms = ((wall - start_s) / (trials - bench.small) * 1e3 for wall, trials in ((few_s, TRIALS), (many_s, SOAK_TRIALS)))
    beside = f"{TRIALS:,} trials"
    rows = [
        Row(f"{work}: cost per trial", "ours", _one(many_ms), " ms", _one(many_ms / few_ms), beside, Goal(1.2, "x"), f"{few_ms:.2f} ms there"),
        Row(f"{work}: harness memory", "ours", _one(many_mib), " MiB", goal=Goal(100, " MiB"), note=f"{few_mib:.1f} MiB at {TRIALS:,} trials"),
        # "Flat" taken as: it is the plan that is held, not the trials; twenty times the trials of the same cases need at most a fifth more.
        Row(f"{work}: memory flat", "ours", _one(many_mib), " MiB", _one(many_mib / once_mib), f"the same {cases:,} cases once", Goal(1.2, "x")),
    ]
    for name in ("status", "verify", "regrade", "report"):
        # Linear taken as: ten times the trials take at most 1.2 times ten times as long. From 10,000 on, the start is small.
        middle_s, many_s = (_reading_s(name, folder) for folder in (middle, many))
        ratio = _one(many_s / middle_s)
        rows.append(Row(f"{work}: {name}, linear", "ours", _one(many_s), " s", ratio, f"{SOAK_TRIALS // 10:,} trials", Goal(12, "x"), f"{middle_s:.2f} s there"))
    return rows


def _reading_s(name: str, folder: str) -> float:
    return command_seconds([sys.executable, RUN_PY, name, os.path.join(folder, "out")], folder, bound_s=3600)


def _one(value: float) -> Spread:
    return Spread.of([value])
