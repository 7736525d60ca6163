"""Judge validation: the rates, the refusals, the corrected prevalence."""

from __future__ import annotations

import json
import random

import pytest

from agent_eval.measure.judge_validation import validate_judge
from agent_eval.measure.rows import Reading, read_rows
from agent_eval.records.problems import InvalidInput


def file(name: str, rows: object) -> Reading:
    return read_rows(name, json.dumps(rows).encode())


def labels(*values: object, **common: object) -> list[dict]:
    return [{"id": f"i{n}", "label": value, **common} for n, value in enumerate(values)]


def verdicts(*values: object) -> list[dict]:
    return [{"id": f"i{n}", "verdict": value} for n, value in enumerate(values)]


def validate(label_rows: object, verdict_rows: object, fresh: object = None, **options: object) -> dict:
    unlabelled = None if fresh is None else file("u.json", fresh)
    return validate_judge(file("l.json", label_rows), file("v.json", verdict_rows), unlabelled, **options)


def refusal(*arguments: object, **options: object) -> str:
    with pytest.raises(InvalidInput) as refused:
        validate(*arguments, **options)
    return str(refused.value)


def test_rates_are_apart_and_every_item_is_in_one_cell() -> None:
    found = validate(labels(1, 1, 1, 0, 0), verdicts(1, 1, 0, 0, 1))
    assert found["confusion"] == {"tp": 2, "fn": 1, "tn": 1, "fp": 1}
    assert (found["tpr"]["right"], found["tpr"]["total"]) == (2, 3)
    assert (found["tnr"]["right"], found["tnr"]["total"]) == (1, 2)
    assert found["tpr"]["lower"] < 2 / 3 < found["tpr"]["upper"]
    assert [(one["id"], one["cell"]) for one in found["disagreements"]] == [("i2", "fn"), ("i4", "fp")]
    assert [one["cell"] for one in found["by_item"]] == ["tp", "tp", "fn", "tn", "fp"]
    assert found["kappa"] == pytest.approx(1 / 6)


def test_a_judge_that_passes_everything_does_not_look_good() -> None:
    found = validate(labels(*[1] * 90, *[0] * 10), verdicts(*[1] * 100))
    assert found["agreement"]["value"] == 0.9
    assert (found["tpr"]["value"], found["tnr"]["value"], found["kappa"]) == (1.0, 0.0, 0.0)


def test_an_unparsed_verdict_is_wrong_for_both_rates_and_shown() -> None:
    found = validate(labels(1, 1, 0, 0), verdicts(1, "unparsed", 0, "unparsed"))
    assert (found["tpr"]["right"], found["tnr"]["right"]) == (1, 1)
    assert found["unparsed"] == {"positives": 1, "negatives": 1}
    assert [one["verdict"] for one in found["disagreements"]] == ["unparsed", "unparsed"]


def test_both_thresholds_are_held_against_lower_bounds() -> None:
    many = labels(*[1] * 40, *[0] * 40), verdicts(*[1] * 39, 0, *[0] * 39, 1)
    held = validate(*many, min_tpr=0.9, min_tnr=0.8)["thresholds"]
    assert not held["tpr"]["met"]  # 39/40 is 97.5 %, its lower bound 86.8 %
    assert held["tnr"]["met"] and not held["met"]
    assert validate(*many, min_tnr=0.8)["thresholds"]["met"]
    assert validate(*many)["thresholds"] is None


def test_failure_modes_are_reported_apart() -> None:
    rows = [*labels(1), {"id": "i1", "label": 0, "failure_mode": "tone"}, {"id": "i2", "label": 0, "failure_mode": "fact"}]
    modes = validate(rows, verdicts(1, 0, 1))["failure_modes"]
    assert {mode: (one["right"], one["total"]) for mode, one in modes.items()} == {"tone": (1, 1), "fact": (0, 1)}


@pytest.mark.parametrize(("value", "word"), [(1, "pass"), (0, "fail")])
def test_labels_of_one_class_are_refused(value: int, word: str) -> None:
    assert f"one class only: 3 items, every label is {word}" in refusal(labels(value, value, value), verdicts(1, 0, 1))


def test_missing_and_unmatched_ids_are_refused_by_name() -> None:
    assert "v.json: no verdict for 2 items (i1, i2) labelled in l.json" in refusal(labels(1, 0, 1), verdicts(1))
    assert "v.json: no label in l.json for 1 item (i2)" in refusal(labels(1, 0), verdicts(1, 0, 1))
    assert "has no id" in refusal([*labels(1, 0), {"label": 1}], verdicts(1, 0))


def test_duplicate_ids_are_refused_in_either_file() -> None:
    assert "l.json, item 3: duplicate id 'i0'" in refusal([*labels(1, 0), *labels(1)], verdicts(1, 0))
    assert "v.json, item 3: duplicate id 'i0'" in refusal(labels(1, 0), [*verdicts(1, 0), *verdicts(0)])


@pytest.mark.parametrize("value", [2, 0.5, 1.0, "maybe", "true", None, [1]])
def test_verdicts_and_labels_that_are_not_binary_are_refused(value: object) -> None:
    assert "v.json, item 2: verdict of item 'i1'" in refusal(labels(1, 0), verdicts(1, value))
    assert "l.json, item 2: label of item 'i1'" in refusal(labels(1, value), verdicts(1, 0))


def test_every_problem_is_said_at_once() -> None:
    text = refusal([*labels(1, 0.5), {"label": 1}], [*verdicts(3), {"id": "x", "verdict": 1}])
    for part in (
        "has no id",
        "label of item 'i1' is 0.5",
        "verdict of item 'i0' is 3",
        "no verdict for 1 item (i1)",
        "no label in l.json for 1 item (x)",
    ):
        assert part in text


