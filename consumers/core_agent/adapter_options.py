"""The options of real agents and of the model boundary, and which of them go together.

Owns ``--adapter`` and what only makes sense with it. It looks at no file: that is ``adapter_subject``'s.
"""

from __future__ import annotations

import argparse
import os

from agent_eval import Problem

from .model_boundary.policy import Conduct
from .model_boundary.service import Service

MAX_REQUESTS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of real agents and of the model boundary."""
    group = parser.add_argument_group("real agents (with --adapter)")
    group.add_argument("--adapter", metavar="NAME|FILE", help="the agent is this CLI: a name of 'list adapters', or your own adapter file")
    group.add_argument("--home-file", action="append", default=[], metavar="NAME", help="login file of your HOME to copy into the trial's; the agent can read it")
    group.add_argument("--launcher", metavar="JSON", help="argument list that puts the agent behind a sandbox, '{argv}' in it is the agent's own")
    model = parser.add_argument_group("model boundary (with --adapter; without --model-base-url and --replay a scripted model answers)")
    model.add_argument("--model-base-url", metavar="URL", help="record: forward to this endpoint and keep what goes over the wire")
    model.add_argument("--model-key-env", metavar="NAME", help="variable with the endpoint's key: the boundary adds it, the agent gets a dummy")
    model.add_argument("--replay", metavar="DIR", help="answer from the model record of this evidence directory, without a model")
    model.add_argument("--model", metavar="NAME", help="the model's name")
    model.add_argument("--max-model-requests", type=int, metavar="N", help=f"requests to the model per trial, 1 to {MAX_REQUESTS} (default: the adapter's)")
    model.add_argument("--prices", metavar="FILE", help="JSON: {\"models\": {NAME: {\"input_per_million\": N, \"output_per_million\": N}}}; adds the cost")
    model.add_argument("--policy", choices=[str(word) for word in Conduct], default=str(Conduct.HONEST), help="what the scripted model does (default: honest)")
    model.add_argument("--policy-after", type=int, default=0, metavar="N", help="steps that a policy which breaks off plays before, seconds that processes left behind sleep (default: 0)")


def add_receipt_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the mode that makes a receipt and runs nothing."""
    group = parser.add_argument_group("receipt (runs nothing)")
    group.add_argument("--receipt", metavar="DIR/TRIAL", help="print the self-evaluation receipt of a retained trial, DIR/CASE/NNN")
    group.add_argument("--events", metavar="FILE", help="the same from an agent's events, with --before, --after, and --adapter for its format")
    group.add_argument("--before", metavar="DIR", help="the workspace before")
    group.add_argument("--after", metavar="DIR", help="the workspace after")


def receipt_problems(args: argparse.Namespace) -> list[Problem]:
    """What is wrong with the options of that mode."""
    given = [name for name in ("events", "before", "after") if getattr(args, name)]
    if args.receipt and given:
        return [Problem("--receipt", f"cannot be combined with --{given[0]}", "give one of them")]
    return [Problem(f"--{name}", "is missing", "--events, --before and --after go together") for name in ("events", "before", "after") if given and name not in given]


_ADAPTER_ONLY = {"home_file": "--home-file", "launcher": "--launcher", "model_base_url": "--model-base-url", "model_key_env": "--model-key-env",
                 "replay": "--replay", "model": "--model", "max_model_requests": "--max-model-requests", "prices": "--prices"}


def option_problems(args: argparse.Namespace) -> list[Problem]:
    """Options that do not go together, or are out of range."""
    problems = []
    if args.adapter is None:
        given = [option for name, option in _ADAPTER_ONLY.items() if getattr(args, name)]
        given += ["--policy"] if args.policy != Conduct.HONEST else []
        return [Problem(option, "is for real agents", "add --adapter NAME") for option in given]
    if args.transport == "fixture":
        problems.append(Problem("--adapter", "is not for the fixture transport", "leave out --transport fixture"))
    if args.model_base_url and args.replay:
        problems.append(Problem("--replay", "cannot be combined with --model-base-url", "give one of them"))
    if args.policy != Conduct.HONEST and (args.model_base_url or args.replay):
        problems.append(Problem("--policy", "is for the scripted model", "leave out --model-base-url and --replay"))
    if args.model_base_url:
        try:
            Service.parse(args.model_base_url)
        except ValueError as error:
            problems.append(Problem("--model-base-url", str(error), "for example http://127.0.0.1:8000/v1"))
    if args.model_base_url and not args.model:
        problems.append(Problem("--model", "is needed with --model-base-url", "name the model to ask"))
    if args.model_key_env and not os.environ.get(args.model_key_env):
        problems.append(Problem("--model-key-env", f"{args.model_key_env} is not set", f"set {args.model_key_env}"))
    if args.model_key_env and not args.model_base_url:
        problems.append(Problem("--model-key-env", "is for --model-base-url", "add --model-base-url URL"))
    if args.max_model_requests is not None and not 1 <= args.max_model_requests <= MAX_REQUESTS:
        problems.append(Problem("--max-model-requests", f"{args.max_model_requests} is out of range", f"give 1 to {MAX_REQUESTS}"))
    if args.policy_after < 0:
        problems.append(Problem("--policy-after", f"{args.policy_after} is negative", "give 0 or more"))
    return problems
