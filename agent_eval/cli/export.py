"""``export DIR --format inspect``: the trials in another tool's format."""

from __future__ import annotations

import argparse
import os

from agent_eval.cli.report import check_targets, counted, write_document
from agent_eval.evidence.location import resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput
from agent_eval.report.inspect_log import inspect_log, inspect_log_name
from agent_eval.report.visible_text import escape, size

_SUFFIX = ".json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence of a run, or @last")
    parser.add_argument("--format", choices=("inspect",), required=True, help="inspect: an Inspect AI log")
    parser.add_argument("-o", "--output", metavar="FILE.json", help="the log (default: a name in the current folder that Inspect's viewer lists)")
    parser.add_argument("--unsealed", action="store_true", help="use the finished trials of an unsealed directory")
    parser.add_argument("--force", action="store_true", help="replace the file when it exists")


def run(args: argparse.Namespace) -> int:
    """Check the evidence, then write the log."""
    reader = EvidenceReader.open(resolve(args.directory), unsealed_ok=args.unsealed)
    target = args.output or inspect_log_name(reader.plan)
    if not target.endswith(_SUFFIX):
        # Inspect chooses its reader by the name.
        raise InvalidInput.one(target, f"does not end in {_SUFFIX}", "Inspect reads such a log only under that name")
    check_targets([target], reader.path, args.force)
    data = inspect_log(reader, None if reader.sealed else counted(reader))
    write_document(target, data, args.force)
    print(f"Inspect log: {escape(os.path.abspath(target))} ({size(len(data))})")
    print("what the format cannot carry is listed under dropped, for the run and for each sample")
    return ExitCode.PASSED
