"""``rerun``: do again what an earlier run left, in a new directory linked to it.

``--unrun`` completes a run under its own frozen plan; ``--failed`` and a single trial are for debugging.
A rerun never changes the old directory and is never counted into it silently; ``merge`` keeps both.
"""

from __future__ import annotations

import argparse
import sys

from agent_eval.cli import consumers
from agent_eval.cli.parsing import CommandParser, add_output_options, add_way_options, ways_given
from agent_eval.cli.run_command import check_formats, common_options, parse
from agent_eval.cli.run_display import run_and_print
from agent_eval.evidence.layout import parse_trial_name
from agent_eval.evidence.location import resolve
from agent_eval.evidence.plan_check import RERUN_CHOICES, require_digest
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.evaluator import evaluator_record
from agent_eval.grade.regrade import source_record
from agent_eval.grade.retained import Retained, Stage
from agent_eval.records.judgment import Verdict
from agent_eval.records.plan import PlannedRun, planned_numbers
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem
from agent_eval.report.visible_text import escape
from agent_eval.supervise.process import prepare_process
from agent_eval.trials.run import RunOptions

_FROZEN = ("cases", "trials", "task_seed", "limits", "subject")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence of the earlier run, or @last")
    parser.add_argument("trial", metavar="CASE/NNN", nargs="?", help="run this one trial again")
    parser.add_argument("--unrun", action="store_true", help="exactly the unrun and interrupted trials; refuses when anything frozen differs")
    parser.add_argument("--failed", action="store_true", help="the trials that failed")
    parser.add_argument("--keep-workspace", action="store_true", help="leave each trial's scratch folder and say where it is")
    parser.add_argument("--unsealed", action="store_true", help="take an unsealed directory")
    add_way_options(parser.add_argument_group("trials"))
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Plan from the earlier command line, check what is frozen, run the chosen trials."""
    if (args.unrun, args.failed, args.trial is not None).count(True) != 1:
        raise InvalidInput.one("rerun", "choose one of --unrun, --failed and CASE/NNN")
    if args.keep_workspace and args.executor is not None:
        raise InvalidInput.one("--keep-workspace", "workspaces are on the workers with --executor", "leave one of the two out")
    check_formats(args)
    if args.executor is not None:
        from agent_eval.cli import engine
    reader = EvidenceReader.open(resolve(args.directory), unsealed_ok=args.unsealed)
    require_digest(reader.plan, args.directory)
    kind = reader.plan.get("kind", "run")
    if kind not in ("run", "rerun"):
        raise InvalidInput.one(args.directory, f"is a {kind}", "rerun the run that it came from")
    chosen = _chosen(Retained(reader), args)
    if not chosen:
        what = "has no unrun or interrupted trial" if args.unrun else "has no failed trial" if args.failed else f"has no trial {args.trial}"
        raise InvalidInput.one(args.directory, what, "run.py show DIR lists the trials")
    name, *rest = reader.plan["argv"] or ("",)
    if name != reader.plan["consumer"]:
        raise EvidenceFault.one(f"{args.directory}/plan.json", f"argv is no command line of {reader.plan['consumer']}")
    consumer = consumers.load(name)
    # Without --help: a retained command line that asks for it planned nothing.
    then = parse(consumer, CommandParser(prog=f"run.py {name}", allow_abbrev=False, add_help=False), rest)
    if reader.plan["task_seed"] is not None and hasattr(then, "seed"):
        then.seed = str(reader.plan["task_seed"])
    prepare_process()
    planned = consumer.plan(then)
    _check_frozen(reader, name, planned, required=args.unrun)
    _say_what_is_left_out(then, args)
    facts = {"kind": "rerun", "rerun": _choice(args), "chosen": chosen, "source": source_record(reader), "source_sealed": reader.sealed}
    options = RunOptions(
        tuple(reader.plan["argv"]), **common_options(name, args), plan_facts=facts, keep_scratch=args.keep_workspace
    )
    if args.executor is None:
        return run_and_print(consumer, planned, options, args)
    return engine.run_through(args.executor, consumer, planned, options, args)


def _say_what_is_left_out(then: argparse.Namespace, now: argparse.Namespace) -> None:
    """How the earlier run was made is not how this one is: a cluster may be gone, and a report is not to be overwritten."""
    given = ways_given(now)
    left_out = [text for name, text in ways_given(then).items() if name not in given]
    if left_out:
        print(f"note: the earlier run had {escape(', '.join(left_out))}; a rerun has what it is given itself", file=sys.stderr)


def _choice(args: argparse.Namespace) -> str:
    """What the plan says was asked for."""
    unrun, failed, trial = RERUN_CHOICES
    return unrun if args.unrun else failed if args.failed else trial


def _chosen(retained: Retained, args: argparse.Namespace) -> dict[str, list[int]]:
    chosen: dict[str, list[int]] = {}
    for case in retained.reader.plan["cases"]:
        for number in planned_numbers(retained.reader.plan, case["id"]):
            if _is_wanted(retained, args, case["id"], number):
                chosen.setdefault(case["id"], []).append(number)
    return chosen


def _is_wanted(retained: Retained, args: argparse.Namespace, case_id: str, number: int) -> bool:
    if args.unrun:
        return retained.stage(case_id, number) is not Stage.ENDED
    if args.failed:
        judgment = retained.judgment(case_id, number)
        return judgment is not None and judgment.verdict is Verdict.FAIL
    return parse_trial_name(args.trial) == (case_id, number)


def _check_frozen(reader: EvidenceReader, name: str, planned: PlannedRun, *, required: bool) -> None:
    now = make_plan(name, planned, (), evaluator_record(consumers.folder_of(name)))
    if now["plan_sha256"] == reader.plan["plan_sha256"]:
        return
    differs = [key for key in _FROZEN if now[key] != reader.plan[key]]
    if any(now["evaluator"][key] != reader.plan["evaluator"][key] for key in ("version", "source_sha256")):
        differs.append("evaluator")
    problems = [Problem(key, "differs from the earlier run", "start a new run instead") for key in differs]
    if required:
        raise InvalidInput(problems or [Problem("plan", "differs from the earlier run")])
    for problem in problems:
        print(f"note: {problem.where} {problem.what}", file=sys.stderr)
