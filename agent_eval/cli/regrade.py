"""``regrade DIR``: new judgments over retained evidence, in a new directory."""

from __future__ import annotations

import argparse
import json
import sys

from agent_eval.cli import consumers
from agent_eval.cli.parsing import add_output_options
from agent_eval.cli.stopping import Stopping, stoppable
from agent_eval.evidence.draft import Draft
from agent_eval.evidence.location import resolve
from agent_eval.evidence.plan_check import require_digest
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.regrade import regrade
from agent_eval.measure.summary import Tally
from agent_eval.records.problems import InvalidInput
from agent_eval.report.terminal import TrialRow, closing_lines, summary_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence of a run, or @last")
    parser.add_argument("--criteria", choices=("retained", "current"), default="retained", help="scenario data kept in the evidence, or today's (default: retained)")
    parser.add_argument("--unsealed", action="store_true", help="use the finished trials of an unsealed directory")
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Regrade and print what changed."""
    return regrade_command(args.directory, args)


def regrade_command(directory: str, args: argparse.Namespace) -> int:
    """Regrade ``directory`` with the options in ``args``; a consumer's ``--regrade`` comes here too."""
    return stoppable(lambda stopping: _regrade(directory, args, stopping))


def _regrade(directory: str, args: argparse.Namespace, stopping: Stopping) -> int:
    def new_draft() -> Draft:
        stopping.hold()
        return Draft(args.output)

    reader = EvidenceReader.open(resolve(directory), unsealed_ok=getattr(args, "unsealed", False))
    require_digest(reader.plan, directory)
    name = reader.plan["consumer"]
    if reader.plan.get("kind", "run") not in ("run", "recheck", "rerun", "merge"):
        raise InvalidInput.one(directory, f"holds a {reader.plan['kind']}, not trials", "regrade the run that it came from")
    consumer = consumers.load(name)
    path, plan, summary, seal = regrade(
        reader,
        name,
        consumers.folder_of(name),
        consumer.judge,
        getattr(args, "criteria", "retained"),
        tuple(sys.argv[1:]),
        new_draft,
        Tally,
        stopping.check,
    )
    if args.json:
        print(json.dumps({**summary, "path": path, "seal": seal}, sort_keys=True))
        return summary["exit_code"]
    rows = (TrialRow(case_id, 0, "", (), case["wall_s"]) for case_id, case in summary["cases"].items())
    print(summary_table(plan, summary, rows))
    counts = summary["changes"]
    print(f"\nregraded from {reader.seal or 'an unsealed directory'}: 0 processes started, {counts['same']} same,", end=" ")
    print(f"{counts['changed']} changed, {counts['not_assessable']} not assessable")
    print(closing_lines(summary["verdict"], path, seal, summary["exit_code"]))
    return summary["exit_code"]
