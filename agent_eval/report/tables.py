"""The texts at the end of a run: counts, table of cases, what was reached, and the closing lines.

Owns: the wording and the layout of the final table and of the closing lines.
It formats what ``summary.json`` counts and counts nothing itself, so that the table, the
summary and the exit code cannot disagree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent_eval.records.exit_codes import MEANING
from agent_eval.report.parts_text import part_text, redraw_text
from agent_eval.report.records_view import largest_k
from agent_eval.report.statistics_text import share
from agent_eval.report.visible_text import cells, count, escape, fit, pad

MAX_ROWS = 60
_LOG_WIDTH = 160
_MAX_CASE_CELLS = 40
_MIN_REASON_CELLS = 20
_COUNTS = ("planned", "passed", "failed", "void", "interrupted", "unrun")


@dataclass(frozen=True, slots=True)
class TrialRow:
    """What the table needs of finished trials. ``wall_s`` is ``None`` when nothing ran."""

    case_id: str
    number: int
    verdict: str
    reasons: tuple[str, ...] = ()
    wall_s: float | None = None


def headline(summary: Mapping) -> str:
    """The counts in one line: passed of planned first, with its interval, then of judged, then what planned is made of.

    The interval (Clopper-Pearson) takes the trials as independent draws; :func:`summary_table` says where they may not be.
    """
    planned, passed = summary["planned"], summary["passed"]
    judged = passed + summary["failed"]
    rest = ", ".join(f"{summary[name]} {name}" for name in _COUNTS[2:])
    return f"passed {share(passed, planned)} of planned, {passed}/{judged} of judged; {rest}"


def screen_width() -> int:
    """Columns of the terminal on standard output; where there is none, what a log still shows."""
    try:
        return os.get_terminal_size(1).columns or _LOG_WIDTH
    except (OSError, ValueError):
        return _LOG_WIDTH


def summary_table(plan: Mapping, summary: Mapping, trials: Iterable[TrialRow], *, width: int | None = None) -> str:
    """The final table: counts first, then which part of a plan they are of, then a row per case, then limits, leaks and what is not scored.

    At most :data:`MAX_ROWS` cases are listed, those with the least passed share first, and the
    number of those left out is said. ``width`` is in columns (default: of the screen); only the reasons are cut to it.
    """
    width = screen_width() if width is None else width
    part = part_text(plan)
    lines = [headline(summary), *([part] if part else []), ""]
    lines += _case_rows(summary, _seconds_by_case(trials), width)
    lines += ["", *_basis_lines(summary), *_reliability_lines(summary), *_footing(plan, summary, width)]
    return "\n".join(lines)


def closing_lines(verdict: str, directory: str, seal: str | None, exit_code: int) -> str:
    """The last lines of every run: verdict, where the evidence is, its seal, what the exit code means."""
    meaning = MEANING.get(exit_code, "interrupted by a signal")
    return "\n".join(
        (
            f"verdict:  {escape(str(verdict))}",
            f"evidence: {escape(str(directory))}",
            f"seal:     {seal or 'none: unsealed'}",
            f"exit:     {int(exit_code)} ({meaning})",
        )
    )


def _seconds_by_case(trials: Iterable[TrialRow]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for row in trials:
        spent[row.case_id] = spent.get(row.case_id, 0.0) + (row.wall_s or 0.0)
    return spent


def _case_rows(summary: Mapping, spent: Mapping[str, float], width: int) -> list[str]:
    # A shard or a rerun of many cases has no trial of most of them.
    cases = [(case_id, counted) for case_id, counted in summary["cases"].items() if counted["planned"]]
    if not cases:
        return ["no trial was planned"]
    hidden = len(cases) - MAX_ROWS
    if hidden > 0:
        # A stable sort keeps the plan's order among equals.
        cases.sort(key=lambda item: item[1]["passed"] / (item[1]["planned"] or 1))
        cases = cases[:MAX_ROWS]
    repeated = any(largest_k(counted.get("pass_at_k") or {}) > 1 for _, counted in cases)
    rows = [["case", "passed", *(["pass@k / pass^k"] if repeated else []), "seconds", "reasons"]]
    for case_id, counted in cases:
        row = [fit(escape(case_id), _MAX_CASE_CELLS), f"{counted['passed']}/{counted['planned']}"]
        if repeated:
            row.append(_both_k(counted))
        time_s = f"{spent[case_id]:.2f}" if case_id in spent else "-"
        rows.append([*row, time_s, _reasons_text(counted)])
    lines = _columns(rows, width)
    if hidden > 0:
        lines.append(f"... and {count(hidden, 'more case')} with a passed share no lower; all are in summary.json")
    return lines


def _columns(rows: list[list[str]], width: int) -> list[str]:
    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    room = max(_MIN_REASON_CELLS, width - sum(widths) - 2 * len(widths))
    lines = []
    for row in rows:
        parts = [pad(part, size, right=column > 0) for column, (part, size) in enumerate(zip(row, widths, strict=False))]
        lines.append("  ".join([*parts, fit(row[-1], room)]).rstrip())
    return lines


def _both_k(counted: Mapping) -> str:
    k = largest_k(counted.get("pass_at_k") or {})
    if k == 0:
        return "undefined"
    able, reliable = counted["pass_at_k"].get(str(k)), (counted.get("pass_hat_k") or {}).get(str(k))
    return f"k={k} {proportion(able)} / {proportion(reliable)}"


def proportion(value: object) -> str:
    """A probability as text; ``undefined`` for ``None`` (fewer judged trials than k)."""
    return f"{value:.3f}" if isinstance(value, (int, float)) else "undefined"


def _reasons_text(counted: Mapping) -> str:
    parts = []
    for reason, times in (counted.get("reasons") or {}).items():
        parts.append(escape(reason) + (f" x{times}" if times > 1 else ""))
    parts += [f"{counted[name]} {name}" for name in _COUNTS[3:] if counted.get(name)]
    return ", ".join(parts)


def _basis_lines(summary: Mapping) -> list[str]:
    parts = []
    for name, counted in (summary.get("basis") or {}).items():
        if any(counted.values()):
            parts.append(f"{escape(name)} {', '.join(f'{value} {key}' for key, value in counted.items() if value)}")
    return [f"basis: {'; '.join(parts)}"] if parts else []


def _reliability_lines(summary: Mapping) -> list[str]:
    lines = [text] if (text := reliability_text(summary)) else []
    if any(case["planned"] > 1 for case in summary["cases"].values()):
        lines.append("the interval takes trials as independent; trials of one case may not be")
    return lines


def reliability_text(summary: Mapping) -> str:
    """pass@k and pass^k over the cases, both named, with k and the number of cases; empty when they are undefined."""
    found = summary.get("reliability")
    if not isinstance(found, Mapping) or not {"k", "cases", "pass_at_k", "pass_hat_k"} <= found.keys():
        return ""
    k = found["k"]
    shares = f"pass@{k} {proportion(found['pass_at_k'])} (capability), pass^{k} {proportion(found['pass_hat_k'])} (reliability)"
    return f"{shares}: mean over {count(found['cases'], 'case')}, of {count(k, 'planned trial')} each"


def _footing(plan: Mapping, summary: Mapping, width: int) -> list[str]:
    reached = [f"{escape(name)} {number}" for name, number in (summary.get("limits_reached") or {}).items() if number]
    lines = [f"limits reached: {', '.join(reached) or 'none'}"]
    leaks = summary.get("leaks") or {}
    if leaks.get("trials"):
        lines.append(f"leaky: {count(leaks['trials'], 'trial')} left {count(leaks['processes'], 'process', 'processes')} behind")
    else:
        lines.append("leaks: none")
    if leaks.get("unreaped"):
        lines.append(f"could not be ended: {count(leaks['unreaped'], 'process', 'processes')}, named in trial.json")
    if redrawn := redraw_text(summary):
        lines.append(redrawn)
    if summary.get("unrecorded"):
        lines.append(f"not recorded: {', '.join(escape(name) for name in summary['unrecorded'][:10])}")
    subject = plan.get("subject") or {}
    if "scripted" in (subject.get("subject_kind"), (subject.get("contract") or {}).get("subject_kind")):
        lines.append("subject: scripted, so this run proves the plumbing and no ability of a model")
    not_scored = summary.get("not_scored") or []
    if not_scored:
        lines += _wrapped("not scored: ", [escape(str(item)) for item in not_scored], width)
    return lines


def _wrapped(start: str, items: list[str], width: int) -> list[str]:
    """The items one after the other, as many on a line as fit."""
    lines = [start]
    for index, item in enumerate(items):
        piece = item + (";" if index < len(items) - 1 else "")
        if cells(lines[-1]) > len(start) and cells(lines[-1]) + 1 + cells(piece) > width:
            lines.append("  ")
        lines[-1] += piece if lines[-1].endswith("  ") or lines[-1] == start else f" {piece}"
    return lines
