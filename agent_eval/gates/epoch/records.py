"""Records and challengers that come into an epoch: read strictly, refused whole when one of them does not belong.

Owns the rows ``utility`` and ``anchor_outcome`` and the challenger file. Reading them writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.gates import inputs
from agent_eval.gates.decision import Finding, Outcome
from agent_eval.gates.epoch.config import EVALUATOR, Item
from agent_eval.gates.epoch.state import State
from agent_eval.grade.fields import POSITIVE, TEXT, TEXTS, Field, Form, choice, list_of
from agent_eval.records.problems import Problem, raise_if

CHALLENGER_FORMAT = "agent-eval/challenger/1"
ORIGINS = (
    "real_failure",
    "saturation",
    "split_into_binary",
    "negative_fixture",
    "cost_check",
    "minimality_check",
    "ordering_check",
    "state_check",
    "production_check",
)
_DEPS = Form(
    "an object of slot: criterion digest",
    lambda value: isinstance(value, dict) and all(inputs.DIGEST.accepts(item) is True for item in value.values()),
)
_VERDICT = Form("0, 1, or null for no verdict (never true, false, text or a fraction)", lambda v: v is None or inputs.BINARY.accepts(v))
_KIND = Field(choice("utility", "anchor_outcome"), "says what the row is", required=True)
_REPEAT = Field(POSITIVE, "counts from 1", default=1)
_UTILITY = {
    "type": _KIND,
    "candidate": Field(inputs.NAME, "names the candidate", required=True),
    "task": Field(inputs.NAME, "names the task", required=True),
    "repeat": _REPEAT,
    "outcome": Field(inputs.BINARY, "is the binary outcome", required=True),
    "deps": Field(_DEPS, "names the criterion of every slot it rests on; {} for ground truth", required=True),
    "artifact_sha256": Field(inputs.DIGEST, "is the artifact that was judged", required=True),
    "evaluator_output_sha256": Field(inputs.DIGEST, "is what the evaluator wrote"),
}
_ANCHOR = {
    "type": _KIND,
    "evaluator_sha256": Field(inputs.DIGEST, "is the evaluator that judged", required=True),
    "item": Field(inputs.NAME, "names the anchor item", required=True),
    "repeat": _REPEAT,
    "outcome": Field(_VERDICT, "is its verdict on the item", required=True),
    "protocol_sha256": Field(inputs.DIGEST, "is the protocol it ran under", required=True),
}
_CHALLENGER = {
    "format": Field(choice(CHALLENGER_FORMAT), "names this format", required=True),
    "slot": Field(inputs.NAME, "names the slot", required=True),
    "evaluator": Field(inputs.OBJECT, "is the challenger", required=True),
    "author": Field(inputs.NAME, "names who wrote it", required=True),
    "origin": Field(inputs.OBJECT, "says where it comes from", required=True),
    "changes": Field(TEXTS, "lists everything that differs from the incumbent's set-up", required=True),
    "attachments": Field(list_of(TEXT, empty=True), "lists prompts, few-shots and traces it brings", default=[]),
    "key": Field(inputs.NAME, "is the key or account of its author"),
    "process": Field(inputs.NAME, "is the process or model of its author"),
}
_ORIGIN = {
    "kind": Field(choice(*ORIGINS), "is the kind of origin", required=True),
    "evidence": Field(TEXTS, "cites what shows the need", required=True),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one input file, apart by type."""

    utilities: list[dict]
    anchors: list[dict]


def read_batch(data: bytes, name: str) -> Batch:
    """The rows of a file. Raises InvalidInput with every problem: non-binary outcomes, unknown fields, rows given twice."""
    problems: list[Problem] = []
    utilities: list[dict] = []
    anchors: list[dict] = []
    seen: dict[tuple, str] = {}
    for row in inputs.rows(data, name):
        fields = _ANCHOR if row.value.get("type") == "anchor_outcome" else _UTILITY
        bad = inputs.object_problems(row.value, row.where, fields)
        problems += bad
        if bad:
            continue
        value = inputs.filled(row.value, fields)
        identity = _identity(value)
        if identity in seen:
            problems.append(Problem(row.where, f"is the same observation as {seen[identity]}"))
        seen.setdefault(identity, row.where)
        (anchors if fields is _ANCHOR else utilities).append({key: item for key, item in value.items() if key != "type"})
    raise_if(problems)
    return Batch(utilities, anchors)


