"""The state of an epoch ledger, folded from its entries.

Owns what is active, queued, valid and tombstoned, and the rule of validity: a utility record is valid if nothing
tombstoned it and, for every slot it depends on, it names that slot's current criterion. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent_eval.gates.ledger import Entry


@dataclass(frozen=True, slots=True)
class Utility:
    """One outcome of a candidate on a task. ``deps`` maps each slot it rests on to a criterion digest; empty: anchored."""

    id: str
    epoch: int
    candidate: str
    task: str
    repeat: int
    outcome: int
    deps: tuple[tuple[str, str], ...]

    @property
    def slots(self) -> frozenset[str]:
        """The slots it depends on."""
        return frozenset(slot for slot, _ in self.deps)


@dataclass(frozen=True, slots=True)
class Challenger:
    """A queued evaluator. ``leaks`` are anchor items found in its bytes."""

    seq: int
    slot: str
    id: str
    revision: int
    sha256: str
    author: str
    proposer: str
    leaks: tuple[str, ...]


@dataclass(slots=True)
class State:
    """Everything that is true after the last entry folded in."""

    epoch: int = 0
    criteria: dict[str, dict] = field(default_factory=dict)
    utilities: list[Utility] = field(default_factory=list)
    tombstoned: set[str] = field(default_factory=set)
    anchor_outcomes: dict[str, dict[tuple[str, int], int | None]] = field(default_factory=dict)
    evaluators: dict[tuple[str, int], str] = field(default_factory=dict)
    challengers: dict[int, Challenger] = field(default_factory=dict)
    verdicts: dict[int, str] = field(default_factory=dict)
    looks: int = 0
    checkpoints_reached: int = 0
    open_checkpoint: Entry | None = None
    closed: Entry | None = None

    def valid(self) -> list[Utility]:
        """The records that a rank view may read."""
        return [record for record in self.utilities if self.is_valid(record)]

    def is_valid(self, record: Utility) -> bool:
        """Whether nothing displaced what the record rests on."""
        return record.id not in self.tombstoned and not self.stale(record)

    def stale(self, record: Utility) -> bool:
        """Whether a slot that the record depends on has another criterion now."""
        return any(self.criteria.get(slot, {}).get("criterion_sha256") != digest for slot, digest in record.deps)

    def to_tombstone(self, slot: str) -> list[str]:
        """The records that a change of ``slot`` displaced and nothing has tombstoned yet: these and no others."""
        return [
            r.id for r in self.utilities if r.id not in self.tombstoned and slot in r.slots and _names_other(r, slot, self.criteria[slot])
        ]

    def spent(self) -> int:
        """Utility records of the present epoch."""
        return sum(record.epoch == self.epoch for record in self.utilities)

    def waiting(self, before: int | None = None) -> list[Challenger]:
        """Challengers without a verdict, queued before entry ``before``, oldest first."""
        return [c for seq, c in sorted(self.challengers.items()) if seq not in self.verdicts and (before is None or seq < before)]


def fold(entries: Iterable[Entry]) -> State:
    """The state after ``entries``, oldest first."""
    state = State()
    for entry in entries:
        step = _STEPS.get(entry.kind)
        if step is not None:
            step(state, entry, entry.body)
    return state


def _names_other(record: Utility, slot: str, criterion: Mapping) -> bool:
    return dict(record.deps)[slot] != criterion["criterion_sha256"]


def _opened(state: State, entry: Entry, body: Mapping) -> None:
    state.looks = body["prior_looks"]
    state.criteria = dict(body["criteria"])
    state.epoch = 1
    for criterion in body["criteria"].values():
        state.evaluators[criterion["evaluator_id"], criterion["revision"]] = criterion["evaluator_sha256"]


def _utility(state: State, entry: Entry, body: Mapping) -> None:
    for index, row in enumerate(body["records"]):
        deps = tuple(sorted(row["deps"].items()))
        state.utilities.append(
            Utility(f"{entry.seq}.{index}", body["epoch"], row["candidate"], row["task"], row["repeat"], row["outcome"], deps)
        )


def _anchor(state: State, entry: Entry, body: Mapping) -> None:
    for row in body["records"]:
        state.anchor_outcomes.setdefault(row["evaluator_sha256"], {})[row["item"], row["repeat"]] = row["outcome"]


def _queued(state: State, entry: Entry, body: Mapping) -> None:
    evaluator = body["evaluator"]
    state.evaluators[evaluator["id"], evaluator["revision"]] = evaluator["sha256"]
    state.challengers[entry.seq] = Challenger(
        entry.seq,
        body["slot"],
        evaluator["id"],
        evaluator["revision"],
        evaluator["sha256"],
        body["author"],
        entry.actor,
        tuple(body["leaks"]),
    )


def _checkpoint(state: State, entry: Entry, body: Mapping) -> None:
    state.checkpoints_reached += 1
    state.open_checkpoint = entry


def _decision(state: State, entry: Entry, body: Mapping) -> None:
    state.open_checkpoint = None
    state.looks = body["looks_after"]
    for verdict in body["verdicts"]:
        state.verdicts[verdict["candidate"]["queued_at"]] = verdict["decision"]


def _promoted(state: State, entry: Entry, body: Mapping) -> None:
    state.criteria = {**state.criteria, body["slot"]: body["criterion"]}
    state.epoch = body["epoch"]
    state.checkpoints_reached = 0


def _tombstoned(state: State, entry: Entry, body: Mapping) -> None:
    state.tombstoned |= set(body["records"])


def _revalidated(state: State, entry: Entry, body: Mapping) -> None:
    state.tombstoned -= set(body["records"])


def _closed(state: State, entry: Entry, body: Mapping) -> None:
    state.closed = entry


_STEPS = {
    "opened": _opened,
    "utility": _utility,
    "anchor_outcome": _anchor,
    "challenger_queued": _queued,
    "checkpoint_reached": _checkpoint,
    "acceptor_decision": _decision,
    "evaluator_promoted": _promoted,
    "utility_tombstoned": _tombstoned,
    "utility_revalidated": _revalidated,
    "epoch_closed": _closed,
}
