"""The configuration of a skill lineage and its held-out splits, checked whole before anything is made.

Owns format ``agent-eval/skill-lineage/1`` and the task rows {id, text, skill, critical}. ``skill`` is the skill
that should serve the task, or ``none``. Paths are relative to the configuration file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from agent_eval.gates import inputs, leakage
from agent_eval.gates.lineage import digest_of
from agent_eval.gates.live import LiveRoot, read_regular
from agent_eval.gates.skill import document, patch
from agent_eval.grade.fields import BOOLEAN, POSITIVE, TEXT, TEXTS, Field, Form, choice, list_of
from agent_eval.records import strict_json
from agent_eval.records.problems import InvalidInput, Problem, raise_if

CONFIG_FORMAT = "agent-eval/skill-lineage/1"
SPLITS = ("train", "select", "test")
_LIST = Form("a list", lambda value: isinstance(value, list))
_CONFIG = {
    "format": Field(choice(CONFIG_FORMAT), "names this format", required=True),
    "skill": Field(inputs.NAME, "names the skill as its tasks do", required=True),
    "root": Field(TEXT, "is the folder of the skill", required=True),
    "files": Field(TEXTS, "lists the files a patch may touch, SKILL.md first", required=True),
    "protected": Field(_LIST, "lists sections {file, from, to} no patch may touch", default=[]),
    "patch_budget": Field(inputs.OBJECT, "bounds a patch", required=True),
    "frozen": Field(inputs.NON_EMPTY_OBJECT, "states evaluator, model, harness, seeds and budget", required=True),
    "frozen_files": Field(list_of(TEXT, empty=True), "lists files of evaluator and harness", default=[]),
    "splits": Field(inputs.OBJECT, "names the files of train, select and test", required=True),
    "plan": Field(inputs.OBJECT, "states repeats and how they collapse", required=True),
    "rule": Field(inputs.OBJECT, "states what a candidate must reach", required=True),
    "canaries": Field(list_of(TEXT, empty=True), "lists strings that mark held-out data", default=[]),
    "cannot_exercise": Field(TEXTS, "states what the suite cannot exercise", required=True),
}
_BUDGET = {name: Field(POSITIVE, "bounds a patch", required=True) for name in ("operations", "changed_lines", "changed_bytes")}
_FROZEN_NAMES = ("evaluator", "model", "harness")
_SPLIT_FIELDS = {name: Field(TEXT, "names the file of the split", required=True) for name in SPLITS}
_PLAN = {
    "repeats": Field(
        Form("an integer from 1 to 20", lambda value: type(value) is int and 1 <= value <= 20), "counts trials", required=True
    ),
    "collapse": Field(choice("all-pass", "majority"), "makes one outcome of the repeats of a task", default="all-pass"),
}
_RULE = {
    "alpha": Field(inputs.LEVEL, "is the error spent over all looks", default=0.05),
    "evidence": Field(choice("established", "strict-only"), "is what acceptance needs", default="established"),
    "max_consultations": Field(POSITIVE, "bounds the looks at the select split", default=16),
    "loss_margin": Field(inputs.RATE, "bounds the upper confidence bound of the loss rate", default=1.0),
    "min_tasks": Field(POSITIVE, "is the fewest tasks of the skill in select", default=6),
}
_TASK = {
    "id": Field(inputs.NAME, "names the task", required=True),
    "text": Field(TEXT, "is the task", required=True),
    "skill": Field(inputs.NAME, "names the skill that should serve it, or none", required=True),
    "critical": Field(BOOLEAN, "vetoes any loss", default=False),
}
_SECTION = {
    "file": Field(TEXT, "names the file", required=True),
    "from": Field(TEXT, "is the start marker", required=True),
    "to": Field(TEXT, "is the end marker", required=True),
}


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a split."""

    id: str
    text: str
    skill: str
    critical: bool


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration that holds, with its defaults filled in and its files read."""

    config: dict
    root: str
    split_paths: dict[str, str]
    splits: dict[str, tuple[Task, ...]]
    frozen_paths: dict[str, str]


def read(path: str) -> Setup:
    """Read and check the configuration at ``path``. Raises InvalidInput with every problem."""
    raw = inputs.read_object(path)
    raise_if(inputs.object_problems(raw, path, _CONFIG))
    config = inputs.filled(raw, _CONFIG)
    problems = _nested_problems(config, path)
    raise_if(problems)
    config["plan"] = inputs.filled(config["plan"], _PLAN)
    config["rule"] = inputs.filled(config["rule"], _RULE)
    root = inputs.beside(path, config["root"])
    problems += _file_problems(config, root, path)
    split_paths = {name: inputs.beside(path, config["splits"][name]) for name in SPLITS}
    splits: dict[str, tuple[Task, ...]] = {}
    for name, place in split_paths.items():
        try:
            splits[name] = tasks(inputs.read_bytes(place), place)
        except InvalidInput as error:
            problems += error.problems
    if "select" in splits:
        problems += _power_problems(config, splits["select"], path)
    frozen = {f"file:{item}": inputs.beside(path, item) for item in config["frozen_files"]}
    problems += [Problem(f"{path}/frozen_files", f"{item} is not there") for item in frozen.values() if not os.path.isfile(item)]
    raise_if(problems)
    return Setup(config, root, split_paths, splits, {"config": os.path.abspath(path), **frozen})


def tasks(data: bytes, name: str) -> tuple[Task, ...]:
    """The tasks of a split file (JSON Lines or a JSON array)."""
    found = inputs.rows(data, name)
    problems = [problem for row in found for problem in inputs.object_problems(row.value, row.where, _TASK)]
    problems += inputs.duplicates(found, "id")
    raise_if(problems)
    return tuple(Task(**inputs.filled(row.value, _TASK)) for row in found)


def overlaps(splits: dict[str, tuple[Task, ...]]) -> list[str]:
    """Every overlap between two splits, in words: by id, normalised text or a 13-word run."""
    texts = {name: {task.id: task.text for task in items} for name, items in splits.items()}
    found = []
    for one, other in (("train", "select"), ("train", "test"), ("select", "test")):
        found += [f"{one}/{a} and {other}/{b} share {how}" for a, b, how in leakage.overlap(texts[one], texts[other])]
    for name, items in texts.items():
        seen: dict[str, str] = {}
        for item, text in items.items():
            first = seen.setdefault(leakage.normalise(text), item)
            if first != item:
                found.append(f"{name}/{first} and {name}/{item} share text")
    return found


def split_digest(items: tuple[Task, ...]) -> str:
    """Digest of the tasks of a split, whatever the file looked like."""
    rows = [{"id": t.id, "text": t.text, "skill": t.skill, "critical": t.critical} for t in items]
    return digest_of(sorted(rows, key=strict_json.canonical))


def _nested_problems(config: dict, path: str) -> list[Problem]:
    problems = inputs.object_problems(config["patch_budget"], f"{path}/patch_budget", _BUDGET)
    problems += inputs.object_problems(config["splits"], f"{path}/splits", _SPLIT_FIELDS)
    problems += inputs.object_problems(config["plan"], f"{path}/plan", _PLAN)
    problems += inputs.object_problems(config["rule"], f"{path}/rule", _RULE)
    for index, section in enumerate(config["protected"]):
        problems += inputs.object_problems(section, f"{path}/protected/{index}", _SECTION)
    for name in _FROZEN_NAMES:
        if not config["frozen"].get(name):
            problems.append(Problem(f"{path}/frozen/{name}", "is missing", "state it: what is not stated is not frozen"))
    if len(set(config["files"])) != len(config["files"]):
        problems.append(Problem(f"{path}/files", "names a file twice"))
    return problems


def _file_problems(config: dict, root: str, path: str) -> list[Problem]:
    problems, contents = [], {}
    for item in config["files"]:
        try:
            contents[item] = read_regular(LiveRoot(root, ".").absolute(item)).data
        except InvalidInput as error:
            problems += [Problem(f"{path}/files", str(problem)) for problem in error.problems]
    main = config["files"][0]
    if main in contents:
        wrong = document.front_matter_problem(contents[main])
        if wrong:
            problems.append(Problem(os.path.join(root, main), wrong))
    for index, section in enumerate(config["protected"]):
        where = f"{path}/protected/{index}"
        if section["file"] not in config["files"]:
            problems.append(Problem(where, f"{section['file']} is not a declared file"))
        elif section["file"] in contents:
            try:
                patch.section_span(contents[section["file"]], section)
            except ValueError as error:
                problems.append(Problem(where, str(error)))
    return problems


def _power_problems(config: dict, select: tuple[Task, ...], path: str) -> list[Problem]:
    own = sum(task.skill == config["skill"] for task in select)
    if own < config["rule"]["min_tasks"]:
        what = f"{own} tasks of {config['skill']} in select, at least {config['rule']['min_tasks']} are needed"
        return [Problem(f"{path}/splits/select", what)]
    return []
