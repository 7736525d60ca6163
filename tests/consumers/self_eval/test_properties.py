"""Properties of scoring, over seeded random changes: hiding never helps, a late failure never helps, order of sets does not count."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from agent_eval.records.problems import InvalidInput
from consumers.self_eval.suite import Case

from tests.consumers.self_eval.world import SCORER, example, judge, statuses

PASSING = ["passing-receipt", "passing-wiki-promotion", "passing-red-green-fix", "passing-no-promotion"]
FAILING = ["fail-edit-before-search", "fail-promoted-not-touched", "fail-last-test-red", "reward-hack-masked-exit", "reward-hack-edits-grader", "budget-blown", "secret-in-notes", "stale-suite-binding"]
REQUIRED: dict[str, Case] = {case.id: case for case in SCORER.suite.cases if case.required}


def places(value: Any, prefix: tuple = ()) -> list[tuple]:
    """Every place in a JSON value that could be taken out."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return []
    found = []
    for key, item in items:
        found += [(*prefix, key), *places(item, (*prefix, key))]
    return found


def without(value: Any, place: tuple) -> Any:
    result = copy.deepcopy(value)
    holder = result
    for key in place[:-1]:
        holder = holder[key]
    del holder[place[-1]]
    return result


def score(receipt: dict) -> tuple[int, int]:
    """What a receipt comes to: rank of the verdict (invalid and fail 0, void 1, pass 2) and passed required cases."""
    try:
        judgment = judge(receipt)
    except InvalidInput:
        return 0, 0
    passed = sum(status == "pass" for name, status in statuses(judgment).items() if name in REQUIRED)
    return {"fail": 0, "void": 1, "pass": 2}[judgment.verdict.value], passed


@pytest.mark.parametrize("name", PASSING)
def test_taking_out_any_one_thing_never_raises_the_score_of_a_passing_receipt(name: str) -> None:
    receipt = example(name)
    best = score(receipt)
    assert best[0] == 2
    tried = places(receipt)
    assert len(tried) > 30
    for place in tried:
        assert score(without(receipt, place)) <= best, place


@pytest.mark.parametrize("name", PASSING)
def test_taking_out_several_things_never_raises_it_either(name: str) -> None:
    source = random.Random(f"several {name}")
    receipt = example(name)
    best = score(receipt)
    for _ in range(150):
        poorer = receipt
        for _ in range(source.randrange(2, 6)):
            left = places(poorer)
            if left:
                poorer = without(poorer, source.choice(left))
        assert score(poorer) <= best, poorer


@pytest.mark.parametrize("name", FAILING)
def test_taking_out_what_orders_or_proves_never_makes_a_failing_receipt_pass(name: str) -> None:
    # What may help is to take out the failure itself and to renumber, which is a different story and not this receipt;
    # within the lists that carry seq, a hole shows.
    receipt = example(name)
    assert score(receipt)[0] == 0
    for place in places(receipt):
        if place[0] in ("events", "commands") and len(place) == 2 or len(place) == 1:
            if place[0] == "suite" and name == "stale-suite-binding":
                assert score(without(receipt, place))[0] == 0
            # The last of all numbers may be missing without a hole, and a note is free text.
            if place in (("notes",), ("commands", len(receipt["commands"]) - 1)):
                continue
            assert score(without(receipt, place))[0] == 0, place


@pytest.mark.parametrize("name", PASSING + FAILING)
def test_a_failing_command_after_the_last_never_raises_the_score(name: str) -> None:
    source = random.Random(f"late {name}")
    receipt = example(name)
    before = score(receipt)
    numbers = [item["seq"] for item in receipt["events"] + receipt["commands"] if "seq" in item]
    for cmd in ("npm test", "python3 -m pytest -q", "npm run build-index", "ls nowhere", "git push --force", "make test || true"):
        later = copy.deepcopy(receipt)
        later["commands"].append({"cmd": cmd, "exitCode": source.randrange(1, 128), "seq": max(numbers) + 1})
        after = score(later)
        assert after <= before, cmd
        if cmd in ("npm test", "python3 -m pytest -q") and receipt["filesTouched"]:
            assert after[0] == 0


@pytest.mark.parametrize("name", PASSING + FAILING + ["hides-evidence", "interrupted-run"])
def test_the_order_of_unordered_lists_and_of_members_changes_nothing(name: str) -> None:
    source = random.Random(f"order {name}")
    receipt = example(name)
    before = judge(receipt)
    for _ in range(10):
        shuffled = copy.deepcopy(receipt)
        for section in ("filesTouched", "promotedPages", "notes", "artifacts"):
            if section in shuffled:
                source.shuffle(shuffled[section])
        members = list(shuffled.items())
        source.shuffle(members)
        after = judge(dict(members))
        assert (after.verdict, after.reasons, statuses(after)) == (before.verdict, before.reasons, statuses(before))


@pytest.mark.parametrize("name", PASSING)
def test_redacting_anything_never_raises_the_score(name: str) -> None:
    receipt = example(name)
    best = score(receipt)
    for place in places(receipt):
        pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)
        assert score({**receipt, "redactions": [pointer]}) <= best, pointer


def test_scoring_twice_gives_the_same_bytes() -> None:
    from agent_eval.records.strict_json import pretty

    for name in PASSING + FAILING:
        assert pretty(judge(example(name)).to_json()) == pretty(judge(example(name)).to_json())
