"""Every receipt kind: when it passes, fails, does not apply, and what hidden evidence does to it."""

from __future__ import annotations

import hashlib

import pytest

from agent_eval.grade import receipts
from agent_eval.grade.engine import Status
from agent_eval.records.receipt import read_receipt
from agent_eval.records.strict_json import canonical

P, F, M, U, N = Status.PASS, Status.FAIL, Status.MISSING, Status.UNSUPPORTED, Status.NOT_APPLICABLE
TEST = {"argv0": "npm", "argvContains": ["test"]}
SHA = hashlib.sha256(b"x").hexdigest()


def base() -> dict:
    return {
        "runId": "r",
        "events": [
            {"type": "search", "detail": "backoff", "seq": 0},
            {"type": "verified", "detail": "wiki/a.md: read", "seq": 1},
            {"type": "edit", "detail": "wiki/a.md", "seq": 3},
            {"type": "edit", "detail": "src/x.py", "seq": 4},
        ],
        "commands": [
            {"cmd": "npm test", "exitCode": 1, "seq": 2},
            {"cmd": "npm run index", "exitCode": 0, "seq": 5},
            {"cmd": "npm test", "exitCode": 0, "seq": 6},
        ],
        "filesTouched": ["wiki/a.md", "./src//x.py"],
        "promotedPages": ["wiki/a.md"],
        "notes": ["All tests pass."],
        "artifacts": [{"path": "out/r.txt", "sha256": SHA, "role": "result"}],
        "cost": {"tokens": 10, "usd": 0.5},
        "suite": {"id": "s", "revision": 2, "digest": SHA},
    }


def status(spec: dict, receipt: dict | None = None, **observed: object) -> Status:
    return finding(spec, receipt, **observed).status


def finding(spec: dict, receipt: dict | None = None, **observed: object):
    assert receipts.validate(spec, "spec") == []
    item = read_receipt(canonical(receipt if receipt is not None else base()), "receipt")
    found = receipts.prepare(spec)({**item.sections, "hidden": item.hidden, **observed})
    assert found.pointers or found.status in (P, U), found
    assert (found.reason == "") == (found.status is P), found
    return found


def without(*places: str) -> dict:
    value = base()
    for place in places:
        holder: object = value
        tokens = place.split("/")
        for token in tokens[:-1]:
            holder = holder[int(token)] if isinstance(holder, list) else holder[token]
        del holder[int(tokens[-1]) if isinstance(holder, list) else tokens[-1]]
    return value


def changed(**members: object) -> dict:
    return {**base(), **members}


