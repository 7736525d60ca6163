"""A scenario folder: reading it, and every problem of it at once.

Owns the format ``core-agent-scenario/1`` (documented in ``scenarios/README.md``) and the drawing of
a variant, which turns a scenario into a case. A case is complete: it is what the evidence
retains and all that judging needs. It holds templates where something is drawn per trial, and
neither the solution nor a hidden checker, because the subject could read it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval import InvalidInput, Problem, digests, read_input, scenario_kinds, strict_json

from .draws import DrawError, derive, draw_group
from .realise import CASE_FORMAT, Trial, is_inside, realise
from .templates import TemplateError, render_value

SCENARIO_FORMAT = "core-agent-scenario/1"
TOOLS = ("read", "list", "search", "write", "edit", "execute")
MAX_TEMPLATE_BYTES = 1 << 20

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_REQUIRED = {"format": str, "name": str, "scope": str, "grants": list, "max_steps": int, "instruction": (str, list), "files": list, "expect": list, "solution": dict}
_OPTIONAL = {"not_scored": list, "critical": bool, "variant": dict, "secrets": dict, "canary": str, "witness": dict, "hidden_check": dict, "programs": list}


@dataclass(frozen=True, slots=True)
class HiddenCheck:
    """A checker that runs on the after-state: its sources, held in memory from the plan on.

    ``probe`` runs what the subject left and prints what it does; it is told ``inputs`` only. ``program`` compares
    that with what it should do; it is told ``spec`` as well and never runs anything of the subject's.
    """

    program: bytes
    probe: bytes | None
    late: Mapping[str, object]
    inputs: Mapping[str, object]
    spec: Mapping[str, object]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that was read and found whole. ``digest`` covers every file of its folder that it uses."""

    name: str
    folder: str
    data: Mapping[str, object]
    hidden: HiddenCheck | None
    digest: str

    def case(self, variant: int, task_seed: int) -> dict[str, object]:
        """Variant ``variant`` (from 1) as a case; the same for the same seed, for good."""
        seed = derive(b"variant", str(task_seed), self.name, str(variant))
        values = {"v": draw_group(self.data.get("variant", {}), "v", seed, {})}
        keep = ("instruction", "files", "expect", "witness", "secrets", "canary", "programs")
        given = {**self.data, "expect": self._expectations()}
        drawn = {key: render_value(given[key], values, only={"v"}) for key in keep if key in given}
        case = {
            "format": CASE_FORMAT,
            "scenario": self.name,
            "variant": variant,
            "scenario_sha256": self.digest,
            "scope": self.data["scope"],
            "not_scored": self.data.get("not_scored", []),
            "grants": self.data["grants"],
            "max_steps": self.data["max_steps"],
            "v": values["v"],
            **drawn,
        }
        if self.hidden is not None:
            case["hidden_check"] = {
                "program_sha256": digests.sha256_bytes(self.hidden.program),
                "probe_sha256": None if self.hidden.probe is None else digests.sha256_bytes(self.hidden.probe),
                "inputs": render_value(self.hidden.inputs, values, only={"v"}),
                "late": render_value(self.hidden.late, values, only={"v"}),
                "spec": render_value(self.hidden.spec, values, only={"v"}),
                "timeout_s": self.hidden.timeout_s,
            }
        return case


    def _expectations(self) -> list[object]:
        """The scenario's own, and those that hold in every scenario unless it says them itself, by id."""
        own = list(self.data["expect"])
        ids = {item.get("id") for item in own if isinstance(item, dict)}
        common = [
            {"id": "grants", "assert": {"kind": "grants_respected"}},
            {"id": "transcript", "assert": {"kind": "transcript_matches_state", **_programs(self.data)}},
        ]
        if "canary" in self.data:
            common.append({"id": "canary", "assert": {"kind": "canary_contained", "canary": self.data["canary"]}})
        return own + [item for item in common if item["id"] not in ids]


def _programs(data: Mapping[str, object]) -> dict[str, object]:
    return {"programs": data["programs"]} if data.get("programs") else {}


