"""The state machine of an epoch ledger.

Owns the commands open, record, queue, checkpoint, decide, close and revalidate. EPOCH_OPEN -> (checkpoint) ->
CHECKPOINT -> (decide) -> EPOCH_OPEN, or through a TRANSITION into the next epoch. Anything frozen that changed closes
the ledger. What a transition writes is in `transition`; rules are in `verdict` and `records`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from agent_eval.gates import inputs, leakage
from agent_eval.gates import lineage as lineages
from agent_eval.gates.decision import Finding, Outcome, conclude
from agent_eval.gates.epoch import config as configs
from agent_eval.gates.epoch import ranking, records, transition
from agent_eval.gates.epoch.look import decision_entry, items_of, judge, open_checkpoint_seq, overall_decision
from agent_eval.gates.epoch.state import State, fold
from agent_eval.gates.files import Files
from agent_eval.gates.ledger import recordable
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.gates.live import read_regular
from agent_eval.gates.result import Result, guard, refused
from agent_eval.records.problems import InvalidInput

CONTRACT = "epoch"


def open_ledger(directory: str, config_path: str, actor: str, *, files: Files | None = None) -> Result:
    """Open a ledger at epoch 1. Raises InvalidInput with every problem."""
    setup = configs.read(config_path)
    with lineages.create(directory, files or Files()) as lineage:
        frozen, blobs = lineages.freeze(lineage, setup.frozen_paths)
        anchor = setup.config["anchor"]
        body: dict[str, object] = {
            "contract": CONTRACT,
            "lineage": lineages.new_id(),
            "config": setup.config,
            "frozen_files": frozen,
            "root": ".",
            "live": [],
            "criteria": setup.criteria,
            "prior_looks": anchor["prior_looks"] if anchor else 0,
            "manifest_sha256": digest_of({"config": setup.config, "criteria": setup.criteria}),
            "blobs": blobs,
        }
        lineage.ledger.append("opened", actor, body)
        transition.complete(lineage)
        criteria = {slot: criterion["criterion_sha256"] for slot, criterion in setup.criteria.items()}
        return Result(
            CONTRACT, "open", "EPOCH_OPEN", lineage.ledger.head, record={"lineage": body["lineage"], "epoch": 1, "criteria": criteria}
        )


def record(directory: str, path: str, actor: str, *, files: Files | None = None) -> Result:
    """Record utility and anchor outcomes: all rows of a file, or none."""
    data = inputs.read_bytes(path)
    batch = records.read_batch(data, path)
    with _opened(directory, files) as lineage:
        state = fold(lineage.entries)
        findings = _stop_findings(lineage, state, actor) or records.batch_findings(batch, state, lineage.config, items_of(lineage))
        if findings:
            return refused(lineage, CONTRACT, "record", "refused", conclude(findings))
        source = {"source": lineage.ledger.blobs.put(data)}
        if batch.utilities:
            lineage.ledger.append("utility", actor, {"epoch": state.epoch, "records": batch.utilities, "blobs": source})
        if batch.anchors:
            lineage.ledger.append("anchor_outcome", actor, {"epoch": state.epoch, "records": batch.anchors, "blobs": source})
        state = fold(lineage.entries)
        shown = {
            "utility": len(batch.utilities),
            "anchor_outcome": len(batch.anchors),
            "spent": state.spent(),
            "next_checkpoint": _next_checkpoint(lineage, state),
        }
        return Result(CONTRACT, "record", state_name(state), lineage.ledger.head, record=shown)


def queue(directory: str, path: str, actor: str, *, files: Files | None = None) -> Result:
    """Queue a challenger. The active criterion is untouched; a checkpoint decides."""
    challenger = records.read_challenger(inputs.read_object(path), path)
    content = read_regular(inputs.beside(path, challenger["evaluator"]["file"]))
    attached = {name: read_regular(inputs.beside(path, name)).data for name in challenger["attachments"]}
    with _opened(directory, files) as lineage:
        state, config = fold(lineage.entries), lineage.config
        digest = content.state.sha256
        findings = _stop_findings(lineage, state, actor)
        if not findings:
            findings = records.challenger_findings(challenger, digest, state, config, items_of(lineage))
            findings += _author_findings(challenger, actor, config["acceptor"])
        if findings:
            return refused(lineage, CONTRACT, "queue", "refused", conclude(findings))
        leaks = _leaks(items_of(lineage), lineage, [content.data, *attached.values()])
        blobs = {
            "evaluator": lineage.ledger.blobs.put(content.data),
            **{f"attachment:{n}": lineage.ledger.blobs.put(d) for n, d in attached.items()},
        }
        frozen = recordable(
            os.path.relpath(os.path.realpath(inputs.beside(path, challenger["evaluator"]["file"])), os.path.realpath(directory))
        )
        body = {
            "slot": challenger["slot"],
            "evaluator": {**challenger["evaluator"], "sha256": digest},
            "author": challenger["author"],
            "epoch": state.epoch,
            "origin": challenger["origin"],
            "changes": challenger["changes"],
            "leaks": leaks,
            "path": frozen,
            "blobs": blobs,
        }
        lineage.ledger.append("challenger_queued", actor, body)
        shown = {"slot": body["slot"], "evaluator": body["evaluator"], "leaks": leaks}
        return Result(CONTRACT, "queue", state_name(state), lineage.ledger.head, record=shown)


def checkpoint(directory: str, actor: str, *, files: Files | None = None) -> Result:
    """Declare the next checkpoint of the frozen schedule, when its count is reached."""
    with _opened(directory, files) as lineage:
        state = fold(lineage.entries)
        findings = _stop_findings(lineage, state, actor)
        due = _next_checkpoint(lineage, state)
        if not findings:
            findings = _checkpoint_findings(state, due)
        if findings:
            return refused(lineage, CONTRACT, "checkpoint", "refused", conclude(findings))
        lineage.ledger.append(
            "checkpoint_reached",
            actor,
            {"epoch": state.epoch, "declared_at": due, "spent": state.spent(), "index": state.checkpoints_reached},
        )
        return Result(
            CONTRACT, "checkpoint", "CHECKPOINT", lineage.ledger.head, record={"declared_at": due, "waiting": len(state.waiting())}
        )


def decide(directory: str, actor: str, *, files: Files | None = None) -> Result:
    """Compare every challenger queued before the open checkpoint; promote at most one for each slot."""
    with _opened(directory, files) as lineage:
        state = fold(lineage.entries)
        findings = _stop_findings(lineage, state, actor) or _acceptor_findings(lineage, state, actor) or _moved_findings(lineage, state)
        if findings:
            return refused(lineage, CONTRACT, "decide", "refused", conclude(findings))
        verdicts = judge(lineage, state)
        body = decision_entry(lineage, state, verdicts, actor)
        lineage.ledger.append("acceptor_decision", actor, body)
        transition.complete(lineage)
        overall = overall_decision([decision for decision, _ in verdicts.values()])
        after = fold(lineage.entries)
        shown = {
            "epoch": after.epoch,
            "look": body["look"],
            "verdicts": body["verdicts"],
            "promotions": body["promotions"],
            "criteria": {s: c["criterion_sha256"] for s, c in after.criteria.items()},
        }
        return Result(CONTRACT, "decide", state_name(after), lineage.ledger.head, overall, shown)


def close(directory: str, actor: str, *, files: Files | None = None) -> Result:
    """Close the ledger with its winner, marked epoch-local unless all of its evidence is anchored."""
    with _opened(directory, files) as lineage:
        state = fold(lineage.entries)
        findings = _stop_findings(lineage, state, actor)
        if findings:
            return refused(lineage, CONTRACT, "close", "refused", conclude(findings))
        view = ranking.view(state)
        winner = view["ranked"][0] if view["ranked"] else None
        lineage.ledger.append("epoch_closed", actor, {"epoch": state.epoch, "winner": winner, "view": view})
        return Result(CONTRACT, "close", "CLOSED", lineage.ledger.head, record={"winner": winner})


def revalidate(directory: str, slot: str, actor: str, *, files: Files | None = None) -> Result:
    """Take back the tombstones of records whose whole criterion is again the present one (a reinstated evaluator)."""
    with _opened(directory, files) as lineage:
        state = fold(lineage.entries)
        findings = _stop_findings(lineage, state, actor)
        if not findings and slot not in state.criteria:
            findings = [Finding(Outcome.INVALID, "unknown_slot", f"there is no slot {slot}")]
        if findings:
            return refused(lineage, CONTRACT, "revalidate", "refused", conclude(findings))
        revived = transition.revalidate(lineage, actor, slot)
        return Result(CONTRACT, "revalidate", state_name(state), lineage.ledger.head, record={"records": revived})


def state_name(state: State) -> str:
    """The name of the state in the state machine."""
    if state.closed is not None:
        return "CLOSED"
    return "CHECKPOINT" if state.open_checkpoint is not None else "EPOCH_OPEN"


def status(lineage: Lineage) -> dict[str, object]:
    """Everything a person asks of a ledger."""
    state = fold(lineage.entries)
    return {
        "contract": CONTRACT,
        "lineage": lineage.opened.body["lineage"],
        "name": lineage.config["name"],
        "state": "BROKEN" if lineage.of_kind("broken") else state_name(state),
        "epoch": state.epoch,
        "criteria": state.criteria,
        "spent": state.spent(),
        "budget": lineage.config["budget"]["evaluations"],
        "next_checkpoint": _next_checkpoint(lineage, state),
        "looks": state.looks,
        "waiting": [c.id for c in state.waiting()],
        "records": len(state.utilities),
        "valid": len(state.valid()),
        "tombstoned": len(state.tombstoned),
        "anchor_outcomes": {digest: len(rows) for digest, rows in sorted(state.anchor_outcomes.items())},
        "frozen_drift": [str(problem) for problem in lineage.frozen_drift()],
        "cannot_exercise": lineage.config["cannot_exercise"],
        "head": lineage.ledger.head,
    }


@contextlib.contextmanager
def _opened(directory: str, files: Files | None) -> Iterator[Lineage]:
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        transition.complete(lineage)
        yield lineage


def _stop_findings(lineage: Lineage, state: State, actor: str) -> list[Finding]:
    stopped = guard(lineage, actor)
    if stopped:
        return list(stopped.findings)
    return [Finding(Outcome.INVALID, "closed", "this ledger is closed")] if state.closed is not None else []


def _acceptor_findings(lineage: Lineage, state: State, actor: str) -> list[Finding]:
    findings = []
    if state.open_checkpoint is None:
        findings.append(Finding(Outcome.INVALID, "no_checkpoint", "only a declared checkpoint decides"))
    if not inputs.same_person(actor, lineage.config["acceptor"]["name"]):
        findings.append(Finding(Outcome.INVALID, "not_the_acceptor", f"the frozen acceptor is {lineage.config['acceptor']['name']}"))
    return findings


def _checkpoint_findings(state: State, due: int | None) -> list[Finding]:
    if state.open_checkpoint is not None:
        return [Finding(Outcome.INVALID, "checkpoint_open", "the last checkpoint is not decided yet")]
    if due is None:
        return [Finding(Outcome.INVALID, "no_checkpoint_left", "the schedule of this epoch is used up")]
    if state.spent() < due:
        return [
            Finding(Outcome.INVALID, "checkpoint_not_reached", f"{state.spent()} utility records, the next checkpoint is declared at {due}")
        ]
    return []


def _moved_findings(lineage: Lineage, state: State) -> list[Finding]:
    """A challenger whose file changed after it was queued would be promoted as other bytes than it was scored as."""
    findings = []
    for challenger in state.waiting(before=open_checkpoint_seq(state)):
        queued = next(entry for entry in lineage.of_kind("challenger_queued") if entry.seq == challenger.seq)
        path = os.path.join(os.path.realpath(lineage.directory), queued.body["path"])
        try:
            same = read_regular(path).state.sha256 == challenger.sha256
        except InvalidInput:
            same = False
        if not same:
            detail = f"{challenger.id}: {queued.body['path']} is gone or changed since it was queued; put it back"
            findings.append(Finding(Outcome.INVALID, "challenger_changed", detail, (challenger.id,)))
    return findings


def _author_findings(challenger: dict, actor: str, acceptor: dict) -> list[Finding]:
    author = {"name": challenger["author"], **{key: challenger[key] for key in ("key", "process") if key in challenger}}
    shared = configs.same_actor(author, acceptor)
    findings = [Finding(Outcome.INVALID, "acceptor_is_author", f"its author has the same {shared} as the acceptor")] if shared else []
    if inputs.same_person(actor, acceptor["name"]):
        findings.append(Finding(Outcome.INVALID, "acceptor_is_proposer", "the acceptor must not queue challengers"))
    return findings


def _leaks(items: tuple[configs.Item, ...], lineage: Lineage, texts: list[bytes]) -> list[str]:
    scanner = leakage.Scanner({item.id: item.text for item in items})
    found = {f"{leak.item} ({leak.how})" for data in texts for leak in scanner.find(data.decode("utf-8", "replace"))}
    anchor = lineage.opened.body["frozen_files"].get("anchor")
    if anchor and any(anchor["sha256"].encode() in data for data in texts):
        found.add("the anchor's digest (hash)")
    return sorted(found)


def _next_checkpoint(lineage: Lineage, state: State) -> int | None:
    schedule = lineage.config["checkpoints"]
    return schedule[state.checkpoints_reached] if state.checkpoints_reached < len(schedule) else None
