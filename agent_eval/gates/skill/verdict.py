"""The decision on a skill candidate: a pure function of its records.

Owns the order of the rules: completeness, negative control, strict and exact gain of the target skill on the
measurements of what changed, then vetoes per skill. Averages over the corpus are reported last and decide nothing.
It neither reads files nor writes history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.gates.decision import Decision, Finding, Level, Outcome, PairedTest, conclude, paired, strictness
from agent_eval.gates.skill.config import Task
from agent_eval.gates.skill.measurement import Arm, Measurement, Record, activated, collapsed, grid_findings
from agent_eval.measure.exact import mcnemar_exact_two_sided, sign_test_one_sided
from agent_eval.measure.intervals import clopper_pearson_upper_one_sided, newcombe_diff_paired
from agent_eval.measure.multiplicity import holm

_CONTROL_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a decision depends on. ``look`` counts the candidates measured on the select split, this one included."""

    skill: str
    tasks: tuple[Task, ...]
    repeats: int
    collapse: str
    rule: Mapping
    look: int
    required: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Tables:
    incumbent: dict[str, bool]
    candidate: dict[str, bool]


def decide(question: Question, records: Mapping[str, Record]) -> Decision:
    """The verdict. A promotion here means ``candidate_accepted``; the live file waits for a review."""
    findings = _missing(question, records)
    for kind in question.required:
        if kind in records:
            findings += grid_findings(records[kind], question.tasks, question.repeats)
    if question.look > question.rule["max_consultations"]:
        detail = f"consultation {question.look} of the select split, at most {question.rule['max_consultations']}"
        findings.append(Finding(Outcome.ABSTAIN, "consultations_exhausted", detail))
    if findings:
        return conclude(findings)
    tables = {kind: _tables(question, records[kind]) for kind in question.required}
    primaries = [kind for kind in question.required if kind != Measurement.ACTIVATION]
    tests = {kind: _target_test(question, tables[kind], len(primaries)) for kind in primaries}
    findings += _control_findings(question, records)
    findings += _primary_findings(question, tests)
    for kind in question.required:
        findings += _veto_findings(question, kind, tables[kind], primary=kind in primaries)
    if Measurement.ACTIVATION in records:
        findings += _activation_findings(question, records[Measurement.ACTIVATION])
    best = min(tests.values(), key=lambda test: (test.p_value, -len(test.wins)))
    decision = conclude(
        findings,
        best,
        tests={kind: test.to_json() for kind, test in tests.items()},
        per_skill={kind: _per_skill(question, table) for kind, table in tables.items()},
        counts={kind: _counts(question, records[kind]) for kind in question.required},
        corpus={kind: _corpus(table) for kind, table in tables.items()},
    )
    decision.detail["underpowered"] = decision.level is Level.DIRECTIONAL
    return decision


def _missing(question: Question, records: Mapping[str, Record]) -> list[Finding]:
    absent = tuple(kind for kind in question.required if kind not in records)
    if not absent:
        return []
    detail = f"the patch changed what {', '.join(absent)} exposes, and that was not measured"
    return [Finding(Outcome.ABSTAIN, "missing_measurement", detail, absent)]


def _tables(question: Question, record: Record) -> _Tables:
    return _Tables(_table(question, record, "incumbent", lenient=True), _table(question, record, "candidate", lenient=False))


def _table(question: Question, record: Record, arm: str, *, lenient: bool) -> dict[str, bool]:
    return collapsed(record.arms[arm], record.kind, question.tasks, question.repeats, question.collapse, lenient=lenient)


def _target_test(question: Question, tables: _Tables, family: int) -> PairedTest:
    own = {task.id for task in question.tasks if task.skill == question.skill}
    one = {item: passed for item, passed in tables.incumbent.items() if item in own}
    other = {item: passed for item, passed in tables.candidate.items() if item in own}
    return paired(one, other, alpha=question.rule["alpha"], look=question.look, challengers=family)


def _primary_findings(question: Question, tests: Mapping[str, PairedTest]) -> list[Finding]:
    need = question.rule["evidence"] == "established"
    each = {kind: strictness(test, need_established=need) for kind, test in tests.items()}
    if any(not found for found in each.values()):  # one measurement gained as required; the other may tie, not lose
        each = {kind: [f for f in found if f.code == "worse"] for kind, found in each.items()}
    return [
        Finding(finding.outcome, finding.code, f"{kind}: {finding.detail}", finding.items)
        for kind, found in each.items()
        for finding in found
    ]


def _control_findings(question: Question, records: Mapping[str, Record]) -> list[Finding]:
    record = records.get(Measurement.EFFECTIVENESS)
    if record is None or Measurement.EFFECTIVENESS not in question.required:
        return []
    own = {task.id for task in question.tasks if task.skill == question.skill}
    control = _table(question, record, "control", lenient=False)
    negative = _table(question, record, "negative", lenient=False)
    candidate = _table(question, record, "candidate", lenient=False)
    gained = sorted(item for item in negative if negative[item] and not control[item])
    lost = sorted(item for item in negative if control[item] and not negative[item])
    findings = []
    if gained or lost:
        p = mcnemar_exact_two_sided(len(gained), len(lost))
        if p <= _CONTROL_LEVEL:
            detail = f"an irrelevant skill changes the outcome ({len(gained)} better, {len(lost)} worse, p = {p:.4g}): the test is biased"
            findings.append(Finding(Outcome.ABSTAIN, "negative_control_effect", detail, (*gained, *lost)))
    with_skill, without = (sum(table[item] for item in own) for table in (candidate, control))
    if with_skill < without:
        findings.append(
            Finding(
                Outcome.KEEP, "worse_than_no_skill", f"{with_skill} of {len(own)} tasks with the candidate, {without} without any skill"
            )
        )
    return findings


