"""May two runs be compared? What must be equal, what may be waived, what never may.

Owns: finding every difference between two plans that would make a paired comparison compare something else as well.
Does not own: the comparison, nor reading plans from disk.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass

SCRIPTED = "scripted"
_MAX_NAMED = 5


class Term(enum.StrEnum):
    """A condition of a run that `--allow-different` may waive."""

    SEED = "seed"
    EVALUATOR = "evaluator"
    SCENARIOS = "scenarios"
    LIMITS = "limits"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Difference:
    """One term in which two plans differ; `detail` shows the incumbent's and the candidate's."""

    term: Term
    detail: str


def differences(incumbent: Mapping, candidate: Mapping) -> list[Difference]:
    """Every waivable difference of two plans, in the order of Term."""
    found = [
        _unequal(Term.SEED, "task seed", incumbent.get("task_seed"), candidate.get("task_seed")),
        _evaluators(incumbent, candidate),
        _scenarios(incumbent, candidate),
        _limits(incumbent, candidate),
        _unequal(Term.MODEL, "model", model_of(incumbent), model_of(candidate)),
    ]
    return [difference for difference in found if difference is not None]


def incomparable(incumbent: Mapping, candidate: Mapping) -> list[str]:
    """Reasons for which no waiver exists: another consumer, or a scripted subject beside a model."""
    reasons = []
    if incumbent.get("consumer") != candidate.get("consumer"):
        reasons.append(f"the incumbent ran {incumbent.get('consumer')}, the candidate {candidate.get('consumer')}")
    kinds = subject_kind(incumbent), subject_kind(candidate)
    if (SCRIPTED in kinds) and kinds[0] != kinds[1]:
        shown = [kind or "of unknown kind" for kind in kinds]
        reasons.append(f"the incumbent's subject is {shown[0]}, the candidate's {shown[1]}: a script is never compared with a model")
    return reasons


def subject_kind(plan: Mapping) -> str | None:
    """`model`, `scripted`, or None where the consumer has no such notion."""
    subject = plan.get("subject")
    if not isinstance(subject, Mapping):
        return None
    contract = subject.get("contract")
    declared = contract.get("subject_kind") if isinstance(contract, Mapping) else None
    kind = subject.get("subject_kind", declared)
    return kind if isinstance(kind, str) else None


def model_of(plan: Mapping) -> object:
    """What a plan says of the model behind its subject; None where it says nothing.

    It stands in the subject itself, or in the transport by which the subject reached its model.
    """
    subject = plan.get("subject")
    if not isinstance(subject, Mapping):
        return None
    transport = subject.get("transport")
    reached = transport.get("model") if isinstance(transport, Mapping) else None
    return subject.get("model", reached)


def limits_of(plan: Mapping) -> dict[str, object]:
    """The limits of a plan, with the one on model requests that a transport may add."""
    subject = plan.get("subject")
    transport = subject.get("transport") if isinstance(subject, Mapping) else None
    requests = transport.get("max_model_requests") if isinstance(transport, Mapping) else None
    return {**(plan.get("limits") or {}), **({} if requests is None else {"max_model_requests": requests})}


def _unequal(term: Term, name: str, before: object, after: object) -> Difference | None:
    return None if before == after else Difference(term, f"{name} {_show(before)} and {_show(after)}")


def _show(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _evaluators(incumbent: Mapping, candidate: Mapping) -> Difference | None:
    before, after = incumbent.get("evaluator") or {}, candidate.get("evaluator") or {}
    # Python and platform are recorded beside it and may differ between the machines of one run.
    parts = [
        f"{key} {str(before.get(key))[:12]} and {str(after.get(key))[:12]}"
        for key in ("version", "source_sha256")
        if before.get(key) != after.get(key)
    ]
    return Difference(Term.EVALUATOR, "; ".join(parts)) if parts else None


def _scenarios(incumbent: Mapping, candidate: Mapping) -> Difference | None:
    before, after = _cases(incumbent), _cases(candidate)
    parts = [
        _named("only in the incumbent", [case for case in before if case not in after]),
        _named("only in the candidate", [case for case in after if case not in before]),
        _named("changed", [case for case in before if case in after and before[case] != after[case]]),
    ]
    detail = "; ".join(part for part in parts if part)
    return Difference(Term.SCENARIOS, detail) if detail else None


def _cases(plan: Mapping) -> dict[str, object]:
    return {case["id"]: case.get("sha256") for case in plan["cases"]}


def _named(what: str, cases: list[str]) -> str:
    if not cases:
        return ""
    more = f" and {len(cases) - _MAX_NAMED} more" if len(cases) > _MAX_NAMED else ""
    return f"{what}: {', '.join(cases[:_MAX_NAMED])}{more}"


def _limits(incumbent: Mapping, candidate: Mapping) -> Difference | None:
    before, after = limits_of(incumbent), limits_of(candidate)
    parts = [
        f"{key} {_show(before.get(key))} and {_show(after.get(key))}"
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]
    return Difference(Term.LIMITS, "; ".join(parts)) if parts else None
