"""What must follow from what in a skill lineage: decisions from records, promotions from reviews, live bytes from candidates."""

from __future__ import annotations

from agent_eval.gates import inputs
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage
from agent_eval.gates.result import last, newest, same_verdict
from agent_eval.gates.skill import gate, verdict
from agent_eval.records.problems import Problem


def replay(lineage: Lineage) -> tuple[list[Problem], int]:
    """(problems, decisions derived again)."""
    problems: list[Problem] = []
    decided = lineage.of_kind("decided")
    for entry in decided:
        before = lineage.until(entry.seq)
        question, records = gate.question_of(before, newest(before.of_kind("proposed"), proposal=entry.body["proposal"]))
        problems += same_verdict(entry, verdict.decide(question, records), entry.body)
    for entry in lineage.of_kind("promoted"):
        problems += _promotion_problems(lineage.until(entry.seq), entry)
    return problems, len(decided)


def _promotion_problems(before: Lineage, entry: Entry) -> list[Problem]:
    where = f"ledger.jsonl line {entry.seq + 1}"
    number = entry.body["proposal"]
    reviewed = next((e for e in before.of_kind("reviewed") if e.digest == entry.body["review"]), None)
    proposed = last(before.of_kind("proposed"), proposal=number)
    decided = last(before.of_kind("decided"), proposal=number)
    if reviewed is None or not reviewed.body["approve"] or proposed is None or decided is None or reviewed.body["of"] != decided.digest:
        return [Problem(where, "promotes without an approved review of its decision")]
    problems = []
    if any(inputs.same_person(reviewed.actor, name) for name in (proposed.actor, proposed.body["author"])):
        problems.append(Problem(where, "promotes on a review by its author or proposer"))
    for item in entry.body["apply"]["files"]:
        if proposed.body["blobs"][f"candidate:{item['path']}"] != item["to"]["sha256"]:
            problems.append(Problem(where, f"makes other bytes live than the measured candidate's ({item['path']})"))
    return problems
