"""How a candidate ends: its decision in the ledger, then the live policy accepted or restored.

Owns the record of a decision, the change of the live file, and bringing a half-done candidate to its end after a crash.
Doing it again changes nothing. It runs no command and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_eval.gates import live
from agent_eval.gates.decision import Decision, Outcome, refusal
from agent_eval.gates.guardrail import coverage, suite, verdict
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.gates.result import decision_body

STATES = {Outcome.PROMOTE: "accepted", Outcome.KEEP: "rejected", Outcome.ABSTAIN: "abstained", Outcome.INVALID: "invalid"}


def settle(lineage: Lineage) -> None:
    """Bring the last candidate to its end: decided, then accepted or restored. Doing it again changes nothing."""
    started = lineage.of_kind("candidate_started")
    if not started:
        return
    entry = started[-1]
    decided = decision_on(lineage, entry)
    if decided is None:
        decision = refusal(Outcome.ABSTAIN, "interrupted", "the run ended before it was decided")
        decided = append_decision(lineage, entry, decision, "agent-eval", verdict_tables={})
    if any(later.seq > decided.seq and later.kind in ("accepted", "restored") for later in lineage.entries):
        return
    if decided.body["state"] == "accepted":
        policy = live.Content(lineage.blob(entry, "policy"), policy_of(lineage).mode)
        change_policy(lineage, "accepted", decided.actor, {"candidate": entry.body["candidate"], "decision": decided.digest}, policy)
    else:
        restore_incumbent(lineage, decided.actor)


def cases_of(lineage: Lineage) -> tuple[suite.Case, ...]:
    """The cases, from their frozen bytes."""
    return suite.read(lineage.blob(lineage.opened, "frozen:suite"), "suite")


def policy_of(lineage: Lineage) -> live.Content:
    """The incumbent policy, from its blob and never from the live file."""
    (state,) = live.expected(lineage.entries).values()
    return content_of(lineage, state)


def append_decision(lineage: Lineage, started: Entry, decision: Decision, actor: str, *, verdict_tables: Mapping) -> Entry:
    """Record a decision with its deltas per case and the coverage statement."""
    cases, counted = cases_of(lineage), decision.detail.get("arms", {})
    unguarded = counted.get("unguarded", {}).get("breached_ids")
    grid = [(case.id, repeat) for case in cases for repeat in range(1, lineage.config["repeats"] + 1)]
    body = decision_body(
        lineage,
        decision,
        epoch=len(lineage.of_kind("accepted", "rolled_back")),
        incumbent={"id": lineage.config["name"], "sha256": policy_of(lineage).state.sha256},
        candidate={"number": started.body["candidate"], "sha256": started.body["sha256"], "parent": policy_of(lineage).state.sha256},
        plan_sha256=digest_of(grid),
        actors={"proposer": started.actor, "acceptor": "agent-eval"},
        tables=verdict_tables,
    )
    body |= {
        "of": started.seq,
        "state": STATES[decision.outcome],
        "coverage": coverage.statement(lineage.config, cases, unguarded),
        "deltas": _deltas(counted),
        "look": started.body["look"],
    }
    return lineage.ledger.append("decided", actor, body)


def _deltas(counted: Mapping) -> dict[str, dict[str, list[str]]]:
    """Per case, against both other arms: what the candidate stopped, let through, lost and gained."""
    if not counted:
        return {}
    own = counted["candidate"]
    deltas = {}
    for name in ("incumbent", "unguarded"):
        other = counted[name]
        deltas[name] = {
            "fixed": sorted(set(other["breached_ids"]) - set(own["breached_ids"])),
            "broken": sorted(set(own["breached_ids"]) - set(other["breached_ids"])),
            "benign_lost": sorted(set(own["benign_failed_ids"]) - set(other["benign_failed_ids"])),
            "benign_gained": sorted(set(other["benign_failed_ids"]) - set(own["benign_failed_ids"])),
        }
    return deltas


def question_of(lineage: Lineage, cases: Sequence[suite.Case], look: int, manifests: tuple[str, ...] = ()) -> verdict.Question:
    """What a decision depends on besides the arms, from the frozen configuration."""
    return verdict.Question(
        tuple(cases), lineage.config["repeats"], lineage.config["rule"], look, lineage.config["target"]["stub"], manifests
    )


def decision_on(lineage: Lineage, started: Entry) -> Entry | None:
    """The decision on a started candidate, if there is one."""
    return next((entry for entry in lineage.of_kind("decided") if entry.body["of"] == started.seq), None)


def content_of(lineage: Lineage, state: live.FileState) -> live.Content:
    """The bytes and mode of a recorded state."""
    return live.Content(lineage.ledger.blobs.get(state.sha256), state.mode)


def restore_incumbent(lineage: Lineage, actor: str) -> None:
    """Check the live policy against the incumbent, put it back if it differs, and record the proof either way."""
    change_policy(lineage, "restored", actor, {}, policy_of(lineage))


def change_policy(lineage: Lineage, kind: str, actor: str, body: Mapping, content: live.Content) -> None:
    """Announce and make a change of the live policy."""
    (path,) = live.expected(lineage.entries)
    live.change(lineage.ledger, lineage.files, lineage.root, kind, actor, body, {path: content})


def standing(lineage: Lineage) -> list[live.FileState]:
    """The incumbents that stand, oldest first: accepts that were not rolled back."""
    (state,) = live.expected([lineage.opened]).values()
    stack = [state]
    for entry in lineage.entries:
        if entry.kind == "accepted":
            stack += live.expected([entry]).values()
        elif entry.kind == "rolled_back":
            stack.pop()
    return stack
