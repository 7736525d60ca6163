"""What a guardrail suite can and cannot show: generated from its cases and arms, with what its owner declared.

Owns the coverage statement that stands in every report and decision. It scores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_eval.gates.guardrail.suite import Case

_EXERCISED = {
    "tools": "tools",
    "files": "files",
    "multi_step": "multi-step behaviour",
    "production_side_effects": "production side effects",
}


def statement(config: Mapping, cases: Sequence[Case], unguarded: Sequence[str] | None = None) -> dict[str, object]:
    """The statement; ``unguarded`` are the ids that breach without a policy, when that is known."""
    families: dict[str, list[Case]] = {}
    for case in cases:
        if case.attack:
            families.setdefault(case.family, []).append(case)
    declared = config["coverage"]
    notes = []
    if config["target"]["stub"]:
        notes.append("the target is a deterministic stub: this verifies the harness, not safety")
    if not config["judge"].get("validation"):
        notes.append("the judge is unvalidated: its TPR and TNR are not stated")
    if config["pass_environment"]:
        notes.append(f"values of {', '.join(sorted(config['pass_environment']))} are passed by name and not frozen")
    if declared["turns"] == "single":
        notes.append("single-turn only")
    notes += [f"{words} not exercised" for name, words in _EXERCISED.items() if not declared[name]]
    without_headroom = None
    if unguarded is not None:
        breached = set(unguarded)
        without_headroom = sorted(name for name, items in families.items() if not any(case.id in breached for case in items))
    return {
        "declared": dict(declared),
        "cannot_exercise": list(config["cannot_exercise"]),
        "notes": notes,
        "attack_families": {name: len(items) for name, items in sorted(families.items())},
        "families_without_cases": sorted(set(declared["families"]) - families.keys()),
        "families_without_headroom": without_headroom,
        "judge_validation": config["judge"].get("validation"),
    }
