"""Trials of an agent binary over the scenarios of ``scenarios/``.

The plug-in itself: options, plan, and where trial, judgment and recheck live.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator

from agent_eval import Command, InvalidInput, Judgment, Outcome, PlannedRun, TrialContext, TrialEvidence, TrialResult, limits_from, plan

from . import adapter_options, catalog, judging, proof, recheck, subject, trial


class CoreAgent:
    """The command ``core-agent``."""

    name = "core-agent"
    summary = "run an agent over the scenarios and judge what it did"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options of the agent and of the tasks."""
        agent = parser.add_argument_group("agent")
        agent.add_argument("--binary", metavar="PROGRAM", help=f"the agent (default: ${subject.BINARY_VARIABLE}, then core-agent or rho-core on PATH)")
        agent.add_argument("--transport", choices=("binary", "fixture"), default="binary", help="how the agent is reached (default: binary)")
        agent.add_argument("--fixture-binary", metavar="PROGRAM", help="with --transport fixture: the program before an agent library")
        agent.add_argument("--pass-env", action="append", default=[], metavar="NAME", help="environment variable to pass on; its value is never written")
        adapter_options.add_arguments(parser)
        adapter_options.add_receipt_arguments(parser)
        tasks = parser.add_argument_group("tasks")
        tasks.add_argument("--baseline", action="store_true", help="all eight scenarios (the default)")
        tasks.add_argument("--case", action="append", default=[], metavar="NAME", help=f"one of {', '.join(catalog.BASELINE)}, or NAME@VARIANT; several times")
        tasks.add_argument("--scenario", action="append", default=[], metavar="DIR", help="a scenario of your own; its solution must pass and doing nothing must fail")
        tasks.add_argument("--variants", type=int, default=1, metavar="V", help="variants of each scenario, 1 to 20 (default: 1)")
        tasks.add_argument("--seed", metavar="N", help=f"what variants are drawn from: a number or random (default: {catalog.DEFAULT_SEED})")

    def run(self, args: argparse.Namespace) -> int | None:
        """``--receipt``: print one (or write it to the new file ``--output``), and run nothing."""
        problems = adapter_options.receipt_problems(args)
        if problems:
            raise InvalidInput(problems)
        if not args.receipt and not args.events:
            return None
        from . import receipts

        if args.receipt:
            data = receipts.from_trial(args.receipt)
        else:
            data = receipts.from_files(args.events, args.before, args.after, args.adapter)
        if args.output is None:
            print(data.decode("ascii"), end="")
            return 0
        try:
            with open(args.output, "xb") as file:
                file.write(data)
        except OSError as error:
            raise InvalidInput.one("--output", f"{args.output}: {error.strerror}", "give a new file") from None
        return 0

    def plan(self, args: argparse.Namespace) -> PlannedRun:
        """Validate everything, ask the agent for its contract, prove own scenarios, draw the variants."""
        limits, trials, problems = limits_from(args, plan.DEFAULT_AGENT_TIMEOUT_S, plan.MAX_AGENT_TIMEOUT_S)
        problems += subject.transport_problems(args) + adapter_options.option_problems(args)
        seed = catalog.DEFAULT_SEED
        try:
            seed = catalog.read_seed(args.seed)
        except InvalidInput as error:
            problems += error.problems
        scenarios, wanted, found = catalog.choose(args)
        problems += found
        if problems:
            raise InvalidInput(problems)
        source = None
        if args.adapter is not None:
            # Real agents bring a server and its client along: imported for them alone.
            from . import adapter_subject

            solutions = {name: scenario.data["solution"] for name, scenario in scenarios.items()}
            agent = adapter_subject.find_subject(args, limits, solutions, os.environ)
            source = agent.source
        else:
            agent = subject.find_subject(args, os.environ)
        own = [scenario for scenario in scenarios.values() if not scenario.folder.startswith(catalog.FOLDER + os.sep)]
        proof.prove(own)
        pass_names = tuple(dict.fromkeys(args.pass_env))
        material = trial.RunMaterial(
            transport=agent.transport,
            hidden={name: scenario.hidden for name, scenario in scenarios.items() if scenario.hidden is not None},
            limits=limits,
            task_seed=seed,
            pass_names=pass_names,
            identity_files=agent.identity_files,
            replayed={} if source is None else source.drawings(),
        )
        cases = catalog.planned_cases(scenarios, wanted, seed, agent.scripted)
        if source is not None and (problems := source.case_problems(cases)):
            raise InvalidInput(problems)
        # With an adapter a control trial may follow, and each has the adapter's commands before it.
        agent_commands = 1 if args.adapter is None else 2 * (1 + len(agent.adapter.execution.pre))
        cases = catalog.with_bounds(cases, scenarios, limits, agent_commands)
        notes = (*agent.notes(pass_names, os.environ), *(f"scenario {scenario.name}: its solution passes, doing nothing fails" for scenario in own))
        if args.seed == "random":
            notes += (f"task seed: {seed}",)
        return PlannedRun(
            cases=cases,
            trials=trials,
            limits=limits,
            task_seed=seed,
            subject=agent.to_json(pass_names),
            selection={"program": agent.program, "selected_by": agent.selected_by},
            notes=notes,
            private=material,
        )

    def list_items(self, kind: str) -> list[tuple[str, str]]:
        """For ``list cases`` and ``list adapters``: names, each with one line."""
        if kind == "adapters":
            from .adapter import load

            return [(row["name"], row["line"]) for row in load.listing()]
        return catalog.listing()

    def run_trial(self, trial_context: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """One trial of the agent."""
        return trial.run_trial(trial_context, trial_context.planned.private)

    def finish(self, planned: PlannedRun) -> None:
        """The run is over: what a transport keeps for all trials ends."""
        material = planned.private
        if isinstance(material, trial.RunMaterial):
            material.transport.close()

    def summary_facts(self, planned: PlannedRun) -> dict[str, object]:
        """Sums over the trials of this run that a transport keeps: requests, tokens, cost."""
        material = planned.private
        return material.transport.totals() if isinstance(material, trial.RunMaterial) else {}

    def judge(self, evidence: TrialEvidence, criteria: str) -> Judgment:
        """The verdict, from retained evidence alone."""
        return judging.judge(evidence, criteria, catalog.find_case)

    def recheck_trial(self, evidence: TrialEvidence, context: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """Today's hidden checkers on a retained after-state."""
        return recheck.recheck_trial(evidence, context, catalog.FOLDER)


CONSUMER = CoreAgent()
