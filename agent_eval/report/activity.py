"""What an agent did in a trial, as far as it left records of it: tool calls, model requests, events in time.

Owns reading ``events.jsonl`` for display and export, line by line and bounded. An agent wrote it, so a
line may hold anything: what is not understood is shown as it is.
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
_MAX_LINE_BYTES = 1 << 20
_MAX_READ_EVENTS = 50_000
_MAX_MARKS = 200
_MIN_CELL = 80


def read_events(trial: RetainedTrial) -> Iterator[tuple[int, Mapping | str]]:
    """Each line of the trial's events with its number from 1: an object, or the text of a line that is none."""
    data = trial.read(EVENTS) or b""
    for index, line in enumerate(data.split(b"\n")[:_MAX_READ_EVENTS]):
        if not line.strip():
            continue
        try:
            yield index + 1, strict_json.parse_object(line, max_bytes=_MAX_LINE_BYTES)
        except strict_json.JsonError:
            yield index + 1, line[:_MAX_LINE_BYTES].decode("utf-8", "replace")


def activity(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    """``events`` as ``{rows, total, note}``: at most ``rows`` rows, in about ``room`` bytes.

    A row is line number, event, content and result; a tool's result stands in the row of its call.
    """
    listed: list[list[str]] = []
    by_call: dict[str, list[str]] = {}
    tokens = {"input_tokens": 0.0, "output_tokens": 0.0}
    found = list(read_events(trial))
    cell = max(_MIN_CELL, room // (2 * max(1, min(rows, len(found)))))
    total = 0
    for line, event in found:
        if isinstance(event, str):
            event = {"type": "not JSON", "text": event}
        kind = event.get("type")
        call = by_call.get(str(event.get("id")))
        if kind == "usage":
            for name in tokens:
                tokens[name] += number(event.get(name)) or 0
        elif kind in ("tool_result", "denied") and call is not None:
            call[3] = _cut(_result(event), cell)
        else:
            total += 1
            row = [str(line), escape(str(kind)), _cut(_content(event), cell), ""]
            if kind == "tool_call":
                by_call[str(event.get("id"))] = row
            if len(listed) < rows:
                listed.append(row)
    note = f"{tokens['input_tokens']:.0f} input and {tokens['output_tokens']:.0f} output tokens" if any(tokens.values()) else ""
    return {"events": {"rows": listed, "total": total, "note": f"The agent's own account ({EVENTS}). {note}".strip()}}


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
    left = len(shown) - limit
    return escape(shown if left <= 0 else f"{shown[:limit]} [... {left} more characters]")


def timeline(record: Mapping, limits: Mapping) -> dict[str, object]:
    """What happened when, in seconds from the start: ``wall_s``, ``limit_s`` and marks ``[at_s, kind, label]``.

    The marks are the signals that the supervisor sent and what the harness itself saw with a time (``at_s``), such as
    contacts of a witness.
    """
    outcome = mapping(record.get("outcome"))
    marks: list[list[object]] = []
    for step in sequence(outcome.get("stop_steps")):
        _mark(marks, step, "signal", mapping(step).get("signal"))
    for entry in sequence(record.get("witness")):
        _mark(marks, entry, "seen", mapping(entry).get("name") or mapping(entry).get("kind") or "witness")
    marks.sort(key=lambda mark: mark[0])
    return {
        "wall_s": number(outcome.get("wall_s")),
        "limit_s": number(limits.get("timeout_s")),
        "marks": marks[:_MAX_MARKS],
    }


def _mark(marks: list[list[object]], entry: object, kind: str, label: object) -> None:
    at_s = number(mapping(entry).get("at_s"))
    if at_s is not None:
        marks.append([at_s, kind, _cut(str(label), 60)])
