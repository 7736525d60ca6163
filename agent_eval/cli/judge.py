"""`judge`: does a binary judge agree with people, on passes and on failures?"""

from __future__ import annotations

import argparse
import json

from agent_eval.cli.row_files import read_file, write_new
from agent_eval.measure.judge_validation import SPLITS, validate_judge
from agent_eval.measure.rows import Reading
from agent_eval.records import strict_json
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput, Problem
from agent_eval.report.statistics_text import judge_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "A file holds JSON lines, a JSON array, or .csv, one item each with an id. Labels: id, label, and optionally "
        'split, text, group, failure_mode. Verdicts: id, verdict. A value is true or false, 1 or 0, "pass" or '
        '"fail"; a verdict may also be "unparsed". Exit code 1 when a required lower bound is not met, else 0.'
    )
    parser.add_argument("--labels", required=True, metavar="FILE", help="what people decided")
    parser.add_argument("--verdicts", required=True, metavar="FILE", help="what the judge decided on the same items")
    parser.add_argument("--unlabelled", metavar="FILE", help="the judge's verdicts on items without a label: estimate their true pass rate")
    parser.add_argument("--split", choices=SPLITS[1:], help="score this split (default: test, else dev, else everything)")
    parser.add_argument("--min-tpr", type=_bound, metavar="X", help="required lower bound of the true positive rate")
    parser.add_argument("--min-tnr", type=_bound, metavar="X", help="required lower bound of the true negative rate")
    parser.add_argument("-o", "--output", metavar="NEW", help="also write the result as JSON to this new file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _bound(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value


def run(args: argparse.Namespace) -> int:
    """Validate and print."""
    readings: dict[str, Reading] = {}
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for name in ("labels", "verdicts", "unlabelled"):
        path = getattr(args, name)
        try:
            if path is not None:
                readings[name], digests[f"{name}_sha256"] = read_file(path, f"--{name}")
        except InvalidInput as error:
            problems += error.problems
    if not problems and digests["labels_sha256"] == digests["verdicts_sha256"] and _of_labels_only(readings["verdicts"]):
        problems.append(Problem("--verdicts", f"{args.verdicts} is the file of labels", "name the file with the judge's verdicts"))
    if problems:
        raise InvalidInput(problems)
    found = validate_judge(
        readings["labels"],
        readings["verdicts"],
        readings.get("unlabelled"),
        split=args.split,
        min_tpr=args.min_tpr,
        min_tnr=args.min_tnr,
    )
    met = found["thresholds"] is None or found["thresholds"]["met"]
    record = {**found, **digests, "exit_code": int(ExitCode.PASSED if met else ExitCode.FAILED)}
    if args.output is not None:
        write_new(args.output, strict_json.pretty(record), "--output")
    print(json.dumps(record, sort_keys=True) if args.json else "\n".join(judge_lines(record)))
    return record["exit_code"]


def _of_labels_only(verdicts: Reading) -> bool:
    """Whether the verdicts stand under another name, as they may: the labels' own file would then agree with itself."""
    return not any("verdict" in row.fields for row in verdicts.rows)
