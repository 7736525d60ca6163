"""`audit contamination|labels|saturation`: what a benchmark can no longer measure. A report and a queue, no change."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence

from agent_eval.cli.corpus import read_sources
from agent_eval.cli.parsing import positive
from agent_eval.cli.row_files import read_file, write_new
from agent_eval.evidence.location import resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.measure.comparison import Collapse, collapsed
from agent_eval.measure.contamination import TextItem, audit_contamination
from agent_eval.measure.domain import OutOfDomain
from agent_eval.measure.label_errors import audit_labels
from agent_eval.measure.outcomes import case_counts
from agent_eval.measure.rows import Reading, Row
from agent_eval.measure.saturation import DEFAULT_CAP, Candidate, audit_saturation
from agent_eval.measure.text_overlap import LONGEST, SHORTEST, canaries
from agent_eval.records import strict_json
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput, Problem
from agent_eval.report.statistics_text import audit_lines

_MAX_NAMED = 20
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the three audits."""
    parser.epilog = "Exit code 1 when the queue holds something for a person to look at, 0 when it is empty."
    kinds = parser.add_subparsers(dest="audit", required=True, metavar="contamination|labels|saturation")
    _contamination(kinds.add_parser("contamination", help="were items seen before?", allow_abbrev=False))
    _labels(kinds.add_parser("labels", help="which labels should a person look at again?", allow_abbrev=False))
    _saturation(kinds.add_parser("saturation", help="can the suite still tell candidates apart?", allow_abbrev=False))


def _common(parser: argparse.ArgumentParser, audit: Callable[[argparse.Namespace], dict]) -> None:
    parser.add_argument("--queue", metavar="NEW", help="write the review queue as JSON lines to this new file")
    parser.add_argument("-o", "--output", metavar="NEW", help="write the whole result as JSON to this new file")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON")
    parser.set_defaults(perform=audit)


def _contamination(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--items", required=True, metavar="FILE", help="the benchmark: id, text, and optionally passed, created (YYYY-MM-DD), split"
    )
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="PATH",
        help="a file or folder that may have leaked into: outputs, traces, patches, prompts, training text",
    )
    parser.add_argument(
        "--canary", action="append", default=[], metavar="GUID", help="a canary GUID of this suite, besides those in its items"
    )
    parser.add_argument("--cutoff", type=_date, metavar="DATE", help="the model's training cutoff, YYYY-MM-DD")
    parser.add_argument(
        "--ngram", type=_ngram, metavar="N", help=f"words of an n-gram, {SHORTEST} to {LONGEST} (default: by the items' lengths)"
    )
    _common(parser, _audit_contamination)


def _labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", required=True, metavar="FILE", help="the labels in question: id, label")
    parser.add_argument(
        "--verdicts",
        action="append",
        default=[],
        metavar="FILE",
        help="an independent grader's verdicts on the same items: id, verdict; give two or more",
    )
    parser.add_argument(
        "--results", action="append", default=[], metavar="FILE", help="a strong system's outcomes: id, passed; give one or more"
    )
    parser.add_argument("--probabilities", metavar="FILE", help="P(pass) by item: id, p")
    parser.add_argument("--reviewed", metavar="FILE", help="a reviewed random sample: id, wrong (whether the label was)")
    _common(parser, _audit_labels)


def _saturation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "candidates", nargs="+", metavar="DIR", help="evidence of candidates, oldest first; or files of outcomes: id, passed"
    )
    parser.add_argument(
        "--cap", type=_fraction, default=DEFAULT_CAP, metavar="X", help=f"pass rate that counts as full (default: {DEFAULT_CAP})"
    )
    parser.add_argument("--last", type=positive, metavar="M", help="consider the newest M candidates (default: all)")
    parser.add_argument("--alpha", type=_fraction, default=0.05, metavar="A", help="alpha of the gate (default: 0.05)")
    parser.add_argument("--look", type=positive, metavar="K", help="the look at which a gate would decide next")
    parser.add_argument(
        "--collapse",
        choices=[rule.value for rule in Collapse],
        default=Collapse.ALL_PASS.value,
        help="when a case counts as passed (default: all-pass)",
    )
    parser.add_argument("--labels-audited", action="store_true", help="say that the labels were audited: a full suite is then solved")
    _common(parser, _audit_saturation)


def _date(text: str) -> str:
    if _DATE.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2026-11-30")
    return text


def _ngram(text: str) -> int:
    value = positive(text)
    if not SHORTEST <= value <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not {SHORTEST} to {LONGEST}")
    return value


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value


def run(args: argparse.Namespace) -> int:
    """Audit, print, and write what was asked for."""
    record = args.perform(args)
    record["exit_code"] = int(ExitCode.FAILED if record["queue"] else ExitCode.PASSED)
    if args.queue is not None:
        lines = b"".join(strict_json.canonical(entry) + b"\n" for entry in record["queue"])
        write_new(args.queue, lines, "--queue")
    if args.output is not None:
        write_new(args.output, strict_json.pretty(record), "--output")
    print(json.dumps(record, sort_keys=True) if args.json else "\n".join(audit_lines(record)))
    return record["exit_code"]


