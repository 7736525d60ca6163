"""From an accepted candidate to the live file and back: review, promote, rollback.

Owns who may approve what, the waiver that a directional candidate needs, the check of the rollback target before
anything live changes, and the commits on request. It does not judge candidates (`verdict`).
"""

from __future__ import annotations

from agent_eval.gates import inputs, live
from agent_eval.gates import lineage as lineages
from agent_eval.gates.decision import Finding, Level, Outcome, conclude, refusal
from agent_eval.gates.files import Files
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage
from agent_eval.gates.repository import Repository
from agent_eval.gates.result import Result, guard, last, newest, refused
from agent_eval.gates.skill.gate import CONTRACT, incumbent, state_of
from agent_eval.records.problems import EvidenceFault, InvalidInput


def review(
    directory: str,
    decision_digest: str,
    reviewer: str,
    *,
    approve: bool,
    note: str = "",
    waiver: str | None = None,
    files: Files | None = None,
) -> Result:
    """Record a review of one decision. Refused for the author, the proposer, and a decision that is not the accepted one."""
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        stopped = guard(lineage, reviewer)
        if stopped:
            return refused(lineage, CONTRACT, "review", "refused", stopped)
        decided = next((e for e in lineage.of_kind("decided") if e.digest == decision_digest), None)
        findings = _review_findings(lineage, decided, reviewer)
        if findings or decided is None:
            lineage.ledger.append("review_refused", reviewer, {"of": decision_digest, "reasons": [f.to_json() for f in findings]})
            return refused(lineage, CONTRACT, "review", "refused", conclude(findings))
        state = "reviewed" if approve else "rejected"
        body = {
            "proposal": decided.body["proposal"],
            "of": decision_digest,
            "approve": approve,
            "note": note,
            "waiver": waiver,
            "state": state,
        }
        lineage.ledger.append("reviewed", reviewer, body)
        outcome = None if approve else refusal(Outcome.KEEP, "review", "the reviewer refused the candidate")
        return Result(CONTRACT, "review", state, lineage.ledger.head, outcome, {"proposal": body["proposal"]})


def promote(directory: str, actor: str, *, proposal: int | None = None, git: bool = False, files: Files | None = None) -> Result:
    """Make a reviewed candidate live. The live bytes are checked before and after; the previous ones stay restorable."""
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        _finish_commit(lineage)
        stopped = guard(lineage, actor)
        if stopped:
            return refused(lineage, CONTRACT, "promote", "refused", stopped)
        reviewed = last(lineage.of_kind("reviewed"), **({"proposal": proposal} if proposal is not None else {}))
        findings = _promote_findings(lineage, reviewed)
        if findings or reviewed is None:
            return refused(lineage, CONTRACT, "promote", "refused", conclude(findings))
        number = reviewed.body["proposal"]
        proposed = newest(lineage.of_kind("proposed"), proposal=number)
        targets = {
            path: live.Content(lineage.blob(proposed, f"candidate:{path}"), content.mode)
            for path, content in incumbent(lineage).items()  # reading it proves the rollback target restorable
        }
        body = {
            "proposal": number,
            "decision": reviewed.body["of"],
            "review": reviewed.digest,
            "git": git,
            "rollback_target": {path: state.to_json() for path, state in live.expected(lineage.entries).items()},
        }
        return _change(lineage, "promoted", actor, body, targets, f"Promote proposal {number} of skill {lineage.config['skill']}")


def rollback(directory: str, actor: str, *, restore: bool = False, git: bool = False, files: Files | None = None) -> Result:
    """Put the bytes of the previous promotion back (``restore``: those of the present one) and add that to the history."""
    with lineages.open_for_writing(directory, CONTRACT, files or Files()) as lineage:
        _finish_commit(lineage)
        stack = _history(lineage)
        if not restore and len(stack) < 2:
            raise InvalidInput.one("rollback", "there is no promotion to take back", "--restore puts the incumbent's bytes back")
        undone = None if restore else stack.pop()
        targets = {path: live.Content(lineage.ledger.blobs.get(s.sha256), s.mode) for path, s in stack[-1][1].items()}
        number = None if undone is None else undone[0]
        body = {"undoes": number, "git": git, **({"proposal": number} if number is not None else {})}
        kind = "restored" if restore else "rolled_back"
        return _change(lineage, kind, actor, body, targets, f"Roll back skill {lineage.config['skill']}")


def status(lineage: Lineage) -> dict[str, object]:
    """The lineage in one mapping: live state, every proposal with its state, looks spent, what cannot be exercised."""
    proposals = [
        {
            "proposal": entry.body["proposal"],
            "state": state_of(lineage, entry.body["proposal"]),
            "author": entry.body["author"],
            "required": entry.body["required"],
            "reasons": _reasons(lineage, entry),
            "candidate_exposure": entry.body["candidate_exposure"],
            "base_exposure": entry.body["base_exposure"],
            "decision_digest": _digest_of_decision(lineage, entry.body["proposal"]),
        }
        for entry in lineage.of_kind("proposed")
    ]
    looks = {e.body["proposal"] for e in lineage.of_kind("measured") if e.body["split"] == "select"}
    return {
        "contract": CONTRACT,
        "lineage": lineage.opened.body["lineage"],
        "skill": lineage.config["skill"],
        "live": {path: state.to_json() for path, state in live.expected(lineage.entries).items()},
        "live_drift": [str(problem) for problem in lineage.live_drift()],
        "frozen_drift": [str(problem) for problem in lineage.frozen_drift()],
        "closed": bool(lineage.of_kind("broken")),
        "proposals": proposals,
        "splits": lineage.opened.body["splits"],
        "looks": len(looks),
        "max_looks": lineage.config["rule"]["max_consultations"],
        "conditions": lineage.config["frozen"],
        "cannot_exercise": lineage.config["cannot_exercise"],
        "head": lineage.ledger.head,
    }


