"""The summary of a run: counts first, every planned trial in exactly one of them.

Owns ``summary.json`` and the rule of the exit code. It does pure arithmetic over
judgments; it neither reads evidence nor prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agent_eval.measure.reliability import pass_at_k, pass_hat_k
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.judgment import Basis, Judgment, Verdict
from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.records.plan import planned_numbers

INTERRUPTED = "interrupted"
COUNTS = ("passed", "failed", "void", "interrupted", "unrun")


@dataclass(slots=True)
class _CaseTally:
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS[:-1], 0))
    reasons: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    first: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Each reason's first place: number of the trial, and its rank there."""

    def add_reasons(self, number: int, reasons: tuple[str, ...]) -> None:
        for rank, reason in enumerate(reasons):
            place = (number, rank)
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            self.first[reason] = min(place, self.first.get(reason, place))

    def reasons_in_order(self) -> dict[str, int]:
        return {reason: self.reasons[reason] for reason in sorted(self.reasons, key=self.first.__getitem__)}


class Tally:
    """Adds up judged trials as they come; memory grows with the number of cases, not of trials.

    A trial counts under exactly one of ``passed``, ``failed``, ``void`` and ``interrupted``; what was planned
    and has no judgment is ``unrun``. Whatever is listed is in the order of the plan, in whichever order trials come.
    """

    def __init__(self, plan: dict) -> None:
        self._plan = plan
        self._cases = {case["id"]: _CaseTally() for case in plan["cases"]}
        self._basis = {basis.value: dict.fromkeys(("passed", "failed", "void"), 0) for basis in Basis}
        self._limits: dict[str, int] = {}
        self._leaks = {"trials": 0, "processes": 0, "unreaped": 0}
        self._unrecorded: dict[tuple[str, int], Judgment] = {}
        self.failed = 0
        self.done = 0

    def add(self, case_id: str, number: int, judgment: Judgment, outcome: Outcome | None, *, recorded: bool = True) -> None:
        """Count one trial. ``recorded`` is false when its record could not be written."""
        case = self._cases[case_id]
        column = column_of(judgment)
        case.counts[column] += 1
        self.done += 1
        if column == "failed":
            self.failed += 1
        if column != INTERRUPTED:
            self._basis[judgment.basis.value][column] += 1
        case.add_reasons(number, judgment.reasons)
        if not recorded:
            self._unrecorded[case_id, number] = judgment
        if outcome is not None:
            case.seconds += outcome.wall_s
            self._add_outcome(outcome)

    def _add_outcome(self, outcome: Outcome) -> None:
        if outcome.stop_reason in (StopReason.TIMEOUT, StopReason.OUTPUT_LIMIT):
            self._limits[outcome.stop_reason.value] = self._limits.get(outcome.stop_reason.value, 0) + 1
        if outcome.tree.leaked:
            self._leaks["trials"] += 1
            self._leaks["processes"] += outcome.tree.leaked
        self._leaks["unreaped"] += len(outcome.tree.unreaped)

    def summary(self, *, signal: int | None = None, facts: dict[str, object] | None = None) -> dict[str, object]:
        """The content of ``summary.json``.

        ``signal`` is the number of the signal that interrupted the run. ``facts`` are further plain JSON keys.
        pass@k and pass^k are per case, for every k up to the number of judged trials, and never pooled.
        """
        plan = self._plan
        cases = {name: self._case_summary(tally, len(planned_numbers(plan, name))) for name, tally in self._cases.items()}
        totals: dict[str, int] = {name: sum(case[name] for case in cases.values()) for name in COUNTS}
        exit_code = exit_code_of(totals, signal)
        unrecorded = self._unrecorded_judgments()
        not_scored = dict.fromkeys(text for case in self._plan["cases"] for text in case["not_scored"])
        return {
            "planned": self._plan["planned"],
            **totals,
            "judged": totals["passed"] + totals["failed"],
            "cases": cases,
            "basis": self._basis,
            "reliability": self._reliability(cases),
            "not_scored": list(not_scored),
            "limits_reached": dict(sorted(self._limits.items())),
            "leaks": self._leaks,
            "unrecorded": list(unrecorded),
            "unrecorded_judgments": unrecorded,
            "interrupted_by_signal": signal,
            "exit_code": int(exit_code),
            "verdict": verdict_word(exit_code),
            **(facts or {}),
        }

    def _unrecorded_judgments(self) -> dict[str, object]:
        """How each trial without a record was judged, in the order of the plan: nothing else on disk says it."""
        place = {case_id: index for index, case_id in enumerate(self._cases)}
        found = sorted(self._unrecorded.items(), key=lambda item: (place[item[0][0]], item[0][1]))
        return {f"{case_id}/{number:03d}": judgment.to_json() for (case_id, number), judgment in found}

    def _case_summary(self, tally: _CaseTally, trials: int) -> dict[str, Any]:
        passed, failed = tally.counts["passed"], tally.counts["failed"]
        judged = passed + failed
        return {
            "planned": trials,
            **tally.counts,
            "unrun": trials - sum(tally.counts.values()),
            "judged": judged,
            "reasons": tally.reasons_in_order(),
            "wall_s": tally.seconds,
            "pass_at_k": _for_every_k(pass_at_k, judged, passed),
            "pass_hat_k": _for_every_k(pass_hat_k, judged, passed),
        }

    def _reliability(self, cases: dict[str, dict]) -> dict[str, object] | None:
        """Mean over cases of each case's pass@k and pass^k, at the smallest number of trials that a case has.

        Of planned trials: one that is void, interrupted or unrun counts as not passed, so that losing a trial never helps.
        Per case the figures are of judged trials. ``None`` when nothing was planned.
        """
        planned = [case for case in cases.values() if case["planned"]]
        if not planned:
            return None
        k = min(case["planned"] for case in planned)
        at = [pass_at_k(case["planned"], case["passed"], k) for case in planned]
        hat = [pass_hat_k(case["planned"], case["passed"], k) for case in planned]
        return {"k": k, "cases": len(planned), "pass_at_k": sum(at) / len(at), "pass_hat_k": sum(hat) / len(hat), "of": "planned"}


