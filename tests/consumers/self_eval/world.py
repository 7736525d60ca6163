"""The suite and the receipts of ``evals/``, and changes to them, for the tests of self-eval."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from agent_eval.records.receipt import read_receipt
from agent_eval.records.strict_json import canonical
from consumers.self_eval.proof import patched
from consumers.self_eval.scoring import Scorer
from consumers.self_eval.suite import Suite, read_suite

ROOT = pathlib.Path(__file__).resolve().parents[3]
EVALS = ROOT / "evals" / "agent-self-improvement"
EXAMPLES = EVALS / "examples"
SUITE_BYTES = (EVALS / "suite.json").read_bytes()
SUITE = read_suite(SUITE_BYTES, "suite.json")
SCORER = Scorer(SUITE)


def example(name: str) -> dict[str, Any]:
    """One example receipt, parsed."""
    return json.loads((EXAMPLES / f"{name}.json").read_bytes())


def changed(change: dict[str, Any], name: str = "passing-receipt") -> dict[str, Any]:
    """An example with ``{"set": {pointer: value}, "remove": [pointer]}`` applied."""
    return patched(example(name), change)


def judge(receipt: dict[str, Any] | bytes, scorer: Scorer = SCORER, **observed: Any):
    """The judgment of one receipt; raises ``InvalidInput`` when it is invalid."""
    item = read_receipt(receipt if isinstance(receipt, bytes) else canonical(receipt), "receipt")
    return scorer.judge(item.sections, item.hidden, observed)


def statuses(judgment: Any) -> dict[str, str]:
    """Case id -> status."""
    return {check.id: check.status for check in judgment.checks}


def suite_with(change: dict[str, Any]) -> Suite:
    """The suite with a change applied; raises ``InvalidInput`` when it is invalid."""
    return read_suite(canonical(patched(json.loads(SUITE_BYTES), change)), "suite.json")


def one_case(assertion: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A case around an assertion."""
    return {
        "id": "only",
        "object": "harness-quality",
        "grader": "receipt",
        "severity": "required",
        "why": "a test needs it",
        "origin": {"kind": "policy", "ref": "README.md"},
        "assert": assertion,
        **members,
    }


def scorer_of(*cases: dict[str, Any]) -> Scorer:
    """A scorer of a suite with only these cases."""
    return Scorer(suite_with({"set": {"/cases": list(cases)}}))
