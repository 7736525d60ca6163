"""The state machine of a guardrail lineage.

Owns the commands init, baseline, candidate and rollback, what each writes, and recovery: a candidate that was running
when the process ended is abstained and the incumbent restored at the next start. Every candidate ends in ``accepted`` or in
``restored``, with the live file's digest checked and recorded. Rules are in `verdict`, running in `bench`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from agent_eval.gates import lineage as lineages
from agent_eval.gates import live
from agent_eval.gates.decision import Decision, Finding, Outcome, conclude
from agent_eval.gates.files import Files
from agent_eval.gates.guardrail import config as configs
from agent_eval.gates.guardrail import coverage, screen, verdict
from agent_eval.gates.guardrail.arms import read_cells, record_arm, run_arms
from agent_eval.gates.guardrail.bench import Bench, CommandBench
from agent_eval.gates.guardrail.ending import (
    STATES,
    append_decision,
    cases_of,
    change_policy,
    content_of,
    decision_on,
    policy_of,
    question_of,
    restore_incumbent,
    settle,
    standing,
)
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.gates.result import Result, guard, refused
from agent_eval.records.problems import InvalidInput

CONTRACT = "guardrail"
BenchFactory = Callable[[Mapping, str], Bench]


def init(directory: str, config_path: str, actor: str, *, files: Files | None = None, parent: str | None = None) -> Result:
    """Open a lineage on the present policy bytes. Raises InvalidInput with every problem."""
    setup = configs.read(config_path)
    ancestor = lineages.ancestor(parent, CONTRACT)
    with lineages.create(directory, files or Files()) as lineage:
        root = live.LiveRoot.at(directory, os.path.dirname(setup.policy))
        name = os.path.basename(setup.policy)
        content = root.read(name)
        frozen, blobs = lineages.freeze(lineage, setup.frozen_paths)
        blobs[f"live:{name}"] = lineage.ledger.blobs.put(content.data)
        manifest = {
            "config": setup.config,
            "frozen": {key: item["sha256"] for key, item in frozen.items()},
            "programs": {role: item["sha256"] for role, item in setup.programs.items()},
            "incumbent": content.state.sha256,
        }
        body = {
            "contract": CONTRACT,
            "lineage": lineages.new_id(),
            "config": setup.config,
            "frozen_files": frozen,
            "programs": setup.programs,
            "root": root.relative,
            "live": [{"path": name, **content.state.to_json()}],
            "manifest_sha256": digest_of(manifest),
            "coverage": coverage.statement(setup.config, setup.cases),
            "parent": ancestor,
            "blobs": blobs,
        }
        lineage.ledger.append("opened", actor, body)
        shown = {
            "lineage": body["lineage"],
            "manifest_sha256": body["manifest_sha256"],
            "incumbent": content.state.to_json(),
            "coverage": body["coverage"],
        }
        return Result(CONTRACT, "init", "open", lineage.ledger.head, record=shown)


def baseline(directory: str, actor: str, *, files: Files | None = None, bench: BenchFactory = CommandBench) -> Result:
    """Run the unguarded and the incumbent arm. Nothing is a candidate before this shows that the suite has headroom."""
    with _opened(directory, files) as lineage:
        stopped = _guard(lineage, actor)
        if stopped:
            return refused(lineage, CONTRACT, "baseline", "refused", stopped)
        cases, repeats = cases_of(lineage), lineage.config["repeats"]
        arms = run_arms(lineage, {"unguarded": b"", "incumbent": policy_of(lineage).data}, cases, bench)
        records = {name: record_arm(lineage, name, run, "baseline") for name, run in arms.items()}
        collapsed = {name: verdict.arm_of(name, run.cells, cases, repeats) for name, run in arms.items()}
        question = question_of(lineage, cases, 1)
        findings = verdict.baseline_findings(question, {name: run.cells for name, run in arms.items()})
        findings += _after_run(lineage, actor)
        counted = {name: verdict.counts(question, arm) for name, arm in collapsed.items()}
        stated = coverage.statement(lineage.config, cases, sorted(collapsed["unguarded"].breached))
        body = {
            "arms": {name: entry.digest for name, entry in records.items()},
            "counts": counted,
            "coverage": stated,
            "valid": not findings,
            "reasons": [finding.to_json() for finding in findings],
        }
        lineage.ledger.append("baseline_recorded", actor, body)
        restore_incumbent(lineage, "agent-eval")
        decision = conclude(findings) if findings else None
        return Result(
            CONTRACT,
            "baseline",
            "no baseline" if findings else "baseline recorded",
            lineage.ledger.head,
            decision,
            {"arms": counted, "coverage": stated},
        )


def candidate(
    directory: str, policy_path: str, actor: str, *, note: str = "", files: Files | None = None, bench: BenchFactory = CommandBench
) -> Result:
    """Screen, run and decide one candidate; accept it, or restore the incumbent, whatever happens."""
    with _opened(directory, files) as lineage:
        stopped = _guard(lineage, actor)
        if stopped:
            return refused(lineage, CONTRACT, "candidate", "refused", stopped)
        content = live.read_regular(policy_path)
        number = len(lineage.of_kind("candidate_started", "candidate_screened")) + 1
        body = {
            "candidate": number,
            "note": note,
            "sha256": content.state.sha256,
            "blobs": {"policy": lineage.ledger.blobs.put(content.data)},
            **_difference(lineage, content.data),
        }
        findings = screen.findings(lineage, content.data, cases_of(lineage))
        if findings:
            decision = conclude(findings)
            lineage.ledger.append(
                "candidate_screened", actor, {**body, "state": STATES[decision.outcome], "reasons": [f.to_json() for f in findings]}
            )
            return Result(CONTRACT, "candidate", STATES[decision.outcome], lineage.ledger.head, decision, {"candidate": number})
        try:
            started = lineage.ledger.append(
                "candidate_started", actor, {**body, "look": len(lineage.of_kind("candidate_started")) + 1, "state": "running"}
            )
            decision = _run_candidate(lineage, started, content.data, actor, bench)
        finally:
            settle(lineage)  # also after Ctrl-C or a fault: nobody is left with a candidate that was not accepted
        return Result(CONTRACT, "candidate", STATES[decision.outcome], lineage.ledger.head, decision, _shown(lineage, number))


def rollback(directory: str, actor: str, *, restore: bool = False, files: Files | None = None) -> Result:
    """Put the incumbent before the last accept back (``restore``: the present one), byte for byte."""
    with _opened(directory, files) as lineage:
        stack = standing(lineage)
        if restore:
            restore_incumbent(lineage, actor)
        elif len(stack) < 2:
            raise InvalidInput.one("rollback", "there is no accepted candidate to take back", "--restore puts the incumbent's bytes back")
        else:
            change_policy(lineage, "rolled_back", actor, {"undoes": lineage.ledger.head}, content_of(lineage, stack[-2]))
        proofs = lineage.of_kind("applied")[-1].body
        return Result(
            CONTRACT,
            "rollback",
            "restored" if restore else "rolled_back",
            lineage.ledger.head,
            record={"files": proofs["files"], "displaced": proofs["displaced"]},
        )


def status(lineage: Lineage) -> dict[str, object]:
    """Everything a person asks of a lineage: incumbent, candidates with their reasons, looks, drift, coverage."""
    baselines = [entry for entry in lineage.of_kind("baseline_recorded") if entry.body["valid"]]
    rows = []
    for entry in lineage.of_kind("candidate_started", "candidate_screened"):
        decided = decision_on(lineage, entry)
        shown = decided.body if decided else entry.body
        rows.append(
            {
                "candidate": entry.body["candidate"],
                "sha256": entry.body["sha256"],
                "note": entry.body["note"],
                "state": shown["state"],
                "evidence_level": shown.get("evidence_level"),
                "claim": shown.get("claim"),
                "reasons": [r["code"] for r in shown.get("reasons", [])],
            }
        )
    return {
        "contract": CONTRACT,
        "lineage": lineage.opened.body["lineage"],
        "name": lineage.config["name"],
        "parent": lineage.opened.body["parent"],
        "incumbent": {path: state.to_json() for path, state in live.expected(lineage.entries).items()},
        "baseline": baselines[-1].body["counts"] if baselines else None,
        "candidates": rows,
        "looks": len(lineage.of_kind("candidate_started")),
        "max_looks": lineage.config["budget"]["candidates"],
        "live_drift": [str(p) for p in lineage.live_drift()],
        "frozen_drift": [str(p) for p in frozen_problems(lineage)],
        "closed": bool(lineage.of_kind("broken")),
        "coverage": baselines[-1].body["coverage"] if baselines else lineage.opened.body["coverage"],
        "head": lineage.ledger.head,
    }


def frozen_problems(lineage: Lineage) -> list:
    """Drift of frozen files and of the programs themselves."""
    return lineage.frozen_drift() + configs.program_drift(lineage.opened.body["programs"])


@contextlib.contextmanager
def _opened(directory: str, files: Files | None) -> Iterator[Lineage]:
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        settle(lineage)
        yield lineage


def _guard(lineage: Lineage, actor: str) -> Decision | None:
    closed = guard(lineage, actor)
    if closed:
        return closed
    changed = configs.program_drift(lineage.opened.body["programs"])
    if not changed:
        return None
    lineage.ledger.append("broken", actor, {"drift": [str(problem) for problem in changed]})
    return conclude([Finding(Outcome.INVALID, "frozen_changed", str(problem), (problem.where,)) for problem in changed])


def _run_candidate(lineage: Lineage, started: Entry, policy: bytes, actor: str, bench: BenchFactory) -> Decision:
    cases = cases_of(lineage)
    policies = {"unguarded": b"", "incumbent": policy_of(lineage).data, "candidate": policy}
    runs = run_arms(lineage, policies, cases, bench)
    records = [record_arm(lineage, name, run, started.digest) for name, run in runs.items()]
    drift = _after_run(lineage, actor)
    if drift:
        decision = conclude(drift)
    else:
        # Judged from what was recorded, so that a replay of the ledger is the same call on the same bytes.
        manifests = tuple(record.body["manifest_sha256"] for record in records)
        question = question_of(lineage, cases, started.body["look"], manifests)
        decision = verdict.decide(question, {record.body["arm"]: read_cells(lineage, record) for record in records})
    append_decision(lineage, started, decision, actor, verdict_tables=decision.detail.get("arms", {}))
    return decision


def _after_run(lineage: Lineage, actor: str) -> list[Finding]:
    """What changed while the commands ran: a frozen thing closes the lineage, the live file is restored."""
    findings = [Finding(Outcome.INVALID, "frozen_changed", str(p), (p.where,)) for p in frozen_problems(lineage)]
    if findings:
        lineage.ledger.append("broken", actor, {"drift": [finding.detail for finding in findings]})
    return findings + [Finding(Outcome.INVALID, "live_changed", str(p), (p.where,)) for p in lineage.live_drift()]


def _difference(lineage: Lineage, data: bytes) -> dict[str, object]:
    before = policy_of(lineage)
    return {"parent_sha256": before.state.sha256, "size_bytes": len(data), "parent_size_bytes": len(before.data)}


def _shown(lineage: Lineage, number: int) -> dict[str, object]:
    body = lineage.of_kind("decided")[-1].body
    return {
        "candidate": number,
        "claim": body.get("claim"),
        "arms": body.get("arms"),
        "deltas": body["deltas"],
        "coverage": body["coverage"],
        "live": lineage.of_kind("applied")[-1].body,
    }
