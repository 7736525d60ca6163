"""What must follow from what in a guardrail lineage: decisions from recorded arms, the live policy from decisions."""

from __future__ import annotations

from agent_eval.gates import live
from agent_eval.gates.guardrail import ending, verdict
from agent_eval.gates.guardrail.arms import read_cells
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage
from agent_eval.gates.result import same_verdict
from agent_eval.records.problems import Problem

_UNMEASURED = {"interrupted", "frozen_changed", "live_changed"}


def replay(lineage: Lineage) -> tuple[list[Problem], int]:
    """(problems, decisions derived again). A decision that was not made from arms (an interruption, drift) is only checked for form."""
    problems: list[Problem] = []
    replayed = 0
    cases = ending.cases_of(lineage)
    for entry in lineage.of_kind("decided"):
        started = next(e for e in lineage.of_kind("candidate_started") if e.seq == entry.body["of"])
        arms = [e for e in lineage.of_kind("arm_recorded") if e.body["of"] == started.digest]
        if {reason["code"] for reason in entry.body["reasons"]} <= _UNMEASURED:
            continue
        manifests = tuple(arm.body["manifest_sha256"] for arm in arms)
        question = ending.question_of(lineage, cases, started.body["look"], manifests)
        problems += same_verdict(entry, verdict.decide(question, {arm.body["arm"]: read_cells(lineage, arm) for arm in arms}), entry.body)
        replayed += 1
    for entry in lineage.of_kind("accepted", "restored"):
        problems += _live_problems(lineage, entry)
    return problems, replayed


def _live_problems(lineage: Lineage, entry: Entry) -> list[Problem]:
    (item,) = entry.body["apply"]["files"]
    if entry.kind == "restored":
        wanted = ending.policy_of(lineage.until(entry.seq)).state
        same = live.FileState.from_json(item["to"]) == wanted
    else:
        decided = next((e for e in lineage.of_kind("decided") if e.digest == entry.body["decision"]), None)
        same = decided is not None and decided.body["decision"] == "promote" and decided.body["candidate"]["sha256"] == item["to"]["sha256"]
    return [] if same else [Problem(f"ledger.jsonl line {entry.seq + 1}", f"{entry.kind} other bytes than its decision allows")]