@lru_cache(maxsize=1024)
def _for_every_k(share: Callable[[int, int, int], float], judged: int, passed: int) -> dict[str, float]:
    """``share`` for every k up to the number of judged trials; cases with the same counts have the same object."""
    return {str(k): share(judged, passed, k) for k in range(1, judged + 1)}


def column_of(judgment: Judgment) -> str:
    """The one count that a judged trial belongs to."""
    if judgment.verdict is Verdict.PASS:
        return "passed"
    if judgment.verdict is Verdict.FAIL:
        return "failed"
    return INTERRUPTED if judgment.cause == INTERRUPTED else "void"


def exit_code_of(counts: dict[str, int], signal: int | None = None) -> ExitCode:
    """The exit code that the counts of a run call for (``DESIGN 5``); ``signal`` wins, as 128 + its number."""
    if signal is not None:
        return ExitCode(128 + signal)
    if counts["failed"]:
        return ExitCode.FAILED
    if not counts["passed"]:
        return ExitCode.NOT_JUDGED
    if counts["void"] or counts["interrupted"] or counts["unrun"]:
        return ExitCode.INCOMPLETE
    return ExitCode.PASSED


def verdict_word(code: ExitCode) -> str:
    """One word for the headline."""
    words = {
        ExitCode.PASSED: "passed",
        ExitCode.FAILED: "failed",
        ExitCode.NOT_JUDGED: "not judged",
        ExitCode.INCOMPLETE: "incomplete",
        ExitCode.EVIDENCE: "evidence fault",
    }
    return words.get(code, "interrupted")
