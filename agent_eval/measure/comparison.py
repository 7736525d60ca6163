"""Is the candidate better than the incumbent? One verdict over paired cases.

Owns: collapsing the trials of a case to one outcome, pairing by case, the exact test, the verdict with what would
change it. Pure: counts in, a record out.
Does not own: reading evidence and whether two runs may be compared at all (`comparison_terms`), nor the wording.

Rules, each with its reason:

* The unit is the case. Trials of one case are not independent, so they are collapsed first by a declared rule.
* Every doubt counts against the candidate: its void, interrupted, unrun or absent trial counts as not passed, the
  incumbent's as passed. Hence no trial of the candidate that gets worse, goes missing or turns void, and no trial
  of the incumbent that goes missing or turns void, can ever improve the verdict.
* `improved` needs the exact one-sided sign test over discordant cases at the alpha of this look and no regression on
  a critical case; `regressed` needs the same test the other way round; anything else is `inconclusive`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_eval.measure.domain import OutOfDomain, count, level
from agent_eval.measure.exact import sign_test_one_sided, wins_needed
from agent_eval.measure.intervals import Interval, clopper_pearson_upper_one_sided, newcombe_diff_paired
from agent_eval.measure.multiplicity import alpha_at_look

MAX_ALPHA = 0.5
CONFIDENCE = 0.95


class TrialState(enum.StrEnum):
    """How one planned trial ended."""

    PASS = "pass"
    FAIL = "fail"
    VOID = "void"
    INTERRUPTED = "interrupted"
    UNRUN = "unrun"


class Collapse(enum.StrEnum):
    """How the trials of a case become one outcome: every one passed, or more than half of those planned."""

    ALL_PASS = "all-pass"
    MAJORITY = "majority"


class Change(enum.StrEnum):
    """The paired outcome of a case. `win`: only the candidate passes; `regression`: only the incumbent."""

    WIN = "win"
    REGRESSION = "regression"
    BOTH_PASS = "both-pass"
    BOTH_FAIL = "both-fail"


class ComparisonVerdict(enum.StrEnum):
    """What the paired cases support."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """How the planned trials of one case ended; the five counts add up to what was planned."""

    passed: int = 0
    failed: int = 0
    void: int = 0
    interrupted: int = 0
    unrun: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            count(name, getattr(self, name))

    @classmethod
    def of(cls, states: Iterable[TrialState | str]) -> CaseCounts:
        """Counts of a list of trial states. Raises ValueError for a word that is no TrialState."""
        found = [TrialState(state) for state in states]
        return cls(*(found.count(state) for state in TrialState))

    @property
    def planned(self) -> int:
        """All trials, however they ended."""
        return self.passed + self.failed + self.void + self.interrupted + self.unrun

    @property
    def judged(self) -> int:
        """Trials with a verdict on the subject."""
        return self.passed + self.failed

    @classmethod
    def total(cls, several: Sequence[CaseCounts]) -> CaseCounts:
        """The sums over several cases, for totals of trials only: no rate may be taken from them."""
        return cls(*(sum(getattr(one, name) for one in several) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class PairedCase:
    """One case under both subjects; `None` where a subject's plan does not have it."""

    id: str
    critical: bool
    incumbent: CaseCounts | None
    candidate: CaseCounts | None
    incumbent_passed: bool
    candidate_passed: bool
    assumed_incumbent: int
    assumed_candidate: int

    @property
    def change(self) -> Change:
        """What the pair shows."""
        if self.incumbent_passed == self.candidate_passed:
            return Change.BOTH_PASS if self.candidate_passed else Change.BOTH_FAIL
        return Change.WIN if self.candidate_passed else Change.REGRESSION

    @property
    def observed(self) -> bool:
        """Whether every trial behind the pair was judged; otherwise some were assumed, against the candidate."""
        return self.assumed_incumbent == 0 and self.assumed_candidate == 0


