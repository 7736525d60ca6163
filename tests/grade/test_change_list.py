"""``changes.json``: what a second judging changed, as text that is put together without holding every entry."""

from __future__ import annotations

import json

import pytest

from agent_eval.grade.regrade import NOT_ASSESSABLE, ChangeList
from agent_eval.records import strict_json
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict

PASS = Judgment(Verdict.PASS, Basis.RECOMPUTED)
FAIL = Judgment(Verdict.FAIL, Basis.RECOMPUTED, (Failure("timeout"), Failure('a "b"\n\N{SNOWMAN}'), Failure("timeout", "again")))
VOID = Judgment(Verdict.VOID, Basis.RECOMPUTED, (Failure("x"),), cause="interrupted")
LOST = Judgment(Verdict.VOID, Basis.RECOMPUTED, (Failure("gone"),), cause=NOT_ASSESSABLE)


def short(judgment: Judgment) -> dict[str, object]:
    return {"verdict": judgment.verdict.value, "cause": judgment.cause, "reasons": list(judgment.reasons)}


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_the_text_is_that_of_the_value(count: int) -> None:
    pairs = [(PASS, PASS), (PASS, FAIL), (FAIL, PASS), (None, PASS), (FAIL, FAIL), (VOID, LOST), (PASS, PASS), (LOST, LOST), (VOID, VOID)]
    kinds = ["same", "changed", "changed", "changed", "same", "not_assessable", "same", "not_assessable", "same"]
    changes = ChangeList()
    entries = []
    for index, (before, after) in enumerate(pairs[:count]):
        name = f"case-{index % 2}@1/{index + 1:03d}"
        changes.add(name, before and before.to_json(), after)
        entries.append({"trial": name, "change": kinds[index], "before": before and short(before), "after": short(after)})
    counts = {kind: kinds[:count].count(kind) for kind in ("same", "changed", "not_assessable")}
    assert changes.counts == counts
    assert changes.to_bytes() == strict_json.pretty({**counts, "trials": entries})
    assert json.loads(changes.to_bytes())["trials"] == entries
