"""False promotion under the null, where ``established`` is claimed: at most alpha over 20 looks with 8 challengers each.

Seeded and bounded. Both sides have the same true rate; items are drawn anew at every look, which is the worst case for a rule
that looks again. A simulated rate may lie above alpha by chance: the bound is alpha plus two and a half standard errors.
"""

from __future__ import annotations

import math
import random

import pytest

from agent_eval.gates.decision import paired
from agent_eval.gates.epoch import config, verdict

ALPHA, LOOKS, CHALLENGERS = 0.05, 20, 8


def limit(runs: int) -> float:
    return ALPHA + 2.5 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def draw_test(draw: random.Random, items: int, rate: float, look: int, challengers: int) -> bool:
    names = [str(n) for n in range(items)]
    incumbent = {name: draw.random() < rate for name in names}
    candidate = {name: draw.random() < rate for name in names}
    return paired(incumbent, candidate, alpha=ALPHA, look=look, challengers=challengers).established


@pytest.mark.parametrize("items", [20, 60])
def test_established_holds_alpha_over_all_looks_and_challengers(items: int) -> None:
    draw = random.Random(20261130 + items)
    runs = 120
    false = sum(
        any(draw_test(draw, items, 0.8, look, CHALLENGERS) for look in range(1, LOOKS + 1) for _ in range(CHALLENGERS)) for _ in range(runs)
    )
    assert false / runs <= limit(runs)


def test_a_guardrail_or_skill_lineage_holds_alpha_over_its_looks() -> None:
    draw = random.Random(7)
    runs = 400
    false = sum(any(draw_test(draw, 30, 0.6, look, 1) for look in range(1, LOOKS + 1)) for _ in range(runs))
    assert false / runs <= limit(runs)


def test_plain_strictness_does_not_hold_it_which_is_why_it_is_only_directional() -> None:
    draw = random.Random(11)
    wins = 0
    for _ in range(100):
        for _ in range(4):
            a = sum(draw.random() < 0.6 for _ in range(20))
            b = sum(draw.random() < 0.6 for _ in range(20))
            if b > a:
                wins += 1
                break
    assert wins > 70


def test_the_whole_acceptor_rule_holds_alpha_at_the_strictest_null() -> None:
    draw = random.Random(3)
    items = tuple(config.Item(f"i{n}", f"t{n}", n % 2, "panel", False) for n in range(40))
    rule = {"alpha": ALPHA, "evidence": "established", "min_per_class": 5, "min_discordant": 0, "delta": 40}  # the vetoes switched off
    runs, false = 100, 0
    for _ in range(runs):
        for look in range(1, 7):
            question = verdict.Question(items, 1, "all-pass", rule, look, 2)
            tables = [{(item.id, 1): item.label ^ (draw.random() < 0.3) for item in items} for _ in range(3)]
            if any(verdict.compare(question, tables[0], other).outcome.value == "promote" for other in tables[1:]):
                false += 1
                break
    assert false / runs <= limit(runs)
