"""``skillOptimization``: when an edit of a skill may be accepted, and what promotion needs beyond that.

Owns the declaration's shape and the rules on a decision record: a bounded patch on a fresh base, disjoint
splits, the right measurements for what changed, per-skill effects before any average, and a review by someone else.
"""

from __future__ import annotations

import re

from agent_eval import receipts

from . import decision
from .decision import ABSTAIN, INVALID, KEEP, Contract, Reasons, Record

MEASUREMENTS = ("routing", "effectiveness", "activation")
_NEEDED = {"description": {"routing", "activation"}, "body": {"effectiveness", "activation"}}
_EXPOSED = {"routing": "description", "effectiveness": "body", "activation": "installed"}
_LEAK_CHARS = 50
_LEAK_WORDS = 13

_FORM = receipts.record_of(
    "skillOptimization",
    {
        "rule": receipts.Field(decision.exactly("strict"), "ties keep the incumbent", required=True),
        "evidence": receipts.Field(
            receipts.choice("established", "directional-with-waiver"), "what a promotion of the canonical skill needs", required=True
        ),
        "alpha": receipts.Field(decision.ALPHA, "the error over all consultations of one split", required=True),
        "maxOperations": receipts.Field(decision.POSITIVE, "edits in one patch", required=True),
        "maxChangedLines": receipts.Field(decision.POSITIVE, "lines in one patch", required=True),
        "maxChangedBytes": receipts.Field(decision.POSITIVE, "bytes in one patch", required=True),
        "maxConsultations": receipts.Field(decision.POSITIVE, "decisions on one split", required=True),
        "files": receipts.Field(decision.TEXTS, "the only files that a patch may touch", required=True),
        "measurements": receipts.Field(decision.includes(*MEASUREMENTS), "measured apart, never merged", required=True),
        "splits": receipts.Field(decision.includes("train", "select", "test"), "disjoint by id, text and 13-grams", required=True),
        "regressions": receipts.Field(decision.exactly("veto"), "before any average", required=True),
        "promotion": receipts.Field(
            receipts.record_of(
                "promotion",
                {
                    "review": receipts.Field(decision.exactly("by-another"), "reviewer is neither author nor proposer", required=True),
                    "rollback": receipts.Field(decision.exactly("verified-before"), "restorable before the file changes", required=True),
                },
            ),
            "what acceptance alone is not",
            required=True,
        ),
        "negatives": decision.NEGATIVES,
    },
)


def _patch(declared: Record, record: Record) -> Reasons:
    """S1-S6, S30: a small patch, on the live incumbent, of the declared files only, not seen before."""
    patch = record["patch"]
    limits = (("operations", "maxOperations"), ("changedLines", "maxChangedLines"), ("changedBytes", "maxChangedBytes"))
    for size, limit in limits:
        if type(patch[size]) is not int or patch[size] > declared[limit]:
            yield INVALID, "patch-over-budget"
    if set(patch["files"]) - set(declared["files"]):
        yield INVALID, "patch-touches-other-files"
    if patch["baseSha256"] != record["incumbentSha256"]:
        yield INVALID, "stale-base"
    if patch["anchorMatches"] != 1:
        yield INVALID, "anchor-not-unique"
    if patch["touchesProtected"] or patch["smugglesFence"]:
        yield INVALID, "protected-section"
    if patch["fingerprint"] in record["rejected"]:
        yield INVALID, "already-rejected"
    if record["liveSha256"] != record["incumbentSha256"]:
        yield INVALID, "live-file-changed"


def normal_text(text: str) -> str:
    """Text without case, punctuation and runs of blanks."""
    return " ".join(re.sub(r"[^\w\s]", " ", text.casefold()).split())


def _grams(text: str) -> set[tuple[str, ...]]:
    words = normal_text(text).split()
    size = min(_LEAK_WORDS, len(words))
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)} if words else set()


def _splits(declared: Record, record: Record) -> Reasons:
    """S7-S10: what selects was never seen in training, whatever its id, and is not in the patch."""
    train, held = record["splits"]["train"], record["splits"]["select"] + record["splits"]["test"]
    if {task["id"] for task in train} & {task["id"] for task in held}:
        yield ABSTAIN, "split-overlap-id"
    seen = [_grams(task["text"]) for task in train]
    if any(_grams(task["text"]) & grams for task in held for grams in seen):
        yield ABSTAIN, "split-overlap-text"
    if record["splits"].get("borrowed"):
        yield ABSTAIN, "split-borrowed-from-train"
    added = normal_text(record["patch"]["addedText"])
    for task in held:
        text = normal_text(task["text"])
        windows = (text[at : at + _LEAK_CHARS] for at in range(max(1, len(text) - _LEAK_CHARS + 1)))
        if task["canary"] in record["patch"]["addedText"] or any(window in added for window in windows if window):
            yield ABSTAIN, "held-out-text-in-patch"


