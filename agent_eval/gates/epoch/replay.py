"""What must follow from what in an epoch ledger: the invariants of the Red Queen rule, checked over the whole history.

Owns: decisions derived again from anchor outcomes, exact tombstones (none too few, none too many), promotions only by a
decision at a checkpoint, looks and epochs that never go back, criteria that change by a promotion alone. A transition
without dependents is legitimate: nothing needs to have been tombstoned.
"""

from __future__ import annotations

from agent_eval.gates.epoch import look, transition
from agent_eval.gates.epoch.state import fold
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.records.problems import Problem


def replay(lineage: Lineage) -> tuple[list[Problem], int]:
    """(problems, decisions derived again)."""
    problems: list[Problem] = []
    for entry in lineage.entries:
        check = _CHECKS.get(entry.kind)
        if check is not None:
            what = check(lineage, entry)
            if what:
                problems.append(Problem(f"ledger.jsonl line {entry.seq + 1}", what))
    return problems, len(lineage.of_kind("acceptor_decision"))


def _decision(lineage: Lineage, entry: Entry) -> str | None:
    before = lineage.until(entry.seq)
    state = fold(before.entries)
    if state.open_checkpoint is None:
        return "decides without an open checkpoint"
    if entry.body["looks_after"] < state.looks:
        return "turns the look counter back"
    again = look.decision_entry(before, state, look.judge(before, state), entry.actor)
    for key in ("look", "looks_after", "challengers", "promotions"):
        if entry.body[key] != again[key]:
            return f"{key} does not follow from the recorded anchor outcomes"
    for was, now in zip(entry.body["verdicts"], again["verdicts"]):
        if any(was[key] != now[key] for key in ("decision", "evidence_level", "test", "candidate", "incumbent")):
            return f"the verdict on {was['candidate']['id']} does not follow from the recorded anchor outcomes"
    return None


def _promotion(lineage: Lineage, entry: Entry) -> str | None:
    before = lineage.until(entry.seq)
    decision = next((e for e in before.of_kind("acceptor_decision") if e.digest == entry.body["decision"]), None)
    if decision is None or not any(p["slot"] == entry.body["slot"] for p in decision.body["promotions"]):
        return "promotes without a decision to promote"
    if (
        len(
            [
                e
                for e in lineage.of_kind("evaluator_promoted")
                if (e.body["decision"], e.body["slot"]) == (entry.body["decision"], entry.body["slot"])
            ]
        )
        > 1
    ):
        return "promotes a slot twice by one decision"
    if entry.body["epoch"] != fold(before.entries).epoch + 1:
        return "does not open the next epoch"
    criterion = {key: value for key, value in entry.body["criterion"].items() if key != "criterion_sha256"}
    return None if digest_of(criterion) == entry.body["criterion"]["criterion_sha256"] else "has a criterion of another digest"


def _tombstones(lineage: Lineage, entry: Entry) -> str | None:
    key = (entry.body["decision"], entry.body["slot"])
    promoted = next(
        (e for e in lineage.until(entry.seq).of_kind("evaluator_promoted") if (e.body["decision"], e.body["slot"]) == key), None
    )
    if promoted is None:
        return "tombstones without a promotion"
    wanted, found = set(transition.expected_tombstones(lineage, promoted)), set(entry.body["records"])
    if found - wanted:
        return f"tombstones {len(found - wanted)} records that do not depend on the displaced evaluator"
    if wanted - found:
        return f"leaves {len(wanted - found)} records valid that depend on the displaced evaluator"
    return None if digest_of(entry.body["records"]) == entry.body["list_sha256"] else "lists other records than its digest says"


def _revalidation(lineage: Lineage, entry: Entry) -> str | None:
    state = fold(lineage.until(entry.seq).entries)
    allowed = set(transition.revalidation(state, entry.body["slot"]))
    return None if set(entry.body["records"]) <= allowed else "revalidates a record of another criterion"


def _epoch(lineage: Lineage, entry: Entry) -> str | None:
    state = fold(lineage.until(entry.seq).entries)
    criteria = {slot: criterion["criterion_sha256"] for slot, criterion in state.criteria.items()}
    return (
        None
        if (entry.body["epoch"], entry.body["criteria"]) == (state.epoch, criteria)
        else "opens an epoch with another criterion than the promoted one"
    )


def _utility(lineage: Lineage, entry: Entry) -> str | None:
    state = fold(lineage.until(entry.seq).entries)
    for row in entry.body["records"]:
        for slot, digest in row["deps"].items():
            if state.criteria.get(slot, {}).get("criterion_sha256") != digest:
                return f"records {row['candidate']} under another criterion than the active one"
        if type(row["outcome"]) is not int or row["outcome"] not in (0, 1):
            return "records an outcome that is not binary"
    return None


_CHECKS = {
    "acceptor_decision": _decision,
    "evaluator_promoted": _promotion,
    "utility_tombstoned": _tombstones,
    "utility_revalidated": _revalidation,
    "epoch_opened": _epoch,
    "utility": _utility,
}