def split_rows(splits: str, **extra: object) -> list[dict]:
    names = {"r": "train", "d": "dev", "t": "test"}
    return [{"id": f"i{n}", "label": n % 2, "split": names[letter], **extra} for n, letter in enumerate(splits)]


def test_test_is_scored_else_dev_and_never_train() -> None:
    rows = split_rows("rrddtttt")
    judged = verdicts(*[n % 2 for n in range(8)])
    assert (validate(rows, judged)["split"], validate(rows, judged)["items"]) == ("test", 4)
    assert validate(rows, judged, split="dev")["items"] == 2
    assert validate(split_rows("rrdd"), verdicts(0, 1, 0, 1))["split"] == "dev"
    assert validate(labels(0, 1), verdicts(0, 1))["split"] is None
    # Few-shot sources need no verdict.
    assert validate(rows, judged[2:])["items"] == 4
    assert "no item of l.json is in dev" in refusal(split_rows("rrtt"), verdicts(0, 1, 0, 1), split="dev")


def test_splits_that_overlap_are_refused() -> None:
    judged = verdicts(0, 1, 0, 1)
    twice = [*split_rows("rrtt"), {"id": "i0", "label": 0, "split": "test"}]
    assert 'item \'i0\' is in split "train" and in split "test": the splits overlap' in refusal(twice, judged)
    same_text = split_rows("rrtt")
    same_text[0]["text"], same_text[3]["text"] = "Is it RIGHT?", "is it  right"
    assert "items 'i0' (train) and 'i3' (test) have the same text: the splits overlap" in refusal(same_text, judged)
    same_group = split_rows("rrtt")
    same_group[1]["group"] = same_group[2]["group"] = "trace-9"
    assert "have the same group: the splits overlap" in refusal(same_group, judged)
    listed = {"items": labels(0, 1, 0, 1), "splits": {"train": ["i0", "i1"], "test": ["i1", "i2", "i3"]}}
    assert "item 'i1' is in train and in test: the splits overlap" in refusal(listed, judged)
    contradicted = {"items": split_rows("tttt"), "splits": {"train": ["i0"], "test": ["i1", "i2", "i3"]}}
    assert "item 'i0' is in train and in test: the splits overlap" in refusal(contradicted, judged)


def test_the_same_text_within_one_split_is_no_overlap() -> None:
    assert validate(split_rows("tttt", text="same"), verdicts(0, 1, 0, 1))["items"] == 4


def test_half_assigned_and_unknown_splits_are_refused() -> None:
    rows = split_rows("rrtt")
    del rows[1]["split"]
    assert "item 'i1' is in no split while others are" in refusal(rows, verdicts(0, 1, 0, 1))
    rows[1]["split"] = "holdout"
    assert "item 'i1' is in split 'holdout'" in refusal(rows, verdicts(0, 1, 0, 1))


def fresh(passed: int, failed: int, unparsed: int = 0) -> list[dict]:
    values = ["pass"] * passed + ["fail"] * failed + ["unparsed"] * unparsed
    return [{"id": f"u{n}", "verdict": value} for n, value in enumerate(values)]


GOOD = labels(*[1] * 100, *[0] * 100), verdicts(*[1] * 90, *[0] * 10, *[0] * 90, *[1] * 10)


def test_the_prevalence_is_corrected_for_the_judge() -> None:
    found = validate(*GOOD, fresh(70, 30))["prevalence"]
    assert (found["passed"], found["total"], found["value"]) == (70, 100, 0.75)
    assert found["lower"] < 0.63 and found["upper"] > 0.86 and not found["clipped"]
    assert validate(*GOOD, fresh(98, 2))["prevalence"]["clipped"]
    assert validate(*GOOD)["prevalence"] is None


def test_unparsed_answers_widen_the_prevalence_and_default_to_no_class() -> None:
    plain, doubtful = (validate(*GOOD, fresh(60, 40 - n, n))["prevalence"] for n in (0, 10))
    assert doubtful["value"] is None
    assert doubtful["value_range"] == [plain["value"], pytest.approx(0.75)]
    assert doubtful["lower"] == plain["lower"] and doubtful["upper"] > plain["upper"]


def test_no_prevalence_from_a_judge_that_is_no_better_than_a_coin() -> None:
    found = validate(labels(1, 1, 0, 0), verdicts(1, 0, 1, 0), fresh(3, 3))["prevalence"]
    assert "value" not in found and "no better than a coin" in found["undefined"]


def test_an_item_with_a_label_is_not_unlabelled() -> None:
    assert "u.json: 1 item (i0) with a label in l.json" in refusal(labels(1, 0), verdicts(1, 0), [{"id": "i0", "verdict": 1}])


def test_simulated_coverage_end_to_end_is_at_least_93_percent() -> None:
    source = random.Random(60)
    covered = runs = 0
    for _ in range(150):
        truth = source.choice((0.2, 0.5, 0.85))
        asked = [(n, n < 60) for n in range(120)]
        judged = [source.random() < (0.9 if label else 0.15) for _, label in asked]
        seen = [source.random() < truth * 0.9 + (1 - truth) * 0.15 for _ in range(60)]
        found = validate(
            labels(*(int(label) for _, label in asked)), verdicts(*map(int, judged)),
            [{"id": f"u{n}", "verdict": int(value)} for n, value in enumerate(seen)],
        )["prevalence"]  # fmt: skip
        covered += found["lower"] <= truth <= found["upper"]
        runs += 1
    assert covered / runs >= 0.93
