"""Rows by an external benchmark script: runs it with our adapter, and turns its JSON into rows with the same goals.

The script measures process harnesses on the same work by a method of its own; a goal that both judge is judged twice. Known
are its sections A (a no-op trial), B (a timeout), C (a flood of output), D (start-up) and F (judging again).
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence

from bench import HERE, ROOT, RUN_PY, Bench
from rounds import Spread, Unmeasured, command_seconds, within_rounds
from rows import Bound, Goal, Row

DEFAULT = os.path.join(os.path.dirname(ROOT), "shared", "bench", "peer_bench.py")
ADAPTER = os.path.join(HERE, "peer_adapter.py")
REFERENCE = "py_run_capture"
# Its peers, without the programs that it only uses to find lower bounds.
PEERS = (REFERENCE, "ours", "parallel", "hyperfine", "runexec_api", "inspect", "lit", "meson", "pytest", "nextest", "promptfoo")
# Without those that need minutes and gigabytes for a GiB of output.
FLOODED = (REFERENCE, "ours", "parallel", "runexec_api", "inspect", "promptfoo")
# Its checker obeys SIGTERM, so no grace is used; what it leaves behind ignores SIGTERM.
MODES = {"group": "a child that ignores SIGTERM", "setsid": "setsid daemon", "setsid_closed": "setsid daemon, pipes closed"}

Runs = Sequence[Mapping[str, object]]


def by_round(runs: Runs, key: str) -> dict[int, float]:
    """The values of one column by round; runs that have none are left out."""
    return {run["round"]: run[key] for run in runs if key in run}


def compared(mine: Mapping[int, float], theirs: Mapping[int, float]) -> Spread | None:
    """Ratios of the rounds that both have."""
    rounds = [number for number in mine if number in theirs]
    return within_rounds([mine[n] for n in rounds], [theirs[n] for n in rounds]) if rounds else None


def spread_of(values: Mapping[int, float]) -> Spread | None:
    """``None`` of no values."""
    return Spread.of(values.values()) if values else None


def note_of(runs: Runs) -> str:
    """Why a peer's figures are to be read with care."""
    problem = next((str(run["error"]) for run in runs if "error" in run), "")
    if not problem and any(run.get("complete") is False for run in runs):
        problem = "left fewer reports than trials"
    return " ".join(problem[:120].split())


def trial_rows(section: Mapping[str, Mapping[str, Runs]], our_name: str, goals: Mapping[str, float], others: bool) -> list[Row]:
    """Section A: milliseconds of one trial more, beside the script's reference; ``goals`` by its name of the loop."""
    rows = []
    for loop, bound in goals.items():
        found = {name: by_round(runs, "marginal_ms") for name, runs in section.get(loop, {}).items()}
        notes = {name: note_of(runs) for name, runs in section.get(loop, {}).items()}
        work = f"by the script: no-op trial, {'serial' if loop == 'j1' else '--jobs 2'}"
        beside = [(REFERENCE, Goal(bound, "x"))] + ([("inspect", Goal(0.2, "x"))] if loop == "j1" and others else [])
        for against, goal in beside:
            mine = found.get("ours", {})
            ratio = compared(mine, found.get(against, {}))
            note = notes.get("ours") or ("" if against in found else f"{against} is not there to compare with")
            rows.append(Row(work, our_name, spread_of(mine), " ms", ratio, against, goal, note))
        for name in (name for name in found if name != "ours" and others):
            against = "" if name == REFERENCE else REFERENCE
            rows.append(Row(work, name, spread_of(found[name]), " ms", compared(found[name], found.get(against, {})), against, note=notes[name]))
    return rows


def timeout_rows(section: Mapping[str, Mapping[str, Runs]]) -> list[Row]:
    """Section B: wall - limit - the same tool's wall for one trial that does not hang, and who was left after 0.3 s."""
    rows = []
    for mode, described in MODES.items():
        work = f"by the script: timeout, {described}"
        for name, runs in section.get(mode, {}).items():
            usual = by_round(section.get("baseline", {}).get(name, ()), "wall")
            hung = any(run.get("hung") for run in runs)
            late = {run["round"]: (run["wall"] - run["timeout"] - statistics.median(usual.values())) * 1e3 for run in runs if "wall" in run and usual and not hung}
            left = [len(run["survivors"]) for run in runs if "survivors" in run]
            ours = name == "ours"
            note = "; ".join(filter(None, [note_of(runs), "hung" if hung else "", f"survivors: {max(left)}" if left and max(left) else ""]))
            rows.append(Row(work, name, spread_of(late), " ms", goal=Goal(25, " ms") if ours else None, note=note))
            if ours:
                rows.append(Row(work, name, Spread.of(left) if left else None, " survivors", goal=Goal(0, "", every_round=True)))
    return rows


