"""Can this benchmark still tell a better candidate from the best so far?

Owns: ceiling, dead items, the top two, and headroom against the wins that a gate would need.
Does not own: the active epoch. Saturation only queues harder cases, it never changes what is being measured.

A suite that is full is `solved` only where its labels were audited; where too few cases were run to tell, it is
`under-resolved`, which is another thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_eval.measure.domain import OutOfDomain, level
from agent_eval.measure.exact import mcnemar_exact_two_sided, wins_needed
from agent_eval.measure.intervals import clopper_pearson, clopper_pearson_lower_one_sided, newcombe_diff_paired
from agent_eval.measure.multiplicity import alpha_at_look

FORMAT = "agent-eval/audit-saturation/1"
CONFIDENCE = 0.95
DEFAULT_CAP = 0.95


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate's outcome per case, trials already collapsed."""

    name: str
    outcomes: Mapping[str, bool]


def audit_saturation(
    candidates: Sequence[Candidate],
    *,
    cap: float = DEFAULT_CAP,
    last: int | None = None,
    alpha: float = 0.05,
    look: int | None = None,
    labels_audited: bool = False,
) -> dict:
    """The audit as plain JSON over candidates from oldest to newest.

    Only cases that every considered candidate has are compared; the others are named. `last` considers that many of
    the newest, all by default. `cap` is the rate that counts as full. Raises OutOfDomain for arguments outside their
    domain, no candidate, or no case in common.
    """
    level("cap", cap)
    spent = level("alpha", alpha) if look is None else float(alpha_at_look(alpha, look))
    considered = list(candidates if last is None else candidates[-last:])
    if not considered:
        raise OutOfDomain("there must be at least one candidate")
    cases = [case for case in considered[0].outcomes if all(case in one.outcomes for one in considered)]
    if not cases:
        raise OutOfDomain("the candidates must have at least one case in common")
    ranked = sorted(range(len(considered)), key=lambda i: (-_passed(considered[i], cases), -i))
    best = considered[ranked[0]]
    failing = [case for case in cases if not best.outcomes[case]]
    needed = wins_needed(0, spent)
    dead_passed = [case for case in cases if all(one.outcomes[case] for one in considered)]
    dead_failed = [case for case in cases if not any(one.outcomes[case] for one in considered)]
    state = _state(_passed(best, cases), len(cases), cap, len(failing) < needed, labels_audited)
    return {
        "format": FORMAT,
        "cases": len(cases),
        "not_in_every_candidate": sorted({case for one in considered for case in one.outcomes} - set(cases)),
        "candidates": [_score(one, cases) for one in considered],
        "best": best.name,
        "cap": cap,
        "best_lower_one_sided": clopper_pearson_lower_one_sided(_passed(best, cases), len(cases), CONFIDENCE),
        "state": state,
        "dead": {"all_pass": dead_passed, "all_fail": dead_failed} if len(considered) > 1 else None,
        "top_two": _top_two(considered[ranked[0]], considered[ranked[1]], cases) if len(considered) > 1 else None,
        "headroom": {
            "cases": len(failing), "wins_needed": needed, "alpha": alpha, "look": look, "alpha_spent": spent,
            "cannot_promote": len(failing) < needed,
        },
        "queue": _queue(failing, dead_passed, dead_failed, needed, len(considered)),
    }  # fmt: skip


def _passed(candidate: Candidate, cases: Sequence[str]) -> int:
    return sum(candidate.outcomes[case] for case in cases)


def _score(candidate: Candidate, cases: Sequence[str]) -> dict[str, object]:
    passed = _passed(candidate, cases)
    lower, upper = clopper_pearson(passed, len(cases), CONFIDENCE)
    return {"name": candidate.name, "passed": passed, "total": len(cases), "lower": lower, "upper": upper}


def _state(passed: int, total: int, cap: float, no_room: bool, audited: bool) -> str:
    """`ceiling` (or `solved` where labels were audited), `under-resolved`, `no-headroom`, or `open`."""
    if clopper_pearson_lower_one_sided(passed, total, CONFIDENCE) >= cap:
        return "solved" if audited else "ceiling"
    if passed / total >= cap:
        return "under-resolved"
    return "no-headroom" if no_room else "open"


def _top_two(first: Candidate, second: Candidate, cases: Sequence[str]) -> dict[str, object]:
    """The paired table of the two best; they are told apart only by the exact test, the interval is description."""
    pairs = [(first.outcomes[case], second.outcomes[case]) for case in cases]
    only_first, only_second = pairs.count((True, False)), pairs.count((False, True))
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    lower, upper = newcombe_diff_paired(both, only_first, only_second, neither, CONFIDENCE)
    p = mcnemar_exact_two_sided(only_first, only_second)
    return {
        "first": first.name,
        "second": second.name,
        "only_first": only_first,
        "only_second": only_second,
        "discordant": only_first + only_second,
        "p_two_sided": p,
        "difference": {
            "value": (only_first - only_second) / len(cases),
            "lower": lower,
            "upper": upper,
            "method": "newcombe-paired",
            "confidence": CONFIDENCE,
        },
        "separated": p <= 1.0 - CONFIDENCE,
    }


def _queue(failing: Sequence[str], passed: Sequence[str], failed: Sequence[str], needed: int, candidates: int) -> list[dict[str, object]]:
    """What to add or look at; an all-pass case discriminates nothing, an all-fail one may have a wrong label."""
    queue: list[dict[str, object]] = []
    if len(failing) < needed:
        missing = needed - len(failing)
        queue.append({"id": None, "kind": "add-harder-cases", "detail": f"at least {missing} more that the best fails"})
    if candidates > 1:
        queue += [{"id": case, "kind": "all-fail", "detail": f"failed by all {candidates}: check its label"} for case in failed]
        queue += [{"id": case, "kind": "all-pass", "detail": f"passed by all {candidates}: tells nobody apart"} for case in passed]
    return queue