@dataclass(frozen=True, slots=True)
class Decisive:
    """What would make it `improved`: `more_wins` further clean wins at this look; `headroom` cases that both subjects
    fail could give one each."""

    more_wins: int
    headroom: int
    blocked_by_critical: bool

    @property
    def attainable(self) -> bool:
        """Whether this suite can give the wins that are missing."""
        return not self.blocked_by_critical and self.more_wins <= self.headroom


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict and everything it rests on. p-values are one-sided and exact."""

    verdict: ComparisonVerdict
    collapse: Collapse
    alpha: float
    look: int | None
    alpha_spent: float
    cases: tuple[PairedCase, ...]
    wins: int
    regressions: int
    both_pass: int
    both_fail: int
    p_improved: float
    p_regressed: float
    interval: Interval
    interval_method: str
    regression_rate_upper: float
    decisive: Decisive

    def having(self, change: Change) -> list[PairedCase]:
        """The cases that show `change`, in order."""
        return [case for case in self.cases if case.change is change]

    @property
    def critical_regressions(self) -> list[PairedCase]:
        """Regressions on critical cases, each of which forbids `improved`."""
        return [case for case in self.having(Change.REGRESSION) if case.critical]

    @property
    def difference(self) -> float:
        """Candidate's rate of passed cases minus the incumbent's."""
        return (self.wins - self.regressions) / len(self.cases)


def compare(
    incumbent: Mapping[str, CaseCounts],
    candidate: Mapping[str, CaseCounts],
    *,
    alpha: float = 0.05,
    look: int | None = None,
    collapse: Collapse = Collapse.ALL_PASS,
    critical: frozenset[str] = frozenset(),
) -> Comparison:
    """Compare two subjects over the union of their cases, in the incumbent's order and then the candidate's.

    `alpha` in (0, 0.5]; without `look` all of it is spent, at look K alpha/(K(K+1)). `critical` names cases. Raises
    OutOfDomain for an argument outside its domain and when there is no case at all.
    """
    spent = _alpha_spent(alpha, look)
    ids = list(dict.fromkeys([*incumbent, *candidate]))
    if not ids:
        raise OutOfDomain("there must be at least one case")
    cases = tuple(_pair(case, incumbent.get(case), candidate.get(case), collapse, case in critical) for case in ids)
    changes = [case.change for case in cases]
    wins, losses = changes.count(Change.WIN), changes.count(Change.REGRESSION)
    both_pass, both_fail = changes.count(Change.BOTH_PASS), changes.count(Change.BOTH_FAIL)
    p_improved, p_regressed = sign_test_one_sided(wins, losses), sign_test_one_sided(losses, wins)
    blocked = any(case.critical and case.change is Change.REGRESSION for case in cases)
    missing = max(0, wins_needed(losses, spent) - wins)
    interval, method = _interval(both_pass, wins, losses, both_fail)
    return Comparison(
        _verdict(wins, losses, p_improved, p_regressed, spent, blocked), collapse, alpha, look, spent, cases,
        wins, losses, both_pass, both_fail, p_improved, p_regressed, interval, method,
        clopper_pearson_upper_one_sided(losses, len(cases), CONFIDENCE), Decisive(missing, both_fail, blocked),
    )  # fmt: skip


def _alpha_spent(alpha: float, look: int | None) -> float:
    if level("alpha", alpha) > MAX_ALPHA:
        raise OutOfDomain(f"alpha must be at most {MAX_ALPHA}, not {alpha}")
    return alpha if look is None else float(alpha_at_look(alpha, look))


def _verdict(wins: int, losses: int, p_improved: float, p_regressed: float, alpha: float, blocked: bool) -> ComparisonVerdict:
    if wins > losses and p_improved <= alpha and not blocked:
        return ComparisonVerdict.IMPROVED
    if losses > wins and p_regressed <= alpha:
        return ComparisonVerdict.REGRESSED
    return ComparisonVerdict.INCONCLUSIVE


def _pair(case_id: str, incumbent: CaseCounts | None, candidate: CaseCounts | None, rule: Collapse, critical: bool) -> PairedCase:
    ours, theirs = candidate or CaseCounts(), incumbent or CaseCounts()
    # Both are held to the larger plan, so that fewer trials never make a stricter rule easier for the candidate.
    planned = max(1, ours.planned, theirs.planned)
    assumed = planned - theirs.judged
    return PairedCase(
        case_id, critical, incumbent, candidate,
        _passes(theirs.passed + assumed, planned, rule), _passes(ours.passed, planned, rule),
        assumed, planned - ours.judged,
    )  # fmt: skip


def collapsed(counts: CaseCounts, rule: Collapse) -> bool:
    """The outcome of a case by itself: only passed trials count as passed."""
    return _passes(counts.passed, max(1, counts.planned), rule)


def _passes(passed: int, planned: int, rule: Collapse) -> bool:
    return passed == planned if rule is Collapse.ALL_PASS else 2 * passed > planned


def _interval(both: int, wins: int, losses: int, neither: int) -> tuple[Interval, str]:
    """Interval of the difference in case rates, candidate minus incumbent.

    Without a discordant case Newcombe's interval can be [0, 0], a certainty that no data gave; then what the data
    cannot exclude is bounded by Clopper-Pearson on wins and on losses, each at its half of the error.
    """
    if wins or losses:
        return newcombe_diff_paired(both, wins, losses, neither, CONFIDENCE), "newcombe-paired"
    each = clopper_pearson_upper_one_sided(0, both + neither, (1.0 + CONFIDENCE) / 2.0)
    return (-each, each), "clopper-pearson-no-discordant"
