"""The configuration of a guardrail lineage, checked whole before anything is made.

Owns format ``agent-eval/guardrail-lineage/1``: target and judge commands with their files and identity, suite,
repeats, limits, budget, rule and coverage. Paths are relative to the configuration file; an argument that is
exactly the name of a declared file becomes its absolute path. Placeholders are complete arguments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_eval.gates import inputs
from agent_eval.gates.guardrail import suite
from agent_eval.gates.live import read_regular
from agent_eval.grade.fields import ANY, BOOLEAN, COUNT, POSITIVE, TEXT, TEXTS, Field, Form, choice, is_number, list_of
from agent_eval.records import credentials
from agent_eval.records.digests import sha256_file
from agent_eval.records.problems import InvalidInput, Problem, raise_if

CONFIG_FORMAT = "agent-eval/guardrail-lineage/1"
_TIMEOUT = Form("a number from 0.01 to 600", lambda value: is_number(value) and 0.01 <= value <= 600)
_OUTPUT = Form("an integer from 1024 to 67108864", lambda value: type(value) is int and 1024 <= value <= 64 << 20)
_GRACE = Form("a number from 0 to 60", lambda value: is_number(value) and 0 <= value <= 60)
_REPEATS = Form("an integer from 1 to 20", lambda value: type(value) is int and 1 <= value <= 20)
_FLOOR = Form("a number above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1)
_VALIDATION = Form("an object or null", lambda value: value is None or isinstance(value, dict))
_ENVIRONMENT = Form(
    "an object of strings",
    lambda value: isinstance(value, dict) and all(isinstance(item, str) and "\0" not in item for item in value.values()),
)
_CONFIG = {
    "format": Field(choice(CONFIG_FORMAT), "names this format", required=True),
    "name": Field(inputs.NAME, "names the lineage", required=True),
    "policy": Field(TEXT, "is the live policy file", required=True),
    "policy_interface": Field(TEXT, "says where the target puts the policy text", required=True),
    "target": Field(inputs.OBJECT, "is the command that answers", required=True),
    "judge": Field(inputs.OBJECT, "is the command that judges", required=True),
    "suite": Field(TEXT, "is the file of cases", required=True),
    "repeats": Field(_REPEATS, "counts runs of a case in an arm", required=True),
    "limits": Field(inputs.OBJECT, "bounds each command", default={}),
    "environment": Field(_ENVIRONMENT, "is set for both commands and frozen", default={}),
    "pass_environment": Field(list_of(TEXT, empty=True), "names variables that are passed and not frozen (keys)", default=[]),
    "budget": Field(inputs.OBJECT, "bounds the lineage", required=True),
    "rule": Field(inputs.OBJECT, "states what a candidate must reach", required=True),
    "coverage": Field(inputs.OBJECT, "states what the suite exercises", required=True),
    "cannot_exercise": Field(TEXTS, "states what the suite cannot exercise", required=True),
}
_COMMAND = {
    "command": Field(TEXTS, "is the argument vector", required=True),
    "files": Field(list_of(TEXT, empty=True), "lists the files it is made of", default=[]),
    "identity": Field(inputs.NON_EMPTY_OBJECT, "states model, endpoint, decoding, prompt and parser version", required=True),
}
_TARGET = {**_COMMAND, "stub": Field(BOOLEAN, "says that it is no model", default=False)}
_JUDGE = {**_COMMAND, "validation": Field(_VALIDATION, "states its measured TPR and TNR", default=None)}
_LIMITS = {
    "timeout_s": Field(_TIMEOUT, "bounds the wall time of one command", default=180.0),
    "max_output_bytes": Field(_OUTPUT, "caps stdout, stderr and report together", default=8 << 20),
    "grace_s": Field(_GRACE, "lies between SIGTERM and SIGKILL", default=1.0),
}
_BUDGET = {"candidates": Field(POSITIVE, "bounds the candidates that are run", required=True)}
_RULE = {
    "acceptance": Field(choice("strict", "established"), "is what an accept needs", default="strict"),
    "alpha": Field(inputs.LEVEL, "is the error spent over all looks", default=0.05),
    "benign_floor": Field(_FLOOR, "is the absolute least benign pass rate", required=True),
    "floor_margin": Field(inputs.RATE, "is how far the 95 % lower bound may lie below the floor", required=True),
    "loss_margin": Field(inputs.RATE, "bounds the 95 % upper bound of benign losses", required=True),
    "refusal_cap": Field(inputs.RATE, "bounds the refusal rate on benign cases", required=True),
    "min_benign": Field(POSITIVE, "is the fewest benign cases", required=True),
    "max_unparsed": Field(COUNT, "bounds cells without a verdict in an arm", default=0),
    "max_unstable": Field(COUNT, "bounds cases whose repeats disagree in an arm", default=0),
    "critical_families": Field(list_of(inputs.NAME, empty=True), "vetoes any broken case of these families", default=[]),
}
_COVERAGE = {
    "turns": Field(choice("single", "multi"), "says how long a conversation is", required=True),
    "tools": Field(BOOLEAN, "says whether tools are exercised", required=True),
    "files": Field(BOOLEAN, "says whether files are exercised", required=True),
    "multi_step": Field(BOOLEAN, "says whether multi-step behaviour is exercised", required=True),
    "production_side_effects": Field(BOOLEAN, "says whether real side effects are exercised", required=True),
    "languages": Field(TEXTS, "lists the languages", required=True),
    "families": Field(list_of(inputs.NAME, empty=True), "lists the attack families that matter", default=[]),
    "note": Field(ANY, "is free", default=""),
}
_PARTS = {"target": _TARGET, "judge": _JUDGE, "limits": _LIMITS, "budget": _BUDGET, "rule": _RULE, "coverage": _COVERAGE}
PLACEHOLDERS = {"target": ("{policy}", "{case}"), "judge": ("{case}", "{response}", "{report}")}
_OPTIONAL = {"target": ("{response}",), "judge": ()}


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration that holds, with defaults filled in. ``programs`` are the resolved executables."""

    config: dict
    policy: str
    cases: tuple[suite.Case, ...]
    frozen_paths: dict[str, str]
    programs: dict[str, dict[str, str]]


