"""Every CLI's stream through its adapter: small streams of our own, and the retained ones where they are."""

from __future__ import annotations

import json
import pathlib

import pytest

from consumers.core_agent.adapter import load
from consumers.core_agent.adapter.mapping import Mapped, map_stream, split_status
from tests.consumers.core_agent.adapters.small_streams import DENIED, DONE, MODEL_ERROR, lines

SHARED = pathlib.Path(__file__).resolve().parents[5] / "shared" / "agents" / "streams"
NAMES = load.names()


def mapped(name: str, data: bytes) -> Mapped:
    return map_stream(load.load(name), data)


def of_type(result: Mapped, kind: str) -> list[dict]:
    return [event for event in result.events if event["type"] == kind]


def test_there_is_a_stream_for_every_adapter() -> None:
    assert sorted(DONE) == NAMES
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_a_good_run(name: str) -> None:
    result = mapped(name, DONE[name])
    call, = of_type(result, "tool_call")
    answer, = of_type(result, "tool_result")
    final, = of_type(result, "final")
    assert call["tool"] == "execute"
    assert call["id"] == answer["id"]
    assert answer["ok"] is True
    assert answer["output"] == "a"
    assert (final["status"], final["answer"]) == ("completed", "It is done.")
    assert result.events[0]["type"] == "start"
    assert result.missing == ()
    assert not result.unknown
    assert of_type(result, "denied") == []
    if name not in ("copilot", "vibe"):
        total = [sum(event[key] for event in of_type(result, "usage")) for key in ("input_tokens", "output_tokens")]
        assert total == [30, 4]


@pytest.mark.parametrize("name", sorted(DENIED))
def test_a_denied_call_is_denied_once_and_not_done(name: str) -> None:
    result = mapped(name, DENIED[name])
    denied, = of_type(result, "denied")
    assert denied["tool"] == "execute"
    assert denied["id"] == of_type(result, "tool_call")[0]["id"]
    assert [event["ok"] for event in of_type(result, "tool_result")] in ([False], [])


@pytest.mark.parametrize("name", sorted(MODEL_ERROR))
def test_a_failed_model_is_an_error_and_no_final(name: str) -> None:
    result = mapped(name, MODEL_ERROR[name])
    kinds = load.load(name).outcome.error_if_event
    assert [event for event in of_type(result, "error") if "*" in kinds or event["kind"] in kinds]
    assert of_type(result, "final") == []
    ends = of_type(result, "end")
    assert name == "opencode" or ends[-1]["error"] is True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_a_stream_cut_anywhere_lacks_its_end(name: str, part: float) -> None:
    data = DONE[name][: int(len(DONE[name]) * part)]
    result = mapped(name, data)
    assert result.missing == load.load(name).events.required
    assert of_type(result, "end") == []
    assert result.truncated


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_was_terminated_has_a_call_and_no_result(name: str) -> None:
    if name == "mini-swe-agent":
        document = json.loads(DONE[name])
        document["messages"] = document["messages"][:3]
        document["info"] = {"mini_version": "9"}
        data = json.dumps(document).encode()
    else:
        kept = DONE[name].splitlines(keepends=True)
        parts = (b"".join(kept[:count]) for count in range(1, len(kept)))
        data = next(part for part in parts if of_type(mapped(name, part), "tool_call"))
    result = mapped(name, data)
    assert len(of_type(result, "tool_call")) == 1
    # opencode and vibe tell of a call when it is over.
    assert len(of_type(result, "tool_result")) == (1 if name in ("opencode", "vibe") else 0)
    assert of_type(result, "final") == []
    assert result.missing == load.load(name).events.required


@pytest.mark.parametrize("name", NAMES)
def test_unknown_events_are_kept_and_counted(name: str) -> None:
    if name == "mini-swe-agent":
        document = json.loads(DONE[name])
        document["messages"].insert(2, {"role": "oracle", "content": "x"})
        result, kind = mapped(name, json.dumps(document).encode()), "oracle"
    else:
        result, kind = mapped(name, lines({"type": "weather.report", "sky": "blue"}) + b"plain text\n" + DONE[name]), "weather.report"
        assert result.unknown["(not JSON)"] == 1
    assert result.unknown[kind] == 1
    kept = [event for event in of_type(result, "unknown") if event["native_type"] == kind]
    assert kept[0]["native"]
    assert of_type(result, "final")[0]["status"] == "completed"


