"""The summary: counts that add up, and figures that losing a trial never improves."""

from __future__ import annotations

import itertools
import random

import pytest

from agent_eval.measure.summary import COUNTS, Tally
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict

PASS = Judgment(Verdict.PASS, Basis.OWNER_ATTESTED)
FAIL = Judgment(Verdict.FAIL, Basis.RECOMPUTED, (Failure("timeout"),))
VOID = Judgment(Verdict.VOID, Basis.RECOMPUTED, (Failure("worker-lost"),), cause="worker-lost")
INTERRUPTED = Judgment(Verdict.VOID, Basis.RECOMPUTED, (Failure("interrupted"),), cause="interrupted")
KINDS = (PASS, FAIL, VOID, INTERRUPTED, None)


def summary_of(table: dict[str, list[Judgment | None]], **plan: object) -> dict:
    trials = max(map(len, table.values()))
    cases = [{"id": name, "not_scored": ["x"]} for name in table]
    tally = Tally({"cases": cases, "trials": trials, "planned": trials * len(table), **plan})
    for name, judgments in table.items():
        for number, judgment in enumerate(judgments, 1):
            if judgment is not None:
                tally.add(name, number, judgment, None)
    return tally.summary()


def test_every_planned_trial_is_in_exactly_one_count() -> None:
    chance = random.Random(7)
    for _ in range(200):
        table = {f"c{i}": [chance.choice(KINDS) for _ in range(4)] for i in range(3)}
        found = summary_of(table)
        assert sum(found[name] for name in COUNTS) == found["planned"] == 12
        for case in found["cases"].values():
            assert sum(case[name] for name in COUNTS) == case["planned"] == 4
        assert found["not_scored"] == ["x"]


@pytest.mark.parametrize(
    ("judgments", "code"),
    [
        ([PASS, PASS], 0),
        ([PASS, FAIL], 1),
        ([FAIL, VOID], 1),
        ([PASS, VOID], 5),
        ([PASS, None], 5),
        ([PASS, INTERRUPTED], 5),
        ([VOID, VOID], 4),
        ([None, None], 4),
    ],
)
def test_exit_codes(judgments: list, code: int) -> None:
    assert summary_of({"a": judgments})["exit_code"] == code


def test_losing_a_trial_never_improves_the_figures() -> None:
    for judgments in itertools.product(KINDS, repeat=3):
        before = summary_of({"a": list(judgments), "b": [PASS, FAIL, PASS]})["reliability"]
        for index, judgment in enumerate(judgments):
            for worse in (VOID, INTERRUPTED, None, FAIL):
                if judgment is PASS or worse is not FAIL:
                    changed = [*judgments[:index], worse, *judgments[index + 1 :]]
                    after = summary_of({"a": changed, "b": [PASS, FAIL, PASS]})["reliability"]
                    assert after["pass_hat_k"] <= before["pass_hat_k"]
                    assert after["pass_at_k"] <= before["pass_at_k"]


def test_a_shard_counts_only_what_it_set_out_to_do() -> None:
    found = summary_of({"a": [PASS, None], "b": [None, PASS]}, chosen={"a": [1], "b": [2]}, planned=2)
    assert (found["planned"], found["passed"], found["unrun"], found["exit_code"]) == (2, 2, 0, 0)
