"""Argument parsing in this project's terms: one error line, units, ranges.

Owns the parser class and the options that every run shares. A consumer adds its own.
"""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from agent_eval.records.problems import InvalidInput

_BYTES = re.compile(r"([0-9]{1,12})\s*(B|KiB|MiB)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kib": 1024, "mib": 1024 * 1024}


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are this project's typed error."""

    def error(self, message: str) -> NoReturn:
        """Raise ``InvalidInput`` instead of printing usage and exiting."""
        raise InvalidInput.one(self.prog, message, f"see {self.prog} --help")


def byte_count(text: str) -> int:
    """``8388608``, ``8MiB`` or ``512KiB`` as bytes."""
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes (such as 65536, 512KiB or 8MiB)")
    return int(match.group(1)) * _UNITS[(match.group(2) or "").lower()]


def seconds(text: str) -> float:
    """A finite number of seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if value - value != 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number of seconds")
    return value


def job_count(text: str) -> int:
    """A number of jobs from 1 to 256, or ``auto`` for one per processor that this process may use."""
    if text == "auto":
        import os

        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 to 256 or auto")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that makes an evidence directory."""
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="NEW", help="new evidence directory (default: under target/agent-evals)")
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress")
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options of every consumer that runs trials."""
    add_output_options(parser)
    group = parser.add_argument_group("trials")
    group.add_argument("--trials", type=int, metavar="N", help="trials of each case, 1 to 20 (default: 1)")
    group.add_argument("--timeout", type=seconds, metavar="S", help="wall seconds for one trial")
    group.add_argument("--max-output-bytes", type=byte_count, metavar="N", help="cap on output and report together, 1KiB to 64MiB (default: 8MiB)")
    group.add_argument("--grace", type=seconds, metavar="S", help="seconds between SIGTERM and SIGKILL (default: 1)")
    add_way_options(group)
    group.add_argument("--shard", metavar="K/N", help="do part K of N of the plan; auto or auto/N in a job array")
    group.add_argument("--dry-run", action="store_true", help="validate and print the plan; run and write nothing")
    group.add_argument("--allow-credential-shape", action="append", default=[], metavar="WHERE", help="accept something shaped like a credential at this place")
    group.add_argument("--regrade", metavar="DIR", help="the same as run.py regrade DIR")


def add_way_options(group: argparse._ActionsContainer) -> None:
    """Options of every command that runs trials, about the way and not the plan: a rerun has its own."""
    group.add_argument("-j", "--jobs", type=job_count, default=1, metavar="N", help="trials at once, or auto (default: 1)")
    group.add_argument("--executor", metavar="MODULE:FACTORY", help="run trials through a concurrent.futures.Executor")
    group.add_argument("-x", "--max-fail", type=positive, metavar="N", help="start no trial after N have failed")
    group.add_argument("--sync", choices=("seal", "trial"), default="seal", help="make evidence durable at the seal, or after every trial")
    group.add_argument("--junit", metavar="FILE", help="also write JUnit XML, a testcase for each planned trial")
    group.add_argument("--markdown", metavar="FILE", help="also write a summary for the page of a CI job")


def ways_given(args: argparse.Namespace) -> dict[str, str]:
    """The options of :func:`add_way_options` that differ from their defaults, as they are written."""
    given = {
        "--jobs": None if args.jobs == 1 else args.jobs,
        "--executor": args.executor,
        "--max-fail": args.max_fail,
        "--sync": None if args.sync == "seal" else args.sync,
        "--junit": args.junit,
        "--markdown": args.markdown,
    }
    return {name: f"{name} {value}" for name, value in given.items() if value is not None}
