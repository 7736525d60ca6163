"""``epoch LEDGER ...``: evaluator epochs on the command line. Exit codes as for ``gate``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from agent_eval.cli.gate import add_actor, add_verify, nothing, read_only, report, unwritable
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput

if TYPE_CHECKING:
    from agent_eval.gates.result import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("ledger", metavar="LEDGER", help="the directory of the ledger")
    chosen = parser.add_subparsers(dest="action", required=True, metavar="|".join(_ACTIONS))
    for name, (about, declare) in _ACTIONS.items():
        action = chosen.add_parser(name, help=about, description=about, allow_abbrev=False)
        declare(action)
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Do the action and print its result."""
    with unwritable(args.ledger):
        if args.action in ("status", "verify"):
            return read_only(args, "epoch", args.ledger)
        if args.action == "rank":
            return _rank(args)
        return report(_perform(args), args.json)


def _perform(args: argparse.Namespace) -> Result:
    from agent_eval.gates.epoch import gate

    if args.action == "open":
        return gate.open_ledger(args.ledger, args.config, args.actor)
    if args.action == "record":
        return gate.record(args.ledger, args.input, args.actor)
    if args.action == "queue":
        return gate.queue(args.ledger, args.challenger, args.actor)
    if args.action == "revalidate":
        return gate.revalidate(args.ledger, args.slot, args.actor)
    return {"checkpoint": gate.checkpoint, "decide": gate.decide, "close": gate.close}[args.action](args.ledger, args.actor)


def _rank(args: argparse.Namespace) -> int:
    from agent_eval.gates.epoch.ranking import incomparable, view_of_epoch
    from agent_eval.gates.lineage import open_for_reading
    from agent_eval.report.gates_text import exit_line, ranking_lines

    lineage = open_for_reading(args.ledger, "epoch")
    view = view_of_epoch(lineage.entries, args.epoch)
    if args.against is not None:
        why = incomparable(view, view_of_epoch(lineage.entries, args.against))
        if why:
            raise InvalidInput.one("--against", why, "compare on the same anchor, with anchored records only")
    print(json.dumps(view, sort_keys=True) if args.json else "\n".join([*ranking_lines(view), exit_line(ExitCode.PASSED)]))
    return ExitCode.PASSED


def _open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, metavar="FILE", help="the configuration to freeze")
    add_actor(parser)


def _record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="rows of utility and anchor_outcome (JSON Lines or an array)")
    add_actor(parser)


def _queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--challenger", required=True, metavar="FILE", help="the challenger (agent-eval/challenger/1)")
    add_actor(parser, "the proposer")


def _decide(parser: argparse.ArgumentParser) -> None:
    add_actor(parser, "the frozen acceptor")


def _rank_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epoch", type=int, metavar="N", help="the view at the end of that epoch (default: now)")
    parser.add_argument("--against", type=int, metavar="N", help="compare with another epoch; refused unless both are anchored")


def _revalidate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slot", required=True, metavar="NAME", help="the slot whose evaluator was reinstated")
    add_actor(parser)


_ACTIONS = {
    "open": ("freeze and digest the criterion of epoch 1", _open),
    "record": ("record utility and anchor outcomes, all rows or none", _record),
    "queue": ("queue a challenger; the criterion is untouched", _queue),
    "checkpoint": ("declare the next checkpoint of the schedule", add_actor),
    "decide": ("compare the queued challengers on the anchor", _decide),
    "rank": ("rank candidates by their valid records", _rank_options),
    "revalidate": ("take back tombstones of a reinstated criterion", _revalidate),
    "close": ("close the ledger with its winner", add_actor),
    "status": ("epoch, criteria, records, looks", nothing),
    "verify": ("check the ledger and derive every decision again", add_verify),
}
