"""The state machine of a skill lineage.

Owns the commands init, propose, measure, decide, review, promote and rollback, the order they must come in, and
what each writes. States of a proposal: ``screened`` or ``rejected``/``abstained`` (screen) -> measured -> ``rejected``,
``abstained`` or ``candidate_accepted`` -> reviewed -> ``promoted`` -> ``rolled_back``. Rules are in `patch`,
`measurement` and `verdict`; this module only keeps them in sequence on one ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_eval.gates import inputs, leakage, live
from agent_eval.gates import lineage as lineages
from agent_eval.gates.decision import Finding, Outcome, conclude
from agent_eval.gates.files import Files
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage, digest_of
from agent_eval.gates.result import Result, decision_body, guard, last, refused
from agent_eval.gates.skill import config as configs
from agent_eval.gates.skill import document, measurement, verdict
from agent_eval.gates.skill import patch as patches
from agent_eval.records import strict_json
from agent_eval.records.problems import InvalidInput

CONTRACT = "skill"
_STATES = {
    Outcome.PROMOTE: "candidate_accepted",
    Outcome.KEEP: "rejected",
    Outcome.ABSTAIN: "abstained",
    Outcome.INVALID: "invalid",
}


def init(directory: str, config_path: str, actor: str, *, files: Files | None = None, parent: str | None = None) -> Result:
    """Open a lineage. Overlapping splits abstain and make nothing; other faults raise InvalidInput."""
    setup = configs.read(config_path)
    shared = configs.overlaps(setup.splits)
    if shared:
        findings = [Finding(Outcome.ABSTAIN, "split_overlap", detail) for detail in shared]
        return Result(CONTRACT, "init", "not opened", "", conclude(findings))
    ancestor = lineages.ancestor(parent, CONTRACT)
    with lineages.create(directory, files or Files()) as lineage:
        root = live.LiveRoot.at(directory, setup.root)
        contents = {path: root.read(path) for path in setup.config["files"]}
        sources = {**setup.frozen_paths, **{f"split:{name}": path for name, path in setup.split_paths.items()}}
        frozen, blobs = lineages.freeze(lineage, sources)
        blobs |= {f"live:{path}": lineage.ledger.blobs.put(content.data) for path, content in contents.items()}
        splits = {name: {"sha256": configs.split_digest(items), "n": len(items)} for name, items in setup.splits.items()}
        bytes_of = {path: content.data for path, content in contents.items()}
        body = {
            "contract": CONTRACT,
            "lineage": lineages.new_id(),
            "config": setup.config,
            "frozen_files": frozen,
            "root": root.relative,
            "live": [{"path": p, **c.state.to_json()} for p, c in contents.items()],
            "splits": splits,
            "exposure": document.exposure(bytes_of, setup.config["files"][0]).to_json(),
            "manifest_sha256": digest_of({"config": setup.config, "frozen": {n: f["sha256"] for n, f in frozen.items()}, "splits": splits}),
            "parent": ancestor,
            "cannot_exercise": setup.config["cannot_exercise"],
            "blobs": blobs,
        }
        lineage.ledger.append("opened", actor, body)
        return Result(
            CONTRACT, "init", "open", lineage.ledger.head, record={"lineage": body["lineage"], "manifest_sha256": body["manifest_sha256"]}
        )


def propose(directory: str, patch_path: str, actor: str, *, files: Files | None = None) -> Result:
    """Screen a patch and keep it, whatever the screen says."""
    raw = inputs.read_bytes(patch_path)
    patch = patches.read(inputs.parsed(raw, patch_path), patch_path)
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        stopped = guard(lineage, actor)
        if stopped:
            return refused(lineage, CONTRACT, "propose", "refused", stopped)
        base = {path: content.data for path, content in incumbent(lineage).items()}
        candidate, findings, cost = patches.apply(patch, base, lineage.config["patch_budget"], tuple(lineage.config["protected"]))
        findings += _screen(lineage, patch, candidate)
        decision = conclude(findings)
        main = lineage.config["files"][0]
        before, after = document.exposure(base, main), document.exposure(candidate, main)
        number = len(lineage.of_kind("proposed")) + 1
        blobs = {"patch": lineage.ledger.blobs.put(raw)}
        blobs |= {f"candidate:{path}": lineage.ledger.blobs.put(data) for path, data in candidate.items()}
        state = "screened" if decision.outcome is Outcome.PROMOTE else _STATES[decision.outcome]
        body = {
            "proposal": number,
            "state": state,
            "author": patch.author,
            "traces": list(patch.traces),
            "fingerprint": patch.fingerprint(),
            "cost": cost,
            "base_exposure": before.to_json(),
            "candidate_exposure": after.to_json(),
            "required": list(document.required(before, after)),
            "reasons": [finding.to_json() for finding in findings],
            "blobs": blobs,
        }
        lineage.ledger.append("proposed", actor, body)
        shown = {key: body[key] for key in ("proposal", "required", "cost", "base_exposure", "candidate_exposure")}
        return Result(CONTRACT, "propose", state, lineage.ledger.head, None if state == "screened" else decision, shown)


def measure(directory: str, record_path: str, actor: str, *, proposal: int | None = None, files: Files | None = None) -> Result:
    """Keep one measurement of a screened proposal. A record of other bytes or conditions is kept apart and refused."""
    raw = inputs.read_bytes(record_path)
    record = measurement.read(inputs.parsed(raw, record_path), record_path)
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        stopped = guard(lineage, actor)
        if stopped:
            return refused(lineage, CONTRACT, "measure", "refused", stopped)
        proposed = _proposal(lineage, proposal)
        number = proposed.body["proposal"]
        _require_state(lineage, number, "measure", *(("promoted",) if record.split == "test" else ("screened", "measured")))
        findings = _measure_findings(lineage, proposed, record)
        blobs = {"record": lineage.ledger.blobs.put(raw)}
        runs = sorted(arm.run_id for arm in record.arms.values())
        body = {
            "proposal": number,
            "measurement": record.kind.value,
            "split": record.split,
            "runs": runs,
            "reasons": [finding.to_json() for finding in findings],
            "blobs": blobs,
        }
        if findings:
            lineage.ledger.append("measurement_refused", actor, body)
            return refused(lineage, CONTRACT, "measure", "refused", conclude(findings))
        lineage.ledger.append("measured", actor, body)
        return Result(
            CONTRACT,
            "measure",
            state_of(lineage, number),
            lineage.ledger.head,
            record={"proposal": number, "measurement": record.kind.value, "split": record.split},
        )


def decide(directory: str, actor: str, *, proposal: int | None = None, files: Files | None = None) -> Result:
    """Decide on a measured proposal, once. Acceptance is a state of the lineage and changes no live file."""
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        stopped = guard(lineage, actor)
        if stopped:
            return refused(lineage, CONTRACT, "decide", "refused", stopped)
        proposed = _proposal(lineage, proposal)
        number = proposed.body["proposal"]
        _require_state(lineage, number, "decide", "screened", "measured")
        question, records = question_of(lineage, proposed)
        decision = verdict.decide(question, records)
        body = decision_body(
            lineage,
            decision,
            epoch=len(lineage.of_kind("promoted", "rolled_back")),
            incumbent={"id": lineage.config["skill"], "sha256": proposed.body["base_exposure"]["activation"]},
            candidate={
                "proposal": number,
                "sha256": proposed.body["candidate_exposure"]["activation"],
                "fingerprint": proposed.body["fingerprint"],
            },
            plan_sha256=_plan_digest(lineage, question),
            actors={"proposer": proposed.actor, "author": proposed.body["author"], "acceptor": actor},
            tables=decision.detail.get("tests", {}),
        )
        entry = lineage.ledger.append("decided", actor, {**body, "proposal": number, "state": _STATES[decision.outcome]})
        return Result(
            CONTRACT,
            "decide",
            _STATES[decision.outcome],
            lineage.ledger.head,
            decision,
            {"proposal": number, "decision_digest": entry.digest},
        )


def incumbent(lineage: Lineage) -> dict[str, live.Content]:
    """The files that must be live now, from blobs."""
    return {
        path: live.Content(lineage.ledger.blobs.get(state.sha256), state.mode) for path, state in live.expected(lineage.entries).items()
    }


def state_of(lineage: Lineage, number: int) -> str:
    """The state of a proposal, folded from the entries that name it."""
    state = "unknown"
    for entry in lineage.entries:
        if entry.body.get("proposal") != number:
            continue
        state = {
            "measured": state if entry.body.get("split") == "test" else "measured",
            "promoted": "promoted",
            "rolled_back": "rolled_back",
        }.get(entry.kind, entry.body.get("state", state))
    return state


def _screen(lineage: Lineage, patch: patches.Patch, candidate: Mapping[str, bytes]) -> list[Finding]:
    findings = []
    main = lineage.config["files"][0]
    wrong = document.front_matter_problem(candidate[main])
    if wrong:
        findings.append(Finding(Outcome.KEEP, "front_matter", wrong, (main,)))
    elif document.skill_name(candidate[main]) != document.skill_name(incumbent(lineage)[main].data):
        findings.append(Finding(Outcome.KEEP, "front_matter", "the patch renames the skill", (main,)))
    held_out = {task.id: task.text for name in ("select", "test") for task in split(lineage, name)}
    scanner = leakage.Scanner(held_out, lineage.config["canaries"])
    before = set(scanner.find(_text(content.data for content in incumbent(lineage).values())))
    # The whole candidate as well: a patch can complete a sentence that the base begins.
    leaks = {*scanner.find(patch.added() + "\n" + patch.rationale), *(set(scanner.find(_text(candidate.values()))) - before)}
    for leak in sorted(leaks, key=lambda found: (found.item, found.how)):
        findings.append(Finding(Outcome.ABSTAIN, "leakage", f"held-out {leak.item} stands in the patch ({leak.how})", (leak.item,)))
    train = {task.id for task in split(lineage, "train")}
    for trace in patch.traces:
        if trace["task"] not in train:
            findings.append(Finding(Outcome.ABSTAIN, "leakage", f"trace {trace['id']} is of a task outside train", (trace["task"],)))
    return findings + _duplicate_findings(lineage, patch, document.exposure(candidate, main).activation)


def _duplicate_findings(lineage: Lineage, patch: patches.Patch, after: str) -> list[Finding]:
    """The same edits, or other edits with the same result, that were rejected before."""
    main = lineage.config["files"][0]
    present = document.exposure({path: content.data for path, content in incumbent(lineage).items()}, main).activation
    for entry in lineage.of_kind("proposed"):
        same = entry.body["fingerprint"] == patch.fingerprint() or entry.body["candidate_exposure"]["activation"] == after != present
        # A patch for other bytes was never judged: written anew for the present ones, it may be.
        stale = any(reason["code"] == "stale_base" for reason in entry.body["reasons"])
        if same and not stale and state_of(lineage, entry.body["proposal"]) in ("rejected", "invalid"):
            return [Finding(Outcome.KEEP, "duplicate_of_rejected", f"proposal {entry.body['proposal']} was the same and was rejected")]
    return []


def _text(parts: Iterable[bytes]) -> str:
    return "\n\n".join(part.decode("utf-8", "replace") for part in parts)


def _measure_findings(lineage: Lineage, proposed: Entry, record: measurement.Record) -> list[Finding]:
    earlier = lineage.of_kind("measured")
    number = proposed.body["proposal"]
    same = [e for e in earlier if (e.body["proposal"], e.body["measurement"], e.body["split"]) == (number, record.kind.value, record.split)]
    findings = measurement.binding(
        record,
        split_sha256=lineage.opened.body["splits"][record.split]["sha256"],
        incumbent=document.Exposure(**proposed.body["base_exposure"]),
        candidate=document.Exposure(**proposed.body["candidate_exposure"]),
        conditions=lineage.config["frozen"],
        used_runs={run for entry in earlier for run in entry.body["runs"]},
    )
    if same:
        findings.append(
            Finding(Outcome.INVALID, "measured_already", f"{record.kind} of proposal {number} on {record.split} is recorded already")
        )
    tasks = split(lineage, record.split)
    findings += [f for f in measurement.grid_findings(record, tasks, lineage.config["plan"]["repeats"]) if f.outcome is Outcome.INVALID]
    return findings


def question_of(lineage: Lineage, proposed: Entry) -> tuple[verdict.Question, dict[str, measurement.Record]]:
    """What a decision on this proposal depends on, from the ledger alone."""
    number = proposed.body["proposal"]
    measured = [e for e in lineage.of_kind("measured") if e.body["split"] == "select"]
    looks = list(dict.fromkeys(entry.body["proposal"] for entry in measured))
    records = {}
    for entry in measured:
        if entry.body["proposal"] == number:
            value = strict_json.parse_object(lineage.blob(entry, "record"))
            records[entry.body["measurement"]] = measurement.read(value)
    config = lineage.config
    question = verdict.Question(
        config["skill"],
        split(lineage, "select"),
        config["plan"]["repeats"],
        config["plan"]["collapse"],
        config["rule"],
        looks.index(number) + 1 if number in looks else len(looks) + 1,
        tuple(proposed.body["required"]),
    )
    return question, records


def split(lineage: Lineage, name: str) -> tuple[configs.Task, ...]:
    """The tasks of a split, from its frozen bytes."""
    return configs.tasks(lineage.blob(lineage.opened, f"frozen:split:{name}"), name)


def _plan_digest(lineage: Lineage, question: verdict.Question) -> str:
    cells = {kind: measurement.grid(question.tasks, question.repeats) for kind in question.required}
    return digest_of({"cells": cells, "plan": lineage.config["plan"], "split": lineage.opened.body["splits"]["select"]})


def _proposal(lineage: Lineage, number: int | None) -> Entry:
    proposals = lineage.of_kind("proposed")
    found = last(proposals, proposal=number) if number is not None else (proposals[-1] if proposals else None)
    if found is None:
        raise InvalidInput.one("--proposal", "there is no such proposal in this lineage", "see status")
    return found


def _require_state(lineage: Lineage, number: int, action: str, *allowed: str) -> None:
    state = state_of(lineage, number)
    if state not in allowed:
        raise InvalidInput.one(f"proposal {number}", f"is {state}: cannot {action}", f"needs {' or '.join(allowed)}")