def flood_rows(section: Mapping[str, Runs]) -> list[Row]:
    """Section C: wall and the peak memory of the largest process that was waited for."""
    rows = []
    for key, scale, unit, bound in (("wall", 1.0, " s", 0.15), ("rss_kib", 1 / 1024, " MiB", 45.0)):
        for name, runs in section.items():
            found = {number: value * scale for number, value in by_round(runs, key).items()}
            goal = Goal(bound, unit) if name == "ours" else None
            rows.append(Row(f"by the script: 1 GiB offered, {'wall' if key == 'wall' else 'peak memory'}", name, spread_of(found), unit, goal=goal, note=note_of(runs)))
    return rows


def startup_rows(section: Mapping[str, Runs]) -> list[Row]:
    """Section D, ours alone: the peers' start-up is measured by ours too."""
    found = {name: by_round(runs, "wall") for name, runs in section.items()}
    mine = {number: value * 1e3 for number, value in found.get("ours", {}).items()}
    empty = {number: value * 1e3 for number, value in found.get("py_pass", {}).items()}
    return [Row("by the script: start-up", "ours, run.py --help", spread_of(mine), " ms", compared(mine, empty), "python3 -c pass", Goal(3, "x"))]


def regrade_rows(section: Mapping[str, Runs], samples: int) -> list[Row]:
    """Section F: samples a second, beside ``inspect score``."""
    rival = "inspect score (whole log)"
    rates = {name: {number: samples / wall for number, wall in by_round(runs, "wall").items()} for name, runs in section.items()}
    rows = []
    for name, found in rates.items():
        ours = name == "ours"
        note = f"{rival} is not there to compare with" if ours and not rates.get(rival) else ""
        codes = {run.get("rc") for run in section[name]} - {0}
        note = f"ended with code {sorted(map(str, codes))[0]}" if codes else note
        ratio = compared(found, rates.get(rival, {})) if ours else None
        rows.append(Row(f"by the script: regrade of {samples:,}", f"{name}, regrade" if ours else name, spread_of(found), "/s", ratio, rival if ours else "",
                        Goal(10, "x", Bound.AT_LEAST) if ours else None, note))  # fmt: skip
    return rows


def rows_of(results: Mapping[str, object], durable: Mapping[str, object], samples: int) -> list[Row]:
    """The rows of the script's JSON; ``durable`` is that of a second run with every trial durable before the next."""
    rows = trial_rows(results.get("A", {}), "ours", {"j1": 1.3, "j2": 1.4}, True)
    rows += trial_rows(durable.get("A", {}), "ours, --sync trial", {"j1": 1.8}, False)
    return rows + timeout_rows(results.get("B", {})) + flood_rows(results.get("C", {})) + startup_rows(results.get("D", {})) + regrade_rows(results.get("F", {}), samples)


def external(bench: Bench, path: str, options: Sequence[str]) -> list[Row]:
    """Run the script and judge by it; ``options`` are its own (``--venv``, ``--npm``)."""
    samples = max(bench.trials, 20) if bench.trials < 400 else 1000
    adapter = f"{shlex.quote(sys.executable)} -S {shlex.quote(ADAPTER)} {{plan}}"
    regrade = f"{shlex.quote(sys.executable)} {shlex.quote(RUN_PY)} regrade {{out}}/evidence-20"
    version = f"{shlex.quote(sys.executable)} {shlex.quote(RUN_PY)} --help"
    settings = ["--runs", str(bench.rounds), "--trials", str(bench.trials), "--small", str(bench.small), "--regrade-samples", str(samples), *options]
    settings += ["--runs-c", str(min(bench.rounds, 5)), "--runs-setsid", str(min(bench.rounds, 3)), "--budget", "5400"]

    def results(name: str, *words: str) -> dict[str, object]:
        folder = bench.fresh(name)
        out = os.path.join(folder, "results.json")
        command_seconds([sys.executable, path, "--work", os.path.join(folder, "work"), "--json", out, *settings, *words], folder, bound_s=6000)
        with open(out, encoding="utf-8") as stream:
            return json.load(stream)

    try:
        all_on = ("--ours", adapter, "--ours-regrade", regrade, "--ours-version", version)
        found = results("script", "--sections", "A,B,D,F", "--peers", ",".join(PEERS), *all_on)
        found |= {"C": results("script-flood", "--sections", "C", "--peers", ",".join(FLOODED), *all_on).get("C", {})}
        durable = results("script-sync", "--sections", "A", "--jobs", "1", "--peers", f"{REFERENCE},ours", "--ours", f"{adapter} --sync trial")
    except Unmeasured as problem:
        return [Row("by the script", "ours", None, "", goal=Goal(1.3, "x"), note=str(problem))]
    return rows_of(found, durable, samples)
