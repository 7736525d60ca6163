"""What the page shows of one trial: excerpts, differences, the agent's account, model requests, times."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
from agent_eval.records.problems import EvidenceFault
from agent_eval.report.activity import activity
from agent_eval.report.citations import NOTHING, Citations
from agent_eval.report.excerpts import excerpt, hex_view, is_text
from agent_eval.report.text_diff import unified
from agent_eval.report.timeline import timeline
from agent_eval.report.trial_page import trial_json
from agent_eval.report.workspace_changes import Contents, workspace_changes
from tests.report.synthetic import Directory, judgment, outcome


def kept(path: Path, files: dict[str, bytes] | None = None, ended: dict | None = None, **own: object) -> RetainedTrial:
    made = Directory(path, ["a"], 1)
    made.trial("a", 1, judgment("pass"), ended, files, **own)
    made.seal()
    return EvidenceReader.open(str(made.path)).trial("a", 1)


def lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_short_text_is_whole_and_long_text_keeps_both_ends() -> None:
    assert excerpt(b"two\nlines", 1_000).to_json() == {"form": "text", "head": "two\nlines", "bytes": 9}
    found = excerpt(b"start " + b"m" * 10_000 + b" end", 300)
    assert found.head.startswith("start m") and found.tail.endswith("m end")
    assert found.total_bytes == 10_010 and 9_000 < found.omitted_bytes < 10_010
    assert excerpt(b"", 100).form == "empty"


def test_what_is_not_text_is_shown_in_hex_with_true_offsets() -> None:
    assert hex_view(b"\x00AZ~\x7f") == "00000000  00 41 5a 7e 7f                                    .AZ~."
    found = excerpt(bytes(range(256)) * 40, 800)
    assert found.form == "hex" and found.head.splitlines()[1].startswith("00000010  10 11 12")
    last = found.tail.splitlines()[-1]
    assert last.startswith("000027f0  f0 f1") and found.omitted_bytes % 16 == 0


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", True), ("Grüße 北京".encode(), True), ("北".encode()[:2], True), (b"\x1b[31mred\x1b[0m", True),
        (b"a\x00b", False), (b"\xff\xfeh\x00i\x00", False), (bytes(range(32)) * 9, False), ("é".encode("latin-1") * 9, False),
    ],
)  # fmt: skip
def test_what_counts_as_text(data: bytes, text: bool) -> None:
    assert is_text(data) is text


def test_no_excerpt_outgrows_its_budget() -> None:
    source = random.Random(7)
    alphabets = ("abc\n", "<>&", "\\\"\n", "\u202e\x1b\x07", "北京", "\t\r\n", "a" * 50)
    for _ in range(300):
        data = "".join(source.choices(source.choice(alphabets), k=source.randrange(20_000))).encode()
        data = data if source.random() < 0.7 else source.randbytes(len(data))
        budget = source.randrange(100, 5_000)
        found = excerpt(data, budget).to_json()
        written = json.dumps([found["head"], found.get("tail", "")], ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
        assert len(written.replace("&", "\\u0026").encode()) <= max(3 * budget, 700)


def test_a_huge_line_is_cut_with_the_rest_counted() -> None:
    assert "[... 98000 more characters on this line]" in excerpt(b"x" * 100_000, 1_000_000).head


def test_a_difference_of_texts() -> None:
    old = b"".join(b"line %d\n" % n for n in range(100))
    new = old.replace(b"line 50\n", b"line fifty\x1b[2J\n").removesuffix(b"\n")
    shown, note = unified(old, new, 100)
    assert note == ""
    assert "-line 50" in shown and "+line fifty\\x1b[2J" in shown
    assert shown[0].startswith("@@") and " line 49" in shown
    assert "+line 99 [no end of line]" in shown


def test_lines_that_look_like_headers_of_a_difference_are_kept() -> None:
    shown, _ = unified(b"-- a\n++ b\n", b"", 100)
    assert shown[1:] == ["--- a", "-++ b"]


@pytest.mark.parametrize(("old", "new"), [(b"\x00", b"a"), (b"a\n" * 5_000, b"b\n"), (b"x" * 300_000, b"y")])
def test_what_is_not_compared_is_said(old: bytes, new: bytes) -> None:
    shown, note = unified(old, new, 10)
    assert shown == [] and note.endswith("compared by digest only")


def test_a_long_difference_is_cut() -> None:
    shown, note = unified(b"a\n" * 500, b"b\n" * 500, 20)
    assert len(shown) == 20 and note == "the first 20 lines of the difference"


def entry(path: str, data: bytes) -> dict:
    return {"path": path, "type": "file", "mode": "0644", "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def snapshot(*entries: dict) -> bytes:
    ordered = sorted(entries, key=lambda item: item.get("path", ""))
    return json.dumps({"format": "agent-eval/workspace/1", "entries": ordered, "hashed_bytes": 0, "limit": None}).encode()


def test_changes_of_a_workspace_with_content_from_files_case_and_record(tmp_path: Path) -> None:
    old, new, added, gone, lost = b"a = 1\nb = 2\n", b"a = 1\nb = 3\n", b"new\n", b"gone\n", b"lost\n"
    digests = {hashlib.sha256(data).hexdigest(): data for data in (new, added)}
    link = {"path_hex": "ff", "type": "symlink", "target": "/etc/pass\u202ewd"}
    trial = kept(
        tmp_path / "e",
        {
            "workspace-before.json": snapshot(entry("conf", old), entry("gone", gone), entry("other", lost)),
            "workspace-after.json": snapshot(entry("conf", new), entry("made", added), entry("other", b"unknown\n"), link),
            **{f"files/{digest}": data for digest, data in digests.items()},
        },
    )
    found = workspace_changes(trial, Contents({"deep": [{"text": old.decode()}]}), 4_000, 50)
    assert found["counts"] == {"added": 2, "changed": 2, "removed": 1} and found["total"] == 5
    rows = {row["path"]: row for row in found["rows"]}
    assert rows["conf"]["diff"][1:] == [" a = 1", "-b = 2", "+b = 3"]
    assert rows["made"]["new"]["head"] == "new\n"
    assert rows["other"]["note"] == "content was not retained, only its digest"
    assert rows["gone"]["kind"] == "removed"
    assert rows["\\xff"]["what"] == "symlink to /etc/pass\\u202ewd"
    assert len(workspace_changes(trial, Contents(None), 4_000, 2)["rows"]) == 2


def test_a_trial_without_snapshots_has_no_changes_and_a_broken_one_is_a_fault(tmp_path: Path) -> None:
    assert workspace_changes(kept(tmp_path / "a"), Contents(None), 1_000, 5) is None
    broken = kept(tmp_path / "b", {"workspace-before.json": b'{"entries": 5}', "workspace-after.json": snapshot()})
    with pytest.raises(EvidenceFault, match=r"workspace-before.json: not a snapshot"):
        workspace_changes(broken, Contents(None), 1_000, 5)


def test_the_agents_account_puts_results_beside_their_calls(tmp_path: Path) -> None:
    events = lines(
        {"type": "start", "policy": "x"},
        {"type": "tool_call", "id": "1", "tool": "read", "arguments": {"path": "a"}},
        {"type": "tool_call", "id": "2", "tool": "execute", "arguments": ["x"]},
        {"type": "tool_result", "id": "2", "ok": False, "exit_code": 3, "output": "first\nsecond\x1b"},
        {"type": "tool_result", "id": "1", "ok": True, "output": "content"},
        {"type": "tool_call", "id": "3", "tool": "write", "arguments": {}},
        {"type": "denied", "id": "3", "tool": "write"},
        {"type": "usage", "input_tokens": 10, "output_tokens": 5},
        {"type": "usage", "input_tokens": 1, "output_tokens": None},
        {"type": "message", "text": "hello"},
    ) + b"not json \xff\n[1]\n" + lines({"type": "final", "status": "completed", "answer": "done"})  # fmt: skip
    found = activity(kept(tmp_path / "e", {"events.jsonl": events}), 8_000, 50)["events"]
    assert [row[1] for row in found["rows"]] == ["start", "tool_call", "tool_call", "tool_call", "message", "not JSON", "not JSON", "final"]
    assert found["rows"][1][2:] == ['read {"path": "a"}', "ok: content"]
    assert found["rows"][2][3] == "not ok, exit code 3: first\nsecond\\x1b"
    assert found["rows"][3][3] == "denied"
    assert found["rows"][-1][2] == "completed: done"
    assert found["note"] == "The agent's own account (events.jsonl). 11 input and 5 output tokens."
    assert found["total"] == 8


def test_model_requests_and_what_was_seen_lie_on_one_scale(tmp_path: Path) -> None:
    request = {
        "n": 1, "api": "openai-chat", "model": "m-1", "status": 200, "started_at": "2026-11-30T14:03:58.623Z", "text": "I call",
        "calls": [{"id": "1", "name": "read", "arguments": {"p": 1}}], "finish": "tool_calls", "results": [{"id": "0", "text": "seen"}],
        "usage": {"input_tokens": 7, "output_tokens": 2},
    }  # fmt: skip
    calls = [{"at": "2026-11-30T14:03:59.123Z", "program": "scripts/a.py", "args": ["x\x1b"]}, {"at": "never"}, 5]
    trial = kept(
        tmp_path / "e", {"model/model.jsonl": lines(request) + b"broken\n"},
        outcome(wall_s=3.0, stop_steps=[{"signal": "SIGTERM", "at_s": 2.0}]), witness={"calls": calls, "unrecorded": 0},
    )  # fmt: skip
    found = activity(trial, 8_000, 50)["requests"]
    assert found["rows"] == [["1", "m-1", 'openai-chat, status 200; new results: ["seen"]', 'I call; read {"p": 1} [tool_calls]']]
    assert found["note"] == "What went over the model boundary. 7 input and 2 output tokens."
    assert timeline(trial, {"timeout_s": 60.0}) == {
        "wall_s": 3.0, "limit_s": 60.0,
        "marks": [[0.5, "seen", "request 1"], [1.0, "seen", "witness: scripts/a.py x\\x1b"], [2.0, "signal", "SIGTERM"]],
    }  # fmt: skip


def test_the_data_of_a_trial_keeps_to_its_budget_whatever_it_holds(tmp_path: Path) -> None:
    many = [{"type": "tool_call", "id": str(n), "tool": "<" * 500, "arguments": "&" * 5_000} for n in range(400)]
    judged = judgment("fail", *[f"reason {n}" for n in range(500)], detail="\u202e" * 5_000)
    judged["checks"] = [{"id": "<" * 400, "status": "fail", "detail": "x" * 4_000, "evidence": []}] * 500
    made = Directory(tmp_path / "e", ["a"], 1)
    made.trial("a", 1, judged, files={"events.jsonl": lines(*many), "stdout.bin": b"<" * 1_000_000, "stderr.bin": bytes(1_000_000)},
               own={f"key {n}": "v" * 1_000 for n in range(500)})  # fmt: skip
    made.seal()
    trial = EvidenceReader.open(str(made.path)).trial("a", 1)
    for budget in (600, 2_000, 5_000, 20_000, 100_000):
        written = trial_json(trial, {}, Contents(None), budget)
        assert len(written.encode()) <= 2 * budget
        assert json.loads(written)["name"] == "a/001" and json.loads(written)["verdict"] == "fail"


def test_pointers_are_followed_into_the_files_of_the_trial(tmp_path: Path) -> None:
    files = {"workspace-after.json": b'{"changes": [{"a/b": 1, "m~n": null}]}', "events.jsonl": b"one\ntwo", "broken.json": b"{"}
    citations = Citations(kept(tmp_path / "e", files))
    assert citations.find("workspace-after.json#/changes/0") == {"a/b": 1, "m~n": None}
    assert citations.find("workspace-after.json#/changes/0/a~1b") == 1
    assert citations.find("workspace-after.json#/changes/0/m~0n") is None
    assert citations.find("events.jsonl#L2") == "two"
    assert citations.find("trial.json#/number") == 1 and citations.find("#/number") == 1
    for wrong in ("events.jsonl#L0", "events.jsonl#L3", "events.jsonl#L\u0662", "broken.json#/a", "none.json", "trial.json#/number/x", "../plan.json#/format",
                  "workspace-after.json#/changes/1", "workspace-after.json#/changes/-1", "trial.json#/files/\ud800"):  # fmt: skip
        assert citations.find(wrong) is NOTHING, wrong
