"""What refuses a policy before it is run: it costs no look at the suite.

Owns: identical to the incumbent, submitted and rejected before, text or ids of the suite inside, budget spent, no baseline.
"""

from __future__ import annotations

from agent_eval.gates import leakage, live
from agent_eval.gates.decision import Finding, Outcome
from agent_eval.gates.guardrail.suite import Case
from agent_eval.gates.lineage import Lineage
from agent_eval.records.digests import sha256_bytes


def findings(lineage: Lineage, policy: bytes, cases: tuple[Case, ...]) -> list[Finding]:
    """Every reason not to run this policy."""
    found = []
    if not any(entry.body["valid"] for entry in lineage.of_kind("baseline_recorded")):
        found.append(Finding(Outcome.INVALID, "no_baseline", "the unguarded baseline was not recorded, or showed no headroom"))
    limit = lineage.config["budget"]["candidates"]
    if len(lineage.of_kind("candidate_started")) >= limit:
        found.append(Finding(Outcome.ABSTAIN, "budget_exhausted", f"{limit} candidates were run, the frozen budget allows no more"))
    (state,) = live.expected(lineage.entries).values()
    if state.sha256 == sha256_bytes(policy):
        found.append(Finding(Outcome.KEEP, "tie", "the policy is byte for byte the incumbent"))
    found += _resubmission(lineage, policy)
    scanner = leakage.Scanner({case.id: case.prompt for case in cases})
    for leak in scanner.find(policy.decode("utf-8", "replace")):
        found.append(Finding(Outcome.ABSTAIN, "leakage", f"{leak.item} of the suite stands in the policy ({leak.how})", (leak.item,)))
    return found


def _resubmission(lineage: Lineage, policy: bytes) -> list[Finding]:
    """The same bytes, or the same words: another line ending is not another policy."""
    words = leakage.normalise(policy.decode("utf-8", "replace"))
    decided = {entry.body["of"]: entry.body["state"] for entry in lineage.of_kind("decided")}
    for entry in lineage.of_kind("candidate_started"):
        if decided.get(entry.seq) != "rejected":
            continue
        earlier = lineage.blob(entry, "policy")
        if earlier == policy or leakage.normalise(earlier.decode("utf-8", "replace")) == words:
            detail = f"candidate {entry.body['candidate']} had the same text and was rejected"
            return [Finding(Outcome.KEEP, "resubmitted", detail)]
    return []
