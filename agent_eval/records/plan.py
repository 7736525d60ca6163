"""The plan: what a run set out to do, fixed before anything runs.

Owns the limits with their ranges, the shape of ``plan.json`` and ``plan_sha256``.
It does not read case files and starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import Problem

if TYPE_CHECKING:
    import argparse

KIB = 1024
MIB = 1024 * 1024

MIN_TIMEOUT_S = 0.01
MAX_CHECKER_TIMEOUT_S = 600.0
DEFAULT_CHECKER_TIMEOUT_S = 180.0
MAX_AGENT_TIMEOUT_S = 86_400.0
DEFAULT_AGENT_TIMEOUT_S = 600.0
MIN_OUTPUT_BYTES = KIB
MAX_OUTPUT_BYTES = 64 * MIB
DEFAULT_OUTPUT_BYTES = 8 * MIB
MAX_TRIALS = 20
MAX_GRACE_S = 60.0
DEFAULT_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one supervised command may use.

    ``timeout_s`` is wall time; ``max_output_bytes`` caps stdout, stderr and report together;
    ``grace_s`` is the time between SIGTERM and SIGKILL.
    """

    timeout_s: float = DEFAULT_CHECKER_TIMEOUT_S
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES
    grace_s: float = DEFAULT_GRACE_S

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values."""
        return {"timeout_s": self.timeout_s, "max_output_bytes": self.max_output_bytes, "grace_s": self.grace_s}


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case of a plan. ``data`` becomes ``cases/<id>.json`` byte for byte.

    ``critical`` marks a case whose regression forbids calling a candidate improved. ``commands_s`` is how long the commands
    of one trial may take together, graces included; ``None``: one command of the run's limits. ``files_bytes`` is how much
    a trial may keep besides captured output and report. Both are for whoever waits for a worker and no part of the plan.
    """

    id: str
    data: bytes
    scope: str = ""
    not_scored: tuple[str, ...] = ()
    critical: bool = False
    commands_s: float | None = None
    files_bytes: int = 0

    def to_json(self) -> dict[str, object]:
        """The case's line in ``plan.json``."""
        return {
            "id": self.id,
            "sha256": sha256_bytes(self.data),
            "scope": self.scope,
            "not_scored": list(self.not_scored),
            "critical": self.critical,
        }


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """Everything that a consumer fixes before the first trial.

    ``subject`` and ``selection`` are plain JSON: what is judged (with digests) and how it was chosen.
    ``notes`` are lines for the person who started the run. ``private`` is for the consumer's own use
    during the run and is never written down.
    """

    cases: tuple[PlannedCase, ...]
    trials: int
    limits: Limits
    task_seed: int | None = None
    subject: dict[str, object] | None = None
    selection: dict[str, object] | None = None
    notes: tuple[str, ...] = ()
    private: object = None

    @property
    def planned(self) -> int:
        """How many trials the run sets out to do. It never shrinks."""
        return len(self.cases) * self.trials


def limit_problems(limits: Limits, trials: int, max_timeout_s: float, where: dict[str, str] | None = None) -> list[Problem]:
    """Every limit that is out of range, naming the range. ``where`` renames the places, for limits that a file gives."""
    names = {"timeout_s": "--timeout", "max_output_bytes": "--max-output-bytes", "grace_s": "--grace", "trials": "--trials"}
    names.update(where or {})
    problems = []
    if not MIN_TIMEOUT_S <= limits.timeout_s <= max_timeout_s:
        problems.append(Problem(names["timeout_s"], f"{limits.timeout_s:g} s is out of range", f"give {MIN_TIMEOUT_S:g} to {max_timeout_s:g} seconds"))
    if not MIN_OUTPUT_BYTES <= limits.max_output_bytes <= MAX_OUTPUT_BYTES:
        problems.append(
            Problem(names["max_output_bytes"], f"{limits.max_output_bytes} bytes is out of range", "give 1KiB to 64MiB")
        )
    if not 0 <= limits.grace_s <= MAX_GRACE_S:
        problems.append(Problem(names["grace_s"], f"{limits.grace_s:g} s is out of range", f"give 0 to {MAX_GRACE_S:g} seconds"))
    if not 1 <= trials <= MAX_TRIALS:
        problems.append(Problem(names["trials"], f"{trials} is out of range", f"give 1 to {MAX_TRIALS}"))
    return problems


def plan_sha256(plan: dict) -> str:
    """Digest of what decides whether two runs did the same work.

    Covers cases, trials, seed, limits, subject and the evaluator's version and source; never run id,
    times, argv or paths of the output. Python version and platform are recorded beside it: they
    differ between the machines of one sharded run.
    """
    evaluator = plan["evaluator"]
    frozen = {
        "consumer": plan["consumer"],
        "cases": plan["cases"],
        "trials": plan["trials"],
        "task_seed": plan["task_seed"],
        "limits": plan["limits"],
        "subject": plan["subject"],
        "evaluator": {"version": evaluator["version"], "source_sha256": evaluator["source_sha256"]},
    }
    return sha256_bytes(strict_json.canonical(frozen))


def planned_numbers(plan: dict, case_id: str) -> range | list[int]:
    """The numbers of a case's trials that a directory's plan set out to do: all, or those of a shard or rerun."""
    chosen = plan.get("chosen")
    return range(1, plan["trials"] + 1) if chosen is None else chosen.get(case_id, [])


def part_facts(plan: dict) -> dict[str, object]:
    """The keys of a plan that make a directory a part of it; for a second look at that directory, which is of the same part."""
    return {key: plan[key] for key in ("chosen", "shard") if key in plan}


def limits_from(args: argparse.Namespace, default_timeout_s: float, max_timeout_s: float) -> tuple[Limits, int, list[Problem]]:
    """Limits and number of trials from a command line's ``timeout``, ``max_output_bytes``, ``grace`` and ``trials``.

    ``None`` stands for the default. Returns also every problem, naming the range.
    """
    limits = Limits(
        default_timeout_s if args.timeout is None else args.timeout,
        DEFAULT_OUTPUT_BYTES if args.max_output_bytes is None else args.max_output_bytes,
        DEFAULT_GRACE_S if args.grace is None else args.grace,
    )
    trials = 1 if args.trials is None else args.trials
    return limits, trials, limit_problems(limits, trials, max_timeout_s)
