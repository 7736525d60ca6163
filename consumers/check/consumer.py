"""Run a domain owner's checker from a JSON case and keep what its judgment rests on.

The smallest consumer, and the model for others: it reads cases, and everything else
is the library's owner check.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import agent_eval  # its names are loaded when they are used: --help needs none of them

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

    from agent_eval import Command, Judgment, Outcome, PlannedRun, TrialContext, TrialEvidence, TrialResult

EXAMPLE = {
    "id": "domain-result",
    "scope": "Say in one sentence what this check decides",
    "command": ["python3", "{case_dir}/verify.py", "{case_dir}/artifacts", "--report", "{report}"],
    "identity_files": ["{case_dir}/verify.py"],
    "not_scored": ["Say what a pass does not mean"],
    "timeout_s": 180,
    "env": [],
    "leaks": "report",
    "required_checks": [],
}


class Check:
    """The command ``check``."""

    name = "check"
    summary = "run a domain owner's checker from a JSON case"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare ``--case`` and ``--init``."""
        parser.add_argument("--case", action="append", default=[], metavar="FILE", help="a case; may be given several times")
        parser.add_argument("--init", metavar="FILE", help="write an example case to start from, and stop")

    def run(self, args: argparse.Namespace) -> int | None:
        """``--init``: write the example; ``None`` otherwise."""
        if args.init is None:
            return None
        if args.case:
            raise agent_eval.InvalidInput.one("--init", "cannot be combined with --case", "write the example first")
        try:
            with open(args.init, "x", encoding="ascii") as stream:
                stream.write(json.dumps(EXAMPLE, indent=1) + "\n")
        except OSError as error:
            raise agent_eval.InvalidInput.one(args.init, f"cannot be written ({error.strerror})", "name a new file") from None
        print(f"{args.init}: an example case; edit it, then: run.py check --case {args.init} --dry-run")
        return 0

    def plan(self, args: argparse.Namespace) -> PlannedRun:
        """Read every case; refuse them all together with every problem."""
        limits, trials, problems = agent_eval.limits_from(args, agent_eval.plan.DEFAULT_CHECKER_TIMEOUT_S, agent_eval.plan.MAX_CHECKER_TIMEOUT_S)
        if not args.case:
            problems.append(agent_eval.Problem("--case", "missing", "give a case file; run.py check --init FILE writes an example"))
        pairs = []
        for path in args.case:
            planned, case, found = agent_eval.owner_check.read_case_file(os.path.abspath(path), tuple(args.allow_credential_shape))
            problems += found
            if planned is not None and case is not None:
                pairs.append((planned, case))
        problems += agent_eval.owner_check.duplicate_ids([planned for planned, _ in pairs])
        if problems:
            raise agent_eval.InvalidInput(problems)
        return agent_eval.owner_check.plan_checks(pairs, trials, limits, args.timeout is not None)

    def run_trial(self, trial: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """The library's owner check."""
        return trial.planned.private.run_trial(trial)

    def judge(self, evidence: TrialEvidence, criteria: str) -> Judgment:
        """The library's verdict on a checker; ``criteria`` makes no difference, the case is the owner's."""
        return agent_eval.owner_check.judge(evidence)


CONSUMER = Check()
