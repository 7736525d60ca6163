"""``status DIR``: counts of a run, sealed or not, that add up to what was planned."""

from __future__ import annotations

import argparse
import json

from agent_eval.cli.streams import require_printed
from agent_eval.evidence.location import resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.status import status
from agent_eval.records.exit_codes import ExitCode
from agent_eval.report.parts_text import part_text
from agent_eval.report.visible_text import escape


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence, or @last")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the counts. The files are not compared with the manifest; ``verify`` does that."""
    path = resolve(args.directory)
    reader = EvidenceReader.open(path, unsealed_ok=True, check=False)
    found, part = status(reader), part_text(reader.plan)
    if args.json:
        print(json.dumps({**found, "part": part or None, "path": path}, sort_keys=True))
        require_printed()
        return ExitCode.PASSED
    parts = ", ".join(f"{found[name]} {name}" for name in ("passed", "failed", "void", "interrupted", "unrun"))
    print(f"{found['consumer']} ({found['kind']}): planned {found['planned']} = {parts}")
    if part:
        print(part)
    print(f"sealed: {found['seal']}" if found["sealed"] else "unsealed: the finished trials are usable with --unsealed")
    print(f"evidence: {escape(path)}")
    require_printed()
    return ExitCode.PASSED
