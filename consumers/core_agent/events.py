"""Reading a transcript: ``core-agent/1`` events as JSON lines, strict in what counts, tolerant in what it survives.

Owns the parser. Each thing that is wrong is a named fact with its line; nothing here
raises. A line that is no event is kept as noise, so that what it says is still looked at.
It does not decide a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval import strict_json

MAX_EVENTS = 50_000
STATUSES = ("completed", "blocked", "failed")

DECIDING_FACTS = {
    "no-final": "the transcript has no final event",
    "several-finals": "the transcript has more than one final event",
    "event-after-final": "the transcript goes on after the final event",
    "result-without-call": "a tool result answers no call before it",
    "duplicate-call": "two calls have one id",
    "duplicate-result": "two results answer one call",
    "result-after-denial": "a denied call has a successful result",
    "too-many-events": f"the transcript has more than {MAX_EVENTS} lines",
}
"""Facts that fail a trial: with these, the transcript says nothing definite."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something about the transcript. ``line`` counts from 1; ``None`` concerns the whole."""

    name: str
    line: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """``events`` in order, each with its ``line``; ``noise`` is ``{where, text}`` for every line that is no event."""

    events: tuple[dict[str, object], ...]
    facts: tuple[Fact, ...]
    noise: tuple[dict[str, str], ...] = ()

    @property
    def final(self) -> dict[str, object] | None:
        """The one final event; ``None`` when there is none or more than one."""
        finals = [event for event in self.events if event["type"] == "final"]
        return finals[0] if len(finals) == 1 else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_exit_code(value: object) -> bool:
    return value is None or type(value) is int


# Field -> (test, required). Other fields are kept and mean nothing.
_FIELDS: dict[str, dict[str, tuple[object, bool]]] = {
    "start": {},
    "message": {"text": (_is_text, True)},
    "tool_call": {"id": (_is_text, True), "tool": (_is_text, True), "arguments": (lambda value: isinstance(value, dict), True)},
    "tool_result": {
        "id": (_is_text, True),
        "ok": (lambda value: isinstance(value, bool), True),
        "exit_code": (_is_exit_code, False),
        "output": (_is_text, False),
    },
    "denied": {"id": (_is_text, True), "tool": (_is_text, True)},
    "usage": {"input_tokens": (_is_count, True), "output_tokens": (_is_count, True)},
    "error": {"kind": (_is_text, True), "text": (_is_text, True)},
    "final": {"status": (lambda value: value in STATUSES, True), "answer": (_is_text, True)},
}
EVENT_TYPES = tuple(_FIELDS)


def parse_events(raw: bytes) -> Transcript:
    """The transcript in ``raw``, whatever that is."""
    events: list[dict[str, object]] = []
    facts: list[Fact] = []
    noise: list[dict[str, str]] = []
    lines = raw.split(b"\n", MAX_EVENTS)
    surplus = lines.pop() if len(lines) > MAX_EVENTS else b""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        event, problem = _parse_line(line)
        if problem is not None:
            facts.append(Fact(problem[0], number, problem[1]))
        if event is None:
            noise.append({"where": f"L{number}", "text": line.decode("utf-8", "backslashreplace")})
        else:
            events.append({**event, "line": number})
    if surplus.strip():
        facts.append(Fact("too-many-events", MAX_EVENTS + 1, DECIDING_FACTS["too-many-events"]))
        noise.append({"where": f"L{MAX_EVENTS + 1}", "text": surplus.decode("utf-8", "backslashreplace")})
    if raw and not raw.endswith(b"\n"):
        facts.append(Fact("unterminated-line", len(lines), "the last line has no line feed"))
    return Transcript(tuple(events), tuple(facts + order_facts(events)), tuple(noise))


def _parse_line(line: bytes) -> tuple[dict[str, object] | None, tuple[str, str] | None]:
    try:
        value = strict_json.parse_object(line)
    except strict_json.JsonError as error:
        return None, ("not-json", str(error))
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        return None, ("unknown-event", f"type {str(kind)[:40]!r}")
    for name, (test, required) in _FIELDS[kind].items():
        if name in value:
            if not test(value[name]):
                return None, ("bad-event", f"{kind}: {name} has the wrong type or value")
        elif required:
            return None, ("bad-event", f"{kind}: no {name}")
    return value, None


def order_facts(events: list[dict[str, object]]) -> list[Fact]:
    """What is wrong with the order of well-formed events (each has ``type`` and ``line``)."""
    facts: list[Fact] = []
    open_calls: set[str] = set()
    seen_calls: set[str] = set()
    answered: set[str] = set()
    denied: set[str] = set()
    final_line = None
    finals = 0
    for position, event in enumerate(events):
        kind, line = event["type"], event["line"]
        if final_line is not None and kind not in ("final", "usage"):
            facts.append(Fact("event-after-final", line, f"{kind} after the final event"))
        if kind == "start" and position:
            facts.append(Fact("start-not-first", line, "a start event that is not the first"))
        elif kind == "tool_call":
            if event["id"] in seen_calls:
                facts.append(Fact("duplicate-call", line, f"a second call {event['id'][:40]!r}"))
            seen_calls.add(event["id"])
            open_calls.add(event["id"])
        elif kind == "tool_result":
            _note_result(event, seen_calls, answered, denied, facts)
            open_calls.discard(event["id"])
        elif kind == "denied":
            denied.add(event["id"])
            open_calls.discard(event["id"])
        elif kind == "final":
            finals += 1
            final_line = line
    if not events or events[0]["type"] != "start":
        facts.append(Fact("no-start", None, "the first event is not start"))
    if open_calls:
        facts.append(Fact("call-without-result", None, f"{len(open_calls)} calls were neither answered nor denied"))
    if finals == 0:
        facts.append(Fact("no-final", None, DECIDING_FACTS["no-final"]))
    elif finals > 1:
        facts.append(Fact("several-finals", final_line, f"{finals} final events"))
    return facts


def _note_result(
    event: Mapping[str, object], seen_calls: set[str], answered: set[str], denied: set[str], facts: list[Fact]
) -> None:
    name, line = event["id"], event["line"]
    if name not in seen_calls:
        facts.append(Fact("result-without-call", line, f"a result for {name[:40]!r}, which was not called before"))
    elif name in answered:
        facts.append(Fact("duplicate-result", line, f"a second result for {name[:40]!r}"))
    if name in denied and event["ok"]:
        facts.append(Fact("result-after-denial", line, f"{name[:40]!r} was denied and has a successful result"))
    answered.add(name)
