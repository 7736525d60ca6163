"""``evaluatorEvolution``: when a new evaluator may take the place of the old one (the Red Queen rule).

Owns the declaration's shape and the rules on a decision record: one evaluator slot, one frozen anchor,
declared checkpoints only, ties keep the incumbent, and the paired exact test with alpha spending.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from agent_eval import receipts

from . import decision
from .decision import ABSTAIN, INVALID, KEEP, Contract, Reasons, Record

FROZEN = ("evaluator", "artifactProtocol", "scoringRule", "anchor", "budget", "split", "checkpoints")


def _increasing(value: Any) -> bool:
    good = isinstance(value, list) and len(value) > 0 and all(type(item) is int and item > 0 for item in value)
    return good and all(first < second for first, second in itertools.pairwise(value))


_FORM = receipts.record_of(
    "evaluatorEvolution",
    {
        "rule": receipts.Field(decision.exactly("strict"), "ties keep the incumbent", required=True),
        "statistic": receipts.Field(decision.exactly("paired-exact/1"), "the test", required=True),
        "evidence": receipts.Field(decision.exactly("established"), "a promotion needs the bound, not only a gain", required=True),
        "scoringRule": receipts.Field(decision.exactly("binary"), "outcomes are 0 or 1", required=True),
        "alpha": receipts.Field(decision.ALPHA, "the error over all looks at one anchor revision", required=True),
        "minPerClass": receipts.Field(decision.POSITIVE, "least items of each class in the anchor", required=True),
        "minDiscordant": receipts.Field(decision.POSITIVE, "least items on which the two differ", required=True),
        "delta": receipts.Field(decision.COUNT, "items by which TPR or TNR may fall", required=True),
        "checkpoints": receipts.Field(
            receipts.Form("a strictly increasing list of positive integers", _increasing), "when a decision may be made", required=True
        ),
        "proposer": receipts.Field(decision.TEXT, "who queues challengers", required=True),
        "acceptor": receipts.Field(decision.TEXT, "who decides", required=True),
        "frozen": receipts.Field(decision.includes(*FROZEN), "what does not change within an epoch", required=True),
        "onPromote": receipts.Field(
            receipts.record_of(
                "onPromote",
                {
                    "epoch": receipts.Field(decision.exactly("new"), "a promotion starts one", required=True),
                    "dependents": receipts.Field(decision.exactly("tombstone"), "records of the displaced evaluator", required=True),
                    "anchorEvidence": receipts.Field(decision.exactly("keep"), "evaluator-independent records", required=True),
                    "rankings": receipts.Field(decision.exactly("unscored"), "what is left without records", required=True),
                },
            ),
            "what a promotion does",
            required=True,
        ),
        "winners": receipts.Field(decision.exactly("epoch-local"), "winners without an anchor are comparable in their epoch only", required=True),
        "negatives": decision.NEGATIVES,
    },
    decision.different("proposer", "acceptor"),
)


def _frozen(declared: Record, record: Record) -> Reasons:
    """E1-E5, E15, E22, E23: nothing that the epoch froze has moved, and the challenger is something new."""
    criterion, incumbent, challenger = record["criterion"], record["incumbent"], record["challenger"]
    if record["checkpoint"] not in declared["checkpoints"]:
        yield INVALID, "not-a-checkpoint"
    if criterion["checkpointsAtOpen"] != declared["checkpoints"]:
        yield INVALID, "checkpoints-changed"
    actors = record["actors"]
    if actors["acceptor"] in (actors["proposer"], actors["author"]):
        yield INVALID, "acceptor-is-proposer"
    if criterion.get("anchorSha256AtOpen") is None:
        yield INVALID, "anchor-not-locked"
    elif criterion["anchorSha256AtOpen"] != criterion["anchorSha256"]:
        yield INVALID, "anchor-changed"
    if record["changed"] != ["evaluator"]:
        yield INVALID, "more-than-the-evaluator-changed"
    if incumbent["sha256"] == challenger["sha256"]:
        yield INVALID, "same-bytes-as-incumbent"
    if challenger["revision"] <= incumbent["revision"]:
        yield INVALID, "revision-reused"
    if record["spent"] > record["budget"]:
        yield INVALID, "budget-exceeded"


def _looks(declared: Record, record: Record) -> Reasons:
    """E24: a look is counted, for every challenger, and never forgotten."""
    look, challengers = record["look"], record["challengersCompared"]
    if type(look) is not int or look < 1 or look != record["looksBefore"] + 1:
        yield INVALID, "look-counter"
    if type(challengers) is not int or challengers < 1:
        yield INVALID, "challengers-not-counted"


def _anchor(declared: Record, record: Record) -> Reasons:
    """E6-E8, E12-E14, E16, E25, E26: the anchor is whole, independent, binary, and of both classes."""
    items = record["anchor"]
    names = [item.get("id") for item in items]
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        yield INVALID, "malformed-anchor-row"
    if not all(isinstance(item.get("label"), bool) for item in items):
        yield INVALID, "malformed-anchor-row"
    if any(item.get("labelBy") != "human" for item in items):
        yield INVALID, "anchor-depends-on-an-evaluator"
    for item in items:
        for arm in ("incumbent", "challenger"):
            if item.get(arm) is not None and not decision.is_binary(item[arm]):
                yield INVALID, "outcome-not-binary"
    if record["repeats"]["incumbent"] != record["repeats"]["challenger"]:
        yield INVALID, "different-repeats"
    if any(item.get("incumbent") is None for item in items):
        yield ABSTAIN, "incumbent-unscored"
    for label in (True, False):
        if sum(item["label"] is label for item in items) < declared["minPerClass"]:
            yield ABSTAIN, "class-below-minimum"
    if record["leakage"]:
        yield ABSTAIN, "leakage"


def _right(item: Record, arm: str) -> bool:
    """Whether an evaluator's verdict is the label; a missing verdict counts against it."""
    return item.get(arm) is not None and bool(item[arm]) is item["label"]