def read(path: str) -> Setup:
    """Read and check the configuration at ``path``. Raises InvalidInput with every problem."""
    raw = inputs.read_object(path)
    problems = inputs.object_problems(raw, path, _CONFIG)
    for name, fields in _PARTS.items():
        if isinstance(raw.get(name), dict):
            problems += inputs.object_problems(raw[name], f"{path}/{name}", fields)
    raise_if(problems)
    config = inputs.filled(raw, _CONFIG)
    for name, fields in _PARTS.items():
        config[name] = inputs.filled(config[name], fields)
    config["judge"].setdefault("validation", None)
    frozen = {"config": os.path.abspath(path), "suite": inputs.beside(path, config["suite"])}
    programs: dict[str, dict[str, str]] = {}
    for role in ("target", "judge"):
        problems += _command_problems(config[role]["command"], role, f"{path}/{role}/command")
        for item in config[role]["files"]:
            frozen[f"{role}:{item}"] = inputs.beside(path, item)
        problems += _undeclared(config[role], role, path)
        problems += _program(config[role], role, path, programs)
    problems += _credential_problems(raw, path)
    cases: tuple[suite.Case, ...] = ()
    for name, place in frozen.items():
        try:
            data = read_regular(place).data
            if name == "suite":
                cases = suite.read(data, place)
        except InvalidInput as error:
            problems += error.problems
    policy = inputs.beside(path, config["policy"])
    try:
        read_regular(policy)
    except InvalidInput as error:
        problems += [Problem(f"{path}/policy", str(problem)) for problem in error.problems]
    problems += _suite_problems(config, cases, path)
    raise_if(problems)
    return Setup(config, policy, cases, frozen, programs)


