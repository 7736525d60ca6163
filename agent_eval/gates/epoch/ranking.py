"""Rank views: candidates by their valid records alone.

Owns the order (lower bound of belief, so that different n are comparable), what is unscored, the mark ``epoch_local`` and
the distance of two orders. Unscored is not zero and stands in its own list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_eval.gates.epoch.state import State, Utility
from agent_eval.measure.agreement import spearman_rho
from agent_eval.measure.beta import beta_quantile

_EPSILON = 0.05


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate: counts of its valid records. ``epoch_local`` unless every one of them is anchored (no dependency)."""

    candidate: str
    passed: int
    n: int
    epoch_local: bool

    @property
    def belief(self) -> float:
        """The 5 % quantile of Beta(1 + passed, 1 + failed)."""
        return beta_quantile(_EPSILON, 1 + self.passed, 1 + self.n - self.passed)

    def to_json(self, *, anchored: bool) -> dict[str, object]:
        """The row; comparable with other epochs only when anchored."""
        local = self.epoch_local or not anchored
        return {"candidate": self.candidate, "passed": self.passed, "n": self.n, "best_belief": self.belief, "epoch_local": local, "comparable_across_revisions": not local}


def rank(state: State) -> tuple[list[Ranked], list[str]]:
    """(ranked candidates, best first; unscored candidates)."""
    grouped: dict[str, list[Utility]] = {record.candidate: [] for record in state.utilities}
    for record in state.valid():
        grouped[record.candidate].append(record)
    ranked = [
        Ranked(name, sum(r.outcome for r in records), len(records), any(r.deps for r in records)) for name, records in grouped.items() if records
    ]
    ranked.sort(key=lambda row: (-row.belief, -row.passed, row.candidate))
    return ranked, sorted(name for name, records in grouped.items() if not records)


def view(state: State) -> dict[str, object]:
    """The rank view as JSON."""
    ranked, unscored = rank(state)
    anchored = any(criterion["anchor_sha256"] for criterion in state.criteria.values())
    return {
        "epoch": state.epoch, "criteria": {slot: c["criterion_sha256"] for slot, c in sorted(state.criteria.items())},
        "anchor_sha256": next(iter(state.criteria.values()))["anchor_sha256"], "ranked": [row.to_json(anchored=anchored) for row in ranked], "unscored": unscored,
    }


def distance(old: Sequence[str], new: Sequence[str]) -> float | None:
    """Spearman's rho of the candidates in both orders; ``None`` for fewer than two, where it is undefined."""
    common = [name for name in old if name in new]
    if len(common) < 2:
        return None
    ranks = [sorted(common, key=new.index).index(name) for name in common]
    return spearman_rho(list(range(len(common))), ranks)
