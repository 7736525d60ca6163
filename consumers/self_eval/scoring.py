"""Scoring: one receipt against one suite, as a judgment.

Owns the verdict. It is pure: the same receipt, suite and observations give the same judgment, byte for byte,
live or by regrade.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agent_eval import Basis, CheckResult, Failure, Judgment, Verdict, receipts

from .grader_choice import kinds_of
from .suite import Case, Suite, read_suite

NOTHING_APPLICABLE = "nothing-applicable"
NOT_ASSESSABLE = "not-assessable"
COVERAGE = "@coverage"
_MAX_POINTERS = 50
STATE_DIFF_CASE = Case(
    "files-touched-are-real",
    "state_diff",
    True,
    False,
    "the trees that the harness was given are compared with the receipt",
    {"kind": "state_diff"},
)

Status = receipts.Status


class Scorer:
    """A suite made ready to score many receipts."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self._checks = [(case, receipts.prepare(case.assertion)) for case in suite.cases]
        self._state_diff = (STATE_DIFF_CASE, receipts.prepare(STATE_DIFF_CASE.assertion))
        self._has_state_diff = any("state_diff" in kinds_of(case.assertion) for case in suite.cases)
        self._binding = {"id": suite.id, "revision": suite.revision, "sha256": suite.sha256}
        self._grader = (("suite_revision", str(suite.revision)), ("suite_sha256", suite.sha256))

    def findings(self, sections: Mapping[str, Any], hidden: tuple[str, ...], observed: Mapping[str, Any]) -> list[tuple[Case, receipts.Finding]]:
        """Every active case with its finding. ``observed`` are the sections that the harness adds."""
        evidence = {**sections, **observed, receipts.HIDDEN: hidden, receipts.SCORING_SUITE: self._binding}
        checks = self._checks
        if receipts.STATE_DIFF in observed and not self._has_state_diff:
            # Whoever gives trees wants them compared, whether or not the suite asks for it.
            checks = [*checks, self._state_diff]
        return [(case, check(evidence)) for case, check in checks]

    def judge(self, sections: Mapping[str, Any], hidden: tuple[str, ...], observed: Mapping[str, Any]) -> Judgment:
        """Pass when every required case that applies passes; void when none applies."""
        found = self.findings(sections, hidden, observed)
        checks = [
            CheckResult(case.id, str(finding.status), finding.detail, finding.pointers[:_MAX_POINTERS]) for case, finding in found
        ]
        applicable = sum(finding.status is not Status.NOT_APPLICABLE for _, finding in found)
        if 2 * applicable < len(found):
            text = f"flagged: {len(found) - applicable} of {len(found)} assertions had nothing to say about this receipt"
            checks.append(CheckResult(COVERAGE, Status.NOT_APPLICABLE.value, text, ("",)))
        required = [(case, finding) for case, finding in found if case.required]
        failures = _failures(required)
        if failures:
            return Judgment(Verdict.FAIL, Basis.RECOMPUTED, failures, tuple(checks), grader=self._grader)
        if all(finding.status is Status.NOT_APPLICABLE for _, finding in required):
            failure = Failure(NOTHING_APPLICABLE, "no required assertion applies to this receipt")
            return Judgment(
                Verdict.VOID, Basis.RECOMPUTED, (failure,), tuple(checks), cause=NOTHING_APPLICABLE, grader=self._grader
            )
        return Judgment(Verdict.PASS, Basis.RECOMPUTED, (), tuple(checks), grader=self._grader)


def _failures(required: list[tuple[Case, receipts.Finding]]) -> tuple[Failure, ...]:
    contrary = [
        (case, finding) for case, finding in required if finding.status not in (Status.PASS, Status.NOT_APPLICABLE)
    ]
    contrary.sort(key=lambda pair: not pair[0].critical)
    return tuple(
        Failure(finding.reason, f"{case.id}: {finding.status.value}: {finding.detail}", finding.pointers[:_MAX_POINTERS])
        for case, finding in contrary
    )


def not_assessable(detail: str) -> Judgment:
    """The void of retained evidence that this code, or today's suite, cannot judge."""
    failure = Failure(NOT_ASSESSABLE, detail)
    return Judgment(Verdict.VOID, Basis.RECOMPUTED, (failure,), cause=NOT_ASSESSABLE)


@lru_cache(maxsize=4)
def scorer_for(suite_text: str) -> Scorer:
    """The scorer of a suite's exact text; raises ``InvalidInput`` when it is not a suite of this version."""
    return Scorer(read_suite(suite_text.encode("utf-8"), "suite.json"))