def load_scenario(folder: str) -> Scenario:
    """Read ``folder``. Raises ``InvalidInput`` with every problem, each with file and JSON path."""
    path = os.path.join(folder, "scenario.json")
    problems: list[Problem] = []
    parts: dict[str, bytes] = {}
    raw = _read(folder, "scenario.json", parts, problems)
    if raw is None:
        raise InvalidInput(problems)
    try:
        data = strict_json.parse_object(raw)
    except strict_json.JsonError as error:
        raise InvalidInput.one(path, str(error), "mend the JSON") from None
    problems += _shape_problems(data, path)
    if not problems:
        data["instruction"] = _joined(data["instruction"])
        _read_files(folder, data, parts, problems, path)
    hidden = None if problems else _read_hidden(folder, data, parts, problems, path)
    if not problems:
        scenario = Scenario(data["name"], folder, data, hidden, _digest(parts))
        problems += _trial_problems(scenario, path)
    if problems:
        raise InvalidInput(problems)
    return scenario


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "\n".join(text)


def _digest(parts: Mapping[str, bytes]) -> str:
    lines = [f"{digests.sha256_bytes(data)}  {name}\n" for name, data in sorted(parts.items())]
    return digests.sha256_bytes("".join(lines).encode())


def _read(folder: str, name: object, parts: dict[str, bytes], problems: list[Problem]) -> bytes | None:
    where = f"{folder}/{name}"
    if not isinstance(name, str) or not is_inside(name):
        problems.append(Problem(where, "is not a relative path inside the scenario's folder"))
        return None
    try:
        data = read_input(where, max_bytes=MAX_TEMPLATE_BYTES, fix="every scenario has it")
    except InvalidInput as error:
        problems.extend(error.problems)
        return None
    parts[name] = data
    return data


def _shape_problems(data: Mapping[str, object], path: str) -> list[Problem]:
    problems = [Problem(f"{path}#/{key}", "unknown field", f"known are {', '.join({**_REQUIRED, **_OPTIONAL})}") for key in data if key not in _REQUIRED and key not in _OPTIONAL]
    for key, kind in {**_REQUIRED, **_OPTIONAL}.items():
        if key not in data:
            if key in _REQUIRED:
                problems.append(Problem(path, f"needs the field {key!r}"))
        elif not isinstance(data[key], kind) or (kind is int and isinstance(data[key], bool)):
            problems.append(Problem(f"{path}#/{key}", "has the wrong type"))
    if problems:
        return problems
    if data["format"] != SCENARIO_FORMAT:
        problems.append(Problem(f"{path}#/format", f"is {data['format']!r}", f"this version reads {SCENARIO_FORMAT}"))
    if not _NAME.fullmatch(data["name"]):
        problems.append(Problem(f"{path}#/name", "is not a lower-case word of at most 32 letters, digits and '-'"))
    if not data["grants"] or not all(tool in TOOLS for tool in data["grants"]):
        problems.append(Problem(f"{path}#/grants", f"must be some of {', '.join(TOOLS)}"))
    if not 1 <= data["max_steps"] <= 1000:
        problems.append(Problem(f"{path}#/max_steps", "must be 1 to 1000"))
    for key in ("instruction", "not_scored", "programs"):
        if not all(isinstance(line, str) for line in data.get(key, [])):
            problems.append(Problem(f"{path}#/{key}", "must hold texts only"))
    if not any(isinstance(item, dict) and isinstance(item.get("assert"), dict) and item["assert"].get("kind") == "changes_within" for item in data["expect"]):
        problems.append(Problem(f"{path}#/expect", "no expectation of kind changes_within", "say which changes are allowed, if only none"))
    return problems


def _read_files(folder: str, data: dict, parts: dict[str, bytes], problems: list[Problem], path: str) -> None:
    for index, item in enumerate(data["files"]):
        where = f"{path}#/files/{index}"
        if not isinstance(item, dict) or not isinstance(item.get("path"), str):
            problems.append(Problem(where, "a file is an object with a 'path'"))
        elif unknown := set(item) - {"path", "from", "text", "mode", "each"}:
            problems.append(Problem(where, f"unknown field {sorted(unknown)[0]!r}", "known are path, from, text, mode, each"))
        elif ("from" in item) == ("text" in item):
            problems.append(Problem(where, "takes one of 'from' (a template file) and 'text'"))
        elif "mode" in item and not re.fullmatch(r"0[0-7]{3}", str(item["mode"])):
            problems.append(Problem(f"{where}/mode", "is not an octal mode such as 0755"))
        elif "from" in item:
            raw = _read(folder, item.pop("from"), parts, problems)
            if raw is not None:
                try:
                    item["text"] = raw.decode("utf-8")
                except UnicodeDecodeError:
                    problems.append(Problem(where, "the template is not UTF-8"))


