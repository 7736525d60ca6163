"""The judgment: a verdict with reasons and the evidence they rest on.

Owns the typed record and its JSON form (``trial.json``, key ``judgment``). It holds
neither times nor absolute paths, so that judging the same evidence twice gives
the same bytes. It does not decide anything; ``grade`` and the consumers do.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """``void`` says nothing about the subject: the harness, the model service or the evidence is at fault."""

    PASS = "pass"
    FAIL = "fail"
    VOID = "void"


class Basis(enum.StrEnum):
    """``recomputed`` from retained evidence by this code, or ``owner-attested``: an owner's report, copied."""

    RECOMPUTED = "recomputed"
    OWNER_ATTESTED = "owner-attested"


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason. ``evidence`` points at what it rests on: ``trial.json#/outcome/exit_code``, ``events.jsonl#L12``."""

    reason: str
    detail: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of several. ``status`` is ``pass``, ``fail``, ``missing``, ``unsupported`` or ``not_applicable``."""

    id: str
    status: str
    detail: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgment:
    """A verdict on one trial. A void has a ``cause``; a fail has at least one failure; a pass has none.

    ``grader`` is ``{name, source_sha256}`` of the code that decided. The JSON form's ``evidence`` is every pointer once.
    """

    verdict: Verdict
    basis: Basis
    failures: tuple[Failure, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    cause: str | None = None
    grader: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.verdict is Verdict.FAIL and not self.failures:
            raise ValueError("a fail needs a reason")
        if self.verdict is Verdict.PASS and self.failures:
            raise ValueError("a pass cannot have failures")
        if (self.verdict is Verdict.VOID) != (self.cause is not None):
            raise ValueError("a void has a cause, and nothing else has")

    def graded_by(self, grader: tuple[tuple[str, str], ...]) -> Judgment:
        """The same judgment with ``grader`` before what it says of its grader already."""
        return Judgment(self.verdict, self.basis, self.failures, self.checks, self.cause, (*grader, *self.grader))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason words, in order, each once."""
        return tuple(dict.fromkeys(failure.reason for failure in self.failures))

    @property
    def counts(self) -> dict[str, int]:
        """How many checks have each status; a status that none has is not named."""
        counts: dict[str, int] = {}
        for check in self.checks:
            counts[check.status] = counts.get(check.status, 0) + 1
        return counts

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values. ``counts`` is derived and not read back."""
        return {
            "verdict": self.verdict.value,
            "basis": self.basis.value,
            "cause": self.cause,
            "failures": [
                {"reason": f.reason, "detail": f.detail, "evidence": list(f.evidence)} for f in self.failures
            ],
            "checks": [
                {"id": c.id, "status": c.status, "detail": c.detail, "evidence": list(c.evidence)} for c in self.checks
            ],
            "counts": self.counts,
            "evidence": sorted({p for f in self.failures for p in f.evidence} | {p for c in self.checks for p in c.evidence}),
            "grader": dict(self.grader),
        }

    @classmethod
    def from_json(cls, value: dict) -> Judgment:
        """The record that :meth:`to_json` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        return cls(
            verdict=Verdict(value["verdict"]),
            basis=Basis(value["basis"]),
            cause=value["cause"],
            failures=tuple(Failure(f["reason"], f["detail"], tuple(f["evidence"])) for f in value["failures"]),
            checks=tuple(
                CheckResult(c["id"], c["status"], c["detail"], tuple(c["evidence"])) for c in value["checks"]
            ),
            grader=tuple(sorted(value["grader"].items())),
        )