CASES = [
    ({"kind": "event_present", "match": {"type": "edit"}}, P),
    ({"kind": "event_present", "match": {"type": "edit"}, "min": 3}, F),
    ({"kind": "event_present", "match": {"type": ["look", "search"]}}, P),
    ({"kind": "event_present", "match": {"type": "edit", "detail": "src/x.py"}}, P),
    ({"kind": "event_present", "match": {"detailRegex": "back.*"}}, P),
    ({"kind": "event_present", "match": {"detailRegex": "ack"}}, F),
    ({"kind": "event_present", "match": {"detailRegex": "ack", "search": True}}, P),
    ({"kind": "event_present", "match": {"type": "edit", "glob": "wiki/**"}}, P),
    ({"kind": "event_present", "match": {"type": "edit", "glob": ["docs/**", "lib/*"]}}, F),
    ({"kind": "event_absent", "match": {"type": "edit", "glob": "tests/**"}}, P),
    ({"kind": "event_absent", "match": {"type": "edit"}}, F),
    ({"kind": "event_count", "match": {"type": "edit"}, "min": 2, "max": 2}, P),
    ({"kind": "event_count", "match": {"type": "edit"}, "max": 1}, F),
    ({"kind": "event_before", "first": {"type": "search"}, "second": {"type": "edit"}}, P),
    ({"kind": "event_before", "first": {"type": "edit"}, "second": {"type": "search"}}, F),
    ({"kind": "event_before", "first": {"type": "search"}, "second": {"type": "push"}}, N),
    ({"kind": "event_before", "first": {"type": "search"}, "second": {"type": "push"}, "requireSecond": True}, F),
    ({"kind": "event_before", "first": {"type": "push"}, "second": {"type": "edit"}}, F),
    ({"kind": "event_before", "first": {"type": "edit"}, "second": {"cmd": TEST}, "quantifier": "last-last"}, P),
    ({"kind": "event_before", "first": {"type": "edit"}, "second": {"cmd": TEST}}, F),
    ({"kind": "event_before", "first": {"type": "edit"}, "second": {"cmd": TEST}, "quantifier": "first-last"}, P),
    ({"kind": "event_before", "first": {"type": "edit"}, "second": {"cmd": TEST}, "quantifier": "all-first"}, F),
    ({"kind": "event_before", "first": {"type": ["search", "verified"]}, "second": {"type": "edit"}, "sameDetail": True}, F),
    ({"kind": "event_adjacent", "first": {"type": "verified"}, "second": {"type": "edit", "glob": "wiki/*"}, "within": 1}, P),
    ({"kind": "event_adjacent", "first": {"type": "search"}, "second": {"type": "edit"}, "within": 2}, F),
    ({"kind": "event_adjacent", "first": {"type": "search"}, "second": {"type": "push"}, "within": 2}, N),
    ({"kind": "event_sequence", "matches": [{"type": "search"}, {"type": "edit"}]}, P),
    ({"kind": "event_sequence", "matches": [{"type": "edit"}, {"type": "search"}]}, F),
    ({"kind": "event_sequence", "matches": [{"type": "search"}, {"type": "edit"}], "mode": "exact"}, F),
    ({"kind": "event_sequence", "matches": [{"type": t} for t in ("search", "verified", "edit", "edit")], "mode": "exact"}, P),
    ({"kind": "command_ok", "cmd": TEST}, P),
    ({"kind": "command_ok", "cmd": "npm test"}, P),
    ({"kind": "command_ok", "cmd": "npm  'test'"}, P),
    ({"kind": "command_ok", "cmd": TEST, "pick": "all"}, F),
    ({"kind": "command_ok", "cmd": TEST, "pick": "any", "exitCode": 1}, P),
    ({"kind": "command_ok", "cmd": TEST, "exitCode": 1}, F),
    ({"kind": "command_ok", "cmd": "make test"}, F),
    ({"kind": "command_ok", "cmd": {"argv0": "test"}}, F),
    ({"kind": "command_ok", "cmd": {"argv0": "np"}}, F),
    ({"kind": "command_ok", "cmd": {"anyOf": [{"argv0": "pytest"}, {"argv": ["npm", "test"]}]}}, P),
    ({"kind": "command_ok", "cmd": {"argvPrefix": ["npm", "run"]}}, P),
    ({"kind": "command_exit", "cmd": TEST, "exitCode": "nonzero"}, P),
    ({"kind": "command_exit", "cmd": TEST, "in": [2, 3]}, F),
    ({"kind": "command_exit", "cmd": TEST, "in": [0, 1], "pick": "all"}, P),
    ({"kind": "command_absent", "cmd": {"argv0": "rm"}}, P),
    ({"kind": "command_absent", "cmd": {"argv0": "npm"}}, F),
    ({"kind": "command_order", "first": {**TEST, "exitCode": "nonzero"}, "second": {**TEST, "exitCode": 0}}, P),
    ({"kind": "command_order", "first": {**TEST, "exitCode": 0}, "second": {**TEST, "exitCode": 1}}, F),
    ({"kind": "command_order", "first": TEST, "second": {"argv0": "make"}}, N),
    ({"kind": "command_unmasked", "cmd": TEST}, P),
    ({"kind": "command_unmasked", "cmd": {"argv0": "make"}}, N),
    ({"kind": "commands_none_failed"}, F),
    ({"kind": "commands_none_failed", "except": [TEST]}, P),
    ({"kind": "command_count", "cmd": TEST, "max": 2}, P),
    ({"kind": "command_count", "cmd": TEST, "max": 1}, F),
    ({"kind": "files_within", "allow": ["wiki/**", "src/*.py"]}, P),
    ({"kind": "files_within", "allow": ["wiki/**"]}, F),
    ({"kind": "files_absent", "deny": ["tests/**"]}, P),
    ({"kind": "files_absent", "deny": ["src/*.py"]}, F),
    ({"kind": "files_absent", "deny": ["SRC/**"]}, F),
    ({"kind": "files_absent", "deny": ["SRC/x.py/**"]}, F),  # a folder that is declared as a whole
    ({"kind": "files_absent", "deny": ["src/*/**"]}, P),
    ({"kind": "file_touched", "path": "src/x.py"}, P),
    ({"kind": "file_touched", "glob": "**/*.md", "min": 2}, F),
    ({"kind": "files_count", "max": 2}, P),
    ({"kind": "files_count", "max": 1}, F),
    ({"kind": "promoted_touched"}, P),
    ({"kind": "promoted_followed_by", "cmd": "npm run index"}, P),
    ({"kind": "promoted_followed_by", "cmd": "npm run index", "after": {"type": "edit"}}, P),
    ({"kind": "promoted_followed_by", "cmd": "npm run other"}, F),
    ({"kind": "promoted_has_event", "type": "verified"}, P),
    ({"kind": "promoted_has_event", "type": "search"}, F),
    ({"kind": "touched_has_event", "type": "edit"}, P),
    ({"kind": "touched_has_event", "type": "verified"}, F),
    ({"kind": "note_present", "regex": "pass", "minChars": 5}, P),
    ({"kind": "note_present", "minChars": 50}, F),
    ({"kind": "field_shape", "path": "/cost/tokens", "type": "integer"}, P),
    ({"kind": "field_shape", "path": "/cost/usd", "type": "integer"}, F),
    ({"kind": "field_shape", "path": "/commands/*/exitCode", "enum": [0, 1]}, P),
    ({"kind": "field_shape", "path": "/artifacts/*/role", "pattern": "re.*"}, P),
    ({"kind": "field_shape", "path": "/notes", "minLen": 2}, F),
    ({"kind": "field_shape", "path": "/agent/model", "type": "string"}, M),
    ({"kind": "unique", "path": "/filesTouched"}, P),
    ({"kind": "unique", "path": "/commands/*/cmd"}, F),
    ({"kind": "unique", "path": "/redactions"}, M),
    ({"kind": "budget", "metric": "tokens", "max": 10}, P),
    ({"kind": "budget", "metric": "tokens", "max": 9}, F),
    ({"kind": "budget", "metric": "toolCalls", "max": 9}, M),
    ({"kind": "artifact_digest", "role": "result"}, U),
    ({"kind": "artifact_digest", "path": "out/other"}, F),
    ({"kind": "claim_backed", "claimRegex": "tests? pass", "byKind": "command", "cmd": TEST}, P),
    ({"kind": "claim_backed", "claimRegex": "tests? pass", "byKind": "command", "cmd": {"argv0": "pytest"}}, F),
    ({"kind": "claim_backed", "claimRegex": "deployed", "byKind": "command"}, N),
    ({"kind": "claim_backed", "byKind": "artifact", "role": "result"}, P),
    ({"kind": "claim_backed", "byKind": "event", "event": {"type": "push"}}, F),
    ({"kind": "no_secret"}, P),
    ({"kind": "no_secret", "patterns": ["All tests"]}, F),
    ({"kind": "not_interrupted"}, P),
    ({"kind": "judge_binary", "question": "Is it clear?", "judgeRef": "j"}, U),
    ({"kind": "state_diff"}, U),
    ({"kind": "state_diff", "unobserved": "not_applicable"}, N),
    ({"kind": "suite_binding"}, U),
]


