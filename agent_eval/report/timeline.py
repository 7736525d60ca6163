"""What happened when in a trial: signals, witness contacts and model requests on one scale.

Owns bringing the times that the harness itself took onto seconds from the start of the process. An
agent's own events carry no time that can be believed, so they are not on the scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_eval.report.activity import read_requests
from agent_eval.report.records_view import mapping, number, sequence
from agent_eval.report.visible_text import escape

if TYPE_CHECKING:
    from agent_eval.evidence.reader import RetainedTrial

MAX_MARKS = 200
_MAX_LABEL = 60


def timeline(trial: RetainedTrial, limits: Mapping, most: int = MAX_MARKS) -> dict[str, object]:
    """``wall_s``, ``limit_s`` and ``marks`` as ``[at_s, kind, label]`` in order, at most ``most`` and :data:`MAX_MARKS`.

    ``at_s`` of what has a wall-clock time is its difference from ``started_at``, so it may be off by what the
    clock was set meanwhile.
    """
    outcome = mapping(trial.record.get("outcome"))
    marks: list[tuple[float, str, str]] = []
    for step in sequence(outcome.get("stop_steps")):
        at_s = number(mapping(step).get("at_s"))
        if at_s is not None:
            marks.append((at_s, "signal", _label(mapping(step).get("signal"))))
    started = _moment(outcome.get("started_at"))
    if started is not None:
        marks += _seen(trial, started)
    marks.sort(key=lambda mark: mark[0])
    return {
        "wall_s": number(outcome.get("wall_s")),
        "limit_s": number(limits.get("timeout_s")),
        "marks": [list(mark) for mark in marks[: min(most, MAX_MARKS)]],
    }


def _seen(trial: RetainedTrial, started: datetime) -> list[tuple[float, str, str]]:
    found = []
    for call in sequence(mapping(trial.record.get("witness")).get("calls")):
        words = " ".join(str(word) for word in sequence(mapping(call).get("args")))
        found.append((mapping(call).get("at"), f"witness: {mapping(call).get('program')} {words}"))
    for line, request in read_requests(trial):
        found.append((request.get("started_at"), f"request {request.get('n') or line}"))
    marks = []
    for at, label in found:
        moment = _moment(at)
        if moment is not None:
            marks.append((round((moment - started).total_seconds(), 3), "seen", _label(label)))
    return marks


def _moment(value: object) -> datetime | None:
    """A time with its zone, ``None`` for anything else."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _label(value: object) -> str:
    words = str(value).strip()
    return escape(words if len(words) <= _MAX_LABEL else f"{words[:_MAX_LABEL]}...")
