"""The configuration of an epoch ledger and its anchor, checked whole before anything is made.

Owns format ``agent-eval/epoch/1``, the anchor rows {id, text, label, labelled_by, critical} and the criterion of a
slot with its digest. Paths are relative to the configuration file.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval.gates import inputs
from agent_eval.gates.lineage import digest_of
from agent_eval.gates.live import read_regular
from agent_eval.grade.fields import BOOLEAN, COUNT, POSITIVE, TEXT, TEXTS, Field, Form, choice
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import InvalidInput, Problem, raise_if

CONFIG_FORMAT = "agent-eval/epoch/1"
_ANCHOR_OR_NULL = Form("an object or null", lambda value: value is None or isinstance(value, dict))
_SCHEDULE = Form(
    "a non-empty, strictly increasing list of integers from 1",
    lambda value: (
        isinstance(value, list)
        and bool(value)
        and all(type(item) is int and item >= 1 for item in value)
        and all(a < b for a, b in itertools.pairwise(value))
    ),
)
_CONFIG = {
    "format": Field(choice(CONFIG_FORMAT), "names this format", required=True),
    "name": Field(inputs.NAME, "names the ledger", required=True),
    "slots": Field(inputs.NON_EMPTY_OBJECT, "maps each evaluator slot to its evaluator and protocol", required=True),
    "scoring_rule": Field(choice("binary"), "is the only rule there is", required=True),
    "anchor": Field(_ANCHOR_OR_NULL, "is the fixed ground truth, or null: then no evaluator can be promoted", required=True),
    "split": Field(TEXT, "is the file that fixes the tasks of the epoch", required=True),
    "budget": Field(inputs.OBJECT, "bounds the utility records of an epoch", required=True),
    "checkpoints": Field(_SCHEDULE, "counts utility records of an epoch at which a decision may be made", required=True),
    "proposer": Field(inputs.OBJECT, "is who proposes", required=True),
    "acceptor": Field(inputs.OBJECT, "is who accepts", required=True),
    "rule": Field(inputs.OBJECT, "states what a challenger must reach", default={}),
    "cannot_exercise": Field(TEXTS, "states what the anchor cannot exercise", required=True),
}
_SLOT = {
    "evaluator": Field(inputs.OBJECT, "is the incumbent", required=True),
    "protocol": Field(TEXT, "is the file of the artifact protocol", required=True),
}
EVALUATOR = {
    "id": Field(inputs.NAME, "names the evaluator", required=True),
    "revision": Field(POSITIVE, "counts its revisions", required=True),
    "file": Field(TEXT, "is the file of the evaluator", required=True),
}
_ANCHOR = {
    "id": Field(inputs.NAME, "names the anchor", required=True),
    "revision": Field(POSITIVE, "counts its revisions", required=True),
    "file": Field(TEXT, "is the file of items", required=True),
    "repeats": Field(Form("an integer from 1 to 20", lambda v: type(v) is int and 1 <= v <= 20), "counts outcomes of an item", default=1),
    "collapse": Field(choice("all-pass", "majority"), "makes one outcome of the repeats", default="all-pass"),
    "prior_looks": Field(COUNT, "counts looks at this revision in other ledgers", default=0),
}
_BUDGET = {"evaluations": Field(POSITIVE, "bounds the utility records of an epoch", required=True)}
_ACTOR = {
    "name": Field(inputs.NAME, "names the actor", required=True),
    "key": Field(inputs.NAME, "is the key or account it signs with"),
    "process": Field(inputs.NAME, "is the process or model it runs as"),
}
_RULE = {
    "alpha": Field(inputs.LEVEL, "is the error spent over all looks", default=0.05),
    "evidence": Field(choice("established", "strict-only"), "is what a promotion needs", default="established"),
    "min_per_class": Field(POSITIVE, "is the fewest anchor items of each label", default=5),
    "min_discordant": Field(COUNT, "is the fewest items on which the two differ", default=0),
    "delta": Field(COUNT, "is how many items TPR or TNR may lose", default=0),
}
_ITEM = {
    "id": Field(inputs.NAME, "names the item", required=True),
    "text": Field(TEXT, "is what is judged", required=True),
    "label": Field(inputs.BINARY, "is the truth", required=True),
    "labelled_by": Field(inputs.NAME, "names who or what gave the label", required=True),
    "critical": Field(BOOLEAN, "vetoes any new failure", default=False),
}
_PARTS = {"anchor": _ANCHOR, "budget": _BUDGET, "proposer": _ACTOR, "acceptor": _ACTOR, "rule": _RULE}


@dataclass(frozen=True, slots=True)
class Item:
    """One anchor item; ``label`` 1 means that it deserves a pass."""

    id: str
    text: str
    label: int
    labelled_by: str
    critical: bool


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration that holds, with its defaults filled in and its files read."""

    config: dict
    items: tuple[Item, ...]
    frozen_paths: dict[str, str]
    criteria: dict[str, dict]


