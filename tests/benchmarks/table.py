"""One command, one table: what each piece of work costs ours and every peer found, the goal, and whether it is met.

    python3 tests/benchmarks/table.py [--venv DIR] [--npm DIR] [--rows overhead,jobs] [--markdown FILE]

Needs Linux and a C compiler. Peers are looked for in the folders given and on PATH; a missing one is named as skipped. Every
ratio is taken within a round of rotated order; the median of the rounds is shown with the least and most. The exit code is 1
when a goal was missed; a goal that nothing here can decide is open.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NoReturn

import external
import peers
import place
import retained
import startup
import trial_cost
import trial_limits
from bench import Bench
from programs import compile_programs
from rows import Row, Verdict, table

GROUPS: dict[str, Callable[[Bench], list[Row]]] = {
    "overhead": trial_cost.overhead,
    "jobs": trial_cost.jobs,
    "timeout": trial_limits.timeout,
    "flood": trial_limits.flood,
    "startup": startup.startup,
    "hashing": startup.hashing,
    "regrade": retained.regrade,
}
SCRIPT, SOAK = "script", "soak"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; anything wrong is one line and code 2."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", metavar="A,B", help=f"only these of {', '.join(GROUPS)}, {SCRIPT} and {SOAK}")
    parser.add_argument("--peers", metavar="A,B", help=f"only these of {', '.join(peer.name for peer in peers.PEERS)}; none for no peer")
    parser.add_argument("--venv", action="append", default=[], metavar="DIR", help="a Python environment with peers; may be given several times")
    parser.add_argument("--npm", metavar="DIR", help="a folder whose node_modules has promptfoo")
    parser.add_argument("--work", metavar="DIR", help="where to work: a new folder in DIR, removed at the end (default: TMPDIR)")
    parser.add_argument("--script", metavar="PATH", default=external.DEFAULT, help="the external benchmark (default: %(default)s; none to leave it out)")
    parser.add_argument("--soak", action="store_true", help="also 100,000 trials in one run")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--trials", type=int, default=400, metavar="N", help="trials of the longer run; the cost is taken between both (default: %(default)s)")
    parser.add_argument("--small", type=int, default=20, metavar="N", help="trials of the shorter run (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE", help="write the form of the result that is committed")
    options = parser.parse_args(arguments)
    options.rows = chosen(parser, "--rows", options.rows, [*GROUPS, SCRIPT], [*GROUPS, SCRIPT, SOAK])
    options.rows += [SOAK] if options.soak and SOAK not in options.rows else []
    names = [peer.name for peer in peers.PEERS]
    options.peers = [] if options.peers == "none" else chosen(parser, "--peers", options.peers, names, names)
    if not (options.rounds >= 1 and 1 <= options.small < options.trials):
        parser.error("--rounds must be at least 1, --small at least 1 and less than --trials")
    return options


def chosen(parser: argparse.ArgumentParser, option: str, text: str | None, default: list[str], known: list[str]) -> list[str]:
    """The names of a comma-separated list, or ``default`` where the option was not given."""
    if text is None:
        return default
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        parser.error(f"{option}: {'unknown: ' + ', '.join(unknown) if unknown else 'empty'}; known are {', '.join(known)}")
    return names


def measure(bench: Bench, options: argparse.Namespace, said: dict[str, str]) -> list[Row]:
    """All rows asked for; what is skipped is added to ``said``. An interruption keeps the rows so far."""
    rows: list[Row] = []
    try:
        for name in options.rows:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            if name == SOAK:
                rows += retained.soak(bench)
            elif name != SCRIPT:
                rows += GROUPS[name](bench)
            elif os.path.isfile(options.script):
                given = [word for venv in options.venv for word in ("--venv", venv)] + (["--npm", options.npm] if options.npm else [])
                rows += external.external(bench, options.script, given)
            else:
                said["external script skipped"] = "left out" if options.script == "none" else f"{options.script} is not there"
    except KeyboardInterrupt:
        said["interrupted"] = "the rows so far are shown"
    return rows


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    options = parse(arguments)
    if options.work is not None:
        os.makedirs(options.work, exist_ok=True)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="agent-eval-bench-", dir=options.work))
    try:
        tools = peers.Tools(options.venv, options.npm)
        found, skipped = peers.installed(tools, options.peers)
        programs = compile_programs(os.path.join(folder, "bin"))
        said = place.machine()
        said["programs measured"] = f"C, linked {programs.linked}"
        said["peers"] = "; ".join(f"{peer.name}: {peers.version_of(peer, tools, folder)}" for peer in found) or "none"
        said["peers skipped"] = "; ".join(f"{name}: {reason}" for name, reason in skipped.items()) or "none"
        bench = Bench(folder, programs, tools, found, options.rounds, options.trials, options.small)
        kind, before = place.file_system(folder), place.create_cost_us(folder, "before")
        began = time.monotonic()
        rows = measure(bench, options, said)
        after = place.create_cost_us(folder, "after")
        said["work folder"] = f"{kind}; creating a small file there took {before:.0f} us before and {after:.0f} us after"
        said["method"] = f"{options.rounds} rounds of rotated order; cost of a trial between {options.small} and {options.trials}; {time.monotonic() - began:.0f} s in all"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return show(rows, said, options)


def show(rows: list[Row], said: dict[str, str], options: argparse.Namespace) -> int:
    """Print the result, and write it where asked."""
    heads = "".join(f"* {name}: {text}\n" for name, text in said.items())
    counts = {verdict: sum(row.verdict is verdict for row in rows) for verdict in Verdict}
    closing = f"{counts[Verdict.MET]} goals met, {counts[Verdict.NOT_MET]} not met, {counts[Verdict.OPEN]} open\n"
    text = f"{heads}\n{table(rows)}\n{closing}"
    print(text, end="")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as stream:
            stream.write(f"# What was measured, {said['date']}\n\nWritten by `python3 tests/benchmarks/table.py --markdown`.\n\n{text}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump({"measured_on": said, "rows": [{**asdict(row), "verdict": row.verdict.value} for row in rows]}, stream, indent=1, default=str)
    return 1 if counts[Verdict.NOT_MET] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