@pytest.mark.parametrize(("spec", "expected"), CASES)
def test_on_the_base_receipt(spec: dict, expected: Status) -> None:
    assert status(spec) is expected


def test_every_kind_is_tried() -> None:
    assert {spec["kind"] for spec, _ in CASES} == {kind.name for kind in receipts.kinds() if kind.family == "receipt"}


SECTIONS = {"event": "events", "command": "commands", "file": "filesTouched", "promoted": "promotedPages", "touched": "filesTouched", "budget": "cost", "note": "notes"}


@pytest.mark.parametrize("spec", [spec for spec, expected in CASES if spec["kind"].split("_")[0].rstrip("s") in SECTIONS])
def test_an_absent_section_is_missing_and_never_empty(spec: dict) -> None:
    section = SECTIONS[spec["kind"].split("_")[0].rstrip("s")]
    found = finding(spec, without(section))
    assert (found.status, found.reason) == (M, "evidence_hidden")


@pytest.mark.parametrize("spec", [spec for spec, expected in CASES if expected is P])
def test_a_redaction_of_everything_never_passes_what_reads(spec: dict) -> None:
    found = status(spec, changed(redactions=[""]))
    assert found is M or spec["kind"] == "no_secret"


def test_redactions_touch_only_what_they_cover() -> None:
    redacted = changed(redactions=["/commands/0/exitCode"])
    redacted["commands"][0]["exitCode"] = None
    assert status({"kind": "command_ok", "cmd": TEST}, redacted) is M
    assert status({"kind": "command_absent", "cmd": {"argv0": "rm"}}, redacted) is P
    assert status({"kind": "event_present", "match": {"type": "edit"}}, changed(redactions=["/events/0/detail"])) is P
    assert status({"kind": "event_present", "match": {"detail": "backoff"}}, changed(redactions=["/events/0/detail"])) is M
    assert status({"kind": "suite_binding"}, changed(redactions=["/suite"]), scoringSuite={"id": "s", "revision": 2, "sha256": SHA}) is M


