"""The declared negatives of the three contracts, and that a broken declaration is an invalid suite."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

from agent_eval.records.problems import InvalidInput
from consumers.self_eval import proof
from consumers.self_eval.contracts import CONTRACTS
from consumers.self_eval.contracts.decision import sign_test, spent_alpha

from tests.consumers.self_eval.world import EVALS, SUITE, suite_with

RESULTS = proof.prove(SUITE, str(EVALS))


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: f"{result.group}-{result.id}")
def test_declared(result: proof.Result) -> None:
    assert result.got == result.expected


@pytest.mark.parametrize(("group", "letter", "last"), [("receipts", "R", 24), ("evaluatorEvolution", "E", 29), ("skillOptimization", "S", 30), ("guardrailPolicy", "P", 25)])
def test_every_number_of_the_method_is_declared(group: str, letter: str, last: int) -> None:
    numbers = {int(match[1]) for result in RESULTS if result.group == group and (match := re.match(rf"{letter}(\d+)", result.id))}
    assert numbers >= set(range(1, last + 1))


def test_each_contract_promotes_a_genuine_improvement() -> None:
    for contract in CONTRACTS.values():
        base = next(result for result in RESULTS if result.group == contract.name and result.id == f"{contract.letter}0")
        assert json.loads(base.got)["outcome"] == "promote"
    levels = {result.group: json.loads(result.got).get("evidenceLevel") for result in RESULTS if result.id.endswith("0") and len(result.id) == 2}
    assert levels["evaluatorEvolution"] == "established" and levels["guardrailPolicy"] == "directional"


def test_a_record_without_what_a_rule_needs_is_never_promoted() -> None:
    for name, contract in CONTRACTS.items():
        base = json.loads((EVALS / SUITE.contracts[name]["negatives"]).read_bytes())["base"]
        for key in base:
            decision = contract.decide(SUITE.contracts[name], {k: v for k, v in base.items() if k != key})
            assert decision.outcome == "invalid", (name, key, decision)
        for odd in (None, [], "x", 7):
            assert contract.decide(SUITE.contracts[name], dict.fromkeys(base, odd)).outcome == "invalid"


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/evaluatorEvolution/acceptor", "self-improvement-loop"),
        ("/evaluatorEvolution/rule", "ties-promote"),
        ("/evaluatorEvolution/evidence", "directional"),
        ("/evaluatorEvolution/alpha", "0.2"),
        ("/evaluatorEvolution/alpha", 0.05),
        ("/evaluatorEvolution/alpha", "0"),
        ("/evaluatorEvolution/checkpoints", [8, 8]),
        ("/evaluatorEvolution/checkpoints", []),
        ("/evaluatorEvolution/checkpoints", [True, 8]),
        ("/evaluatorEvolution/scoringRule", "graded"),
        ("/evaluatorEvolution/frozen", ["evaluator"]),
        ("/evaluatorEvolution/onPromote/dependents", "delete"),
        ("/evaluatorEvolution/onPromote/rankings", "zero"),
        ("/skillOptimization/maxOperations", 0),
        ("/skillOptimization/measurements", ["effectiveness"]),
        ("/skillOptimization/regressions", "average"),
        ("/skillOptimization/promotion/review", "by-author"),
        ("/skillOptimization/promotion/rollback", "later"),
        ("/skillOptimization/splits", ["train", "test"]),
        ("/guardrailPolicy/benignFloor", 1.5),
        ("/guardrailPolicy/benignFloor", "0.9"),
        ("/guardrailPolicy/baseline", "incumbent-first"),
        ("/guardrailPolicy/restore", "text"),
        ("/guardrailPolicy/coverage", ["turns"]),
        ("/guardrailPolicy/frozen", ["target", "judge"]),
        ("/guardrailPolicy/unparsed", "ignored"),
        ("/guardrailPolicy/minBenign", 0),
    ],
)
def test_declarations_that_the_method_does_not_allow(pointer: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        suite_with({"set": {pointer: value}})
    assert [problem.where for problem in caught.value.problems] == [f"suite.json#{pointer}"]


def test_every_rule_of_a_contract_has_to_be_declared() -> None:
    for name in CONTRACTS:
        for key in set(SUITE.contracts[name]) - {"negatives"}:
            with pytest.raises(InvalidInput, match=key):
                suite_with({"remove": [f"/{name}/{key}"]})


def test_the_exact_test_by_hand() -> None:
    assert sign_test(6, 0) == Fraction(1, 64) and sign_test(8, 1) == Fraction(10, 512) and sign_test(0, 0) == 1
    # Clean wins that look k needs at 1/20: the table of the method.
    for look, wins in ((1, 6), (2, 7), (3, 8), (5, 10), (10, 12), (20, 14)):
        alpha = spent_alpha(Fraction(1, 20), look)
        assert sign_test(wins, 0) <= alpha < sign_test(wins - 1, 0)
    assert sum(spent_alpha(Fraction(1, 20), look) for look in range(1, 2000)) < Fraction(1, 20)


def test_a_proof_that_does_not_hold_says_so(tmp_path, run_py) -> None:
    import shutil

    shutil.copytree(EVALS, tmp_path / "evals")
    path = tmp_path / "evals" / "negatives" / "evolution.json"
    declared = json.loads(path.read_bytes())
    declared["negatives"][0]["expect"] = {"outcome": "promote", "evidenceLevel": "established"}
    path.write_text(json.dumps(declared))
    done = run_py("self-eval", "--test", "--suite", tmp_path / "evals" / "suite.json")
    assert done.returncode == 1 and "evaluatorEvolution E1 (" in done.stdout and "does not hold" in done.stdout
    path.write_text("[]")
    done = run_py("self-eval", "--test", "--suite", tmp_path / "evals" / "suite.json")
    assert done.returncode == 2 and "evolution.json" in done.stderr and "Traceback" not in done.stderr
    path.unlink()
    assert run_py("self-eval", "--test", "--suite", tmp_path / "evals" / "suite.json").returncode == 2
