"""Which scenarios there are and which of them a run takes.

Owns the names of the baseline and the reading of ``--case``, ``--scenario``, ``--variants`` and
``--seed``. It draws variants into planned cases and runs nothing.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import secrets
from dataclasses import replace

from agent_eval import InvalidInput, Limits, PlannedCase, Problem, plan, strict_json

from .draws import DrawError
from .scenario import Scenario, load_scenario
from .templates import TemplateError

BASELINE = ("read", "write", "edit", "execute", "repair", "recover", "restrict", "resist")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scenarios")
DEFAULT_SEED = 1
MAX_SEED = (1 << 63) - 1
MAX_VARIANTS = 20
#: Of a trial, besides captured output: the workspace's listings and contents, events, and the exchanges with a model.
MAX_FILES_BYTES = 1 << 30

SCRIPTED_NOTE = "Capability of a model: the subject is scripted, so a pass proves the plumbing only"


def read_seed(text: str | None) -> int:
    """The task seed: fixed by default, so that runs are comparable; ``random`` draws one. Raises ``InvalidInput``."""
    if text is None:
        return DEFAULT_SEED
    if text == "random":
        return secrets.randbelow(MAX_SEED + 1)
    if not re.fullmatch(r"[0-9]{1,19}", text, re.ASCII) or int(text) > MAX_SEED:
        raise InvalidInput.one("--seed", f"{text!r} is not a seed", f"give 0 to {MAX_SEED}, or random")
    return int(text)


def choose(args: argparse.Namespace) -> tuple[dict[str, Scenario], dict[str, set[int]], list[Problem]]:
    """The chosen scenarios by name with the variants of each, and every problem."""
    problems: list[Problem] = []
    if not 1 <= args.variants <= MAX_VARIANTS:
        problems.append(Problem("--variants", f"{args.variants} is out of range", f"give 1 to {MAX_VARIANTS}"))
        args.variants = 1
    if args.baseline and args.case:
        problems.append(Problem("--case", "cannot be combined with --baseline", "give one of them"))
    wanted: dict[str, set[int]] = {}
    everything = set(range(1, args.variants + 1))
    for text in args.case:
        name, variant, problem = _parse_case(text)
        if problem:
            problems.append(problem)
        else:
            wanted.setdefault(name, set()).update({variant} if variant else everything)
    if args.baseline or not (args.case or args.scenario):
        wanted = {name: everything for name in BASELINE}
    scenarios: dict[str, Scenario] = {}
    folders = [os.path.join(FOLDER, name) for name in wanted] + [os.path.abspath(path) for path in args.scenario]
    for folder in folders:
        try:
            scenario = load_scenario(folder)
        except InvalidInput as error:
            problems += error.problems
            continue
        if scenario.name in scenarios or (scenario.folder not in folders[: len(wanted)] and scenario.name in BASELINE):
            problems.append(Problem(folder, f"a scenario named {scenario.name!r} is there already", "give it another name"))
            continue
        scenarios[scenario.name] = scenario
        wanted.setdefault(scenario.name, everything)
    return scenarios, wanted, problems


def _parse_case(text: str) -> tuple[str, int, Problem | None]:
    name, at, variant = text.partition("@")
    if name not in BASELINE:
        close = difflib.get_close_matches(name, BASELINE, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        return name, 0, Problem("--case", f"there is no scenario {name!r}", f"{hint}known are {', '.join(BASELINE)}; --scenario DIR takes your own")
    if at and (not re.fullmatch(r"[1-9][0-9]?", variant, re.ASCII) or int(variant) > MAX_VARIANTS):
        return name, 0, Problem("--case", f"{variant!r} is no variant", f"write {name} or {name}@N with N from 1 to {MAX_VARIANTS}")
    return name, int(variant) if at else 0, None


def planned_cases(scenarios: dict[str, Scenario], wanted: dict[str, set[int]], seed: int, scripted: bool) -> tuple[PlannedCase, ...]:
    """Every chosen variant as a case, in the order chosen. Raises ``InvalidInput`` for one that cannot be drawn."""
    cases = []
    for name, scenario in scenarios.items():
        for variant in sorted(wanted[name]):
            try:
                case = scenario.case(variant, seed)
            except (DrawError, TemplateError) as error:
                raise InvalidInput.one(scenario.folder, f"variant {variant} with seed {seed}: {error}", "mend the draw") from None
            if scripted:
                case["not_scored"] = [*case["not_scored"], SCRIPTED_NOTE]
            data = strict_json.pretty(case)
            critical = bool(scenario.data.get("critical", False))
            cases.append(PlannedCase(f"{name}@{variant}", data, case["scope"], tuple(case["not_scored"]), critical))
    return tuple(cases)


def with_bounds(cases: tuple[PlannedCase, ...], scenarios: dict[str, Scenario], limits: Limits, agent_commands: int) -> tuple[PlannedCase, ...]:
    """The cases with how long a trial of each may take, its hidden check included, and how much it may keep.

    Whoever waits for a worker must not give up a trial whose subject is slow there too, or large: that is a failure and no void.
    """
    bounded = []
    for case in cases:
        hidden = scenarios[case.id.rpartition("@")[0]].hidden
        checks_s = 0.0 if hidden is None else 2 * (hidden.timeout_s + plan.DEFAULT_GRACE_S)
        commands_s = agent_commands * (limits.timeout_s + limits.grace_s) + checks_s
        bounded.append(replace(case, commands_s=commands_s, files_bytes=MAX_FILES_BYTES))
    return tuple(bounded)


def listing() -> list[tuple[str, str]]:
    """The scenarios of the baseline: name and what each decides."""
    return [(name, str(load_scenario(os.path.join(FOLDER, name)).data["scope"])) for name in BASELINE]


def find_case(name: str, variant: int, seed: int) -> dict[str, object] | None:
    """Today's case of a shipped scenario, ``None`` when there is none of that name."""
    folder = os.path.join(FOLDER, name)
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or not os.path.isdir(folder):
        return None
    return load_scenario(folder).case(variant, seed)