def _veto_findings(question: Question, kind: str, tables: _Tables, *, primary: bool) -> list[Finding]:
    findings = []
    losses = [item for item, passed in tables.incumbent.items() if passed and not tables.candidate[item]]
    critical = tuple(sorted(task.id for task in question.tasks if task.critical and task.id in losses))
    if critical:
        findings.append(Finding(Outcome.KEEP, "critical_regression", f"{kind}: a critical task fails that passed", critical))
    for skill, rows in _by_skill(question).items():
        delta = sum(tables.candidate[i] for i in rows) - sum(tables.incumbent[i] for i in rows)
        if delta < 0 and not (primary and skill == question.skill):  # the target's own loss is already "worse"
            findings.append(Finding(Outcome.KEEP, "skill_regression", f"{kind}: {skill} loses {-delta} of {len(rows)} tasks", (skill,)))
        lost = sum(item in losses for item in rows)
        bound = clopper_pearson_upper_one_sided(lost, len(rows), 0.95)
        if bound > question.rule["loss_margin"]:
            detail = (
                f"{kind}: {skill} lost {lost} of {len(rows)} tasks, 95 % upper bound {bound:.3f} is above {question.rule['loss_margin']}"
            )
            findings.append(Finding(Outcome.KEEP, "loss_margin", detail, (skill,)))
    return findings


def _activation_findings(question: Question, record: Record) -> list[Finding]:
    """A description that fires everywhere wins its own tasks; what it fires on wrongly is counted here."""
    foreign = [task for task in question.tasks if task.skill != question.skill]
    before = {task.id for task in foreign if activated(record.arms["incumbent"], task, question.repeats)}
    after = {task.id for task in foreign if activated(record.arms["candidate"], task, question.repeats)}
    if len(after) <= len(before):
        return []
    detail = f"activated on {len(after)} of {len(foreign)} tasks that are not its own, before on {len(before)}"
    return [Finding(Outcome.KEEP, "false_activation", detail, tuple(sorted(after - before)))]


def _by_skill(question: Question) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for task in question.tasks:
        grouped.setdefault(task.skill, []).append(task.id)
    return grouped


def _per_skill(question: Question, tables: _Tables) -> list[dict[str, Any]]:
    """Effect per skill with a paired interval and Holm-adjusted p over the skills, for the record."""
    rows: list[dict[str, Any]] = []
    for skill, items in sorted(_by_skill(question).items()):
        wins = sum(tables.candidate[i] and not tables.incumbent[i] for i in items)
        losses = sum(tables.incumbent[i] and not tables.candidate[i] for i in items)
        both = sum(tables.incumbent[i] and tables.candidate[i] for i in items)
        neither = len(items) - both - wins - losses
        interval = newcombe_diff_paired(both, wins, losses, neither, 0.95)
        rows.append(
            {
                "skill": skill,
                "n": len(items),
                "incumbent": both + losses,
                "candidate": both + wins,
                "wins": wins,
                "losses": losses,
                "difference": (wins - losses) / len(items),
                "interval_95": [float(b) for b in interval],
                "p_value": sign_test_one_sided(wins, losses),
            }
        )
    for row, adjusted in zip(rows, holm([row["p_value"] for row in rows])):
        row["p_holm"] = adjusted
    return rows


def _counts(question: Question, record: Record) -> dict[str, object]:
    """Integer counts per arm over all cells; how each cell ended is never folded into pass and fail."""
    key = "status" if record.kind is Measurement.ROUTING else "outcome"
    counted: dict[str, object] = {}
    for name, arm in record.arms.items():
        ends = Counter(cell[key] for cell in arm.cells.values())
        counted[name] = {"cells": len(arm.cells), **dict(sorted(ends.items())), **_extra(question, record.kind, arm)}
    return counted


def _extra(question: Question, kind: Measurement, arm: Arm) -> dict[str, int]:
    tasks = {task.id: task for task in question.tasks}
    if kind is Measurement.ROUTING:
        answered = [(tasks[t], c["chosen"]) for (t, _), c in arm.cells.items() if c["status"] == "ok"]
        own = [(task, chosen) for task, chosen in answered if task.skill == question.skill]
        return {
            "right": sum(chosen == task.skill for task, chosen in answered),
            "own_answered": len(own),
            "own_right": sum(chosen == task.skill for task, chosen in own),
            "false_activations": sum(c == question.skill for t, c in answered if t.skill != question.skill),
        }
    if kind is Measurement.ACTIVATION:
        fired = [(tasks[t], cell) for (t, _), cell in arm.cells.items() if cell["activated"]]
        return {
            "activated_relevant": sum(task.skill == question.skill for task, _ in fired),
            "activated_irrelevant": sum(task.skill != question.skill for task, _ in fired),
            "passed_given_activated": sum(cell["outcome"] == "pass" for _, cell in fired),
        }
    return {}


def _corpus(tables: _Tables) -> dict[str, int]:
    return {"n": len(tables.incumbent), "incumbent": sum(tables.incumbent.values()), "candidate": sum(tables.candidate.values())}
