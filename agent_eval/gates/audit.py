"""Verification of a lineage: chain, blobs, drift, and every decision derived again from the bytes that were kept.

Owns the sequence of checks and their result. Each contract says in its ``replay`` what must follow from what.
It writes nothing and runs nothing.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from agent_eval.gates import lineage as lineages
from agent_eval.gates.files import Files
from agent_eval.gates.ledger import Ledger
from agent_eval.gates.lineage import Lineage
from agent_eval.records.problems import Problem

_REPLAYS = {name: f"agent_eval.gates.{name}.replay" for name in ("skill", "guardrail", "epoch")}


@dataclass(frozen=True, slots=True)
class Verification:
    """``problems`` in the order found, the first break first. ``decisions`` counts those that were derived again."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    entries: int
    decisions: int
    head: str

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems

    def to_json(self) -> dict[str, object]:
        """The verification as JSON."""
        return {
            "ok": self.ok,
            "problems": [str(problem) for problem in self.problems],
            "notes": list(self.notes),
            "entries": self.entries,
            "decisions_replayed": self.decisions,
            "head": self.head,
        }


def verify(directory: str, contract: str, head: str | None = None) -> Verification:
    """Check everything. Raises InvalidInput when it is no lineage of this contract."""
    chain, problems, notes = lineages.check(directory, head)
    if problems:
        return Verification(tuple(problems), tuple(notes), len(chain.entries), 0, chain.head)
    lineages.require_contract(directory, list(chain.entries), contract)
    ledger = Ledger(directory, Files())
    ledger.entries = list(chain.entries)
    lineage = Lineage(directory, ledger)
    replay = importlib.import_module(_REPLAYS[contract])
    found, decisions = replay.replay(lineage)
    problems += found + lineage.frozen_drift()
    if "a change of live files was interrupted; the next writing command finishes it" not in notes:
        problems += lineage.live_drift()
    for entry in lineage.of_kind("broken"):
        notes.append(f"closed at entry {entry.seq}: {'; '.join(entry.body['drift'])}")
    return Verification(tuple(problems), tuple(notes), len(chain.entries), decisions, chain.head)
