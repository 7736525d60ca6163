"""The texts at the end of a run: counts, table of cases, what was reached, and the closing lines.

Owns: the wording and the layout of the final table and of the closing lines.
It formats what ``summary.json`` counts and adds up nothing but seconds, so that the table, the
summary and the exit code cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent_eval.records.exit_codes import MEANING
from agent_eval.report.visible_text import cells, count, escape, fit, pad, seconds

MAX_ROWS = 60
_MAX_CASE_CELLS = 40
_COUNTS = ("planned", "passed", "failed", "void", "interrupted", "unrun")


@dataclass(frozen=True, slots=True)
class TrialRow:
    """What the table needs of one finished trial. ``wall_s`` is ``None`` when it never started."""

    case_id: str
    number: int
    verdict: str
    reasons: tuple[str, ...] = ()
    wall_s: float | None = None

    @classmethod
    def from_record(cls, record: Mapping) -> TrialRow:
        """The row of a retained ``trial.json``; a void's cause is its reason."""
        judgment = record["judgment"]
        reasons = [failure["reason"] for failure in judgment["failures"]]
        if judgment.get("cause"):
            reasons.insert(0, judgment["cause"])
        outcome = record.get("outcome") or {}
        unique = tuple(dict.fromkeys(reasons))
        return cls(record["case_id"], record["number"], judgment["verdict"], unique, outcome.get("wall_s"))


def headline(summary: Mapping) -> str:
    """The counts in one line: passed of planned first, then everything that planned is made of."""
    planned, passed = summary["planned"], summary["passed"]
    judged = passed + summary["failed"]
    share = f" ({100 * passed / planned:.1f} %)" if planned else ""
    rest = ", ".join(f"{summary[name]} {name}" for name in _COUNTS[2:])
    return f"passed {passed}/{planned} planned{share}, {passed}/{judged} judged; {rest}"


def summary_table(plan: Mapping, summary: Mapping, trials: Iterable[TrialRow], *, width: int = 100) -> str:
    """The final table: counts first, then a row per case, then limits, leaks and what is not scored.

    At most :data:`MAX_ROWS` cases are listed, those with the least passed share first, and the
    number of those left out is said. ``width`` is in columns; only the reasons are cut to it.
    """
    lines = [headline(summary), ""]
    lines += _case_rows(summary, _seconds_by_case(trials), width)
    lines += ["", *_basis_lines(summary), *_reliability_lines(summary), *_footing(plan, summary)]
    return "\n".join(lines)


def closing_lines(verdict: str, directory: str, seal: str | None, exit_code: int) -> str:
    """The last lines of every run: verdict, where the evidence is, its seal, what the exit code means."""
    meaning = MEANING.get(exit_code, "interrupted by a signal")
    return "\n".join(
        (
            f"verdict:  {escape(str(verdict))}",
            f"evidence: {escape(str(directory))}",
            f"seal:     {seal or 'none: unsealed'}",
            f"exit:     {exit_code} ({meaning})",
        )
    )


def _seconds_by_case(trials: Iterable[TrialRow]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for row in trials:
        spent[row.case_id] = spent.get(row.case_id, 0.0) + (row.wall_s or 0.0)
    return spent


def _case_rows(summary: Mapping, spent: Mapping[str, float], width: int) -> list[str]:
    cases = list(summary["cases"].items())
    hidden = len(cases) - MAX_ROWS
    if hidden > 0:
        # A stable sort keeps the plan's order among equals.
        cases.sort(key=lambda item: item[1]["passed"] / (item[1]["planned"] or 1))
        cases = cases[:MAX_ROWS]
    rows = [("case", "passed", "seconds", "reasons")]
    for case_id, counted in cases:
        share = f"{counted['passed']}/{counted['planned']}"
        time_s = f"{spent[case_id]:.2f}" if case_id in spent else "-"
        rows.append((fit(escape(case_id), _MAX_CASE_CELLS), share, time_s, _reasons_text(counted)))
    lines = _columns(rows, width)
    if hidden > 0:
        lines.append(f"... and {count(hidden, 'more case')} with a passed share no lower; all are in summary.json")
    return lines


def _columns(rows: list[tuple[str, str, str, str]], width: int) -> list[str]:
    widths = [max(cells(row[column]) for row in rows) for column in range(3)]
    used = sum(widths) + 6
    lines = []
    for row in rows:
        line = "  ".join(
            (pad(row[0], widths[0]), pad(row[1], widths[1], right=True), pad(row[2], widths[2], right=True))
        )
        lines.append(f"{line}  {fit(row[3], max(20, width - used))}".rstrip())
    return lines


def _reasons_text(counted: Mapping) -> str:
    parts = []
    for reason, times in counted.get("reasons", {}).items():
        parts.append(escape(reason) + (f" x{times}" if times > 1 else ""))
    parts += [f"{counted[name]} {name}" for name in _COUNTS[3:] if counted.get(name)]
    return ", ".join(parts)


def _basis_lines(summary: Mapping) -> list[str]:
    parts = []
    for name, counted in summary.get("basis", {}).items():
        if isinstance(counted, Mapping):
            parts.append(f"{name} {counted.get('passed', 0)} passed, {counted.get('failed', 0)} failed")
    return [f"basis: {'; '.join(parts)}"] if parts else []


def _reliability_lines(summary: Mapping) -> list[str]:
    """Capability and reliability, always together and named; per case, as they are never pooled over cases."""
    lines = []
    for case_id, counted in list(summary["cases"].items())[:MAX_ROWS]:
        able, reliable = counted.get("pass_at_k") or {}, counted.get("pass_hat_k") or {}
        if set(able) | set(reliable) <= {"1"}:
            continue
        largest = max((int(k) for k in set(able) | set(reliable)), default=0)
        key = str(largest)
        lines.append(
            f"{escape(case_id)}: pass@{key} {proportion(able.get(key))}, pass^{key} {proportion(reliable.get(key))}"
            f" of {count(counted['passed'] + counted['failed'], 'judged trial')}"
        )
    return lines


def proportion(value: object) -> str:
    """A probability as text; ``undefined`` for ``None`` (fewer judged trials than k)."""
    return f"{value:.3f}" if isinstance(value, (int, float)) else "undefined"


def _footing(plan: Mapping, summary: Mapping) -> list[str]:
    reached = [f"{escape(name)} {number}" for name, number in (summary.get("limits_reached") or {}).items() if number]
    lines = [f"limits reached: {', '.join(reached) or 'none'}"]
    leaks = summary.get("leaks") or {}
    if leaks.get("trials"):
        lines.append(f"leaky: {count(leaks['trials'], 'trial')} left {count(leaks['processes'], 'process', 'processes')}")
    else:
        lines.append("leaks: none")
    subject = plan.get("subject") or {}
    if subject.get("subject_kind") == "scripted":
        lines.append("subject: scripted, so this run proves the plumbing and no ability of a model")
    not_scored = summary.get("not_scored") or []
    if not_scored:
        lines.append(f"not scored: {'; '.join(escape(item) for item in not_scored)}")
    return lines
