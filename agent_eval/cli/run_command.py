"""The command of a consumer: its options, what its command line may not hold, and what it would do.

Owns what every consumer's command does the same way before a trial runs. It knows no consumer, and it
imports what runs trials only when there is something to run: ``--help`` stays fast.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from agent_eval.cli import consumers
from agent_eval.cli.parsing import add_run_options
from agent_eval.cli.streams import require_printed
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput, Problem

if TYPE_CHECKING:
    from agent_eval.records.plan import PlannedRun
    from agent_eval.trials.consumer import Consumer


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
            require_printed()
            return code
    from agent_eval.supervise.process import prepare_process

    prepare_process()
    refuse_credentials([name, *argv], args.allow_credential_shape)
    check_formats(args)
    from agent_eval.cli.run_display import run_and_print
    from agent_eval.trials.run import RunOptions
    from agent_eval.trials.selection import parse_shard, shard_of

    if args.executor is not None:
        from agent_eval.cli import engine
    facts: dict[str, Any] = {}
    shard = None if args.shard is None else parse_shard(args.shard, os.environ)
    planned = consumer.plan(args)
    if not planned.planned:
        raise InvalidInput.one(f"run.py {name}", "no case was chosen", f"run.py {name} --help says how")
    if shard is not None:
        facts = {"shard": shard.to_json(), "chosen": shard_of(planned, shard)}
    if args.dry_run:
        if args.executor is not None:
            engine.find_factory(args.executor)
        print_plan(name, planned, args, facts)
        require_printed()
        return ExitCode.PASSED
    options = RunOptions((name, *argv), **common_options(name, args), plan_facts=facts)
    if args.executor is None:
        return run_and_print(consumer, planned, options, args)
    # After the plan, which may start processes: none is forked once an engine has threads.
    return engine.run_through(args.executor, consumer, planned, options, args)


def parse(consumer: Consumer, parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """A consumer's command line as options."""
    parser.description = consumer.summary
    add_run_options(parser)
    consumer.add_arguments(parser)
    return parser.parse_args(argv)


def check_formats(args: argparse.Namespace) -> None:
    """Refuse CI formats that could not be written after the run."""
    if args.junit or args.markdown:
        from agent_eval.cli.report import check_before_run

        check_before_run(args.junit, args.markdown)


def common_options(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """How to run, as far as every command line says it that runs trials."""
    return {
        "output": args.output,
        "jobs": args.jobs,
        "max_fail": args.max_fail,
        "sync": args.sync == "trial",
        "consumer_folder": consumers.folder_of(name),
    }


def refuse_credentials(argv: list[str], allowed: list[str]) -> None:
    """Refuse a command line that carries something shaped like a credential: it would be kept in the plan."""
    from agent_eval.records import credentials

    problems = []
    for index, argument in enumerate(argv):
        place = f"argv[{index}]"
        for sighting in credentials.find(argument) if place not in allowed else ():
            problems.append(
                Problem(place, f"shaped like a credential ({sighting.pattern})", f"pass it by an environment name, or add --allow-credential-shape '{place}'")
            )
    if problems:
        raise InvalidInput(problems)


def print_plan(name: str, planned: PlannedRun, args: argparse.Namespace, facts: dict[str, Any]) -> None:
    """What a run would do."""
    from agent_eval.report.visible_text import count, escape

    for note in planned.notes:
        print(escape(note))
    limits = planned.limits
    print(f"{name}: {count(len(planned.cases), 'case')} x {count(planned.trials, 'trial')} = {planned.planned} planned, {args.jobs} at once")
    print(f"limits: timeout {limits.timeout_s:g} s, output {limits.max_output_bytes} bytes, grace {limits.grace_s:g} s")
    if "shard" in facts:
        shard, mine = facts["shard"], sum(len(numbers) for numbers in facts["chosen"].values())
        print(f"shard {shard['index']} of {shard['count']}: {count(mine, 'trial')} of these")
    for case in planned.cases:
        print(f"  {case.id}: {escape(case.scope)}")
    print("dry run: nothing was run and nothing was written")
