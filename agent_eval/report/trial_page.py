"""One trial as the page shows it: a plain value for the page's script, bounded in size.

Owns: which facts of a trial are shown, in which words, and how they are made to fit. Every string in
the value is escaped text already; the script puts it into text nodes only. It does not
write HTML, and what an agent did and changed is read by ``activity`` and ``workspace_changes``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_eval.evidence import layout
from agent_eval.evidence.reader import RetainedTrial
from agent_eval.report.activity import activity
from agent_eval.report.citations import NOTHING, Citations
from agent_eval.report.excerpts import excerpt
from agent_eval.report.markup import Markup, script_json
from agent_eval.report.records_view import identity_changed, mapping, number, sequence
from agent_eval.report.timeline import timeline
from agent_eval.report.visible_text import escape, seconds, size
from agent_eval.report.workspace_changes import Contents, workspace_changes

MIN_TRIAL_BYTES = 600
_MAX_WORDS, _MIN_WORDS = 600, 70
_MAX_CITED = 8
_MAX_FACTS = 20
_STREAMS = (layout.STDOUT, layout.STDERR, layout.OWNER_REPORT)
# Shown as sections of their own, so not again under "everything else in the record".
_SHOWN_KEYS = frozenset({"case_id", "number", "outcome", "judgment", "files", "identity"})


@dataclass(frozen=True, slots=True)
class ReadOnce(RetainedTrial):
    """A trial whose files are read and checked once, however often they are looked into."""

    kept: dict[str, bytes | None] = field(default_factory=dict)

    def read(self, name: str) -> bytes | None:
        """As :meth:`RetainedTrial.read`."""
        if name not in self.kept:
            self.kept[name] = RetainedTrial.read(self, name)
        return self.kept[name]


def trial_json(trial: RetainedTrial, limits: Mapping, contents: Contents, budget_bytes: int) -> Markup:
    """The trial's data for the page's script in about ``budget_bytes``, never more than twice that.

    Output, rows and words are cut alike; a trial that is too much even so is only named. ``budget_bytes`` is at
    least :data:`MIN_TRIAL_BYTES`. Raises :class:`EvidenceFault` when a file of the trial is not what its record says.
    """
    once = ReadOnce(trial.case_id, trial.number, trial.path, trial.record, trial.sha256)
    room = budget_bytes
    while room >= MIN_TRIAL_BYTES:
        written = script_json(_trial_value(once, limits, contents, room))
        if len(written.encode()) <= 2 * budget_bytes:
            return written
        room //= 2
    return script_json({**_head(trial), "bare": f"Too much for this page: run.py show {escape(trial.path)}"})


def _head(trial: RetainedTrial) -> dict[str, object]:
    judgment = mapping(trial.record.get("judgment"))
    return {
        "name": trial.name,
        "folder": layout.trial_folder(trial.case_id, trial.number),
        "verdict": str(judgment.get("verdict")),
        "basis": words(judgment.get("basis"), 40),
    }


def _trial_value(trial: RetainedTrial, limits: Mapping, contents: Contents, room: int) -> dict[str, object]:
    record = trial.record
    outcome, judgment = mapping(record.get("outcome")), mapping(record.get("judgment"))
    citations = Citations(trial)
    rows, limit = max(2, room // 200), min(_MAX_WORDS, max(_MIN_WORDS, room // 20))
    return {
        **_head(trial),
        "cause": words(judgment.get("cause"), limit) if judgment.get("cause") else None,
        "failures": [_failure(item, citations, rows, limit) for item in sequence(judgment.get("failures"))[:rows]],
        "checks": [_check(item, limit) for item in sequence(judgment.get("checks"))[:rows]],
        "facts": _facts(outcome, record)[:_MAX_FACTS],
        "gauges": _gauges(outcome, limits),
        "timeline": timeline(trial, limits, 4 * rows),
        "outputs": _outputs(trial, outcome, room // 4),
        "workspace": workspace_changes(trial, contents, room // 4, rows),
        **activity(trial, room // 4, rows),
        "identity": _identity(mapping(record.get("identity")), rows, limit),
        "files": [[escape(name), digest] for name, digest in list(record["files"].items())[:rows]],
        "files_total": len(record["files"]),
        "record": _rest(record, room // 8),
    }


def words(value: object, limit: int = _MAX_WORDS) -> str:
    """``value`` as one escaped line of at most about ``limit`` characters."""
    plain = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    shown = escape(plain[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[:limit]} [... cut, {len(plain)} characters in all]"


def _failure(item: object, citations: Citations, rows: int, limit: int) -> dict[str, object]:
    failure = mapping(item)
    pointers = sequence(failure.get("evidence"))[: min(rows, _MAX_CITED)]
    cited = [[words(pointer, limit), _quoted(citations.find(str(pointer)), limit)] for pointer in pointers]
    return {"reason": words(failure.get("reason"), limit), "detail": words(failure.get("detail") or "", limit), "evidence": cited}


def _quoted(found: object, limit: int) -> str:
    return "" if found is NOTHING else words(found, limit)


def _check(item: object, limit: int) -> list[str]:
    check = mapping(item)
    return [words(check.get("id"), limit), words(check.get("status"), limit), words(check.get("detail") or "", limit)]


def _facts(outcome: Mapping, record: Mapping) -> list[list[str]]:
    if not outcome:
        return []
    tree, scratch = mapping(outcome.get("tree")), mapping(record.get("scratch"))
    facts = [["Ended", _ending(outcome)], ["Wall time", seconds(number(outcome.get("wall_s")))]]
    user, system = number(outcome.get("cpu_user_s")), number(outcome.get("cpu_system_s"))
    if user is not None and system is not None:
        facts.append(["CPU time", f"{user:.2f} s user, {system:.2f} s system"])
    if number(outcome.get("max_rss_bytes")) is not None:
        facts.append(["Peak memory", size(int(outcome["max_rss_bytes"]))])
    if number(outcome.get("suspended_s")):
        facts.append(["Machine asleep meanwhile", seconds(number(outcome["suspended_s"]))])
    facts.append(["Started", words(outcome.get("started_at"))])
    counts = ", ".join(f"{words(tree.get(name))} {name}" for name in ("leaked", "escaped", "killed"))
    facts.append(["Process tree", f"{counts}; contained by {words(tree.get('containment'))}"])
    for process in sequence(tree.get("unreaped")):
        facts.append(["Could not be ended", words(process)])
    held = number(scratch.get("bytes"))
    if held is not None:
        facts.append(["Scratch folder held", f"{words(scratch.get('entries'))} entries, {size(int(held))}"])
    if record.get("source_trial_sha256"):
        facts.append(["Captured output", f"in the source run, whose trial.json has sha256 {words(record['source_trial_sha256'])}"])
    return facts


def _ending(outcome: Mapping) -> str:
    parts = []
    if outcome.get("start_error"):
        error = mapping(outcome["start_error"])
        parts.append(f"never started: {words(error.get('message'))} (stage {words(error.get('stage'))})")
    elif outcome.get("exit_code") is not None:
        parts.append(f"exit code {words(outcome['exit_code'])}")
    elif outcome.get("signal") is not None:
        parts.append(f"signal {words(outcome['signal'])}")
    else:
        parts.append("status lost")
    if outcome.get("stop_reason"):
        parts.append(f"stopped by the harness: {words(outcome['stop_reason'])}")
    if outcome.get("core_dumped"):
        parts.append("dumped core")
    return ", ".join(parts)


def _gauges(outcome: Mapping, limits: Mapping) -> list[list[object]]:
    gauges: list[list[object]] = []
    wall_s, timeout_s = number(outcome.get("wall_s")), number(limits.get("timeout_s"))
    if wall_s is not None and timeout_s:
        gauges.append(["Wall time", wall_s / timeout_s, f"{seconds(wall_s)} of {seconds(timeout_s)}"])
    cap = number(limits.get("max_output_bytes"))
    kept = sum(number(mapping(outcome.get(name)).get("kept_bytes")) or 0 for name in ("stdout", "stderr", "report"))
    if cap and outcome:
        gauges.append(["Output kept", kept / cap, f"{size(int(kept))} of {size(int(cap))}"])
    return gauges


def _outputs(trial: RetainedTrial, outcome: Mapping, room: int) -> list[dict[str, object]]:
    shown = []
    present = [name for name in _STREAMS if name in trial.record["files"]]
    for name in present:
        data = trial.read(name) or b""
        part = mapping(outcome.get(name.partition(".")[0]))
        notes = ["cut at the limit by the harness"] if part.get("truncated") else []
        if name == layout.OWNER_REPORT and mapping(outcome.get("report")).get("reason"):
            notes.append(f"refused: {words(outcome['report']['reason'])}")
        shown.append(
            {
                "path": name,
                "note": "; ".join(notes),
                "full": escape(os.path.join(trial.path, name)),
                **excerpt(data, room // len(present)).to_json(),
            }
        )
    return shown


def _identity(identity: Mapping, rows: int, limit: int) -> dict[str, object]:
    before, after = sequence(identity.get("before")), sequence(identity.get("after"))
    later = {_identity_name(item): item for item in after}
    listed = []
    for item in before[:rows]:
        now = later.get(_identity_name(item)) if after else item
        state = "same" if now == item else f"afterwards {_looked(now, limit)}"
        listed.append([words(_identity_name(item), limit), _looked(item, limit), state])
    return {"rows": listed, "total": len(before), "changed": identity_changed(identity)}


def _identity_name(item: object) -> str:
    return f"{mapping(item).get('role')}: {mapping(item).get('path')}"


def _looked(item: object, limit: int) -> str:
    entry = mapping(item)
    parts = [entry.get("sha256") or entry.get("type") or "missing"]
    if number(entry.get("size_bytes")) is not None:
        parts.append(f"{size(int(entry['size_bytes']))}, mode {entry.get('mode')}")
    if entry.get("link_target"):
        parts.append(f"link to {entry['link_target']}")
    return words(", ".join(str(part) for part in parts), limit)


def _rest(record: Mapping, room: int) -> dict[str, object]:
    rest = {key: value for key, value in record.items() if key not in _SHOWN_KEYS}
    written = json.dumps(rest, indent=1, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    return excerpt(written, room).to_json()
