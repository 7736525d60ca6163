"""The acceptor's rule: pure functions over the anchor and two tables of outcomes.

Owns the comparison of one challenger with the incumbent, and the choice among several of one look. Ties keep the incumbent;
an unscored incumbent means abstain, never a free win; a missing verdict is a wrong one. TPR and TNR are apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_eval.gates.decision import Decision, Finding, Outcome, conclude, paired, strictness
from agent_eval.gates.epoch.config import Item
from agent_eval.measure.beta import beta_quantile

Outcomes = Mapping[tuple[str, int], "int | None"]
_BELIEF_EPSILON = 0.05


@dataclass(frozen=True, slots=True)
class Question:
    """What every challenger of a look meets. ``challengers`` counts all that the look compares, also those that abstain."""

    items: tuple[Item, ...]
    repeats: int
    collapse: str
    rule: Mapping
    look: int
    challengers: int


def compare(question: Question, incumbent: Outcomes, challenger: Outcomes, leaks: Sequence[str] = ()) -> Decision:
    """The verdict on one challenger."""
    findings = []
    if leaks:
        findings.append(Finding(Outcome.ABSTAIN, "leakage", "anchor items stand in the challenger", tuple(leaks)))
    findings += _coverage_findings(question, incumbent, challenger)
    findings += _class_findings(question)
    if findings:
        return conclude(findings)
    before, after = correct(question, incumbent), correct(question, challenger)
    test = paired(before, after, alpha=question.rule["alpha"], look=question.look, challengers=question.challengers)
    need = question.rule["evidence"] == "established"
    findings += strictness(test, need_established=need)
    discordant = len(test.wins) + len(test.losses)
    if len(test.wins) > len(test.losses) and discordant < question.rule["min_discordant"]:
        detail = f"{discordant} discordant items, at least {question.rule['min_discordant']} are needed"
        findings.append(Finding(Outcome.KEEP, "insufficient_evidence", detail))
    rates = {"incumbent": class_counts(question, before), "challenger": class_counts(question, after)}
    findings += _rate_findings(question, rates)
    critical = tuple(item.id for item in question.items if item.critical and item.id in test.losses)
    if critical:
        findings.append(Finding(Outcome.KEEP, "critical_failure", "a critical item is judged wrong that was judged right", critical))
    return conclude(findings, test, rates=rates, best_belief={"incumbent": best_belief(before), "challenger": best_belief(after)})


def choose(decisions: Mapping[str, Decision]) -> str | None:
    """The one of several promotions of a slot: smaller p, then larger margin, then digest (the key)."""
    passing = [
        (d.test.p_value, len(d.test.losses) - len(d.test.wins), key)
        for key, d in decisions.items()
        if d.outcome is Outcome.PROMOTE and d.test
    ]
    return min(passing)[2] if passing else None


def correct(question: Question, outcomes: Outcomes) -> dict[str, bool]:
    """Whether each item is judged right, repeats collapsed first: ``all-pass`` or ``majority`` with a tie wrong."""
    table = {}
    for item in question.items:
        right = sum(outcomes.get((item.id, repeat)) == item.label for repeat in range(1, question.repeats + 1))
        table[item.id] = right == question.repeats if question.collapse == "all-pass" else 2 * right > question.repeats
    return table


def class_counts(question: Question, right: Mapping[str, bool]) -> dict[str, int]:
    """Right and all items of each class: TPR is ``true_positive / positive``, TNR ``true_negative / negative``."""
    positive = [item.id for item in question.items if item.label == 1]
    negative = [item.id for item in question.items if item.label == 0]
    return {
        "positive": len(positive),
        "true_positive": sum(right[i] for i in positive),
        "negative": len(negative),
        "true_negative": sum(right[i] for i in negative),
    }


def best_belief(right: Mapping[str, bool]) -> float:
    """The 5 % quantile of Beta(1 + right, 1 + wrong). A description only: with equal n it is a comparison of counts."""
    passed = sum(right.values())
    return beta_quantile(_BELIEF_EPSILON, 1 + passed, 1 + len(right) - passed)


def _coverage_findings(question: Question, incumbent: Outcomes, challenger: Outcomes) -> list[Finding]:
    planned = {(item.id, repeat) for item in question.items for repeat in range(1, question.repeats + 1)}
    findings = []
    for name, outcomes, code in (("incumbent", incumbent, "incumbent_unscored"), ("challenger", challenger, "challenger_unscored")):
        absent = sorted(planned - outcomes.keys())
        if absent:
            detail = f"the {name} has {len(planned) - len(absent)} of {len(planned)} anchor outcomes"
            findings.append(Finding(Outcome.ABSTAIN, code, detail, tuple(f"{i}/{r}" for i, r in absent[:20])))
    if incumbent.keys() != challenger.keys():
        findings.append(Finding(Outcome.ABSTAIN, "unequal_coverage", "incumbent and challenger are scored on different items or repeats"))
    return findings


def _class_findings(question: Question) -> list[Finding]:
    counts = {label: sum(item.label == label for item in question.items) for label in (0, 1)}
    least = question.rule["min_per_class"]
    findings = []
    for label, name in ((1, "positive"), (0, "negative")):
        if counts[label] == 0:
            findings.append(Finding(Outcome.ABSTAIN, "single_class", f"the anchor has no {name} item"))
        elif counts[label] < least:
            findings.append(Finding(Outcome.ABSTAIN, "class_below_minimum", f"{counts[label]} {name} items, at least {least} are needed"))
    return findings


def _rate_findings(question: Question, rates: Mapping[str, Mapping[str, int]]) -> list[Finding]:
    findings = []
    for code, key, whole in (("tpr_down", "true_positive", "positive"), ("tnr_down", "true_negative", "negative")):
        before, after = rates["incumbent"][key], rates["challenger"][key]
        if after < before - question.rule["delta"]:
            findings.append(Finding(Outcome.KEEP, code, f"{after} of {rates['challenger'][whole]} {whole} items right, before {before}"))
    return findings