def _table(record: Record) -> tuple[int, int]:
    wins = sum(_right(item, "challenger") and not _right(item, "incumbent") for item in record["anchor"])
    losses = sum(_right(item, "incumbent") and not _right(item, "challenger") for item in record["anchor"])
    return wins, losses


def _established(declared: Record, record: Record) -> bool:
    wins, losses = _table(record)
    alpha = decision.spent_alpha(decision.fraction_of(declared["alpha"]), record["look"], record["challengersCompared"])
    return decision.sign_test(wins, losses) <= alpha


def _comparison(declared: Record, record: Record) -> Reasons:
    """E9-E11: strictly better, established, and neither sensitivity nor specificity given away."""
    wins, losses = _table(record)
    if wins == losses:
        yield KEEP, "tie"
    elif wins < losses:
        yield KEEP, "worse"
    elif wins + losses < declared["minDiscordant"]:
        yield KEEP, "insufficient-evidence"
    elif not _established(declared, record):
        yield KEEP, "not-established"
    for label, name in ((True, "tpr-lower"), (False, "tnr-lower")):
        group = [item for item in record["anchor"] if item["label"] is label]
        before, after = (sum(_right(item, arm) for item in group) for arm in ("incumbent", "challenger"))
        if before - after > declared["delta"]:
            yield KEEP, name
    if any(item.get("critical") and _right(item, "incumbent") and not _right(item, "challenger") for item in record["anchor"]):
        yield KEEP, "critical-regression"


def _transition(declared: Record, record: Record) -> Reasons:
    """E17-E21, E27, E28: exactly the dependents are tombstoned, nothing is deleted, and one criterion is active."""
    plan = record["transition"]
    dependents = {name for name, item in plan["records"].items() if plan["slot"] in item["deps"]}
    tombstoned = set(plan["tombstone"])
    if tombstoned - dependents:
        yield INVALID, "over-erasure"
    if dependents - tombstoned:
        yield INVALID, "under-erasure"
    if plan["deleted"]:
        yield INVALID, "record-deleted"
    if set(plan["rankedOn"]) & dependents:
        yield INVALID, "stale-record-ranked"
    if len(plan["activeCriteria"]) != 1:
        yield INVALID, "two-active-criteria"
    if len(plan["promotions"]) > 1:
        yield INVALID, "two-promotions-in-one-slot"
    yield from _winner(plan["winner"])


def _winner(winner: Record) -> Iterator[tuple[str, str]]:
    if not winner["anchored"] and winner.get("epochLocal") is not True:
        yield INVALID, "winner-not-marked-epoch-local"
    if winner.get("comparedAcrossRevisions"):
        yield INVALID, "compared-across-revisions"


_shape = decision.shape(
    {
        "/actors/proposer": decision.TEXT,
        "/actors/author": decision.TEXT,
        "/actors/acceptor": decision.TEXT,
        "/incumbent/id": decision.TEXT,
        "/challenger/id": decision.TEXT,
        "/incumbent/revision": decision.POSITIVE,
        "/challenger/revision": decision.POSITIVE,
        "/incumbent/sha256": decision.DIGEST,
        "/challenger/sha256": decision.DIGEST,
        "/criterion/anchorSha256": decision.DIGEST,
        "/spent": decision.NUMBER,
        "/budget": decision.NUMBER,
        "/looksBefore": decision.COUNT,
        "/repeats/incumbent": decision.POSITIVE,
        "/repeats/challenger": decision.POSITIVE,
        "/leakage": decision.LIST,
        "/changed": decision.TEXTS,
        "/anchor": decision.LIST,
        "/transition/tombstone": decision.LIST,
        "/transition/deleted": decision.LIST,
        "/transition/rankedOn": decision.LIST,
        "/transition/activeCriteria": decision.TEXTS,
        "/transition/promotions": decision.LIST,
        "/transition/winner/anchored": decision.FLAG,
        "/transition/winner/comparedAcrossRevisions": decision.FLAG,
    }
)

EVOLUTION = Contract("evaluatorEvolution", "E", _FORM, (_shape, _frozen, _looks, _anchor, _comparison, _transition), _established)
