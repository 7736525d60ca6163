"""``merge DIR ...``: the shards of one plan as one directory."""

from __future__ import annotations

import argparse
import json
import sys

from agent_eval.cli.parsing import add_output_options
from agent_eval.cli.stopping import Stopping, stoppable
from agent_eval.evidence.draft import Draft
from agent_eval.evidence.location import resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.measure.summary import Tally
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem
from agent_eval.report.terminal import TrialRow, closing_lines, summary_table
from agent_eval.trials.belonging import check_parts
from agent_eval.trials.merge import merge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("parts", metavar="DIR", nargs="+", help="shards of one plan, and reruns of them beside what they reran")
    parser.add_argument("--partial", action="store_true", help="count the trials of missing shards as unrun")
    parser.add_argument("--unsealed", action="store_true", help="use the finished trials of unsealed directories")
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Verify every part, then merge them."""
    return stoppable(lambda stopping: _merge(args, stopping))


def _merge(args: argparse.Namespace, stopping: Stopping) -> int:
    merged = check_parts(_opened(args), partial=args.partial)
    stopping.hold()
    with Draft(args.output) as draft:
        plan, summary, seal = merge(merged, tuple(sys.argv[1:]), draft, Tally, stopping.check)
    if args.json:
        print(json.dumps({**summary, "path": draft.path, "seal": seal}, sort_keys=True))
        return summary["exit_code"]
    rows = (TrialRow(case_id, 0, "", (), case["wall_s"]) for case_id, case in summary["cases"].items())
    print(summary_table(plan, summary, rows))
    print(f"\nmerged from {len(merged.parts)} directories; reruns after an interrupt: {summary['rerun_after_interrupt']},", end=" ")
    print(f"of trials that were unrun: {summary['rerun_after_unrun']}")
    print(closing_lines(summary["verdict"], draft.path, seal, summary["exit_code"]))
    return summary["exit_code"]


def _opened(args: argparse.Namespace) -> list[EvidenceReader]:
    """Every part, compared with its manifest. Raises ``EvidenceFault`` with what does not hold of any."""
    parts: list[EvidenceReader] = []
    faults: list[Problem] = []
    for text in args.parts:
        try:
            parts.append(EvidenceReader.open(resolve(text), unsealed_ok=args.unsealed))
        except EvidenceFault as fault:
            faults += [_of(text, problem) for problem in fault.problems]
    if faults:
        raise EvidenceFault(faults)
    if len({part.path for part in parts}) < len(parts):
        raise InvalidInput.one("merge", "a directory is named twice", "give each shard once")
    return parts


def _of(directory: str, problem: Problem) -> Problem:
    """Which of the directories a problem is of, when it does not say so itself."""
    named = problem.where == directory or problem.where.startswith(f"{directory}/")
    return problem if named else Problem(f"{directory}: {problem.where}", problem.what, problem.fix)
