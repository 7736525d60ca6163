"""``verify DIR``: compare a directory with its manifest, and its seal with a witness."""

from __future__ import annotations

import argparse
import json

from agent_eval.evidence.location import resolve
from agent_eval.evidence.manifest import verify
from agent_eval.evidence.plan_check import require_digest
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records.exit_codes import ExitCode
from agent_eval.report.visible_text import escape


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence, or @last")
    parser.add_argument("--seal", metavar="HEX", help="the seal that a witness kept")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Print each finding by path and kind."""
    path = resolve(args.directory)
    found = verify(path, args.seal)
    if not (found.unsafe or found.changed or found.missing):
        reader = EvidenceReader.open(path, unsealed_ok=True, check=False)
        require_digest(reader.plan, path)
        if reader.sealed:
            _require_parts(reader)
    code = ExitCode.PASSED if found.ok else ExitCode.EVIDENCE
    if args.json:
        print(json.dumps(found.to_json(), sort_keys=True))
        return code
    for kind in ("missing", "unexpected", "changed", "unsafe"):
        for name in getattr(found, kind):
            print(f"{kind}: {escape(name)}")
    if found.unsealed:
        print("unsealed: there is no manifest")
    if found.seal_matches is False:
        print("seal: does not match the witness")
    if found.ok:
        word = "matches the seal" if found.seal_matches else "self-consistent (no witness was given)"
        print(f"{word}: {found.count} files")
    print(f"seal: {found.seal or 'none'}")
    return code


def _require_parts(reader: EvidenceReader) -> None:
    """A part that was unsealed has no manifest: its journal vouches for its records, and they for their files. Raises ``EvidenceFault``."""
    for part in reader.parts():
        for trial in () if part.sealed else part.trials():
            for name in trial.record["files"]:
                trial.read(name)
