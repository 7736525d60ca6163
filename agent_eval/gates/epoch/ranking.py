"""Rank views: candidates by their valid records alone.

Owns the order (lower bound of belief, so that different n are comparable), what is unscored, the mark ``epoch_local`` and
the distance of two orders. Unscored is not zero and stands in its own list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_eval.gates.epoch.state import State, Utility, fold
from agent_eval.gates.ledger import Entry
from agent_eval.measure.agreement import spearman_rho
from agent_eval.measure.beta import beta_quantile
from agent_eval.records.problems import InvalidInput

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
        return {
            "candidate": self.candidate,
            "passed": self.passed,
            "n": self.n,
            "best_belief": self.belief,
            "epoch_local": local,
            "comparable_across_revisions": not local,
        }


def rank(state: State) -> tuple[list[Ranked], list[str]]:
    """(ranked candidates, best first; unscored candidates)."""
    grouped: dict[str, list[Utility]] = {record.candidate: [] for record in state.utilities}
    for record in state.valid():
        grouped[record.candidate].append(record)
    ranked = [
        Ranked(name, sum(r.outcome for r in records), len(records), any(r.deps for r in records))
        for name, records in grouped.items()
        if records
    ]
    ranked.sort(key=lambda row: (-row.belief, -row.passed, row.candidate))
    return ranked, sorted(name for name, records in grouped.items() if not records)


def view(state: State) -> dict[str, Any]:
    """The rank view as JSON."""
    ranked, unscored = rank(state)
    anchored = any(criterion["anchor_sha256"] for criterion in state.criteria.values())
    return {
        "epoch": state.epoch,
        "criteria": {slot: c["criterion_sha256"] for slot, c in sorted(state.criteria.items())},
        "anchor_sha256": next(iter(state.criteria.values()))["anchor_sha256"],
        "ranked": [row.to_json(anchored=anchored) for row in ranked],
        "unscored": unscored,
    }


def view_of_epoch(entries: Sequence[Entry], epoch: int | None) -> dict[str, Any]:
    """The view at the end of ``epoch``; the present one for ``None``. Raises InvalidInput for an epoch that never was."""
    if epoch is None:
        return view(fold(entries))
    later = next((entry.seq for entry in entries if entry.kind == "evaluator_promoted" and entry.body["epoch"] == epoch + 1), len(entries))
    state = fold(entry for entry in entries if entry.seq < later)
    if state.epoch != epoch:
        raise InvalidInput.one("--epoch", f"there was no epoch {epoch}")
    return view(state)


def incomparable(one: Mapping, other: Mapping) -> str | None:
    """Why two views must not be compared, or ``None``: only anchored results on the same anchor are."""
    if one["anchor_sha256"] is None or one["anchor_sha256"] != other["anchor_sha256"]:
        return f"epochs {one['epoch']} and {other['epoch']} have no anchor in common"
    if any(row["epoch_local"] for row in (*one["ranked"], *other["ranked"])):
        return f"results of epochs {one['epoch']} and {other['epoch']} are epoch-local: they depend on different revisions of an evaluator"
    return None


def distance(old: Sequence[Ranked], new: Sequence[Ranked]) -> float | None:
    """Spearman's rho of the candidates in both rankings, equal ones with their average rank.

    ``None`` where it is undefined: fewer than two candidates in common, or all of them equal in one ranking.
    """
    before, after = ({row.candidate: row.belief for row in rows} for rows in (old, new))
    common = [name for name in before if name in after]
    if len(common) < 2:
        return None
    return spearman_rho([before[name] for name in common], [after[name] for name in common])