def test_an_item_without_what_is_asked_for_is_missing_not_a_mismatch() -> None:
    silent = without("events/3/detail")
    assert status({"kind": "event_absent", "match": {"type": "edit", "glob": "tests/**"}}, silent) is M
    assert status({"kind": "event_present", "match": {"type": "edit", "glob": "wiki/**"}}, silent) is P
    assert status({"kind": "event_count", "match": {"type": "edit", "glob": "wiki/**"}, "max": 1}, silent) is M
    assert status({"kind": "event_before", "first": {"type": "search"}, "second": {"glob": "src/*"}}, silent) is M
    no_exit = without("commands/2/exitCode")
    assert status({"kind": "command_ok", "cmd": TEST}, no_exit) is M
    assert status({"kind": "command_ok", "cmd": TEST, "pick": "all"}, no_exit) is F
    assert status({"kind": "commands_none_failed", "except": [{**TEST, "exitCode": 1}]}, no_exit) is M
    assert status({"kind": "command_order", "first": {**TEST, "exitCode": 1}, "second": {**TEST, "exitCode": 0}}, no_exit) is M


def test_order_between_lists_needs_seq() -> None:
    bare = base()
    for item in bare["events"] + bare["commands"]:
        del item["seq"]
    assert status({"kind": "event_before", "first": {"type": "edit"}, "second": {"cmd": TEST}}, bare) is M
    assert status({"kind": "event_before", "first": {"type": "search"}, "second": {"type": "edit"}}, bare) is P
    index = {"kind": "promoted_followed_by", "cmd": "npm run index"}
    assert status(index, bare) is M
    assert status({**index, "commandsOrdered": True}, bare) is P


def test_a_gap_in_seq_is_hidden_evidence() -> None:
    gap = without("events/2")
    for spec in ({"kind": "event_absent", "match": {"type": "push"}}, {"kind": "command_ok", "cmd": TEST}):
        assert finding(spec, gap).reason == "evidence_hidden"
    assert status({"kind": "files_count", "max": 2}, gap) is P


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ([("npm test", 0), ("npm test", 1)], F),
        ([("npm test", 1), ("npm test", 0)], P),
        ([("npm test", 0), ("npm test", None)], M),
        ([("npm test", 0), ("eval 'npm test'", 1)], U),
        ([("eval 'npm test'", 1), ("npm test", 0)], P),
        ([("eval 'ls'", 1), ("npm test", 0)], P),
        ([("cd x && npm test", 0)], P),
        ([("echo npm test", 0)], F),
        ([], F),
    ],
)
def test_the_last_run_decides(commands: list, expected: Status) -> None:
    rows = [{"cmd": cmd, **({} if code is None else {"exitCode": code})} for cmd, code in commands]
    assert status({"kind": "command_ok", "cmd": TEST}, {"runId": "r", "commands": rows}) is expected


def test_a_command_cannot_hide_behind_another_spelling() -> None:
    push = {"kind": "command_absent", "cmd": {"argv0": "git", "argvContains": ["push"]}}

    def of(**command: object) -> Status:
        return status(push, {"runId": "r", "commands": [{"exitCode": 0, **command}]})

    for cmd in ("cd x && git push", "sh -c 'git push'", "echo $(git push)", "/usr/bin/git -C x push", "FOO=1 git push", "timeout 5 git push"):
        assert of(cmd=cmd) is F, cmd
    assert of(cmd="eval 'git push'") is U
    assert of(argv=["ls"], cmd="git push") is F
    assert of(argv=["echo", "git push"]) is P
    assert of(cmd="git status  # push") is P
    masked = {"kind": "command_unmasked", "cmd": {"argv0": "git"}}
    assert status(masked, {"runId": "r", "commands": [{"argv": ["git", "x"], "cmd": "git x || true", "exitCode": 0}]}) is F
    assert status(masked, {"runId": "r", "commands": [{"cmd": "git x; eval 'y'", "exitCode": 0}]}) is not P


