"""Which labels should a person look at again? A review queue, never a new label.

Owns: three signals of a wrong label, the noise estimate, and what noise does to a score near the top.
Does not own: relabelling. A relabel is a person's decision and a new revision of the benchmark; the old one stays.

Signals: every strong system fails the item (and, weaker, at least one does); two or more independent graders agree
with each other against the label; confident learning (Northcutt et al. 2021) where probabilities exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from fractions import Fraction

from agent_eval.measure.domain import OutOfDomain, probability
from agent_eval.measure.intervals import clopper_pearson

FORMAT = "agent-eval/audit-labels/1"
CONFIDENCE = 0.95
# In the order in which a reviewer's time is best spent.
SIGNALS = ("graders-against-label", "every-system-fails", "confident-learning", "a-system-fails")
_MIN_GRADERS = 2


def audit_labels(
    labels: Mapping[str, bool],
    graders: Mapping[str, Mapping[str, bool]],
    systems: Mapping[str, Mapping[str, bool]],
    probabilities: Mapping[str, float] | None = None,
    reviewed: Mapping[str, bool] | None = None,
) -> dict:
    """The audit as plain JSON, with a queue ordered by SIGNALS and then as the labels were given.

    `graders` and `systems` are named tables of verdicts and of outcomes by item; `probabilities` is P(pass) by item;
    `reviewed` says of a *random* sample of items whether the label was found wrong (a reviewed queue would not do: it
    was selected for looking wrong). Raises OutOfDomain for a probability outside [0, 1].
    """
    confident = _confident(labels, probabilities or {})
    queue: list[dict] = []
    for item, label in labels.items():
        signals = _signals(item, label, graders, systems, confident)
        if signals:
            queue.append({"id": item, "label": "pass" if label else "fail", "signals": signals})
    queue.sort(key=lambda entry: SIGNALS.index(entry["signals"][0]["kind"]))
    noise = _noise(reviewed)
    return {
        "format": FORMAT,
        "items": len(labels),
        "graders": list(graders),
        "systems": list(systems),
        "signals": {kind: sum(any(s["kind"] == kind for s in entry["signals"]) for entry in queue) for kind in SIGNALS},
        "queue": queue,
        "noise": noise,
        "scores": {name: _score(outcomes, noise) for name, outcomes in systems.items()},
        "not_exercised": _not_exercised(graders, systems, probabilities, reviewed),
    }


def _signals(
    item: str,
    label: bool,
    graders: Mapping[str, Mapping[str, bool]],
    systems: Mapping[str, Mapping[str, bool]],
    confident: Mapping[str, str],
) -> list[dict[str, str]]:
    found: dict[str, str] = {}
    against = [name for name, verdicts in graders.items() if item in verdicts and verdicts[item] is not label]
    if len(against) >= _MIN_GRADERS:
        asked = sum(item in verdicts for verdicts in graders.values())
        found["graders-against-label"] = f"{len(against)} of {asked} graders say {'fail' if label else 'pass'}: {', '.join(against)}"
    tried = [name for name, outcomes in systems.items() if item in outcomes]
    failing = [name for name in tried if not systems[name][item]]
    if failing and len(failing) == len(tried):
        found["every-system-fails"] = f"all {len(tried)}: {', '.join(failing)}"
    elif failing:
        found["a-system-fails"] = f"{len(failing)} of {len(tried)}: {', '.join(failing)}"
    if item in confident:
        found["confident-learning"] = confident[item]
    return [{"kind": kind, "detail": found[kind]} for kind in SIGNALS if kind in found]


def _confident(labels: Mapping[str, bool], chances: Mapping[str, float]) -> dict[str, str]:
    """Items whose probability of the other class reaches that class's threshold, the largest such class winning.

    The threshold of a class is the mean probability of that class over the items labelled with it.
    """
    known = {item: probability(f"probability of {item}", value) for item, value in chances.items() if item in labels}
    means = {}
    for label in (True, False):
        members = [Fraction(p if label else 1.0 - p) for item, p in known.items() if labels[item] is label]
        if not members:
            return {}
        means[label] = float(sum(members) / len(members))
    found = {}
    for item, p in known.items():
        label = labels[item]
        own, other = (p, 1.0 - p) if label else (1.0 - p, p)
        if other >= means[not label] and (own < means[label] or other > own):
            found[item] = f"P({'fail' if label else 'pass'}) {other:.3g}, threshold {means[not label]:.3g}"
    return found


def _noise(reviewed: Mapping[str, bool] | None) -> dict[str, object] | None:
    if not reviewed:
        return None
    wrong, total = sum(reviewed.values()), len(reviewed)
    lower, upper = clopper_pearson(wrong, total, CONFIDENCE)
    return {"wrong": wrong, "reviewed": total, "value": wrong / total, "lower": lower, "upper": upper, "confidence": CONFIDENCE}


def _score(outcomes: Mapping[str, bool], noise: Mapping | None) -> dict[str, object]:
    """A system's score, and whether the label noise leaves it distinguishable from a perfect one (None: unknown)."""
    if not outcomes:
        raise OutOfDomain("a system must have at least one outcome")
    passed, total = sum(outcomes.values()), len(outcomes)
    lower, upper = clopper_pearson(passed, total, CONFIDENCE)
    at_ceiling = None if noise is None else upper > 1.0 - noise["lower"]
    return {"passed": passed, "total": total, "lower": lower, "upper": upper, "indistinguishable_from_ceiling": at_ceiling}


def _not_exercised(graders: Sized, systems: Sized, probabilities: object, reviewed: object) -> list[str]:
    missing = []
    if len(graders) < _MIN_GRADERS:
        missing.append("graders against the label (needs two or more independent graders)")
    if not systems:
        missing.append("items that strong systems fail (needs their outcomes)")
    if not probabilities:
        missing.append("confident learning (needs probabilities)")
    if not reviewed:
        missing.append("label noise (needs a reviewed random sample)")
    return missing
