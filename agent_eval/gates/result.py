"""What one gate command did: for the command line and for callers in Python.

Owns the typed result. The exit code is the command line's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_eval.gates.decision import Decision, Finding, Outcome, conclude
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.records.problems import EvidenceFault, Problem


@dataclass(frozen=True, slots=True)
class Result:
    """``state`` is the state reached; ``decision`` is set when something was decided; ``head`` is worth keeping elsewhere."""

    contract: str
    action: str
    state: str
    head: str
    decision: Decision | None = None
    record: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The result as ``--json`` prints it."""
        verdict = self.decision.to_json() if self.decision else None
        return {
            "contract": self.contract,
            "action": self.action,
            "state": self.state,
            "head": self.head,
            "decision": verdict,
            "record": dict(self.record),
        }


def decision_body(
    lineage: Lineage,
    decision: Decision,
    *,
    epoch: int,
    incumbent: Mapping,
    candidate: Mapping,
    plan_sha256: str,
    actors: Mapping[str, str | None],
    tables: object,
    supersedes: str | None = None,
) -> dict[str, object]:
    """The fields that every decision record has, whatever its contract."""
    opened = lineage.opened.body
    test = decision.test
    return {
        "contract": opened["contract"],
        "lineage": opened["lineage"],
        "epoch": epoch,
        "incumbent": dict(incumbent),
        "candidate": dict(candidate),
        "manifest_sha256": opened["manifest_sha256"],
        "plan_sha256": plan_sha256,
        "paired_table_sha256": digest_of(tables),
        "alpha_position": test.look if test else None,
        "actors": {"proposer": None, "acceptor": None, "reviewer": None, **actors},
        "supersedes": supersedes,
        **decision.to_json(),
    }


def guard(lineage: Lineage, actor: str, *, live: bool = True) -> Decision | None:
    """Refuse when the lineage is closed, when anything frozen changed (which closes it), or when a live file did."""
    closed = lineage.of_kind("broken")
    if closed:
        what = "; ".join(closed[-1].body["drift"])
        return conclude([Finding(Outcome.INVALID, "lineage_closed", f"closed by {what}; open a new lineage")])
    drift = lineage.frozen_drift()
    if drift:
        lineage.ledger.append("broken", actor, {"drift": [str(problem) for problem in drift]})
        return conclude([Finding(Outcome.INVALID, "frozen_changed", str(problem), (problem.where,)) for problem in drift])
    changed = lineage.live_drift() if live else []
    if changed:
        return conclude([Finding(Outcome.INVALID, "live_changed", str(p), (p.where,)) for p in changed])
    return None


def refused(lineage: Lineage, contract: str, action: str, state: str, decision: Decision) -> Result:
    """A command that stopped at a refusal."""
    return Result(contract, action, state, lineage.ledger.head, decision)


def last(entries: list[Entry], **wanted: object) -> Entry | None:
    """The newest entry whose body has these values."""
    for entry in reversed(entries):
        if all(entry.body.get(key) == value for key, value in wanted.items()):
            return entry
    return None


def newest(entries: list[Entry], **wanted: object) -> Entry:
    """As :func:`last`, where the state machine guarantees one: its absence is a broken history."""
    found = last(entries, **wanted)
    if found is None:
        raise EvidenceFault.one("ledger.jsonl", f"an entry with {wanted} is missing, which a later one rests on")
    return found


def same_verdict(entry: Entry, again: Decision, recorded: Mapping) -> list[Problem]:
    """A problem for every part of a recorded verdict that another judgment of the same bytes does not give."""
    verdict = again.to_json()
    wrong = [key for key in ("decision", "evidence_level", "reasons", "test") if recorded[key] != verdict[key]]
    where = f"ledger.jsonl line {entry.seq + 1}"
    return [Problem(where, f"its {key.replace('_', ' ')} does not follow from the retained records") for key in wrong]
