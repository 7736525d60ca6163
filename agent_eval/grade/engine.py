"""The one assertion engine: five-valued findings over named evidence.

Owns the registry of assertion kinds, the validation of specifications (every
problem at once), their evaluation, and the Boolean combinators. It does not know
what any evidence means: ``receipt_kinds_*`` and ``scenario_kinds_*`` bring the kinds.

A specification is a JSON object ``{"kind": NAME, ...fields}``. Evidence is a mapping of
section names to JSON values. A section that is *absent* is not an empty one: a
kind that needs it answers ``missing``, because a subject that hides its evidence
must not satisfy every "must not".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from agent_eval.records.problems import InvalidInput, Problem

from .fields import Field, Form, record_problems

EVIDENCE_HIDDEN = "evidence_hidden"
MAX_NESTING = 16


class Status(enum.StrEnum):
    """What an assertion came to. Only ``pass`` passes; ``not_applicable`` leaves the denominator."""

    PASS = "pass"
    FAIL = "fail"  # the evidence is there and contrary
    MISSING = "missing"  # the evidence that would decide is absent or redacted
    UNSUPPORTED = "unsupported"  # cannot be decided from evidence of this kind
    NOT_APPLICABLE = "not_applicable"  # the antecedent does not hold


@dataclass(frozen=True, slots=True)
class Finding:
    """One evaluated assertion.

    ``pointers`` are JSON pointers (RFC 6901) into the evidence mapping, the places that
    decided. ``reason`` is a short machine word for anything but a pass, such as
    ``evidence_hidden``; ``detail`` says the same for a person and never holds a secret.
    """

    status: Status
    detail: str = ""
    pointers: tuple[str, ...] = ()
    reason: str = ""


Spec = Mapping[str, Any]
Evidence = Mapping[str, Any]
Check = Callable[[Evidence], Finding]


def passed(detail: str = "", *pointers: str) -> Finding:
    """A pass that rests on ``pointers``."""
    return Finding(Status.PASS, detail, pointers)


def failed(detail: str, *pointers: str, reason: str = "behaviour") -> Finding:
    """The evidence is there and says otherwise."""
    return Finding(Status.FAIL, detail, pointers, reason)


def missing(detail: str, *pointers: str) -> Finding:
    """What would decide is not in the evidence: reason ``evidence_hidden``."""
    return Finding(Status.MISSING, detail, pointers, EVIDENCE_HIDDEN)


def unsupported(detail: str, *pointers: str, reason: str = "unsupported") -> Finding:
    """Evidence of this kind can never decide it."""
    return Finding(Status.UNSUPPORTED, detail, pointers, reason)


def not_applicable(detail: str, *pointers: str) -> Finding:
    """The assertion has nothing to say here."""
    return Finding(Status.NOT_APPLICABLE, detail, pointers, "not_applicable")


class Kind:
    """One kind of assertion; subclass it, set the four attributes, and decorate with :func:`register`.

    ``check`` decides. ``prepare`` may be overridden instead where work (splitting, compiling
    a pattern) can be done once for many pieces of evidence. ``problems`` adds rules between
    fields; it runs only when every single field is right.
    """

    name: ClassVar[str]
    summary: ClassVar[str]  # "passes when ...", one sentence
    family: ClassVar[str]  # "logic", "receipt" or "scenario": which evidence it reads
    fields: ClassVar[Mapping[str, Field]]

    def check(self, spec: Spec, evidence: Evidence) -> Finding:
        """Decide ``spec`` on ``evidence``. ``spec`` has been validated."""
        return self.prepare(spec)(evidence)

    def prepare(self, spec: Spec) -> Check:
        """``spec`` as a function of the evidence."""
        return lambda evidence: self.check(spec, evidence)

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        """What is wrong between fields that are right one by one."""
        return []


_KINDS: dict[str, Kind] = {}
_KindClass = TypeVar("_KindClass", bound=type[Kind])


def register(kind: _KindClass) -> _KindClass:
    """Class decorator: make a kind known under its name. Two kinds of one name are a programming error."""
    if kind.name in _KINDS:
        raise ValueError(f"assertion kind {kind.name!r} is registered twice")
    _KINDS[kind.name] = kind()
    return kind


def kinds(family: str | None = None) -> list[Kind]:
    """Every registered kind (of one family, with the combinators), by name."""
    wanted = (kind for kind in _KINDS.values() if family is None or kind.family in (family, "logic"))
    return sorted(wanted, key=lambda kind: kind.name)


def validate(spec: object, where: str, *, family: str | None = None) -> list[Problem]:
    """Every problem of a specification: unknown kind or field, wrong type, missing field.

    ``where`` is the JSON path that messages start with. With ``family``, kinds that read
    other evidence are unknown.
    """
    return _validate(spec, where, family, 1)


def _validate(spec: object, where: str, family: str | None, depth: int) -> list[Problem]:
    if not isinstance(spec, Mapping):
        return [Problem(where, "an assertion is a JSON object", 'write {"kind": ..., ...}')]
    if depth > MAX_NESTING:
        return [Problem(where, f"assertions are nested deeper than {MAX_NESTING}")]
    name = spec.get("kind")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None or (family is not None and kind.family not in (family, "logic")):
        known = ", ".join(known.name for known in kinds(family))
        shown = repr(name) if isinstance(name, str) else "none" if name is None else "one that is not text"
        return [Problem(f"{where}/kind", f"unknown assertion kind: {shown}", f"use one of {known}")]
    given = {key: value for key, value in spec.items() if key != "kind"}
    problems = record_problems(kind.fields, given, where, kind.name)
    for key, value in _nested(kind, spec):
        problems += _validate(value, f"{where}/{key}", family, depth + 1)
    return problems or kind.problems(spec, where)


def _nested(kind: Kind, spec: Spec) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, field in kind.fields.items():
        value = spec.get(key)
        if field.form is ASSERTION and isinstance(value, Mapping):
            found.append((key, value))
        elif field.form is ASSERTIONS and isinstance(value, list):
            found += [(f"{key}/{index}", item) for index, item in enumerate(value)]
    return found


def prepare(spec: Spec) -> Check:
    """A validated specification as a function of the evidence; raises ``InvalidInput`` on an unknown kind."""
    name = spec.get("kind")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput.one("kind", f"unknown assertion kind {name!r}")
    return kind.prepare(spec)


def evaluate(spec: Spec, evidence: Evidence) -> Finding:
    """Decide one validated specification. An absent section is ``missing``, never empty."""
    return prepare(spec)(evidence)


# The forms of nested assertions: the engine itself walks into them, so the forms
# only look at the outer type.
ASSERTION = Form("an assertion", lambda value: isinstance(value, Mapping))
ASSERTIONS = Form("a non-empty list of assertions", lambda value: isinstance(value, list) and bool(value))


def _join(findings: list[Finding]) -> tuple[str, tuple[str, ...], str]:
    details = "; ".join(dict.fromkeys(finding.detail for finding in findings if finding.detail))
    pointers = tuple(dict.fromkeys(pointer for finding in findings for pointer in finding.pointers))
    return details, pointers, findings[0].reason if findings else ""


def _decide(findings: list[Finding], order: tuple[Status, ...], otherwise: Status) -> Finding:
    """The first status of ``order`` that any finding has; ``otherwise`` when some apply; else not applicable."""
    for status in order:
        chosen = [finding for finding in findings if finding.status is status]
        if chosen:
            return Finding(status, *_join(chosen))
    chosen = [finding for finding in findings if finding.status is otherwise]
    if chosen:
        return Finding(otherwise, *_join(chosen))
    return not_applicable("none of its parts applies")


@register
class AllOf(Kind):
    """Conjunction. A fail decides whatever is unknown; an unknown part keeps it from passing."""

    name = "all_of"
    summary = "passes when every applicable part passes, and at least one does"
    family = "logic"
    fields: ClassVar[Mapping[str, Field]] = {"of": Field(ASSERTIONS, "the parts", required=True)}

    def prepare(self, spec: Spec) -> Check:
        """All parts are evaluated, so that the finding names every contrary place."""
        parts = [prepare(part) for part in spec["of"]]
        order = (Status.FAIL, Status.MISSING, Status.UNSUPPORTED)
        return lambda evidence: _decide([part(evidence) for part in parts], order, Status.PASS)


@register
class AnyOf(Kind):
    """Disjunction. A pass decides whatever is unknown; an unknown part keeps it from failing."""

    name = "any_of"
    summary = "passes when at least one part passes"
    family = "logic"
    fields: ClassVar[Mapping[str, Field]] = {"of": Field(ASSERTIONS, "the parts", required=True)}

    def prepare(self, spec: Spec) -> Check:
        """All parts are evaluated, so that the finding names every place."""
        parts = [prepare(part) for part in spec["of"]]
        order = (Status.PASS, Status.MISSING, Status.UNSUPPORTED)
        return lambda evidence: _decide([part(evidence) for part in parts], order, Status.FAIL)


@register
class Not(Kind):
    """Negation. Not of ``missing`` is ``missing``: hiding evidence satisfies nothing."""

    name = "not"
    summary = "passes when its part fails; missing, unsupported and not_applicable stay what they are"
    family = "logic"
    fields: ClassVar[Mapping[str, Field]] = {"of": Field(ASSERTION, "the part", required=True)}

    def prepare(self, spec: Spec) -> Check:
        """Swap pass and fail, keep the rest."""
        part = prepare(spec["of"])

        def check(evidence: Evidence) -> Finding:
            finding = part(evidence)
            if finding.status is Status.PASS:
                return failed(f"must not hold: {finding.detail}", *finding.pointers)
            if finding.status is Status.FAIL:
                return passed(finding.detail, *finding.pointers)
            return finding

        return check


@register
class IfThen(Kind):
    """Implication. When the antecedent fails there is nothing to assert, which is not a pass."""

    name = "if_then"
    summary = "passes when 'then' passes; not applicable when 'if' fails"
    family = "logic"
    fields: ClassVar[Mapping[str, Field]] = {
        "if": Field(ASSERTION, "the antecedent", required=True),
        "then": Field(ASSERTION, "what must hold when the antecedent does", required=True),
    }

    def prepare(self, spec: Spec) -> Check:
        """An antecedent that cannot be decided leaves the whole undecided, in the same way."""
        antecedent, consequent = prepare(spec["if"]), prepare(spec["then"])

        def check(evidence: Evidence) -> Finding:
            condition = antecedent(evidence)
            if condition.status is Status.PASS:
                return consequent(evidence)
            if condition.status is Status.FAIL:
                return not_applicable(f"the antecedent does not hold: {condition.detail}", *condition.pointers)
            return condition

        return check