def read(path: str) -> Setup:
    """Read and check the configuration at ``path``. Raises InvalidInput with every problem."""
    raw = inputs.read_object(path)
    problems = inputs.object_problems(raw, path, _CONFIG)
    for name, fields in _PARTS.items():
        if isinstance(raw.get(name), dict):
            problems += inputs.object_problems(raw[name], f"{path}/{name}", fields)
    for slot, value in raw.get("slots", {}).items() if isinstance(raw.get("slots"), dict) else ():
        problems += inputs.NAME.problems(slot, f"{path}/slots")
        problems += inputs.object_problems(value, f"{path}/slots/{slot}", _SLOT)
        if isinstance(value, dict) and isinstance(value.get("evaluator"), dict):
            problems += inputs.object_problems(value["evaluator"], f"{path}/slots/{slot}/evaluator", EVALUATOR)
    raise_if(problems)
    config = inputs.filled(raw, _CONFIG)
    for name, fields in _PARTS.items():
        if config[name] is not None:
            config[name] = inputs.filled(config[name], fields)
    frozen = {"config": path, "split": inputs.beside(path, config["split"])}
    for slot, value in config["slots"].items():
        frozen[f"evaluator:{slot}"] = inputs.beside(path, value["evaluator"]["file"])
        frozen[f"protocol:{slot}"] = inputs.beside(path, value["protocol"])
    if config["anchor"] is not None:
        frozen["anchor"] = inputs.beside(path, config["anchor"]["file"])
    digests, found = _read_files(frozen)
    problems += found
    if config["checkpoints"][-1] > config["budget"]["evaluations"]:
        problems.append(Problem(f"{path}/checkpoints", "the last one lies beyond the budget and could never be reached"))
    items: tuple[Item, ...] = ()
    if "anchor" in digests:
        try:
            items = anchor_items(inputs.read_bytes(frozen["anchor"]), frozen["anchor"])
        except InvalidInput as error:
            problems += error.problems
    problems += _independence_problems(config, items, path)
    raise_if(problems)
    return Setup(config, items, frozen, criteria(config, digests))


def anchor_items(data: bytes, name: str) -> tuple[Item, ...]:
    """The anchor items. A malformed row is a problem and never skipped; a label is 0 or 1 and never text."""
    found = inputs.rows(data, name)
    problems = [problem for row in found for problem in inputs.object_problems(row.value, row.where, _ITEM)]
    problems += inputs.duplicates(found, "id") + inputs.duplicates(found, "text")
    raise_if(problems)
    return tuple(Item(**inputs.filled(row.value, _ITEM)) for row in found)


def criteria(config: Mapping, digests: Mapping[str, str]) -> dict[str, dict]:
    """The criterion of every slot, with its digest: what must not change inside an epoch."""
    return {
        slot: criterion(config, slot, value["evaluator"], digests[f"evaluator:{slot}"], digests) for slot, value in config["slots"].items()
    }


def criterion(config: Mapping, slot: str, evaluator: Mapping, evaluator_sha256: str, digests: Mapping[str, str]) -> dict:
    """One criterion. ``digests`` are those of the frozen protocol, split and anchor."""
    anchor = config["anchor"]
    value = {
        "slot": slot,
        "evaluator_id": evaluator["id"],
        "revision": evaluator["revision"],
        "evaluator_sha256": evaluator_sha256,
        "artifact_protocol_sha256": digests[f"protocol:{slot}"],
        "scoring_rule": "binary",
        "anchor_id": anchor and anchor["id"],
        "anchor_revision": anchor and anchor["revision"],
        "anchor_sha256": digests.get("anchor"),
        "budget": config["budget"],
        "split_sha256": digests["split"],
        "checkpoint_schedule": config["checkpoints"],
    }
    return {**value, "criterion_sha256": digest_of(value)}


def same_actor(one: Mapping, other: Mapping) -> str | None:
    """What two actors share (``name``, ``key`` or ``process``), or ``None``."""
    for key in ("name", "key", "process"):
        if key in one and key in other and inputs.same_person(one[key], other[key]):
            return key
    return None


def _read_files(frozen: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    digests: dict[str, str] = {}
    problems: list[Problem] = []
    for name, place in frozen.items():
        try:
            digests[name] = sha256_bytes(read_regular(place).data)
        except InvalidInput as error:
            problems += error.problems
    return digests, problems


def _independence_problems(config: Mapping, items: tuple[Item, ...], path: str) -> list[Problem]:
    problems: list[Problem] = []
    shared = same_actor(config["proposer"], config["acceptor"])
    if shared:
        problems.append(Problem(f"{path}/acceptor", f"has the same {shared} as the proposer", "someone else must accept"))
    evaluators = [value["evaluator"]["id"] for value in config["slots"].values()]
    dependent = sorted({item.labelled_by for item in items if any(inputs.same_person(item.labelled_by, name) for name in evaluators)})
    problems += [Problem(f"{path}/anchor", f"labels come from {name}, an evaluator of this ledger") for name in dependent]
    names = [(value["evaluator"]["id"], value["evaluator"]["revision"]) for value in config["slots"].values()]
    if len(set(names)) != len(names):
        problems.append(Problem(f"{path}/slots", "two slots name the same evaluator revision"))
    return problems
