"""Does a binary judge agree with people? Validation of its verdicts against labels.

Owns: pairing labels with verdicts, the refusals, the rates with their intervals, and the corrected prevalence.
Does not own: the formulas (`agreement`, `intervals`), the file forms (`rows`), the wording.

Positive is a human "pass". TPR and TNR are reported apart, each with its own count, because a judge that passes
everything agrees in 90 % of a 90/10 sample. A verdict declared "unparsed" is nobody's default: it is counted, shown,
and wrong for both rates. A validation holds for the judge, prompt, model and parser that were validated, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent_eval.measure.agreement import cohen_kappa, prevalence_interval, rogan_gladen
from agent_eval.measure.intervals import clopper_pearson
from agent_eval.measure.rows import Reading, Row
from agent_eval.measure.text_overlap import normalise
from agent_eval.records.problems import InvalidInput, Problem

FORMAT = "agent-eval/judge-validation/1"
SPLITS = ("train", "dev", "test")
FEW_OF_A_CLASS = 30
CONFIDENCE = 0.95
_MAX_NAMED = 50
_LABEL_FIELDS = ("label", "passed", "verdict")
_VERDICT_FIELDS = ("verdict", "passed", "label")


@dataclass(frozen=True, slots=True)
class Item:
    """One labelled item with the judge's verdict; `verdict` is None where the judge's answer could not be read."""

    id: str
    label: bool
    verdict: bool | None
    failure_mode: str | None

    @property
    def cell(self) -> str:
        """tp, fn, tn, fp, or unparsed."""
        if self.verdict is None:
            return "unparsed"
        if self.label:
            return "tp" if self.verdict else "fn"
        return "fp" if self.verdict else "tn"


def validate_judge(
    labels: Reading,
    verdicts: Reading,
    unlabelled: Reading | None = None,
    *,
    split: str | None = None,
    min_tpr: float | None = None,
    min_tnr: float | None = None,
) -> dict:
    """The validation as plain JSON. `min_tpr` and `min_tnr` are held against the lower bounds of the intervals.

    Scored are the items of `split`, else of `test`, else of `dev`, else all when the labels name no split; never
    `train`. Raises InvalidInput with every problem: missing, duplicate or unmatched ids, values that are not binary,
    labels of one class, splits that overlap by id, text or group.
    """
    readings = [reading for reading in (labels, verdicts, unlabelled) if reading is not None]
    split_of = _splits(labels)
    scored = _scored_split(labels, split_of, split)
    items = _paired(labels, verdicts, split_of, scored)
    _check_unlabelled(labels, unlabelled)
    fresh = _verdict_counts(unlabelled)
    problems = [problem for reading in readings for problem in reading.problems]
    if not problems:
        problems = _one_class(labels, items)
    if problems:
        raise InvalidInput(problems)
    return _record(items, scored, fresh, {"tpr": min_tpr, "tnr": min_tnr})


def _splits(labels: Reading) -> dict[str, str]:
    """Split of every item, with the problems of the assignment noted in `labels`."""
    found: dict[str, str] = {}
    for name, ids in labels.splits.items():
        for item in ids:
            if found.setdefault(item, name) != name:
                labels.problems.append(
                    Problem(
                        f"{labels.name}, splits",
                        f"item {item!r} is in {found[item]} and in {name}: the splits overlap",
                        "every item in one split",
                    )
                )
    for row in labels.rows:
        split = row.fields.get("split")
        if split is not None and found.setdefault(row.id, str(split)) != str(split):
            what = f"item {row.id!r} is in {found[row.id]} and in {split}: the splits overlap"
            labels.problems.append(Problem(row.where, what, "every item in one split"))
    if not found:
        return found
    for row in labels.rows:
        if row.id not in found:
            labels.problems.append(
                Problem(row.where, f"item {row.id!r} is in no split while others are", f"name one of {', '.join(SPLITS)}")
            )
        elif found[row.id] not in SPLITS:
            labels.problems.append(Problem(row.where, f"item {row.id!r} is in split {found[row.id]!r}", f"name one of {', '.join(SPLITS)}"))
    _check_overlap(labels, found)
    return found


def _check_overlap(labels: Reading, split_of: Mapping[str, str]) -> None:
    """The same text or group under different ids in two splits is an overlap too."""
    for name in ("text", "group"):
        first: dict[str, Row] = {}
        for row in labels.rows:
            value = labels.text(row, name)
            if value is None or row.id not in split_of:
                continue
            other = first.setdefault(normalise(value) if name == "text" else value, row)
            if split_of.get(other.id) != split_of[row.id]:
                what = f"items {other.id!r} ({split_of.get(other.id)}) and {row.id!r} ({split_of[row.id]}) have the same {name}: the splits overlap"
                labels.problems.append(Problem(row.where, what, "keep an item and its copies in one split"))


def _scored_split(labels: Reading, split_of: Mapping[str, str], wanted: str | None) -> str | None:
    present = set(split_of.values())
    if wanted is not None and wanted not in present:
        labels.problems.append(Problem("--split", f"no item of {labels.name} is in {wanted}"))
    return wanted or next((name for name in ("test", "dev") if name in present), None)


def _paired(labels: Reading, verdicts: Reading, split_of: Mapping[str, str], scored: str | None) -> list[Item]:
    items, missing = [], []
    judged = verdicts.by_id()
    for row in labels.by_id().values():
        label = labels.binary(row, _LABEL_FIELDS)
        other = judged.pop(row.id, None)
        if split_of and split_of.get(row.id) != scored:
            continue
        if other is None:
            missing.append(row.id)
            continue
        verdict = verdicts.binary(other, _VERDICT_FIELDS, unparsed_ok=True)
        if label is not None:
            items.append(Item(row.id, label, verdict, labels.text(row, "failure_mode")))
    _note(verdicts, missing, f"no verdict for {{}} labelled in {labels.name}", 'a missing verdict is not dropped: give it, or "unparsed"')
    _note(verdicts, judged, f"no label in {labels.name} for {{}}", "give items without a label with --unlabelled")
    return items


def _check_unlabelled(labels: Reading, unlabelled: Reading | None) -> None:
    if unlabelled is not None:
        known = labels.by_id()
        both = [item for item in unlabelled.by_id() if item in known]
        _note(unlabelled, both, f"{{}} with a label in {labels.name}", "an item that makes the correction is not corrected by it")


def _note(reading: Reading, ids: Iterable[str], what: str, fix: str) -> None:
    """One problem that names the items, where there are any."""
    listed = list(ids)
    if listed:
        more = f" and {len(listed) - _MAX_NAMED} more" if len(listed) > _MAX_NAMED else ""
        named = f"{len(listed)} item{'s' if len(listed) > 1 else ''} ({', '.join(listed[:_MAX_NAMED])}{more})"
        reading.problems.append(Problem(reading.name, what.format(named), fix))


def _verdict_counts(unlabelled: Reading | None) -> tuple[int, int, int] | None:
    """Passed, all, unparsed among the items without a label."""
    if unlabelled is None:
        return None
    found = [unlabelled.binary(row, _VERDICT_FIELDS, unparsed_ok=True) for row in unlabelled.by_id().values()]
    return found.count(True), len(found), found.count(None)


def _one_class(labels: Reading, items: list[Item]) -> list[Problem]:
    classes = {item.label for item in items}
    if len(classes) == 2:
        return []
    shown = "no item" if not classes else f"{len(items)} items, every label is {'pass' if True in classes else 'fail'}"
    return [
        Problem(labels.name, f"one class only: {shown}", "a judge is validated on both classes; one of the two rates would be undefined")
    ]


def _record(items: list[Item], scored: str | None, fresh: tuple[int, int, int] | None, thresholds: dict[str, float | None]) -> dict:
    cells = [item.cell for item in items]
    tp, tn = cells.count("tp"), cells.count("tn")
    positives = sum(item.label for item in items)
    negatives = len(items) - positives
    wrong_positive, wrong_negative = positives - tp, negatives - tn
    rates = {"tpr": rate(tp, positives), "tnr": rate(tn, negatives)}
    return {
        "format": FORMAT,
        "split": scored,
        "items": len(items),
        "positives": positives,
        "negatives": negatives,
        "confusion": {name: cells.count(name) for name in ("tp", "fn", "tn", "fp")},
        "unparsed": {
            "positives": sum(item.label for item in items if item.verdict is None),
            "negatives": sum(not item.label for item in items if item.verdict is None),
        },
        **rates,
        "agreement": rate(tp + tn, len(items)),
        "kappa": cohen_kappa([[tp, wrong_positive], [wrong_negative, tn]]),
        "failure_modes": _failure_modes(items),
        "disagreements": [_shown(item) for item in items if item.cell not in ("tp", "tn")],
        "by_item": [_shown(item) for item in items],
        "prevalence": _prevalence(tp, wrong_positive, tn, wrong_negative, fresh),
        "thresholds": _held(rates, thresholds),
        "few_of_a_class": min(positives, negatives) < FEW_OF_A_CLASS,
    }


def rate(right: int, total: int) -> dict[str, object]:
    """A rate with its count and exact interval."""
    lower, upper = clopper_pearson(right, total, CONFIDENCE)
    return {
        "right": right,
        "total": total,
        "value": right / total,
        "lower": lower,
        "upper": upper,
        "confidence": CONFIDENCE,
        "method": "clopper-pearson",
    }


def _shown(item: Item) -> dict[str, object]:
    words = {True: "pass", False: "fail", None: "unparsed"}
    return {"id": item.id, "label": words[item.label], "verdict": words[item.verdict], "cell": item.cell}


def _failure_modes(items: list[Item]) -> dict[str, object]:
    """Of the failures of each mode, how many the judge caught: a good TNR can hide a mode that is never caught."""
    modes = dict.fromkeys(item.failure_mode for item in items if not item.label and item.failure_mode)
    found: dict[str, object] = {}
    for mode in modes:
        of_mode = [item for item in items if not item.label and item.failure_mode == mode]
        found[str(mode)] = rate(sum(item.cell == "tn" for item in of_mode), len(of_mode))
    return found


def _held(rates: Mapping[str, Mapping], thresholds: Mapping[str, float | None]) -> dict[str, object] | None:
    asked = {name: bound for name, bound in thresholds.items() if bound is not None}
    if not asked:
        return None
    each = {name: {"required": bound, "lower": rates[name]["lower"], "met": rates[name]["lower"] >= bound} for name, bound in asked.items()}
    return {**each, "met": all(one["met"] for one in each.values())}


def _prevalence(tp: int, fn: int, tn: int, fp: int, fresh: tuple[int, int, int] | None) -> dict[str, object] | None:
    """The corrected rate among unlabelled items; with unparsed answers the range from all failing to all passing."""
    if fresh is None:
        return None
    passed, total, unparsed = fresh
    base: dict[str, object] = {"passed": passed, "total": total, "unparsed": unparsed, "confidence": CONFIDENCE}
    if tp * (tn + fp) + tn * (tp + fn) <= (tp + fn) * (tn + fp):
        return {**base, "undefined": "TPR + TNR is not above 1: the judge tells pass from fail no better than a coin"}
    ends = [(tp, fn, tn, fp, count, total) for count in (passed, passed + unparsed)]
    low, high = (rogan_gladen(*end) for end in ends)
    lower, upper = prevalence_interval(*ends[0], CONFIDENCE)[0], prevalence_interval(*ends[1], CONFIDENCE)[1]
    return {
        **base,
        "value": low.value if unparsed == 0 else None,
        "value_range": [low.value, high.value],
        "unclipped": [low.unclipped, high.unclipped],
        "clipped": low.clipped or high.clipped,
        "lower": lower,
        "upper": upper,
        "method": "rogan-gladen, lang-reiczigel interval",
    }
