"""One retained trial in words: reasons, last events, workspace difference, and where each file is.

Owns what ``show`` prints of a trial. Evidence is escaped before it comes near a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.report.activity import read_events
from agent_eval.report.records_view import mapping, sequence
from agent_eval.report.visible_text import escape, fit, seconds, size
from agent_eval.report.workspace_changes import Contents, workspace_changes

if TYPE_CHECKING:
    from agent_eval.evidence.reader import RetainedTrial

_LAST_EVENTS = 12
_LINE_CELLS = 160
_DIFF_BYTES = 4000
_CHANGES = 40
_TAIL_BYTES = 1000


def trial_text(trial: RetainedTrial, case_bytes: bytes) -> str:
    """Everything a person asks first of a trial, in at most about a hundred lines."""
    return "\n".join(_lines(trial, case_bytes))


def _lines(trial: RetainedTrial, case_bytes: bytes) -> Iterator[str]:
    record = trial.record
    judgment = mapping(record.get("judgment"))
    cause = f" ({judgment['cause']})" if judgment.get("cause") else ""
    yield f"{trial.name}: {escape(str(judgment.get('verdict')))}{escape(cause)}, {escape(str(judgment.get('basis')))}"
    for failure in sequence(judgment.get("failures")):
        failure = mapping(failure)
        where = f"  [{', '.join(map(str, sequence(failure.get('evidence'))))}]" if failure.get("evidence") else ""
        yield _cut(f"  {failure.get('reason')}: {failure.get('detail')}{where}")
    checks = [mapping(check) for check in sequence(judgment.get("checks"))]
    for check in checks:
        if check.get("status") != "pass":
            yield _cut(f"  check {check.get('id')}: {check.get('status')}: {check.get('detail')}")
    if checks:
        yield f"  {sum(check.get('status') == 'pass' for check in checks)} of {len(checks)} checks pass"
    yield from _outcome_lines(mapping(record.get("outcome")))
    yield from _event_lines(trial)
    yield from _change_lines(trial, case_bytes)
    yield from _stream_lines(trial)
    yield "files:"
    for name in (layout.TRIAL_RECORD, *sorted(record["files"])):
        path = os.path.join(trial.path, name)
        yield f"  {escape(path)}  {size(os.stat(path).st_size if os.path.isfile(path) else None)}"


def _outcome_lines(outcome: Mapping) -> Iterator[str]:
    if not outcome:
        yield "outcome: no process was run"
        return
    if outcome.get("start_error"):
        ended = f"did not start ({mapping(outcome['start_error']).get('message')})"
    elif outcome.get("signal") is not None:
        ended = f"signal {outcome['signal']}"
    else:
        ended = f"exit code {outcome.get('exit_code')}"
    stop = f", stopped: {outcome['stop_reason']}" if outcome.get("stop_reason") else ""
    yield _cut(f"outcome: {ended}{stop}, {seconds(outcome.get('wall_s'))}")
    tree = mapping(outcome.get("tree"))
    if tree.get("leaked") or tree.get("unreaped"):
        yield f"leaky: {tree.get('leaked')} processes left behind, {len(sequence(tree.get('unreaped')))} could not be ended"


def _event_lines(trial: RetainedTrial) -> Iterator[str]:
    events = list(read_events(trial))
    if not events:
        return
    yield f"last events (of {len(events)}, the subject's own account):"
    for line, event in events[-_LAST_EVENTS:]:
        text = event if isinstance(event, str) else strict_json.canonical(event).decode("ascii")
        yield _cut(f"  {line}: {text}")


def _change_lines(trial: RetainedTrial, case_bytes: bytes) -> Iterator[str]:
    try:
        case = strict_json.parse(case_bytes)
    except strict_json.JsonError:
        case = None
    changes: Any = workspace_changes(trial, Contents(case), _DIFF_BYTES * _CHANGES, _CHANGES)
    if changes is None:
        return
    counts = changes["counts"]
    yield f"workspace: {counts['added']} added, {counts['changed']} changed, {counts['removed']} removed"
    for row in changes["rows"]:
        yield _cut(f"  {row['kind']} {row['path']} ({row['what']})", escaped=True)
        for line in row.get("diff", ()):
            yield _cut(f"    {line if isinstance(line, str) else ' '.join(map(str, line))}", escaped=True)
    if changes["total"] > len(changes["rows"]):
        yield f"  ... and {changes['total'] - len(changes['rows'])} more"


def _stream_lines(trial: RetainedTrial) -> Iterator[str]:
    for name in (layout.STDOUT, layout.STDERR, layout.OWNER_REPORT):
        data = trial.read(name)
        if data:
            yield f"{name} (last {min(len(data), _TAIL_BYTES)} of {len(data)} bytes):"
            for line in data[-_TAIL_BYTES:].decode("utf-8", "backslashreplace").splitlines()[-_LAST_EVENTS:]:
                yield _cut(f"  {line}")


def _cut(text: str, *, escaped: bool = False) -> str:
    return fit(text if escaped else escape(text), _LINE_CELLS)