def _read_hidden(folder: str, data: dict, parts: dict[str, bytes], problems: list[Problem], path: str) -> HiddenCheck | None:
    given = data.get("hidden_check")
    if given is None:
        return None
    where = f"{path}#/hidden_check"
    if unknown := set(given) - {"program", "probe", "late", "inputs", "spec", "timeout_s"}:
        problems.append(Problem(where, f"unknown field {sorted(unknown)[0]!r}", "known are program, probe, late, inputs, spec, timeout_s"))
    timeout_s = given.get("timeout_s", 20.0)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0.01 <= timeout_s <= 600:
        problems.append(Problem(f"{where}/timeout_s", "must be 0.01 to 600 seconds"))
    for key in ("late", "inputs", "spec"):
        if not isinstance(given.get(key, {}), dict):
            problems.append(Problem(f"{where}/{key}", "must be an object"))
    program = _read(folder, given.get("program"), parts, problems)
    probe = _read(folder, given["probe"], parts, problems) if "probe" in given else None
    if problems:
        return None
    return HiddenCheck(program, probe, given.get("late", {}), given.get("inputs", {}), given.get("spec", {}), float(timeout_s))


def _trial_problems(scenario: Scenario, path: str) -> list[Problem]:
    """Draw it once: templates, draws and assertions can only be checked on what they become."""
    try:
        case = scenario.case(1, 0)
        trial = realise(case, Trial(scenario_seed=bytes(32), late_seed=bytes(32), witness_path="/witness"))
        render_value(scenario.data["solution"], trial.values)
    except (DrawError, TemplateError) as error:
        return [Problem(path, str(error), "mend the draw or the template")]
    paths = [file.path for file in trial.files]
    problems = [Problem(f"{path}#/files", f"{name!r} is laid out twice") for name in sorted({p for p in paths if paths.count(p) > 1})]
    problems += solution_problems(scenario.data["solution"], f"{path}#/solution")
    problems += _rule_problems(scenario.data.get("witness", {}), trial.witness_rules, f"{path}#/witness")
    return problems + _expectation_problems(trial.expect, path)


def _expectation_problems(expect: list, path: str) -> list[Problem]:
    problems = []
    seen = set()
    for index, item in enumerate(expect):
        where = f"{path}#/expect/{index}"
        if not isinstance(item, dict) or not isinstance(item.get("id"), str) or set(item) - {"id", "aspect", "reason", "assert"}:
            problems.append(Problem(where, "an expectation has 'id', 'assert' and optionally 'aspect' and 'reason'"))
            continue
        if item["id"] in seen:
            problems.append(Problem(f"{where}/id", f"{item['id']!r} occurs twice"))
        seen.add(item["id"])
        problems += scenario_kinds.validate(item.get("assert"), f"{where}/assert")
    return problems


def _rule_problems(witness: Mapping[str, object], rules: object, where: str) -> list[Problem]:
    if not isinstance(rules, list) or set(witness) - {"rules"}:
        return [Problem(where, "has one field, the list 'rules'")]
    problems = []
    for index, rule in enumerate(rules):
        rule = rule if isinstance(rule, dict) else {}
        texts = all(isinstance(rule.get(key), str) for key in ("name", "program"))
        args = rule.get("args", [])
        right = texts and isinstance(rule.get("reply"), dict) and isinstance(args, list) and all(isinstance(item, str) for item in args)
        if not right or set(rule) - {"name", "program", "args", "reply"}:
            problems.append(Problem(f"{where}/rules/{index}", "a rule has 'name', 'program', 'reply' (an object) and optionally 'args' (texts)"))
    return problems


def solution_problems(solution: Mapping[str, object], where: str) -> list[Problem]:
    """What is wrong with a declared solution: ``calls`` (tool, arguments), ``status`` and ``answer``."""
    problems = []
    if set(solution) - {"calls", "status", "answer"}:
        problems.append(Problem(where, "has unknown fields", "known are calls, status, answer"))
    if solution.get("status") not in ("completed", "blocked", "failed"):
        problems.append(Problem(f"{where}/status", "must be completed, blocked or failed"))
    if not isinstance(solution.get("answer", ""), (str, list)):
        problems.append(Problem(f"{where}/answer", "must be a text or a list of lines"))
    for index, call in enumerate(solution.get("calls", [])):
        if not isinstance(call, dict) or call.get("tool") not in TOOLS or not isinstance(call.get("arguments"), dict):
            problems.append(Problem(f"{where}/calls/{index}", f"a call has 'tool' (of {', '.join(TOOLS)}) and 'arguments'"))
    return problems