def _audit_contamination(args: argparse.Namespace) -> dict:
    reading, digest = read_file(args.items, "--items")
    own = [(given, canaries(f"canary GUID {given}")) for given in args.canary]
    reading.problems += [Problem("--canary", f"{given!r} is not a GUID") for given, found in own if not found]
    items = [_text_item(reading, row) for row in reading.rows]
    _require(reading)
    if not args.against and not any(item.split for item in items) and args.cutoff is None:
        raise InvalidInput.one("--against", "nothing to search", "name files or folders, or give items a split, or --cutoff")
    found = audit_contamination(
        items,
        read_sources(args.against),
        own_canaries=frozenset(guid for _, guids in own for guid in guids),
        cutoff=args.cutoff,
        n=args.ngram,
    )
    return {**found, "items_sha256": digest}


def _text_item(reading: Reading, row: Row) -> TextItem:
    text = reading.text(row, "text")
    if text is None:
        reading.problems.append(Problem(row.where, f"item {row.id!r} has no text", "overlap is found by text, not by id"))
    created = reading.text(row, "created")
    if created is not None and _DATE.fullmatch(created[:10]) is None:
        reading.problems.append(Problem(row.where, f"created of item {row.id!r} is not a date", "give YYYY-MM-DD"))
    passed = reading.binary(row, ("passed",)) if "passed" in row.fields else None
    return TextItem(row.id, text or "", reading.text(row, "split"), passed, None if created is None else created[:10])


def _require(*readings: Reading) -> None:
    problems = [problem for reading in readings for problem in reading.problems]
    if problems:
        raise InvalidInput(problems)


def _audit_labels(args: argparse.Namespace) -> dict:
    if not args.verdicts and not args.results and not args.probabilities:
        raise InvalidInput.one("audit labels", "nothing to hold the labels against", "give --verdicts, --results or --probabilities")
    labels = _table(args.labels, "--labels", ("label", "passed", "verdict"))
    graders = [_table(path, "--verdicts", ("verdict", "passed", "label")) for path in args.verdicts]
    systems = [_table(path, "--results", ("passed", "verdict")) for path in args.results]
    reviewed = _table(args.reviewed, "--reviewed", ("wrong",)) if args.reviewed else None
    chances = _probabilities(args.probabilities) if args.probabilities else None
    others = [table for table in (*graders, *systems, reviewed, chances) if table is not None]
    _require(labels[0], *(reading for reading, _ in others))
    _require_known(labels, others)
    return audit_labels(
        labels[1],
        _named(graders, "--verdicts"),
        _named(systems, "--results"),
        None if chances is None else chances[1],
        None if reviewed is None else reviewed[1],
    )


def _require_known(labels: tuple[Reading, Mapping], others: Sequence[tuple[Reading, Mapping]]) -> None:
    """Raise InvalidInput for items that have no label: an id that differs would silently drop an item."""
    problems = []
    for reading, values in others:
        strangers = [item for item in values if item not in labels[1]]
        if strangers:
            named = ", ".join(strangers[:_MAX_NAMED]) + (" ..." if len(strangers) > _MAX_NAMED else "")
            problems.append(Problem(reading.name, f"{len(strangers)} items without a label in {labels[0].name}: {named}"))
    if problems:
        raise InvalidInput(problems)


def _table(path: str, option: str, fields: tuple[str, ...]) -> tuple[Reading, dict[str, bool]]:
    reading, _ = read_file(path, option)
    return reading, {row.id: bool(reading.binary(row, fields)) for row in reading.rows}


def _named(tables: list[tuple[Reading, dict[str, bool]]], option: str) -> dict[str, dict[str, bool]]:
    found: dict[str, dict[str, bool]] = {}
    for reading, values in tables:
        if reading.name in found:
            raise InvalidInput.one(
                option, f"two files are named {reading.name}", "a grader or system is known by its file name: give each its own"
            )
        found[reading.name] = values
    return found


def _probabilities(path: str) -> tuple[Reading, dict[str, float]]:
    reading, _ = read_file(path, "--probabilities")
    found: dict[str, float] = {}
    for row in reading.rows:
        value = row.fields.get("p")
        if isinstance(value, str) and reading.is_csv:
            try:
                value = float(value)
            except ValueError:
                pass
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
            reading.problems.append(Problem(row.where, f"p of item {row.id!r} is not between 0 and 1"))
        else:
            found[row.id] = float(value)
    return reading, found


def _audit_saturation(args: argparse.Namespace) -> dict:
    places = [os.path.realpath(resolve(path)) for path in args.candidates]
    twice = [path for at, path in enumerate(args.candidates) if places[at] in places[:at]]
    if twice:
        raise InvalidInput.one("audit saturation", f"{', '.join(twice)} is named twice", "a candidate counts once")
    candidates = [_candidate(path, Collapse(args.collapse)) for path in args.candidates]
    try:
        return audit_saturation(
            candidates,
            cap=args.cap,
            last=args.last,
            alpha=args.alpha,
            look=args.look,
            labels_audited=args.labels_audited,
        )
    except OutOfDomain as error:
        raise InvalidInput.one("audit saturation", str(error)) from None


def _candidate(path: str, rule: Collapse) -> Candidate:
    """A candidate's outcome per case: from evidence, or from a file of outcomes."""
    path = resolve(path)
    if os.path.isfile(path):
        reading, values = _table(path, "audit saturation", ("passed", "verdict"))
        _require(reading)
        return Candidate(reading.name, values)
    reader = EvidenceReader.open(path)
    counts = case_counts(reader)
    return Candidate(reader.plan["run_id"], {case: collapsed(found, rule) for case, found in counts.items()})
