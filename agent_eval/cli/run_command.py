"""The command of a consumer: options, plan, run, closing lines.

Owns what every consumer's command does the same way. It knows no consumer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

from agent_eval.cli import consumers
from agent_eval.cli.parsing import add_run_options
from agent_eval.measure.summary import Tally
from agent_eval.records import credentials
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.plan import PlannedRun
from agent_eval.records.problems import InvalidInput, Problem
from agent_eval.report.terminal import Progress, TrialRow, closing_lines, escape, summary_table
from agent_eval.report.visible_text import count
from agent_eval.supervise.process import prepare_process
from agent_eval.trials.run import RunOptions, RunResult, run as run_trials
from agent_eval.trials.recording import FinishedTrial
from agent_eval.trials.selection import parse_shard, shard_of


def run(name: str, parser: argparse.ArgumentParser, argv: list[str]) -> int:
    """Parse a consumer's command line and do it."""
    consumer = consumers.load(name)
    args = parse(consumer, parser, argv)
    if args.regrade is not None:
        from agent_eval.cli import regrade

        return regrade.regrade_command(args.regrade, args)
    mode = getattr(consumer, "run", None)
    if mode is not None:
        code = mode(args)
        if code is not None:
            return code
    prepare_process()
    refuse_credentials([name, *argv], args.allow_credential_shape)
    facts: dict[str, object] = {}
    shard = None if args.shard is None else parse_shard(args.shard, os.environ)
    executor = None if args.executor is None else make_executor(args.executor)
    planned = consumer.plan(args)
    if not planned.planned:
        raise InvalidInput.one(f"run.py {name}", "no case was chosen", f"run.py {name} --help says how")
    if shard is not None:
        facts = {"shard": shard.to_json(), "chosen": shard_of(planned, shard)}
    if args.dry_run:
        print_plan(name, planned, args, facts)
        return ExitCode.PASSED
    options = RunOptions((name, *argv), **common_options(name, args), plan_facts=facts, executor=executor)
    try:
        return run_and_print(consumer, planned, options, args)
    finally:
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)


def parse(consumer: object, parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """A consumer's command line as options."""
    parser.description = consumer.summary
    add_run_options(parser)
    consumer.add_arguments(parser)
    return parser.parse_args(argv)


def common_options(name: str, args: argparse.Namespace) -> dict[str, object]:
    """How to run, as far as every consumer's command line says it."""
    return {
        "output": args.output,
        "jobs": args.jobs,
        "max_fail": args.max_fail,
        "sync": args.sync == "trial",
        "consumer_folder": consumers.folder_of(name),
    }


def run_and_print(consumer: object, planned: PlannedRun, options: RunOptions, args: argparse.Namespace) -> int:
    """Run the trials, show progress, print the result; returns the exit code."""
    for note in planned.notes:
        print(escape(note), file=sys.stderr)
    chosen = (options.plan_facts or {}).get("chosen")
    display = Display(args, planned.planned if chosen is None else sum(map(len, chosen.values())))
    result = run_trials(consumer, planned, options, display, Tally)
    display.close()
    return finish(result, args)


def make_executor(text: str) -> object:
    """The executor that ``MODULE:FACTORY`` makes. Raises ``InvalidInput`` when it makes none."""
    import concurrent.futures
    import importlib

    module, _, factory = text.partition(":")
    where = "--executor"
    try:
        made = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput.one(where, f"{text}: {error}", "give MODULE:FACTORY of a callable that returns an Executor") from None
    if not isinstance(made, concurrent.futures.Executor):
        raise InvalidInput.one(where, f"{text} made a {type(made).__name__}, not a concurrent.futures.Executor")
    return made


def refuse_credentials(argv: list[str], allowed: list[str]) -> None:
    """Refuse a command line that carries something shaped like a credential: it would be kept in the plan."""
    problems = []
    for index, argument in enumerate(argv):
        place = f"argv[{index}]"
        for sighting in credentials.find(argument) if place not in allowed else ():
            problems.append(
                Problem(place, f"shaped like a credential ({sighting.pattern})", f"pass it by an environment name, or add --allow-credential-shape '{place}'")
            )
    if problems:
        raise InvalidInput(problems)


def print_plan(name: str, planned: PlannedRun, args: argparse.Namespace, facts: dict[str, object]) -> None:
    """What a run would do."""
    for note in planned.notes:
        print(escape(note))
    limits = planned.limits
    print(f"{name}: {count(len(planned.cases), 'case')} x {count(planned.trials, 'trial')} = {planned.planned} planned, {args.jobs} at once")
    print(f"limits: timeout {limits.timeout_s:g} s, output {limits.max_output_bytes} bytes, grace {limits.grace_s:g} s")
    if "shard" in facts:
        shard, mine = facts["shard"], sum(map(len, facts["chosen"].values()))
        print(f"shard {shard['index']} of {shard['count']}: {count(mine, 'trial')} of these")
    for case in planned.cases:
        print(f"  {case.id}: {escape(case.scope)}")
    print("dry run: nothing was run and nothing was written")


class Display:
    """Shows a run's progress on stderr."""

    def __init__(self, args: argparse.Namespace, planned: int) -> None:
        self._progress = Progress(sys.stderr, planned, args.color, args.quiet)
        live = not args.quiet and sys.stderr.isatty()
        self.tick: Callable[[], None] | None = self._progress.tick if live else None

    def begun(self, path: str, plan: dict) -> None:
        """The plan is on disk."""

    def started(self, case_id: str, number: int) -> None:
        """A trial starts."""
        self._progress.started(case_id, number)

    def finished(self, trial: FinishedTrial) -> None:
        """A trial is recorded."""
        judgment = trial.judgment
        reasons = judgment.reasons if judgment.cause is None else tuple(dict.fromkeys((judgment.cause, *judgment.reasons)))
        wall_s = None if trial.outcome is None else trial.outcome.wall_s
        if trial.kept_scratch is not None:
            print(f"{trial.case_id}/{trial.number:03d}: kept {trial.kept_scratch}", file=sys.stderr)
        self._progress.finished(trial.case_id, trial.number, judgment.verdict.value, reasons, wall_s)

    def close(self) -> None:
        """Take the live line away."""
        self._progress.close()


def finish(result: RunResult, args: argparse.Namespace) -> int:
    """Print the results of a run; returns its exit code."""
    summary = result.summary
    code = ExitCode(summary["exit_code"])
    interrupted = summary["interrupted_by_signal"] is not None
    for fault in result.faults:
        print(f"error: {escape(str(fault))}", file=sys.stderr)
    if result.seal is None and not interrupted:
        code = ExitCode.EVIDENCE
    if args.json:
        print(json.dumps({**summary, "exit_code": int(code), "path": result.path, "seal": result.seal}, sort_keys=True))
        return code
    rows = (TrialRow(case_id, 0, "", (), case["wall_s"]) for case_id, case in summary["cases"].items())
    print(summary_table(result.plan, summary, rows))
    print()
    print(closing_lines(summary["verdict"], result.path, result.seal, code))
    return code