def _measurements(declared: Record, record: Record) -> Reasons:
    """S16-S21, S24-S27: the right measurement of the right bytes, all else equal, nothing changed afterwards."""
    kinds = set()
    for measured in record["measurements"]:
        kinds.add(measured["kind"])
        if measured["exposed"] != _EXPOSED[measured["kind"]] or measured["claim"] != measured["kind"]:
            yield INVALID, "measurement-of-another-kind"
        if measured["candidateSha256"] != record["patch"]["resultSha256"]:
            yield INVALID, "measurement-of-other-bytes"
        if measured["formatFailuresAs"] != "reported-apart":
            yield INVALID, "format-failures-miscounted"
        if measured.get("bonus"):
            yield INVALID, "bonus-unrelated-to-outcome"
        if measured.get("cachedFrom") not in (None, record["split"]["fingerprint"]):
            yield INVALID, "cached-score-of-another-split"
    needed = set().union(*(_NEEDED[part] for part in record["changed"]))
    if needed - kinds:
        yield ABSTAIN, "measurement-missing"
    frozen = record["frozen"]
    if frozen["policyAtPlan"] != frozen["policy"]:
        yield INVALID, "policy-changed-after-measurement"
    for part in ("evaluator", "model", "harness", "seed", "fixtures"):
        if frozen["incumbentArm"][part] != frozen["candidateArm"][part]:
            yield INVALID, f"different-{part}-between-arms"
    if record["split"]["fingerprint"] != record["split"]["fingerprintAtPlan"]:
        yield INVALID, "split-moved"
    if record["consultation"] > declared["maxConsultations"]:
        yield ABSTAIN, "consultations-exhausted"
    if record["mutatedAfterDecision"]:
        yield INVALID, "changed-after-decision"


def _outcome(value: object) -> bool | None:
    return bool(value) if decision.is_binary(value) else None


def _counts(pairs: list[Record]) -> tuple[int, int]:
    wins = sum(pair["candidate"] == 1 and pair["incumbent"] == 0 for pair in pairs)
    return wins, sum(pair["candidate"] == 0 and pair["incumbent"] == 1 for pair in pairs)


def _established(declared: Record, record: Record) -> bool:
    wins, losses = _counts(record["pairs"])
    return decision.sign_test(wins, losses) <= decision.spent_alpha(decision.fraction_of(declared["alpha"]), record["consultation"])


def _comparison(declared: Record, record: Record) -> Reasons:
    """S11-S15, S22, S23: whole pairs, one per task, strictly better, and no skill made worse."""
    pairs = record["pairs"]
    if any(_outcome(pair.get(arm)) is None for pair in pairs for arm in ("incumbent", "candidate")):
        yield ABSTAIN, "missing-pair"
        return
    if len({pair["task"] for pair in pairs}) != len(pairs):
        yield INVALID, "replicates-counted-as-tasks"
    if {task["id"] for task in record["splits"]["select"]} != {pair["task"] for pair in pairs}:
        yield ABSTAIN, "missing-pair"
    wins, losses = _counts(pairs)
    if wins == losses:
        yield KEEP, "tie"
    elif wins < losses:
        yield KEEP, "worse"
    for skill in sorted({pair["skill"] for pair in pairs}):
        own = _counts([pair for pair in pairs if pair["skill"] == skill])
        if skill == record["target"] and own[0] <= own[1]:
            yield KEEP, "target-skill-not-better"
        elif own[0] < own[1]:
            yield KEEP, "skill-regression"
    if any(pair["critical"] and pair["incumbent"] == 1 and pair["candidate"] == 0 for pair in pairs):
        yield KEEP, "critical-regression"
    control = record["negativeControl"]
    if min(decision.sign_test(control["wins"], control["losses"]), decision.sign_test(control["losses"], control["wins"])) * 2 <= (
        decision.fraction_of(declared["alpha"])
    ):
        yield ABSTAIN, "negative-control-has-an-effect"
    if wins > losses and declared["evidence"] == "established" and not _established(declared, record):
        yield KEEP, "not-established"


def _promotion(declared: Record, record: Record) -> Reasons:
    """S28, S29: someone else approved this decision, where it came from is known, and the way back is proven."""
    review, rollback = record["review"], record["rollback"]
    if review["reviewer"] in (record["actors"]["author"], record["actors"]["proposer"]):
        yield INVALID, "reviewer-is-author"
    if review["decisionSha256"] != record["decisionSha256"]:
        yield INVALID, "review-of-another-decision"
    if set(review["provenance"]) < {"traces", "patch", "split", "decision"}:
        yield INVALID, "provenance-incomplete"
    if not rollback["verified"] or rollback["sha256"] != record["incumbentSha256"]:
        yield INVALID, "rollback-not-verified"
    if declared["evidence"] == "directional-with-waiver" and not _established(declared, record) and not review.get("waiver"):
        yield KEEP, "directional-without-waiver"


_shape = decision.shape(
    {
        "/target": decision.TEXT,
        "/actors/author": decision.TEXT,
        "/actors/proposer": decision.TEXT,
        "/review/reviewer": decision.TEXT,
        "/incumbentSha256": decision.DIGEST,
        "/liveSha256": decision.DIGEST,
        "/decisionSha256": decision.DIGEST,
        "/patch/baseSha256": decision.DIGEST,
        "/patch/resultSha256": decision.DIGEST,
        "/patch/files": decision.TEXTS,
        "/patch/addedText": decision.TEXT,
        "/patch/anchorMatches": decision.COUNT,
        "/patch/touchesProtected": decision.FLAG,
        "/patch/smugglesFence": decision.FLAG,
        "/patch/fingerprint": decision.TEXT,
        "/rejected": decision.LIST,
        "/changed": decision.TEXTS,
        "/consultation": decision.POSITIVE,
        "/mutatedAfterDecision": decision.FLAG,
        "/splits/borrowed": decision.FLAG,
        "/split/fingerprint": decision.TEXT,
        "/measurements": decision.LIST,
        "/pairs": decision.LIST,
        "/negativeControl/wins": decision.COUNT,
        "/negativeControl/losses": decision.COUNT,
        "/rollback/verified": decision.FLAG,
    }
)

SKILL = Contract("skillOptimization", "S", _FORM, (_shape, _patch, _splits, _measurements, _comparison, _promotion), _established)