def test_promotion_is_page_by_page() -> None:
    two = changed(promotedPages=["wiki/a.md", "wiki/b.md"])
    assert finding({"kind": "promoted_touched"}, two).pointers == ("/promotedPages/1",)
    assert finding({"kind": "promoted_has_event", "type": "verified"}, two).pointers == ("/promotedPages/1",)
    for detail in ("old-wiki/a.md", "wiki/a.md.bak", "wiki/a.mdx", "x/wiki/a.md", "wiki/a.md/b"):
        events = [{"type": "verified", "detail": detail}]
        assert status({"kind": "promoted_has_event", "type": "verified"}, {"runId": "r", "promotedPages": ["wiki/a.md"], "events": events}) is F, detail
    for detail in ("read wiki/a.md.", "(wiki/a.md)", "wiki/a.md, wiki/b.md"):
        events = [{"type": "verified", "detail": detail}]
        assert status({"kind": "promoted_has_event", "type": "verified"}, {"runId": "r", "promotedPages": ["wiki/a.md"], "events": events}) is P, detail
    none = changed(promotedPages=[])
    for kind in ("promoted_touched", "promoted_followed_by", "promoted_has_event"):
        spec = {"kind": kind, **({"cmd": "x"} if kind.endswith("by") else {}), **({"type": "v"} if kind.endswith("event") else {})}
        assert status(spec, none) is N
        assert status({**spec, "requireSome": True}, none) is F


def test_an_index_before_the_promotion_does_not_count() -> None:
    early = base()
    early["commands"][1]["seq"], early["events"][2]["seq"], early["events"][3]["seq"] = 3, 4, 5
    assert status({"kind": "promoted_followed_by", "cmd": "npm run index"}, early) is F


def test_the_state_difference_is_compared_both_ways() -> None:
    real = {"added": ["wiki/a.md"], "removed": [], "changed": ["src/x.py"]}
    spec = {"kind": "state_diff"}
    assert status(spec, stateDiff=real) is P
    hidden = finding(spec, stateDiff={**real, "added": ["wiki/a.md", "tests/conftest.py"]})
    assert (hidden.status, hidden.reason) == (F, "hidden_change") and "tests/conftest.py" in hidden.detail
    assert finding(spec, stateDiff={**real, "removed": ["b"]}).reason == "hidden_change"
    assert finding(spec, stateDiff={**real, "changed": []}).reason == "claimed_change"
    assert finding({**spec, "expect": {"added": ["wiki/**"]}}, stateDiff=real).reason == "unexpected_change"
    assert status({**spec, "expect": {"added": ["wiki/**"], "changed": ["src/**"]}}, stateDiff=real) is P
    assert status({**spec, "ignore": ["build/**"]}, stateDiff={**real, "added": ["wiki/a.md", "build/x"]}) is P
    assert status(spec, without("filesTouched"), stateDiff=real) is M


def test_artifacts_and_binding_are_what_the_harness_saw() -> None:
    spec = {"kind": "artifact_digest", "role": "result"}
    assert status(spec, artifactDigests={"out/r.txt": SHA}) is P
    assert finding(spec, artifactDigests={"out/r.txt": "0" * 64}).reason == "artifact_changed"
    assert finding(spec, artifactDigests={"out/r.txt": None}).reason == "artifact_absent"
    assert status(spec, without("artifacts/0/sha256"), artifactDigests={}) is M
    binding = {"kind": "suite_binding"}
    scoring = {"id": "s", "revision": 2, "sha256": SHA}
    assert status(binding, scoringSuite=scoring) is P
    assert status(binding, without("suite"), scoringSuite=scoring) is M
    assert status(binding, without("suite/digest"), scoringSuite=scoring) is M
    for other in ({"id": "t"}, {"revision": 3}, {"sha256": "0" * 64}):
        assert finding(binding, scoringSuite={**scoring, **other}).reason == "stale_binding"


def test_a_secret_is_located_and_never_shown() -> None:
    token = "ghp_" + "EXAMPLE0" * 5
    for place, value in (("/notes/1", {"notes": ["a", f"x {token}"]}), ("/commands/0/cmd", {"commands": [{"cmd": f"curl -H {token}"}]}), ("/agent/model/" + token, {"agent": {"model": {token: 1}}})):
        found = finding({"kind": "no_secret"}, {"runId": "r", **value})
        assert found.status is F and place in found.pointers and token not in found.detail
    named = finding({"kind": "files_within", "allow": ["x"]}, {"runId": "r", "filesTouched": [f"a/{token}"]})
    assert named.status is F and token not in named.detail