@pytest.mark.parametrize("name", NAMES)
def test_empty_and_broken_streams_do_not_raise(name: str) -> None:
    for data in (b"", b"\n\n", b"{", b"[1, 2]\n", b"\xff\xfe\n", b'{"type": NaN}\n', b"null", b'{"type": {"a": []}}\n', b"[" * 5000):
        result = mapped(name, data)
        assert result.missing == load.load(name).events.required


def test_a_call_id_that_comes_again_is_another_call() -> None:
    turn = [
        {"type": "tool_execution_start", "toolCallId": "call_0", "toolName": "bash", "args": {}},
        {"type": "tool_execution_end", "toolCallId": "call_0", "isError": False, "result": "x"},
    ]
    result = mapped("pi", lines({"type": "session", "id": "s"}, *turn, *turn))
    assert [event["id"] for event in of_type(result, "tool_call")] == ["call_0", "call_0#2"]
    assert [event["id"] for event in of_type(result, "tool_result")] == ["call_0", "call_0#2"]


@pytest.mark.parametrize(("text", "status", "answer"), [
    ("x\nSTATUS: blocked", "blocked", "x"),
    ("x\n**STATUS: failed**\n\n", "failed", "x"),
    ("x\nstatus:completed.", "completed", "x"),
    ("STATUS: completed", "completed", ""),
    ("STATUS: completed\nx", None, "STATUS: completed\nx"),
    ("x\nSTATUS: great", None, "x\nSTATUS: great"),
    ("x\nMy STATUS: completed", None, "x\nMy STATUS: completed"),
])
def test_only_the_last_line_is_the_status(text: str, status: str | None, answer: str) -> None:
    assert split_status(text) == (answer, status)


#: Retained stream -> (calls, denied, errors of a deciding kind, last end says error, answer).
RETAINED = {
    "claude.jsonl": (1, 0, 0, False, "done"), "claude.denied.jsonl": (1, 1, 0, False, "done"),
    "claude.error-401.jsonl": (0, 0, 1, True, None), "claude.error-500.jsonl": (0, 0, 1, True, None),
    "cline.jsonl": (1, 0, 0, False, "done"), "codex.jsonl": (1, 0, 0, False, "done"),
    "codex.error-401.jsonl": (0, 0, 1, True, None), "codex.error-500.jsonl": (0, 0, 1, True, None),
    "copilot.jsonl": (1, 0, 0, False, "done"), "copilot.denied.jsonl": (1, 1, 0, False, "done"),
    "copilot.error-401.jsonl": (0, 0, 1, True, None), "gemini.jsonl": (1, 0, 0, False, "done"),
    "gemini.error-401.jsonl": (0, 0, 1, True, None), "mini-swe-agent.traj.json": (2, 0, 0, False, None),
    "opencode.jsonl": (1, 0, 0, False, "done"), "opencode.denied.jsonl": (1, 1, 0, None, None),
    "opencode.error-401.jsonl": (0, 0, 1, None, None), "pi.jsonl": (1, 0, 0, False, "done"),
    "pi.error-401.jsonl": (0, 0, 1, True, None), "qwen.jsonl": (1, 0, 0, False, "done"),
    "qwen.error-401.jsonl": (0, 0, 1, True, "[API Error: 401 stub says 401]"), "vibe.jsonl": (1, 0, 0, None, "done"),
}


@pytest.mark.parametrize("file", sorted(RETAINED))
def test_the_retained_streams(file: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("skipped: ../shared/agents/streams is not there")
    name = file.split(".")[0]
    result = mapped(name, (SHARED / file).read_bytes())
    calls, denied, errors, bad_end, answer = RETAINED[file]
    kinds = load.load(name).outcome.error_if_event
    ends = of_type(result, "end")
    assert len(of_type(result, "tool_call")) == calls
    assert len(of_type(result, "denied")) == denied
    assert len([event for event in of_type(result, "error") if "*" in kinds or event["kind"] in kinds]) == errors
    assert (ends[-1]["error"] if ends else None) is bad_end
    assert result.answer == answer
    assert not result.unknown
    assert all(event["tool"] == "execute" for event in of_type(result, "tool_call"))
    assert all(event["arguments"] for event in of_type(result, "tool_call"))


def test_every_retained_stream_is_looked_at() -> None:
    if not SHARED.is_dir():
        pytest.skip("skipped: ../shared/agents/streams is not there")
    assert {path.name for path in SHARED.iterdir()} == set(RETAINED)