def _review_findings(lineage: Lineage, decided: Entry | None, reviewer: str) -> list[Finding]:
    if decided is None:
        return [Finding(Outcome.INVALID, "unknown_decision", "no decision of this lineage has that digest")]
    number = decided.body["proposal"]
    proposed = newest(lineage.of_kind("proposed"), proposal=number)
    findings = []
    if state_of(lineage, number) != "candidate_accepted":
        findings.append(Finding(Outcome.INVALID, "not_accepted", f"proposal {number} is {state_of(lineage, number)}"))
    for role, name in (("author", proposed.body["author"]), ("proposer", proposed.actor)):
        if inputs.same_person(reviewer, name):
            findings.append(Finding(Outcome.INVALID, "reviewer_not_independent", f"the reviewer is the {role}", (name,)))
    if not proposed.body["traces"]:
        findings.append(Finding(Outcome.INVALID, "missing_provenance", "the patch names no training trace"))
    return findings


def _promote_findings(lineage: Lineage, reviewed: Entry | None) -> list[Finding]:
    if reviewed is None or not reviewed.body["approve"]:
        return [Finding(Outcome.INVALID, "not_reviewed", "no approved review of this proposal")]
    number = reviewed.body["proposal"]
    if state_of(lineage, number) != "reviewed":
        return [Finding(Outcome.INVALID, "wrong_state", f"proposal {number} is {state_of(lineage, number)}")]
    decided = next(e for e in lineage.of_kind("decided") if e.digest == reviewed.body["of"])
    proposed = newest(lineage.of_kind("proposed"), proposal=number)
    findings = []
    if decided.body["evidence_level"] == Level.DIRECTIONAL and not reviewed.body["waiver"]:
        findings.append(
            Finding(Outcome.KEEP, "waiver_needed", "the gain is directional: the review must waive the exact bound, with a reason")
        )
    if _base_moved(lineage, proposed):
        findings.append(Finding(Outcome.INVALID, "stale_base", "the incumbent changed since the candidate was measured"))
    return findings


def _base_moved(lineage: Lineage, proposed: Entry) -> bool:
    """Whether something was promoted or rolled back since the proposal was written."""
    return any(e.seq > proposed.seq and "apply" in e.body and e.kind != "restored" for e in lineage.entries)


def _change(lineage: Lineage, kind: str, actor: str, body: dict, targets: dict[str, live.Content], message: str) -> Result:
    paths = sorted(targets)
    repository = Repository(lineage.root.path) if body["git"] else None
    if repository is not None:
        repository.require_clean(paths)
    entry = live.change(lineage.ledger, lineage.files, lineage.root, kind, actor, {**body, "message": message}, targets)
    if repository is not None:
        _commit(lineage, entry, repository)
    proofs = lineage.of_kind("applied")[-1].body["files"]
    return Result(CONTRACT, kind, kind, lineage.ledger.head, record={"proposal": body.get("proposal"), "files": proofs, "git": body["git"]})


def _commit(lineage: Lineage, entry: Entry, repository: Repository) -> None:
    """Make the commit, once: a refusal by git (a hook, no identity) is recorded and left to the owner."""
    paths = [item["path"] for item in entry.body["apply"]["files"]]
    try:
        commit = repository.commit(paths, f"{entry.body['message']}\n\nLedger entry {entry.digest}")
    except InvalidInput as error:
        lineage.ledger.append("commit_refused", "agent-eval", {"of": entry.seq, "why": str(error)})
        raise EvidenceFault.one("--git", f"the files are live, and the commit was refused: {error}", "commit them yourself") from error
    lineage.ledger.append("committed", "agent-eval", {"of": entry.seq, "commit": commit})


def _finish_commit(lineage: Lineage) -> None:
    """A commit that a crash came between is made now."""
    asked = [entry for entry in lineage.entries if entry.body.get("git")]
    made = {entry.body["of"] for entry in lineage.of_kind("committed", "commit_refused")}
    if asked and asked[-1].seq not in made and not lineage.live_drift():
        _commit(lineage, asked[-1], Repository(lineage.root.path))


def _history(lineage: Lineage) -> list[tuple[int | None, dict[str, live.FileState]]]:
    """Promotions that stand, oldest first, each with the whole state of the live files; the opening is the first."""
    opening = {item["path"]: live.FileState.from_json(item) for item in lineage.opened.body["live"]}
    stack: list[tuple[int | None, dict[str, live.FileState]]] = [(None, opening)]
    for entry in lineage.entries:
        if entry.kind == "promoted":
            stack.append((entry.body["proposal"], live.expected([lineage.opened, entry])))
        elif entry.kind == "rolled_back":
            stack.pop()
    return stack


def _reasons(lineage: Lineage, proposed: Entry) -> list[str]:
    decided = last(lineage.of_kind("decided"), proposal=proposed.body["proposal"])
    return [reason["code"] for reason in (decided or proposed).body["reasons"]]


def _digest_of_decision(lineage: Lineage, number: int) -> str | None:
    decided = last(lineage.of_kind("decided"), proposal=number)
    return decided.digest if decided else None
