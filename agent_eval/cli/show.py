"""``show DIR [CASE/NNN]``: a run, or one trial, in words."""

from __future__ import annotations

import argparse

from agent_eval.cli.streams import require_printed
from agent_eval.evidence.layout import parse_trial_name
from agent_eval.evidence.location import resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.status import status
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput
from agent_eval.report.parts_text import part_text
from agent_eval.report.records_view import trial_line
from agent_eval.report.trial_text import trial_text
from agent_eval.report.visible_text import escape, seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence, or @last")
    parser.add_argument("trial", metavar="CASE/NNN", nargs="?", help="one trial, such as edit@1/001")


def run(args: argparse.Namespace) -> int:
    """Print a trial, or one line for each of a run. An unsealed directory is shown as far as its journal vouches for it."""
    path = resolve(args.directory)
    reader = EvidenceReader.open(path, unsealed_ok=True, check=False)
    if args.trial is not None:
        _show_trial(reader, args.trial)
        require_printed()
        return ExitCode.PASSED
    counts = status(reader)
    print(f"{reader.plan['consumer']} ({counts['kind']}), {'sealed' if counts['sealed'] else 'unsealed'}: {escape(path)}")
    part = part_text(reader.plan)
    if part:
        print(part)
    for trial in reader.trials():
        line = trial_line(trial)
        print(f"  {line.name}  {escape(line.verdict)}  {seconds(line.wall_s)}  {escape(', '.join(line.reasons))}")
    print(f"planned {counts['planned']}, finished {counts['finished']}, interrupted {counts['interrupted']}, unrun {counts['unrun']}")
    print("run.py verify compares the files with the manifest; show does not")
    require_printed()
    return ExitCode.PASSED


def _show_trial(reader: EvidenceReader, name: str) -> None:
    named = parse_trial_name(name)
    known = [case["id"] for case in reader.plan["cases"]]
    if named is None or named[0] not in known:
        raise InvalidInput.one(name, "no such trial", f"name it CASE/NNN; cases are {', '.join(known[:20])}")
    trial = reader.trial(*named)
    if trial is None:
        here = part_text(reader.plan) or f"trials are numbered 1 to {reader.plan['trials']}"
        raise InvalidInput.one(name, "has no record", f"{here}; run.py show DIR lists those there are")
    print(trial_text(trial, reader.case_bytes(trial.case_id)))
