"""Reading transcripts: named facts, never a crash."""

from __future__ import annotations

import json
import random
import time

import pytest

from consumers.core_agent.events import DECIDING_FACTS, MAX_EVENTS, parse_events

START = {"type": "start"}
CALL = {"type": "tool_call", "id": "1", "tool": "read", "arguments": {"path": "a"}}
RESULT = {"type": "tool_result", "id": "1", "ok": True, "exit_code": None, "output": "x"}
FINAL = {"type": "final", "status": "completed", "answer": "x"}


def lines(*items: object) -> bytes:
    return b"".join(item + b"\n" if isinstance(item, bytes) else json.dumps(item).encode() + b"\n" for item in items)


def facts(raw: bytes) -> list[str]:
    return [fact.name for fact in parse_events(raw).facts]


def test_a_good_transcript_has_no_facts() -> None:
    transcript = parse_events(lines(START, {"type": "message", "text": ""}, CALL, RESULT, {"type": "usage", "input_tokens": 1, "output_tokens": 0}, FINAL))
    assert transcript.facts == ()
    assert transcript.final["answer"] == "x"
    assert [event["line"] for event in transcript.events] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ((), ["no-start", "no-final"]),
        ((START,), ["no-final"]),
        ((FINAL,), ["no-start"]),
        ((START, FINAL, FINAL), ["several-finals"]),
        ((START, FINAL, CALL, RESULT), ["event-after-final", "event-after-final"]),
        ((START, FINAL, {"type": "usage", "input_tokens": 1, "output_tokens": 1}), []),
        ((START, RESULT, CALL, FINAL), ["result-without-call", "call-without-result"]),
        ((START, CALL, RESULT, RESULT, FINAL), ["duplicate-result"]),
        ((START, CALL, RESULT, CALL, FINAL), ["duplicate-call", "call-without-result"]),
        ((START, CALL, {"type": "denied", "id": "1", "tool": "read"}, FINAL), []),
        ((START, CALL, {"type": "denied", "id": "1", "tool": "read"}, RESULT, FINAL), ["result-after-denial"]),
        ((START, CALL, FINAL), ["call-without-result"]),
        ((START, START, FINAL), ["start-not-first"]),
    ],
)
def test_order(items: tuple, names: list[str]) -> None:
    assert facts(lines(*items)) == names


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"hello", "not-json"),
        (b"[1]", "not-json"),
        (b'{"type":"message","text":"\xff"}', "not-json"),
        (b'{"type":"message","text":"\\ud800"}', "not-json"),
        (b'{"type":"message","text":"a","text":"b"}', "not-json"),
        (b'{"type":"usage","input_tokens":NaN,"output_tokens":1}', "not-json"),
        (b'{"type":"message","text":' + b"[" * 100_000, "not-json"),
        (b"\xef\xbb\xbf{}", "not-json"),
        (b"{}", "unknown-event"),
        (b'{"type":"thought"}', "unknown-event"),
        (b'{"type":["final"]}', "unknown-event"),
        (b'{"type":"final","status":"done","answer":""}', "bad-event"),
        (b'{"type":"final","status":"completed"}', "bad-event"),
        (b'{"type":"final","status":["completed"],"answer":""}', "bad-event"),
        (b'{"type":"tool_call","id":1,"tool":"read","arguments":{}}', "bad-event"),
        (b'{"type":"tool_call","id":"1","tool":"read","arguments":[]}', "bad-event"),
        (b'{"type":"tool_result","id":"1","ok":1}', "bad-event"),
        (b'{"type":"tool_result","id":"1","ok":true,"exit_code":true}', "bad-event"),
        (b'{"type":"usage","input_tokens":-1,"output_tokens":1}', "bad-event"),
        (b'{"type":"usage","input_tokens":1.0,"output_tokens":1}', "bad-event"),
    ],
)
def test_a_bad_line_is_a_named_fact_and_kept_as_noise(line: bytes, name: str) -> None:
    transcript = parse_events(lines(START, line, FINAL))
    assert [(fact.name, fact.line) for fact in transcript.facts] == [(name, 2)]
    assert transcript.noise[0]["where"] == "L2"
    assert transcript.final is not None


def test_a_cut_last_line() -> None:
    assert facts(lines(START, FINAL)[:-1]) == ["unterminated-line"]
    assert facts(lines(START, FINAL)[:-5]) == ["not-json", "unterminated-line", "no-final"]


def test_blank_lines_and_carriage_returns_are_nothing() -> None:
    assert facts(b"\n\r\n" + lines(START).replace(b"\n", b"\r\n") + b"  \n" + lines(FINAL)) == []


def test_a_flood_of_lines_is_bounded() -> None:
    begun = time.monotonic()
    transcript = parse_events(lines(START) + b"{}\n" * 3_000_000)
    assert "too-many-events" in [fact.name for fact in transcript.facts]
    assert len(transcript.noise) == MAX_EVENTS
    assert time.monotonic() - begun < 20


def test_anything_at_all_is_survived() -> None:
    draw = random.Random(5)
    good = lines(START, CALL, RESULT, FINAL)
    for _ in range(400):
        raw = bytearray(good)
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(raw))
            raw[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(4))
        transcript = parse_events(bytes(raw))
        assert transcript.facts or transcript.final is not None
    assert set(DECIDING_FACTS) >= {"no-final", "several-finals"}
