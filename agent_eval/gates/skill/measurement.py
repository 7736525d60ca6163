"""The three measurements of a skill, as separate records that are never merged.

Owns format ``agent-eval/skill-measurement/1``: arms of cells on the grid task x repeat, each arm bound to the
digest of what was exposed and to the frozen conditions. ``routing`` shows descriptions only, ``effectiveness``
the body by force, ``activation`` the skills as shipped. It reads and collapses; it does not judge.

Cells: effectiveness {task, repeat, outcome}; activation adds ``activated``; routing {task, repeat, order_seed,
status, chosen}. A format failure is not a misroute and an operational error is neither: each has its own count.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.gates import inputs
from agent_eval.gates.decision import Finding, Outcome
from agent_eval.gates.skill.config import Task
from agent_eval.gates.skill.document import Exposure
from agent_eval.grade.fields import BOOLEAN, INTEGER, POSITIVE, Field, Form, choice
from agent_eval.records.problems import Problem, raise_if

FORMAT = "agent-eval/skill-measurement/1"


class Measurement(enum.StrEnum):
    """What was exposed, and so what may be claimed."""

    ROUTING = "routing"
    EFFECTIVENESS = "effectiveness"
    ACTIVATION = "activation"


ARMS = {
    Measurement.ROUTING: ("incumbent", "candidate"),
    Measurement.EFFECTIVENESS: ("incumbent", "candidate", "control", "negative"),
    Measurement.ACTIVATION: ("incumbent", "candidate"),
}
_RECORD = {
    "format": Field(choice(FORMAT), "names this format", required=True),
    "measurement": Field(choice(*Measurement), "says what was exposed", required=True),
    "split": Field(choice("train", "select", "test"), "names the split", required=True),
    "split_sha256": Field(inputs.DIGEST, "is the digest of the split's tasks", required=True),
    "candidate_sha256": Field(inputs.DIGEST, "is the digest of the candidate (its activation exposure)", required=True),
    "arms": Field(inputs.NON_EMPTY_OBJECT, "maps each arm to its cells", required=True),
}
_CONDITIONS = Form("an object", lambda value: isinstance(value, dict))
_ARM = {
    "run_id": Field(inputs.NAME, "names the run, once in a lineage", required=True),
    "exposed_sha256": Field(
        Form("a digest or null", lambda v: v is None or inputs.DIGEST.accepts(v)), "is what was exposed", required=True
    ),
    "conditions": Field(_CONDITIONS, "repeats the frozen conditions it ran under", required=True),
    "cells": Field(Form("a list", lambda value: isinstance(value, list)), "lists the outcomes", required=True),
}
_POSITION = {
    "task": Field(inputs.NAME, "names the task", required=True),
    "repeat": Field(POSITIVE, "counts from 1", required=True),
}
_OUTCOME = Field(choice("pass", "fail", "error", "not_run"), "is how the trial ended", required=True)
_CHOSEN = Form("a skill name, none, or null", lambda v: v is None or inputs.NAME.accepts(v))
_CELLS = {
    Measurement.EFFECTIVENESS: {**_POSITION, "outcome": _OUTCOME},
    Measurement.ACTIVATION: {
        **_POSITION,
        "outcome": _OUTCOME,
        "activated": Field(BOOLEAN, "says whether the skill was loaded", required=True),
    },
    Measurement.ROUTING: {
        **_POSITION,
        "order_seed": Field(INTEGER, "is the seed of the order of descriptions", required=True),
        "status": Field(choice("ok", "format_failure", "operational_error", "not_run"), "is how the trial ended", required=True),
        "chosen": Field(_CHOSEN, "is the skill that was named", required=True),
    },
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: cells by (task, repeat)."""

    run_id: str
    exposed: str | None
    conditions: dict
    cells: dict[tuple[str, int], dict]

    def passed(self, cell: tuple[str, int], kind: Measurement, task: Task, *, lenient: bool) -> bool:
        """Whether a cell counts as passed. An error counts for an incumbent (``lenient``) and against a candidate."""
        value = self.cells[cell]
        if kind is Measurement.ROUTING:
            return value["chosen"] == task.skill if value["status"] == "ok" else lenient
        return value["outcome"] == "pass" or (lenient and value["outcome"] == "error")


@dataclass(frozen=True, slots=True)
class Record:
    """A measurement as it was given."""

    kind: Measurement
    split: str
    split_sha256: str
    candidate_sha256: str
    arms: dict[str, Arm]


def read(value: Any, where: str = "measurement") -> Record:
    """The record in a JSON value. Raises InvalidInput with every problem of form."""
    problems = inputs.object_problems(value, where, _RECORD)
    raise_if(problems)
    kind = Measurement(value["measurement"])
    for name in ARMS[kind]:
        if name not in value["arms"]:
            problems.append(Problem(f"{where}/arms/{name}", "is missing", f"{kind} needs {', '.join(ARMS[kind])}"))
    arms = {}
    for name, arm in value["arms"].items():
        place = f"{where}/arms/{name}"
        if name not in ARMS[kind]:
            problems.append(Problem(place, f"is not an arm of {kind}", f"known: {', '.join(ARMS[kind])}"))
            continue
        found = inputs.object_problems(arm, place, _ARM)
        problems += found
        if not found:
            cells, bad = _cells(arm["cells"], f"{place}/cells", kind)
            problems += bad
            arms[name] = Arm(arm["run_id"], arm["exposed_sha256"], arm["conditions"], cells)
    raise_if(problems)
    return Record(kind, value["split"], value["split_sha256"], value["candidate_sha256"], arms)


