"""What an agent did in a trial, as far as it left records of it: tool calls, model requests, events in time.

Owns reading ``events.jsonl`` (the agent's own account) and ``model.jsonl`` (what went over the
harness's model boundary) for display and export, line by line and bounded. A line may hold
anything: what is not understood is shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agent_eval.records import strict_json
from agent_eval.report.records_view import mapping, number, sequence
from agent_eval.report.visible_text import escape

if TYPE_CHECKING:
    from agent_eval.evidence.reader import RetainedTrial

EVENTS = "events.jsonl"
MODEL_REQUESTS = "model.jsonl"
_MAX_LINE_BYTES = 1 << 20
_MAX_READ_EVENTS = 50_000
_MIN_CELL = 80
_MAX_CELL = 1_500


def read_events(trial: RetainedTrial) -> Iterator[tuple[int, Mapping | str]]:
    """Each line of the trial's events with its number from 1: an object, or the text of a line that is none."""
    yield from _lines(trial, EVENTS)


def read_requests(trial: RetainedTrial) -> Iterator[tuple[int, Mapping]]:
    """Each model request of the trial with its line's number; in whatever folder of the trial its list was kept."""
    for name in trial.record["files"]:
        if name.rpartition("/")[2] == MODEL_REQUESTS:
            yield from ((line, found) for line, found in _lines(trial, name) if isinstance(found, Mapping))


def _lines(trial: RetainedTrial, name: str) -> Iterator[tuple[int, Mapping | str]]:
    data = trial.read(name) or b""
    for index, line in enumerate(data.split(b"\n")[:_MAX_READ_EVENTS]):
        if not line.strip():
            continue
        try:
            yield index + 1, strict_json.parse_object(line, max_bytes=_MAX_LINE_BYTES)
        except strict_json.JsonError:
            yield index + 1, line[:_MAX_LINE_BYTES].decode("utf-8", "replace")


def activity(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    """``events`` and ``requests``, each ``{rows, total, note}``: at most ``rows`` rows, in about ``room`` bytes together."""
    return {"events": _events(trial, room // 2, rows), "requests": _requests(trial, room // 2, rows)}


def _events(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    """Line number, event, content and result; a tool's result stands in the row of its call."""
    listed: list[list[str]] = []
    by_call: dict[str, list[str]] = {}
    found = list(read_events(trial))
    cell = _cell(room, rows, len(found))
    total, usage = 0, []
    for line, event in found:
        if isinstance(event, str):
            event = {"type": "not JSON", "text": event}
        kind = event.get("type")
        call = by_call.get(str(event.get("id")))
        if kind == "usage":
            usage.append(event)
        elif kind in ("tool_result", "denied") and call is not None:
            call[3] = _cut(_result(event), cell)
        else:
            total += 1
            row = [str(line), _cut(str(kind), 30), _cut(_content(event), cell), ""]
            if kind == "tool_call":
                by_call[str(event.get("id"))] = row
            if len(listed) < rows:
                listed.append(row)
    return {"rows": listed, "total": total, "note": f"The agent's own account ({EVENTS}). {_tokens(usage)}".strip()}


def _requests(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    """Line number, model, what was asked (API, status, new tool results) and what came (text, calls, why it ended)."""
    found = list(read_requests(trial))
    cell = _cell(room, rows, len(found))
    listed = []
    for line, request in found[:rows]:
        model = _cut(str(request.get("model") or request.get("path")), 60)
        asked = f"{request.get('api')}, status {request.get('status')}"
        results = [mapping(result).get("text") for result in sequence(request.get("results"))]
        if results:
            asked += f"; new results: {_plain(results)}"
        calls = [f"{mapping(call).get('name')} {_plain(mapping(call).get('arguments'))}" for call in sequence(request.get("calls"))]
        answer = "; ".join(part for part in (_plain(request.get("text") or ""), *calls) if part)
        ending = [str(request[name]) for name in ("finish", "fault") if request.get(name)]
        listed.append([str(line), model, _cut(asked, cell), _cut(f"{answer} [{', '.join(ending)}]", cell)])
    note = f"What went over the model boundary. {_tokens([mapping(request.get('usage')) for _, request in found])}".strip()
    return {"rows": listed, "total": len(found), "note": note}


def _cell(room: int, rows: int, found: int) -> int:
    return min(_MAX_CELL, max(_MIN_CELL, room // (2 * max(1, min(rows, found)))))


def _tokens(usage: list[Mapping]) -> str:
    """The sum of what was reported; nothing when nothing was."""
    parts = []
    for name in ("input_tokens", "output_tokens"):
        known = [number(entry.get(name)) for entry in usage]
        if any(value is not None for value in known):
            parts.append(f"{sum(value or 0 for value in known):.0f} {name.partition('_')[0]}")
    return f"{' and '.join(parts)} tokens." if parts else ""


def _content(event: Mapping) -> str:
    kind = event.get("type")
    if kind == "tool_call":
        return f"{event.get('tool')} {_plain(event.get('arguments'))}"
    if kind == "final":
        return f"{event.get('status')}: {_plain(event.get('answer'))}"
    if kind in ("message", "not JSON") and isinstance(event.get("text"), str):
        return event["text"]
    return _plain({key: value for key, value in event.items() if key not in ("type", "line")})


def _result(event: Mapping) -> str:
    if event.get("type") == "denied":
        return "denied"
    state = "ok" if event.get("ok") is True else "not ok"
    if event.get("exit_code") is not None:
        state += f", exit code {event['exit_code']}"
    return f"{state}: {_plain(event.get('output'))}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _cut(shown: str, limit: int) -> str:
    """At most about ``limit`` characters, escaped but for the ends of lines."""
    cut = "\n".join(escape(line) for line in shown[:limit].replace("\r\n", "\n").split("\n"))
    left = len(shown) - limit
    return cut if left <= 0 else f"{cut} [... {left} more characters]"
