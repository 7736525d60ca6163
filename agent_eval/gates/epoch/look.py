"""One look at the anchor: every challenger of the open checkpoint, and the record of it.

Owns which challengers a look compares, that a slot gets one promotion at most, and the body of ``acceptor_decision``.
Everything follows from the ledger, so that a replay is the same call. It writes nothing.
"""

from __future__ import annotations

from typing import Any

from agent_eval.gates.decision import Decision, Finding, Outcome, conclude, refusal
from agent_eval.gates.epoch import config as configs
from agent_eval.gates.epoch import verdict
from agent_eval.gates.epoch.state import State
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.gates.result import decision_body


def judge(lineage: Lineage, state: State) -> dict[int, tuple[Decision, str]]:
    """{queue position: (decision, slot)} for every challenger of the open checkpoint. Pure in what the ledger holds."""
    waiting = state.waiting(before=open_checkpoint_seq(state))
    anchor, items = lineage.config["anchor"], items_of(lineage)
    verdicts: dict[int, tuple[Decision, str]] = {}
    for challenger in waiting:
        if anchor is None:
            verdicts[challenger.seq] = (
                refusal(Outcome.ABSTAIN, "no_anchor", "without an anchor no evaluator can be promoted"),
                challenger.slot,
            )
            continue
        question = verdict.Question(items, anchor["repeats"], anchor["collapse"], lineage.config["rule"], state.looks + 1, len(waiting))
        incumbent = state.anchor_outcomes.get(state.criteria[challenger.slot]["evaluator_sha256"], {})
        decision = verdict.compare(question, incumbent, state.anchor_outcomes.get(challenger.sha256, {}), challenger.leaks)
        verdicts[challenger.seq] = (decision, challenger.slot)
    for slot in {slot for _, slot in verdicts.values()}:
        _keep_one(verdicts, slot, {c.seq: c.sha256 for c in waiting})
    return verdicts


def decision_entry(lineage: Lineage, state: State, verdicts: dict[int, tuple[Decision, str]], actor: str) -> dict[str, Any]:
    """The body of ``acceptor_decision``: the full record of every challenger of the look."""
    look = state.looks + 1
    rows: list[dict[str, Any]] = []
    promotions: list[dict[str, Any]] = []
    for seq, (decision, slot) in sorted(verdicts.items()):
        challenger, criterion = state.challengers[seq], state.criteria[slot]
        row = decision_body(
            lineage,
            decision,
            epoch=state.epoch,
            incumbent={
                "id": criterion["evaluator_id"],
                "revision": criterion["revision"],
                "sha256": criterion["evaluator_sha256"],
                "slot": slot,
            },
            candidate={"id": challenger.id, "revision": challenger.revision, "sha256": challenger.sha256, "queued_at": seq},
            plan_sha256=digest_of({"anchor": lineage.config["anchor"], "criterion": criterion["criterion_sha256"]}),
            actors={"proposer": challenger.proposer, "author": challenger.author, "acceptor": actor},
            tables=decision.to_json()["test"],
            supersedes=criterion["criterion_sha256"] if decision.outcome is Outcome.PROMOTE else None,
        )
        rows.append({**row, "slot": slot})
        if decision.outcome is Outcome.PROMOTE:
            promotions.append({"slot": slot, "queued_at": seq})
    promotions.sort(key=lambda promotion: promotion["slot"])
    return {
        "epoch": state.epoch,
        "checkpoint": open_checkpoint_seq(state),
        "look": look,
        "challengers": len(rows),
        "looks_after": look if rows else state.looks,
        "verdicts": rows,
        "promotions": promotions,
    }


def items_of(lineage: Lineage) -> tuple[configs.Item, ...]:
    """The anchor items, from their frozen bytes; none without an anchor."""
    if lineage.config["anchor"] is None:
        return ()
    return configs.anchor_items(lineage.blob(lineage.opened, "frozen:anchor"), "anchor")


def _keep_one(verdicts: dict[int, tuple[Decision, str]], slot: str, digests: dict[int, str]) -> None:
    """Exactly one transition for each slot: the others that passed keep their numbers and lose the promotion."""
    own = {digests[seq]: decision for seq, (decision, where) in verdicts.items() if where == slot}
    chosen = verdict.choose(own)
    for seq, (decision, where) in verdicts.items():
        if where == slot and decision.outcome is Outcome.PROMOTE and digests[seq] != chosen:
            finding = Finding(Outcome.KEEP, "another_promoted", f"challenger {str(chosen)[:12]} of the same look is the better one")
            verdicts[seq] = (conclude([finding], decision.test, **decision.detail), slot)


def open_checkpoint_seq(state: State) -> int:
    """The entry that declared the open checkpoint. Raises ``ValueError`` when none is open."""
    if state.open_checkpoint is None:
        raise ValueError("no checkpoint is open")
    return state.open_checkpoint.seq


def overall_decision(decisions: list[Decision]) -> Decision:
    """The decision that the exit code tells: a promotion, else the best that any challenger reached."""
    if not decisions:
        return refusal(Outcome.KEEP, "no_challenger", "no challenger was queued before the checkpoint")
    for outcome in (Outcome.PROMOTE, Outcome.KEEP, Outcome.ABSTAIN):
        for decision in decisions:
            if decision.outcome is outcome:
                return decision
    return decisions[0]