def _cells(rows: list, where: str, kind: Measurement) -> tuple[dict[tuple[str, int], dict], list[Problem]]:
    cells: dict[tuple[str, int], dict] = {}
    problems = []
    for index, cell in enumerate(rows):
        place = f"{where}/{index}"
        bad = inputs.object_problems(cell, place, _CELLS[kind])
        if not bad and kind is Measurement.ROUTING and (cell["status"] == "ok") != (cell["chosen"] is not None):
            bad = [Problem(f"{place}/chosen", "is a name exactly when the status is ok")]
        if not bad and (cell["task"], cell["repeat"]) in cells:
            bad = [Problem(place, f"{cell['task']} repeat {cell['repeat']} is there already")]
        problems += bad
        if not bad:
            cells[cell["task"], cell["repeat"]] = cell
    return cells, problems


def binding(
    record: Record, *, split_sha256: str, incumbent: Exposure, candidate: Exposure, conditions: Mapping, used_runs: set[str]
) -> list[Finding]:
    """Everything that makes a record one of other bytes, another split or other conditions."""
    findings = []
    if record.split_sha256 != split_sha256:
        findings.append(_invalid("split_changed", f"the record is of another {record.split} split than the frozen one"))
    if record.candidate_sha256 != candidate.activation:
        findings.append(_invalid("wrong_candidate", "the record is of another candidate than the one proposed"))
    wanted = {"incumbent": incumbent.of(record.kind), "candidate": candidate.of(record.kind), "control": None}
    for name, arm in record.arms.items():
        if name in wanted and arm.exposed != wanted[name]:
            findings.append(_invalid("wrong_exposure", f"arm {name} exposed other bytes than a {record.kind} record of it does", name))
        if name == "negative" and arm.exposed in (None, incumbent.effectiveness, candidate.effectiveness):
            findings.append(_invalid("wrong_exposure", "the negative arm must expose an irrelevant skill", name))
        differing = sorted(key for key in {*arm.conditions, *conditions} if arm.conditions.get(key) != conditions.get(key))
        if differing:
            detail = f"arm {name} ran under another {', '.join(differing)} than the frozen one"
            findings.append(_invalid("conditions_changed", detail, *differing))
        if arm.run_id in used_runs:
            findings.append(_invalid("reused_run", f"run {arm.run_id} of arm {name} was used by an earlier record", arm.run_id))
    runs = [arm.run_id for arm in record.arms.values()]
    if len(set(runs)) != len(runs):
        findings.append(_invalid("reused_run", "two arms name the same run"))
    return findings


def grid(tasks: tuple[Task, ...], repeats: int) -> list[tuple[str, int]]:
    """Every planned cell of an arm."""
    return [(task.id, repeat) for task in tasks for repeat in range(1, repeats + 1)]


def grid_findings(record: Record, tasks: tuple[Task, ...], repeats: int) -> list[Finding]:
    """Cells that are missing, not run, or were never planned."""
    planned = grid(tasks, repeats)
    findings = []
    for name, arm in record.arms.items():
        missing = [cell for cell in planned if cell not in arm.cells or _not_run(arm.cells[cell])]
        extra = sorted(arm.cells.keys() - set(planned))
        if missing:
            detail = f"{record.kind}/{name}: {len(missing)} of {len(planned)} planned cells are missing or not run"
            findings.append(Finding(Outcome.ABSTAIN, "missing_cells", detail, _labels(missing)))
        if extra:
            detail = f"{record.kind}/{name}: {len(extra)} cells were never planned"
            findings.append(Finding(Outcome.INVALID, "unplanned_cells", detail, _labels(extra)))
    return findings


def collapsed(arm: Arm, kind: Measurement, tasks: tuple[Task, ...], repeats: int, rule: str, *, lenient: bool) -> dict[str, bool]:
    """One outcome per task: repeats are never independent tasks. ``majority`` counts a tie as a fail."""
    table = {}
    for task in tasks:
        passed = sum(arm.passed((task.id, r), kind, task, lenient=lenient) for r in range(1, repeats + 1))
        table[task.id] = passed == repeats if rule == "all-pass" else 2 * passed > repeats
    return table


def activated(arm: Arm, task: Task, repeats: int) -> bool:
    """Whether the skill was loaded in any repeat of a task."""
    return any(arm.cells[task.id, repeat]["activated"] for repeat in range(1, repeats + 1))


def _not_run(cell: Mapping) -> bool:
    return "not_run" in (cell.get("outcome"), cell.get("status"))


def _labels(cells: list[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{task}/{repeat}" for task, repeat in cells[:20])


def _invalid(code: str, detail: str, *items: str) -> Finding:
    return Finding(Outcome.INVALID, code, detail, items)
