"""From a promotion to the next epoch, in steps that can be finished after a crash.

Owns the entries of a transition, in order, for each promoted slot: ``evaluator_promoted``, ``utility_tombstoned``, ``reranked``,
``epoch_opened``; at the end ``transition_completed``. Each step is skipped when it is there, so that finishing is doing it again.
Also owns ``revalidate``. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_eval.gates.epoch import config as configs
from agent_eval.gates.epoch import ranking
from agent_eval.gates.epoch.state import State, fold
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage, digest_of

ACTOR = "agent-eval"


def complete(lineage: Lineage) -> None:
    """Finish the opening and the last transition. Doing it again writes nothing."""
    if not lineage.of_kind("epoch_opened"):
        _append_epoch(lineage, lineage.opened.digest, None)
    decisions = lineage.of_kind("acceptor_decision")
    if not decisions or not decisions[-1].body["promotions"]:
        return
    decision = decisions[-1]
    if _done(lineage, "transition_completed", decision, None):
        return
    for promotion in decision.body["promotions"]:
        _promote(lineage, decision, promotion)
    lineage.ledger.append("transition_completed", ACTOR, {"decision": decision.digest, "slot": None})


def expected_tombstones(lineage: Lineage, promoted: Entry) -> list[str]:
    """The records that exactly this promotion displaces."""
    state = fold(entry for entry in lineage.entries if entry.seq <= promoted.seq)
    return state.to_tombstone(promoted.body["slot"])


def revalidation(state: State, slot: str) -> list[str]:
    """Tombstoned records whose whole criterion, in every slot they depend on, is again the present one."""
    return [r.id for r in state.utilities if r.id in state.tombstoned and slot in r.slots and not state.stale(r)]


def revalidate(lineage: Lineage, actor: str, slot: str) -> list[str]:
    """Record the proof that reinstated records have the digest of the present criterion; returns their ids."""
    state = fold(lineage.entries)
    records = revalidation(state, slot)
    if records:
        criterion = state.criteria[slot]["criterion_sha256"]
        lineage.ledger.append(
            "utility_revalidated",
            actor,
            {"slot": slot, "criterion_sha256": criterion, "records": records, "list_sha256": digest_of(records)},
        )
    return records


def _promote(lineage: Lineage, decision: Entry, promotion: Mapping) -> None:
    slot = promotion["slot"]
    promoted = _done(lineage, "evaluator_promoted", decision, slot) or _append_promotion(lineage, decision, promotion)
    if not _done(lineage, "utility_tombstoned", decision, slot):
        records = expected_tombstones(lineage, promoted)
        lineage.ledger.append(
            "utility_tombstoned",
            ACTOR,
            {
                "decision": decision.digest,
                "slot": slot,
                "records": records,
                "list_sha256": digest_of(records),
                "displaced_criterion_sha256": promoted.body["displaced_criterion_sha256"],
            },
        )
    if not _done(lineage, "reranked", decision, slot):
        lineage.ledger.append("reranked", ACTOR, {"decision": decision.digest, "slot": slot, **_reranked(lineage, promoted)})
    if not _done(lineage, "epoch_opened", decision, slot):
        _append_epoch(lineage, decision.digest, slot)


def _append_promotion(lineage: Lineage, decision: Entry, promotion: Mapping) -> Entry:
    state = fold(lineage.entries)
    slot = promotion["slot"]
    queued = next(entry for entry in lineage.of_kind("challenger_queued") if entry.seq == promotion["queued_at"])
    evaluator, before = queued.body["evaluator"], state.criteria[slot]
    opened = lineage.opened.body["frozen_files"]
    digests = {name: item["sha256"] for name, item in opened.items()}
    after = configs.criterion(lineage.config, slot, evaluator, evaluator["sha256"], digests)
    body = {
        "decision": decision.digest,
        "slot": slot,
        "epoch": state.epoch + 1,
        "criterion": after,
        "evaluator": evaluator,
        "displaced_criterion_sha256": before["criterion_sha256"],
        "frozen_files": {f"evaluator:{slot}": {"path": queued.body["path"], "sha256": evaluator["sha256"]}},
        "blobs": {"evaluator": evaluator["sha256"]},
    }
    return lineage.ledger.append("evaluator_promoted", ACTOR, body)


def _reranked(lineage: Lineage, promoted: Entry) -> dict[str, object]:
    before, _ = ranking.rank(fold(entry for entry in lineage.entries if entry.seq < promoted.seq))
    after, unscored = ranking.rank(fold(lineage.entries))
    old, new = [row.candidate for row in before], [row.candidate for row in after]
    return {"old_order": old, "new_order": new, "spearman_rho": ranking.distance(before, after), "rescored": 0, "unscored": unscored}


def _append_epoch(lineage: Lineage, decision: str, slot: str | None) -> None:
    state = fold(lineage.entries)
    criteria = {name: criterion["criterion_sha256"] for name, criterion in state.criteria.items()}
    lineage.ledger.append("epoch_opened", ACTOR, {"decision": decision, "slot": slot, "epoch": state.epoch, "criteria": criteria})


def _done(lineage: Lineage, kind: str, decision: Entry, slot: str | None) -> Entry | None:
    return next((e for e in lineage.of_kind(kind) if e.body["decision"] == decision.digest and e.body["slot"] == slot), None)