def batch_findings(batch: Batch, state: State, config: Mapping, items: tuple[Item, ...]) -> list[Finding]:
    """Everything that keeps a batch out of this epoch. One row that does not belong refuses the whole batch."""
    findings = []
    left = config["budget"]["evaluations"] - state.spent()
    if len(batch.utilities) > left:
        findings.append(_invalid("budget_exceeded", f"{len(batch.utilities)} utility records, {left} are left in this epoch"))
    known = {(r.candidate, r.task, r.repeat, r.deps) for r in state.utilities if r.epoch == state.epoch}
    for row in batch.utilities:
        label = f"{row['candidate']}/{row['task']}/{row['repeat']}"
        for slot, digest in row["deps"].items():
            if slot not in state.criteria:
                findings.append(_invalid("unknown_slot", f"{label} depends on slot {slot}, which does not exist", label))
            elif state.criteria[slot]["criterion_sha256"] != digest:
                findings.append(
                    _invalid("stale_criterion", f"{label} was scored under another criterion of {slot} than the present one", label)
                )
        if (row["candidate"], row["task"], row["repeat"], tuple(sorted(row["deps"].items()))) in known:
            findings.append(_invalid("recorded_already", f"{label} is recorded already in this epoch", label))
    return findings + _anchor_findings(batch, state, config, items)


def _anchor_findings(batch: Batch, state: State, config: Mapping, items: tuple[Item, ...]) -> list[Finding]:
    findings = []
    if batch.anchors and config["anchor"] is None:
        return [_invalid("no_anchor", "this ledger has no anchor")]
    known_items, repeats = {item.id for item in items}, config["anchor"]["repeats"] if config["anchor"] else 0
    slots = {criterion["evaluator_sha256"]: slot for slot, criterion in state.criteria.items()}
    slots |= {challenger.sha256: challenger.slot for challenger in state.challengers.values()}
    for row in batch.anchors:
        label = f"{row['evaluator_sha256'][:12]}/{row['item']}/{row['repeat']}"
        slot = slots.get(row["evaluator_sha256"])
        if slot is None:
            findings.append(_invalid("unknown_evaluator", f"{label}: no slot and no challenger has that evaluator", label))
        elif row["protocol_sha256"] != state.criteria[slot]["artifact_protocol_sha256"]:
            findings.append(_invalid("confounded", f"{label} ran under another protocol than the frozen one", label))
        if row["item"] not in known_items or row["repeat"] > repeats:
            findings.append(_invalid("unplanned_item", f"{label} is not an item and repeat of the anchor", label))
        if (row["item"], row["repeat"]) in state.anchor_outcomes.get(row["evaluator_sha256"], {}):
            findings.append(_invalid("recorded_already", f"{label} has an outcome already; the first one stands", label))
    return findings


def read_challenger(value: Any, where: str) -> dict:
    """A challenger file. Raises InvalidInput with every problem."""
    problems = inputs.object_problems(value, where, _CHALLENGER)
    if isinstance(value, dict):
        for name, fields in (("evaluator", EVALUATOR), ("origin", _ORIGIN)):
            if isinstance(value.get(name), dict):
                problems += inputs.object_problems(value[name], f"{where}/{name}", fields)
    raise_if(problems)
    return inputs.filled(value, _CHALLENGER)


def challenger_findings(challenger: Mapping, digest: str, state: State, config: Mapping, items: tuple[Item, ...]) -> list[Finding]:
    """Everything that makes a challenger one that no checkpoint may compare."""
    evaluator, slot = challenger["evaluator"], challenger["slot"]
    name = (evaluator["id"], evaluator["revision"])
    if slot not in state.criteria:
        return [_invalid("unknown_slot", f"there is no slot {slot}")]
    findings = []
    if challenger["changes"] != ["evaluator"]:
        findings.append(
            _invalid("confounded", f"it changes {', '.join(challenger['changes'])}: one comparison changes the evaluator alone")
        )
    if state.criteria[slot]["evaluator_sha256"] == digest:
        findings.append(_invalid("same_bytes", "it is byte for byte the incumbent"))
    if state.evaluators.get(name, digest) != digest:
        findings.append(_invalid("revision_reused", f"{name[0]} revision {name[1]} stands for other bytes already"))
    findings += [
        _invalid("digest_has_other_name", f"these bytes are {known[0]} revision {known[1]} already")
        for known, known_digest in state.evaluators.items()
        if known_digest == digest and known != name
    ]
    newest = max((revision for known, revision in state.evaluators if known == name[0]), default=0)
    if name not in state.evaluators and name[1] <= newest:
        findings.append(_invalid("revision_not_increasing", f"{name[0]} has revision {newest} already"))
    if any(inputs.same_person(item.labelled_by, evaluator["id"]) for item in items):
        findings.append(_invalid("evaluator_dependent_anchor", f"{evaluator['id']} labelled anchor items"))
    decided = [seq for seq, known in state.challengers.items() if known.sha256 == digest and known.slot == slot]
    if any(state.verdicts.get(seq) in (None, Outcome.KEEP) for seq in decided):
        findings.append(_invalid("queued_already", "it waits in the queue, or a checkpoint has decided on it"))
    return findings


def _identity(value: Mapping) -> tuple:
    if "item" in value:
        return ("anchor", value["evaluator_sha256"], value["item"], value["repeat"])
    return ("utility", value["candidate"], value["task"], value["repeat"], tuple(sorted(value["deps"].items())))


def _invalid(code: str, detail: str, *items: str) -> Finding:
    return Finding(Outcome.INVALID, code, detail, items)
