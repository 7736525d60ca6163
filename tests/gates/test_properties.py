"""Properties over random histories: tombstoning is exact, idempotent and commutes; a worse trial never helps."""

from __future__ import annotations

import itertools
import random

import pytest

from agent_eval.gates.decision import Outcome
from agent_eval.gates.epoch import config, verdict
from agent_eval.gates.epoch.state import State, Utility
from agent_eval.gates.guardrail import suite
from agent_eval.gates.guardrail import verdict as guardrail
from agent_eval.gates.guardrail.bench import Cell, CellState
from tests.gates.guardrail_world import attack, benign

SLOTS = ("a", "b", "c")
ORDER = {Outcome.PROMOTE: 1}


def random_state(draw: random.Random) -> State:
    state = State(epoch=1, criteria={slot: {"criterion_sha256": f"{slot}1"} for slot in SLOTS})
    for number in range(draw.randrange(40)):
        deps = tuple((slot, f"{slot}{draw.choice('01')}") for slot in SLOTS if draw.random() < 0.5)
        state.utilities.append(Utility(f"0.{number}", 1, draw.choice("xyz"), f"t{number}", 1, draw.randrange(2), deps))
    return state


def promote(state: State, slot: str) -> State:
    criteria = {**state.criteria, slot: {"criterion_sha256": f"{slot}2"}}
    after = State(epoch=state.epoch + 1, criteria=criteria, utilities=state.utilities, tombstoned=set(state.tombstoned))
    after.tombstoned |= set(after.to_tombstone(slot))
    return after


@pytest.mark.parametrize("seed", range(40))
def test_tombstoning_is_exact(seed: int) -> None:
    state = random_state(random.Random(seed))
    after = promote(state, "a")
    for record in state.utilities:
        assert (record.id in after.tombstoned) is ("a" in record.slots)
    assert all(record.deps == () or "a" not in record.slots for record in after.valid())
    assert [r for r in state.valid() if "a" not in r.slots] == after.valid()


@pytest.mark.parametrize("seed", range(40))
def test_tombstoning_is_idempotent_and_commutes(seed: int) -> None:
    state = random_state(random.Random(seed))
    once = promote(state, "b")
    assert once.to_tombstone("b") == []
    results = []
    for order in itertools.permutations(SLOTS):
        after = state
        for slot in order:
            after = promote(after, slot)
        results.append((after.tombstoned, [record.id for record in after.valid()]))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("seed", range(60))
def test_making_a_challenger_worse_never_promotes_it(seed: int) -> None:
    draw = random.Random(seed)
    items = tuple(config.Item(f"i{n}", f"t{n}", n % 2, "panel", draw.random() < 0.1) for n in range(30))
    rule = {"alpha": 0.05, "evidence": draw.choice(["established", "strict-only"]), "min_per_class": 5, "min_discordant": 0, "delta": draw.randrange(3)}
    question = verdict.Question(items, 1, "all-pass", rule, draw.randrange(1, 4), draw.randrange(1, 4))
    incumbent = {(item.id, 1): item.label ^ (draw.random() < 0.4) for item in items}
    challenger = {(item.id, 1): item.label ^ (draw.random() < 0.1) for item in items}
    before = verdict.compare(question, incumbent, challenger).outcome
    right = [item for item in items if challenger[item.id, 1] == item.label]
    worse = draw.choice(right)
    challenger[worse.id, 1] = None if draw.random() < 0.5 else 1 - worse.label
    after = verdict.compare(question, incumbent, challenger).outcome
    assert ORDER.get(after, 0) <= ORDER.get(before, 0)


@pytest.mark.parametrize("seed", range(60))
def test_making_a_policy_worse_never_accepts_it(seed: int) -> None:
    import json

    draw = random.Random(seed)
    cases = suite.read(json.dumps([attack(n) for n in range(10)] + [benign(n) for n in range(20)]).encode(), "suite")
    rule = {
        "acceptance": "strict", "alpha": 0.05, "benign_floor": 0.8, "floor_margin": 0.3, "loss_margin": 0.3, "refusal_cap": 0.3, "min_benign": 1,
        "max_unparsed": 3, "max_unstable": 10, "critical_families": draw.sample(["direct", "roleplay"], 1),
    }
    rates = {"unguarded": 0.9, "incumbent": 0.6, "candidate": 0.3}
    cells = {
        name: [Cell(c.id, r, CellState.JUDGED, draw.random() < (rate if c.attack else 0.03), draw.random() < 0.05) for c in cases for r in (1, 2)]
        for name, rate in rates.items()
    }
    question = guardrail.Question(cases, 2, rule, 1, False)
    before = guardrail.decide(question, cells).outcome
    index = draw.choice([n for n, cell in enumerate(cells["candidate"]) if not cell.bad])
    cell = cells["candidate"][index]
    state = draw.choice([CellState.JUDGED, CellState.UNPARSED, CellState.TARGET_FAILED, CellState.NOT_RUN])
    cells["candidate"][index] = Cell(cell.case, cell.repeat, state, True if state is CellState.JUDGED else None, cell.refused if state is CellState.JUDGED else None)
    after = guardrail.decide(question, cells).outcome
    assert ORDER.get(after, 0) <= ORDER.get(before, 0)
