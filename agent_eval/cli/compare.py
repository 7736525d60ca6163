"""`compare INCUMBENT CANDIDATE`: is the candidate better, by cases, exactly, at a declared look?"""

from __future__ import annotations

import argparse
import json
import os
import sys

from agent_eval.cli.parsing import add_output_options, positive
from agent_eval.cli.stopping import Stopping, stoppable
from agent_eval.evidence import layout
from agent_eval.evidence.draft import Draft
from agent_eval.evidence.location import resolve
from agent_eval.evidence.plan_check import require_digest
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.evaluator import evaluator_record
from agent_eval.measure.comparison import MAX_ALPHA, Collapse, compare
from agent_eval.measure.comparison_record import comparison_record, side
from agent_eval.measure.comparison_terms import Term, differences, incomparable
from agent_eval.measure.outcomes import case_counts
from agent_eval.records import strict_json
from agent_eval.records.plan import Limits, PlannedRun, planned_numbers
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem
from agent_eval.report.parts_text import part_text
from agent_eval.report.statistics_text import comparison_closing, comparison_lines, verdict_line

COMPARISON = "comparison.json"
_NO_COUNTS = dict.fromkeys(("planned", "passed", "failed", "void", "interrupted", "unrun", "judged"), 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("incumbent", metavar="INCUMBENT", help="evidence of what is in place, or @last")
    parser.add_argument("candidate", metavar="CANDIDATE", help="evidence of what shall replace it, or @last")
    parser.add_argument(
        "--alpha", type=_alpha, default=0.05, metavar="A", help="accepted chance of a wrong verdict, above 0 to 0.5 (default: 0.05)"
    )
    parser.add_argument(
        "--look", type=positive, metavar="K", help="the K-th look at this suite: spends alpha/(K(K+1)); without it alpha is spent once"
    )
    parser.add_argument(
        "--collapse",
        choices=[rule.value for rule in Collapse],
        default=Collapse.ALL_PASS.value,
        help="when a case counts as passed (default: all-pass)",
    )
    parser.add_argument(
        "--critical",
        action="append",
        default=[],
        metavar="CASE",
        help="a case whose regression forbids improved, besides those that the cases mark",
    )
    parser.add_argument(
        "--allow-different",
        action="append",
        default=[],
        choices=[term.value for term in Term],
        metavar="WHAT",
        help="compare although WHAT differs: " + ", ".join(Term),
    )
    parser.add_argument("--unsealed", action="store_true", help="use the finished trials of an unsealed directory")
    add_output_options(parser)


def _alpha(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= MAX_ALPHA:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most {MAX_ALPHA}")
    return value


def run(args: argparse.Namespace) -> int:
    """Compare, print, and keep the comparison as an evidence directory."""
    return stoppable(lambda stopping: _compare(args, stopping))


def _compare(args: argparse.Namespace, stopping: Stopping) -> int:
    incumbent, candidate = (_open(path, args.unsealed) for path in (args.incumbent, args.candidate))
    different = differences(incumbent.plan, candidate.plan)
    _refuse(args, incumbent, candidate, different)
    found = compare(
        case_counts(incumbent),
        case_counts(candidate),
        alpha=args.alpha,
        look=args.look,
        collapse=Collapse(args.collapse),
        critical=_critical(args, incumbent, candidate),
    )
    record = comparison_record(found, _side(incumbent), _side(candidate), different)
    record["verdict_line"] = verdict_line(record)
    path, seal = _keep(args, record, incumbent, candidate, stopping)
    if args.json:
        print(json.dumps({**record, "path": path, "seal": seal}, sort_keys=True))
    else:
        print("\n".join([*comparison_lines(record), "", *comparison_closing(record, path, seal)]))
    return record["exit_code"]


def _open(path: str, unsealed_ok: bool) -> EvidenceReader:
    reader = EvidenceReader.open(resolve(path), unsealed_ok=unsealed_ok)
    require_digest(reader.plan, path)
    if not reader.plan["cases"]:
        raise InvalidInput.one(path, f"holds a {reader.plan.get('kind', 'run')}, not trials", "name the run that it came from")
    if not any(planned_numbers(reader.plan, case["id"]) for case in reader.plan["cases"]):
        raise InvalidInput.one(path, "is a part that plans no trial", "name another part, or the whole")
    return reader


def _side(reader: EvidenceReader) -> dict[str, object]:
    return {**side(reader.plan, reader.seal), "part": part_text(reader.plan) or None}


def _refuse(args: argparse.Namespace, incumbent: EvidenceReader, candidate: EvidenceReader, different: list) -> None:
    """Raise InvalidInput with everything that makes the two runs not alike and was not allowed."""
    problems = [Problem("incumbent and candidate", reason) for reason in incomparable(incumbent.plan, candidate.plan)]
    problems += [
        Problem(f"{found.term.value} differs", found.detail, f"add --allow-different {found.term.value} to compare all the same")
        for found in different
        if found.term.value not in args.allow_different
    ]
    known = {case["id"] for reader in (incumbent, candidate) for case in reader.plan["cases"]}
    problems += [
        Problem("--critical", f"no case {case!r} in either run", "name a case as the runs do")
        for case in args.critical
        if case not in known
    ]
    if problems:
        raise InvalidInput(problems)


def _critical(args: argparse.Namespace, incumbent: EvidenceReader, candidate: EvidenceReader) -> frozenset[str]:
    marked = (case["id"] for reader in (incumbent, candidate) for case in reader.plan["cases"] if case.get("critical"))
    return frozenset([*args.critical, *marked])


def _keep(args: argparse.Namespace, record: dict, incumbent: EvidenceReader, candidate: EvidenceReader, stopping: Stopping) -> tuple[str, str]:
    """Write and seal the comparison directory; return its path and seal."""
    plan = incumbent.plan
    nothing = PlannedRun((), 0, Limits(**plan["limits"]), plan["task_seed"])
    sources = {name: {key: record[name][key] for key in ("run_id", "plan_sha256", "seal")} for name in ("incumbent", "candidate")}
    facts = {"kind": "compare", "source": sources, "source_sealed": incumbent.sealed and candidate.sealed}
    own_plan = make_plan(plan["consumer"], nothing, tuple(sys.argv[1:]), evaluator_record(None), **facts)
    not_scored = dict.fromkeys(text for case in plan["cases"] for text in case.get("not_scored", ()))
    summary = {
        **_NO_COUNTS,
        "cases": {},
        "basis": {},
        "reliability": None,
        "not_scored": list(not_scored),
        "limits_reached": {},
        "leaks": {"trials": 0, "processes": 0, "unreaped": 0},
        "exit_code": record["exit_code"],
        "verdict": record["verdict"],
        "verdict_line": record["verdict_line"],
        "source_sealed": facts["source_sealed"],
    }
    stopping.hold()
    with Draft(args.output) as draft:
        try:
            draft.writer.write_plan(own_plan)
            draft.writer.write(COMPARISON, strict_json.canonical(record) + b"\n")
            for folder in (layout.CASES, layout.TRIALS):
                # A comparison has neither, and an empty folder is one that no manifest names.
                os.rmdir(os.path.join(draft.writer.path, folder))
            seal = draft.writer.seal(summary)
            stopping.check()
            draft.publish()
        except OSError as error:
            raise EvidenceFault.one(draft.path, f"could not be written ({error.strerror})", "nothing was kept") from None
    return draft.path, seal
