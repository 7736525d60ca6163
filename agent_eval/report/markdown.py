"""A summary in Markdown, fit for the page of a CI job.

Owns its layout and keeping evidence inert in it: text from evidence stands in code spans,
where GitHub and GitLab render neither links nor HTML. It is bounded, failures first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from agent_eval.report.parts_text import part_text, redraw_text
from agent_eval.report.records_view import RunRecords, largest_k, mapping, number, read_run, sequence
from agent_eval.report.tables import headline, proportion
from agent_eval.report.visible_text import escape, seconds

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader

MAX_CASES = 50
MAX_TRIALS = 50
_MAX_DETAIL = 200


def markdown_summary(reader: EvidenceReader, summary: Mapping | None = None) -> bytes:
    """The summary, UTF-8. ``summary`` stands in for that of an unsealed directory. Raises :class:`EvidenceFault`."""
    run = read_run(reader, summary)
    verdict = str(run.summary.get("verdict") or "")
    lines = [f"## {code(str(run.plan.get('consumer')))}: {code(verdict)}", "", f"**{headline(run.summary)}**", ""]
    part = part_text(run.plan)
    lines += [code(part), ""] if part else []
    redrawn = redraw_text(run.summary)
    lines += [f"{redrawn}.", ""] if redrawn else []
    lines += _cases(run)
    lines += _trials(run)
    not_scored = [str(item) for item in sequence(run.summary.get("not_scored"))]
    if not_scored:
        lines += [f"Not scored: {', '.join(code(item) for item in not_scored[:20])}", ""]
    limits = [f"{code(name)} {value}" for name, value in mapping(run.summary.get("limits_reached")).items() if number(value)]
    lines += [f"Limits reached: {', '.join(limits) or 'none'}. Leaky trials: {sum(line.leaked > 0 for line in run.lines)}.", ""]
    lines += [f"Evidence: {code(run.path)}  ", f"Seal: {code(run.seal or 'none: unsealed')}"]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _cases(run: RunRecords) -> list[str]:
    found = run.cases
    hidden = len(found) - MAX_CASES
    if hidden > 0:
        found.sort(key=lambda item: (number(item[1].get("passed")) or 0) / (number(item[1].get("planned")) or 1))
    rows = []
    for case_id, counted in found[:MAX_CASES]:
        able, reliable = mapping(counted.get("pass_at_k")), mapping(counted.get("pass_hat_k"))
        k = str(max(1, largest_k(able)))
        judged = int(number(counted.get("passed")) or 0) + int(number(counted.get("failed")) or 0)
        rest = [f"{counted[name]} {name}" for name in ("void", "interrupted", "unrun") if number(counted.get(name))]
        both = f"pass@{k} {proportion(able.get(k))}, pass^{k} {proportion(reliable.get(k))}"
        reasons = [f"{code(reason)} ×{times}" for reason, times in mapping(counted.get("reasons")).items()]
        passed = f"{counted.get('passed')}/{counted.get('planned')}, {counted.get('passed')}/{judged} judged"
        rows.append((code(case_id), passed, both, ", ".join(rest + reasons)))
    note = [f"{hidden} more cases passed no smaller share.", ""] if hidden > 0 else []
    return [*_table(("case", "passed", "of the judged", "void, unrun, reasons"), rows), *note]


def _trials(run: RunRecords) -> list[str]:
    failed = [line for line in run.lines if line.verdict in ("fail", "void", "interrupted")]
    failed.sort(key=lambda line: line.verdict != "fail")
    rows = []
    for line in failed[:MAX_TRIALS]:
        why = "; ".join(
            code(reason) + (f" {code(detail[:_MAX_DETAIL])}" if detail else "") for reason, detail in line.details[:4]
        )
        rows.append((code(line.name), line.verdict, seconds(line.wall_s), why))
    if not rows:
        return []
    hidden = len(failed) - len(rows)
    note = [f"{hidden} more trials that did not pass are in the evidence.", ""] if hidden > 0 else []
    return ["### Trials that did not pass", "", *_table(("trial", "verdict", "time", "why"), rows), *note]


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def code(text: str) -> str:
    """``text`` as a code span that stands in a table cell: its fence is longer than any run of backticks in it."""
    shown = escape(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or not shown.strip() else ""
    return f"{fence}{space}{shown}{space}{fence}"
