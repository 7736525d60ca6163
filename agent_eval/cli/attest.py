"""``attest DIR``: an unsigned in-toto statement about a sealed run, in canonical JSON."""

from __future__ import annotations

import argparse
import os

from agent_eval.cli.report import check_targets, write_document
from agent_eval.cli.streams import require_printed
from agent_eval.evidence.location import resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records.exit_codes import ExitCode
from agent_eval.report.attestation import statement
from agent_eval.report.visible_text import escape


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="sealed evidence, or @last")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the statement to a file (default: print it)")
    parser.add_argument("--force", action="store_true", help="replace the file when it exists")


def run(args: argparse.Namespace) -> int:
    """Check the evidence, then print the statement or write it."""
    reader = EvidenceReader.open(resolve(args.directory))
    data = statement(reader)
    if args.output is None:
        print(data.decode("ascii"), end="")
        require_printed()
        return ExitCode.PASSED
    check_targets([args.output], reader.path, args.force)
    write_document(args.output, data, args.force)
    print(f"statement: {escape(os.path.abspath(args.output))}, unsigned")
    print(f"seal: {reader.seal}")
    return ExitCode.PASSED
