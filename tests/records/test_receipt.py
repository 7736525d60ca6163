"""Reading a receipt: strict in shape, silent about what is absent."""

from __future__ import annotations

import json

import pytest

from agent_eval.records.paths import PathError, collisions, normal_path
from agent_eval.records.problems import InvalidInput
from agent_eval.records.receipt import MAX_RECEIPT_BYTES, read_receipt


def places(value: object) -> set[str]:
    with pytest.raises(InvalidInput) as caught:
        read_receipt(value if isinstance(value, bytes) else json.dumps(value).encode(), "r")
    return {problem.where for problem in caught.value.problems}


def test_only_the_run_id_is_needed_and_absent_stays_absent() -> None:
    item = read_receipt(b'{"runId": "a"}', "r")
    assert (item.run_id, item.sections, item.hidden) == ("a", {"runId": "a"}, ())
    assert item.data == b'{"runId": "a"}' and len(item.sha256) == 64


def test_every_problem_at_once() -> None:
    value = {
        "runId": " ",
        "events": [{"type": ""}, {"type": "a", "detail": 1, "seq": True}, 3],
        "commands": [{"exitCode": 0.0}, {"cmd": "a", "exitcode": 1}, {"argv": []}, {"cmd": ""}],
        "filesTouched": ["../a", 4],
        "notes": "x",
        "cost": {"usd": -1, "tokens": True},
        "interrupted": 0,
        "suite": {"digest": "x", "revision": 1.0, "x": 1},
        "artifacts": [{"sha256": "abc"}],
        "redactions": ["commands", {"reason": "x"}],
        "extra": 1,
    }
    assert places(value) == {
        *("r#/runId", "r#/events/0/type", "r#/events/1/detail", "r#/events/1/seq", "r#/events/2", "r#/commands/0", "r#/commands/0/exitCode"),
        *("r#/commands/1/exitcode", "r#/commands/2/argv", "r#/commands/3/cmd", "r#/filesTouched/0", "r#/filesTouched/1", "r#/notes"),
        *("r#/cost/usd", "r#/cost/tokens", "r#/interrupted", "r#/suite/digest", "r#/suite/revision", "r#/suite/x", "r#/artifacts/0/path"),
        *("r#/artifacts/0/sha256", "r#/redactions/0", "r#/redactions/1", "r#/extra"),
    }




def test_members_of_other_harnesses_inside_items_are_left_alone() -> None:
    item = read_receipt(b'{"runId": "a", "events": [{"type": "x", "page": "p", "tool": {}}], "commands": [{"cmd": "a", "cwd": "/x"}]}', "r")
    assert item.sections["events"][0]["page"] == "p"


@pytest.mark.parametrize("key", ["exitcode", "exit_code", "ExitCode", "CMD", "Seq", "start_edAt"])
def test_a_near_miss_is_a_problem_because_it_hides_evidence(key: str) -> None:
    assert places({"runId": "a", "commands": [{"cmd": "x", key: 1}]}) >= {f"r#/commands/0/{key}"}


def test_seq_counts_both_lists() -> None:
    def of(events: list, commands: list) -> dict:
        return {
            "runId": "a",
            "events": [{"type": "e", **({} if n is None else {"seq": n})} for n in events],
            "commands": [{"cmd": "c", **({} if n is None else {"seq": n})} for n in commands],
        }

    assert read_receipt(json.dumps(of([0, 2], [1])).encode(), "r").hidden == ()
    assert read_receipt(json.dumps(of([None], [None])).encode(), "r").hidden == ()
    for gap in (of([0, 3], [1]), of([1], [2]), of([0], [2])):
        assert read_receipt(json.dumps(gap).encode(), "r").hidden == ("/events", "/commands")
    assert places(of([0, 0], [])) == {"r#/events/1/seq"}
    assert places(of([0, 2], [2])) == {"r#/commands/0/seq"}
    assert places(of([2, 1], [0])) == {"r#/events/1/seq"}
    assert places(of([0, None], [1])) == {"r#/events"}


def test_a_list_that_is_left_out_explains_its_gap() -> None:
    item = read_receipt(b'{"runId": "a", "events": [{"type": "e", "seq": 0}, {"type": "e", "seq": 4}]}', "r")
    assert item.hidden == ()


def test_redacted_fields_may_be_null_absent_or_marked() -> None:
    text = {"runId": "a", "commands": [{"cmd": "[redacted]", "exitCode": None}, {"exitCode": "[redacted]"}], "cost": None}
    text["redactions"] = ["/commands/0/exitCode", {"path": "/commands/1/cmd", "reason": "private"}, "/commands/1/exitCode", "/cost"]
    item = read_receipt(json.dumps(text).encode(), "r")
    assert item.hidden == ("/commands/0/exitCode", "/commands/1/cmd", "/commands/1/exitCode", "/cost")
    del text["redactions"]
    assert places(text) == {"r#/commands/0/exitCode", "r#/commands/1", "r#/commands/1/exitCode", "r#/cost"}


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"runId": "a"} x', b'{"runId": "a", "runId": "a"}', b'{"runId": NaN}', b"\xef\xbb\xbf{}", b"\xff", b"[" * 100_000]
)
def test_bytes_that_are_no_receipt(data: bytes) -> None:
    assert places(data) == {"r"}


def test_the_size_limit_is_exact_and_names_the_digest() -> None:
    data = b'{"runId": "a"}'
    assert read_receipt(data + b" " * (MAX_RECEIPT_BYTES - len(data)), "r").run_id == "a"
    with pytest.raises(InvalidInput, match="sha256 [0-9a-f]{64}"):
        read_receipt(data + b" " * (MAX_RECEIPT_BYTES - len(data) + 1), "r")


def test_paths_have_one_form() -> None:
    assert [normal_path(path) for path in ("a/b", "./a//b/", "a/./b", "~x", ".x", "ab:c", "...")] == ["a/b", "a/b", "a/b", "~x", ".x", "ab:c", "..."]
    for path in ("", ".", "/", "/a", "..", "a/..", "a/../b", "a\\b", "C:/x", "c:", "a\0b", "~/x", "~"):
        with pytest.raises(PathError):
            normal_path(path)


def test_collisions_of_case_and_of_unicode_form() -> None:
    assert collisions(["a", "b", "a"]) == []
    assert collisions(["Tests/x", "tests/x"]) == [("Tests/x", "tests/x")]
    assert collisions(["caf\u00e9", "cafe\u0301"]) == [("caf\u00e9", "cafe\u0301")]