def test_interrupted_and_claims_of_absent_lists() -> None:
    assert finding({"kind": "not_interrupted"}, changed(interrupted=True)).reason == "interrupted"
    assert status({"kind": "not_interrupted"}, changed(interrupted=False)) is P
    claim = {"kind": "claim_backed", "claimRegex": "tests? pass", "byKind": "command", "cmd": TEST}
    assert finding(claim, without("commands")).reason == "unbacked_claim"
    red = base()
    red["commands"].append({"cmd": "npm test", "exitCode": 1, "seq": 7})
    assert status(claim, red) is F


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"kind": "command_ok", "cmd": "npm test", "exitcode": 0}, "spec/exitcode"),
        ({"kind": "command_ok", "cmd": "npm test", "exitCode": False}, "spec/exitCode"),
        ({"kind": "command_ok", "cmd": "npm test", "exitCode": 0.0}, "spec/exitCode"),
        ({"kind": "command_ok", "cmd": "npm test", "exitCode": "0"}, "spec/exitCode"),
        ({"kind": "command_ok", "cmd": "a && b"}, "spec/cmd"),
        ({"kind": "command_ok", "cmd": {}}, "spec/cmd"),
        ({"kind": "command_ok", "cmd": {"exitCode": 0}}, "spec/cmd"),
        ({"kind": "command_ok", "cmd": {"argv0": "a", "argvContain": ["b"]}}, "spec/cmd/argvContain"),
        ({"kind": "command_ok", "cmd": {"anyOf": [{"argv0": ""}]}}, "spec/cmd/anyOf/0/argv0"),
        ({"kind": "command_ok", "cmd": {"anyOf": [{"argv0": "a"}], "argv0": "b"}}, "spec/cmd/argv0"),
        ({"kind": "command_exit", "cmd": "a"}, "spec"),
        ({"kind": "command_exit", "cmd": "a", "exitCode": 1, "in": [2]}, "spec"),
        ({"kind": "event_present", "match": {}}, "spec/match"),
        ({"kind": "event_present", "match": {"type": "a"}, "min": 0}, "spec/min"),
        ({"kind": "event_present", "match": {"type": "a"}, "min": True}, "spec/min"),
        ({"kind": "event_count", "match": {"type": "a"}}, "spec"),
        ({"kind": "event_count", "match": {"type": "a"}, "min": 3, "max": 2}, "spec"),
        ({"kind": "event_before", "first": {"type": "a"}, "second": {"cmd": "b", "type": "c"}}, "spec/second/type"),
        ({"kind": "event_before", "first": {"type": "a"}, "second": {"type": "c"}, "quantifier": "some"}, "spec/quantifier"),
        ({"kind": "event_before", "first": {"type": "a"}, "second": {"cmd": "c"}, "sameDetail": True}, "spec/sameDetail"),
        ({"kind": "event_sequence", "matches": [{"cmd": "a"}]}, "spec/matches/0/cmd"),
        ({"kind": "event_sequence", "matches": []}, "spec/matches"),
        ({"kind": "files_within", "allow": []}, "spec/allow"),
        ({"kind": "files_within", "allow": ["a", "/b"]}, "spec/allow/1"),
        ({"kind": "file_touched"}, "spec"),
        ({"kind": "file_touched", "path": "a", "glob": "b"}, "spec"),
        ({"kind": "files_count"}, "spec"),
        ({"kind": "field_shape", "path": "/a"}, "spec"),
        ({"kind": "field_shape", "path": "a", "type": "string"}, "spec/path"),
        ({"kind": "field_shape", "path": "/a", "type": "text"}, "spec/type"),
        ({"kind": "field_shape", "path": "/a", "pattern": "(a"}, "spec/pattern"),
        ({"kind": "budget", "metric": "tokens"}, "spec"),
        ({"kind": "budget", "metric": "tokens", "max": "9"}, "spec/max"),
        ({"kind": "budget", "metric": "tokens", "max": True}, "spec/max"),
        ({"kind": "claim_backed", "byKind": "command", "role": "x"}, "spec/role"),
        ({"kind": "claim_backed", "byKind": "hearsay"}, "spec/byKind"),
        ({"kind": "artifact_digest"}, "spec"),
        ({"kind": "state_diff", "expect": {"new": ["a"]}}, "spec/expect/new"),
        ({"kind": "no_secret", "patterns": ["(?=a)"]}, "spec/patterns/0"),
        ({"kind": "judge_binary", "question": ""}, "spec/question"),
    ],
)
def test_specifications_that_are_refused(spec: dict, place: str) -> None:
    assert place in {problem.where for problem in receipts.validate(spec, "spec")}
