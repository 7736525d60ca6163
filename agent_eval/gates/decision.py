"""What a gate decides: four outcomes, machine reasons, an evidence level, and the paired exact test behind it.

Owns the closed sets, how findings become one decision, the paired test at look k among m challengers, and the
form of a decision in the ledger. A finding can only make a decision worse: no number outweighs a veto.
Source of the rule: alpha_k = alpha / (k (k + 1)) sums to alpha over any number of looks; m challengers of one
look share it (Bonferroni). It does not compute tails itself (`agent_eval.measure`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from agent_eval.measure.exact import sign_test_one_sided, wins_needed
from agent_eval.measure.multiplicity import alpha_at_look

PAIRED_EXACT = "paired-exact/1"


class Outcome(enum.StrEnum):
    """Never merged: ``abstain`` is evidence that cannot support a verdict, ``invalid`` a broken contract."""

    PROMOTE = "promote"
    KEEP = "keep_incumbent"
    ABSTAIN = "abstain"
    INVALID = "invalid"


_SEVERITY = {Outcome.PROMOTE: 0, Outcome.KEEP: 1, Outcome.ABSTAIN: 2, Outcome.INVALID: 3}


class Level(enum.StrEnum):
    """``established``: strict and the exact bound is met at alpha_k. ``directional``: strict only, nothing is proven."""

    ESTABLISHED = "established"
    DIRECTIONAL = "directional"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason and what it means for the outcome. ``items`` are the cases, tasks or files it rests on."""

    outcome: Outcome
    code: str
    detail: str
    items: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The reason as it stands in a record."""
        return {"outcome": self.outcome.value, "code": self.code, "detail": self.detail, "items": list(self.items)}


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Wins and losses of a challenger over the incumbent on the same items, and the one-sided exact sign test.

    ``p_value`` is P(Bin(wins + losses, 1/2) >= wins). ``alpha_k`` is what this look and this challenger may spend.
    """

    wins: tuple[str, ...]
    losses: tuple[str, ...]
    both: int
    neither: int
    alpha: float
    look: int
    challengers: int = 1

    @property
    def p_value(self) -> float:
        """1.0 without a discordant item."""
        return sign_test_one_sided(len(self.wins), len(self.losses))

    @property
    def alpha_k(self) -> Fraction:
        """alpha / (k (k + 1)) / m."""
        return alpha_at_look(self.alpha, self.look) / self.challengers

    @property
    def established(self) -> bool:
        """Strictly more wins than losses, and the exact bound met."""
        return len(self.wins) > len(self.losses) and self.p_value <= self.alpha_k

    def more_clean_wins(self) -> int:
        """How many further wins without a loss would meet the bound; 0 when it is met."""
        return max(0, wins_needed(len(self.losses), float(self.alpha_k)) - len(self.wins))

    def to_json(self) -> dict[str, object]:
        """Name and version of the statistic, its inputs and its value, as a decision record holds them."""
        return {
            "statistic": PAIRED_EXACT,
            "wins": list(self.wins),
            "losses": list(self.losses),
            "both": self.both,
            "neither": self.neither,
            "n": self.both + self.neither + len(self.wins) + len(self.losses),
            "p_value": self.p_value,
            "alpha": self.alpha,
            "alpha_k": str(self.alpha_k),
            "look": self.look,
            "challengers": self.challengers,
            "established": self.established,
            "more_clean_wins_needed": self.more_clean_wins(),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one candidate. ``level`` is set for a promotion and for nothing else."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    level: Level | None = None
    test: PairedTest | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> tuple[str, ...]:
        """The machine words of the reasons, each once."""
        return tuple(dict.fromkeys(finding.code for finding in self.findings))

    def to_json(self) -> dict[str, Any]:
        """The verdict part of a decision record."""
        return {
            "decision": self.outcome.value,
            "evidence_level": self.level.value if self.level else None,
            "reasons": [finding.to_json() for finding in self.findings],
            "test": self.test.to_json() if self.test else None,
            **self.detail,
        }


def paired(incumbent: Mapping[str, bool], candidate: Mapping[str, bool], *, alpha: float, look: int, challengers: int = 1) -> PairedTest:
    """The test over the items of both tables, which must be the same items (the caller has checked that)."""
    if incumbent.keys() != candidate.keys():
        raise ValueError("a paired test needs the same items on both sides")
    wins = tuple(sorted(item for item, passed in candidate.items() if passed and not incumbent[item]))
    losses = tuple(sorted(item for item, passed in incumbent.items() if passed and not candidate[item]))
    both = sum(passed and candidate[item] for item, passed in incumbent.items())
    return PairedTest(wins, losses, both, len(incumbent) - both - len(wins) - len(losses), alpha, look, challengers)


def strictness(test: PairedTest, *, need_established: bool) -> list[Finding]:
    """Tie, worse, or a gain that is not established where the contract needs it to be."""
    wins, losses = len(test.wins), len(test.losses)
    if wins == losses:
        return [Finding(Outcome.KEEP, "tie", f"{wins} better, {losses} worse: a tie keeps the incumbent")]
    if wins < losses:
        return [Finding(Outcome.KEEP, "worse", f"{wins} better, {losses} worse", test.losses)]
    if need_established and not test.established:
        more = test.more_clean_wins()
        detail = (
            f"{wins} better, {losses} worse: p = {test.p_value:.4g} is above alpha_k = {float(test.alpha_k):.4g} "
            f"(look {test.look}, {test.challengers} challengers); {more} more clean wins would be needed"
        )
        return [Finding(Outcome.KEEP, "not_established", detail)]
    return []


def conclude(findings: Iterable[Finding], test: PairedTest | None = None, **detail: Any) -> Decision:
    """One decision: the worst outcome of any finding; without one, a promotion at the level that the test reached."""
    kept = tuple(findings)
    outcome = max((finding.outcome for finding in kept), key=_SEVERITY.__getitem__, default=Outcome.PROMOTE)
    level = None
    if outcome is Outcome.PROMOTE:
        level = Level.ESTABLISHED if test is not None and test.established else Level.DIRECTIONAL
        words = "strict gain, exact bound met" if level is Level.ESTABLISHED else "strict gain, not established"
        kept = (*kept, Finding(Outcome.PROMOTE, level.value, words))
    return Decision(outcome, kept, level, test, dict(detail))


def refusal(outcome: Outcome, code: str, detail: str, items: Sequence[str] = ()) -> Decision:
    """A decision with one reason and no test."""
    return Decision(outcome, (Finding(outcome, code, detail, tuple(items)),))
