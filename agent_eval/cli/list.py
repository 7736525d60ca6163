"""``list consumers|cases|runs|adapters``: what is there to run, and what was run here."""

from __future__ import annotations

import argparse

from agent_eval.cli import consumers
from agent_eval.cli.streams import require_printed
from agent_eval.evidence.location import DEFAULT_ROOT, runs
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.status import status
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.report.parts_text import part_text
from agent_eval.report.visible_text import escape


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("what", choices=("consumers", "cases", "runs", "adapters"))


def run(args: argparse.Namespace) -> int:
    """Print one line for each."""
    if args.what == "consumers":
        for name in consumers.command_names():
            print(f"{name}  {consumers.summary_of(name)}")
    elif args.what == "runs":
        _print_runs()
    else:
        _print_offered(args.what)
    require_printed()
    return ExitCode.PASSED


def _print_runs() -> None:
    found = runs()
    for path in found:
        try:
            reader = EvidenceReader.open(path, unsealed_ok=True, check=False)
            counts = status(reader)
        except (EvidenceFault, InvalidInput) as error:
            print(f"{path}  unreadable: {escape(str(error.problems[0]))}")
            continue
        sealed = "sealed" if counts["sealed"] else "unsealed"
        line = f"{path}  {counts['consumer']}  {counts['kind']}  {counts['passed']}/{counts['planned']} passed  {sealed}"
        print(f"{line}  {part_text(reader.plan)}".rstrip())
    if not found:
        print(f"no run under {DEFAULT_ROOT} of this folder")


def _print_offered(what: str) -> None:
    """What the consumers offer: ``list_items(kind)`` gives (name, one line) pairs."""
    for name in consumers.command_names():
        offer = getattr(consumers.load(name), "list_items", None)
        for item, text in offer(what) if offer is not None else ():
            print(f"{name}  {escape(item)}  {escape(text)}")