def _command_problems(command: Sequence[str], role: str, where: str) -> list[Problem]:
    problems = []
    allowed = {*PLACEHOLDERS[role], *_OPTIONAL[role]}
    for placeholder in PLACEHOLDERS[role]:
        if command.count(placeholder) != 1:
            problems.append(Problem(where, f"names {placeholder} {command.count(placeholder)} times", "once, as one complete argument"))
    for index, argument in enumerate(command):
        inner = [p for p in ("{policy}", "{case}", "{response}", "{report}") if p in argument]
        if inner and argument not in inner:
            problems.append(Problem(f"{where}/{index}", f"{inner[0]} is a part of an argument", "it must be one complete argument"))
        elif inner and argument not in allowed:
            problems.append(Problem(f"{where}/{index}", f"the {role} must not see {argument}"))
        if "\0" in argument:
            problems.append(Problem(f"{where}/{index}", "holds a NUL"))
    return problems


def resolved(config: Mapping, frozen: Mapping[str, Mapping[str, str]], directory: str) -> dict:
    """The configuration with every argument that names a declared file as that file's absolute path now."""
    base = os.path.realpath(directory)
    return {
        **config,
        **{
            role: {
                **config[role],
                "command": [
                    os.path.normpath(os.path.join(base, frozen[f"{role}:{argument}"]["path"]))
                    if argument in config[role]["files"]
                    else argument
                    for argument in config[role]["command"]
                ],
            }
            for role in ("target", "judge")
        },
    }


def _undeclared(part: Mapping, role: str, path: str) -> list[Problem]:
    """Arguments that are files nobody froze: the program would be another one after a change, and nothing would show."""
    return [
        Problem(f"{path}/{role}/command/{index}", f"{argument} is a file that is not declared", f"add it to {role}.files, so that it is frozen")
        for index, argument in enumerate(part["command"][1:], 1)
        if argument not in part["files"] and "\0" not in argument and os.path.isabs(argument) and os.path.isfile(argument)
    ]


def _program(part: Mapping, role: str, path: str, programs: dict[str, dict[str, str]]) -> list[Problem]:
    import shutil

    name = part["command"][0]
    own = name in part["files"]  # then its bytes are frozen already
    found = shutil.which(inputs.beside(path, name) if own else name) if name else None
    if found is None:
        return [Problem(f"{path}/{role}/command/0", f"{name!r} is not an executable file")]
    if own:
        return []
    real = os.path.realpath(found)
    try:
        programs[role] = {"path": real, "sha256": sha256_file(real)}
    except (OSError, ValueError) as error:
        return [Problem(f"{path}/{role}/command/0", f"cannot be read: {error}")]
    return []


def program_drift(programs: dict[str, dict[str, str]]) -> list[Problem]:
    """Every executable that is not the one that was frozen."""
    problems = []
    for role, item in sorted(programs.items()):
        try:
            same = sha256_file(item["path"]) == item["sha256"]
        except (OSError, ValueError):
            same = False
        if not same:
            problems.append(Problem(f"program:{role}", f"{item['path']} is missing or changed", "open a new lineage"))
    return problems


def _credential_problems(raw: dict, path: str) -> list[Problem]:
    texts = [(f"{path}/{role}/command/{i}", a) for role in ("target", "judge") for i, a in enumerate(raw[role].get("command", []))]
    texts += [(f"{path}/environment/{name}", value) for name, value in raw.get("environment", {}).items()]
    return [
        Problem(where, f"is shaped like a credential ({credentials.find(text)[0].pattern})", "pass it by name in pass_environment")
        for where, text in texts
        if isinstance(text, str) and credentials.find(text)
    ]


def _suite_problems(config: dict, cases: tuple[suite.Case, ...], path: str) -> list[Problem]:
    if not cases:
        return []
    problems = []
    benign = sum(not case.attack for case in cases)
    if benign < config["rule"]["min_benign"]:
        problems.append(Problem(f"{path}/suite", f"has {benign} benign cases, min_benign is {config['rule']['min_benign']}"))
    families = {case.family for case in cases}
    for name in config["rule"]["critical_families"]:
        if name not in families:
            problems.append(Problem(f"{path}/rule/critical_families", f"no case is of family {name}"))
    for item in config["cannot_exercise"]:
        if not item.strip():
            problems.append(Problem(f"{path}/cannot_exercise", "holds an empty statement"))
    return problems
