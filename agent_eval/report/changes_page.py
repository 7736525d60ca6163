"""Before and after: what a second judging (regrade, recheck) found different, and why.

Owns showing ``changes.json``: the counts, a table of what moved from which verdict to which, and each
changed trial with both sides' reasons. It judges nothing and links to the trial's details.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.records.problems import EvidenceFault
from agent_eval.report.markup import Markup, join, tag
from agent_eval.report.overview import section, table, verdict_badge
from agent_eval.report.records_view import RunRecords, mapping, sequence

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader

MAX_ROWS = 1_000
_MAX_DETAIL = 300
_COUNTS = ("changed", "not_assessable", "same")


def changes_section(reader: EvidenceReader, run: RunRecords) -> Markup:
    """The before and after of a directory that has one; nothing otherwise. Raises :class:`EvidenceFault`."""
    data = reader.read(layout.CHANGES)
    if data is None:
        return Markup("")
    try:
        changes = strict_json.parse_object(data)
    except strict_json.JsonError as error:
        raise EvidenceFault.one(layout.CHANGES, str(error)) from None
    source = mapping(reader.plan.get("source"))
    moved = [mapping(entry) for entry in sequence(changes.get("trials")) if mapping(entry).get("change") != "same"]
    details = {line.name: dict(line.details) for line in run.lines}
    rows = [_row(entry, details.get(str(entry.get("trial")), {})) for entry in moved[:MAX_ROWS]]
    counts = ", ".join(f"{changes.get(name)} {name.replace('_', ' ')}" for name in _COUNTS)
    hidden = len(moved) - len(rows)
    return section(
        "changes",
        "Before and after",
        tag("p", tag("b", counts)),
        tag("p", "Source: run ", tag("code", str(source.get("run_id"))), ", seal ", tag("code", str(source.get("seal") or "none: unsealed"))),
        tag("p", "Criteria: ", str(reader.plan["criteria"])) if reader.plan.get("criteria") else None,
        _moves(moved),
        table(("trial", "before", "after", "what changed and why"), rows, kind="changes"),
        tag("p", f"{hidden} more are in {layout.CHANGES}.", class_="note") if hidden > 0 else None,
    )


def _moves(moved: list[Mapping]) -> Markup:
    """How many trials went from which verdict to which."""
    counted: dict[tuple[str, str], int] = {}
    for entry in moved:
        key = _verdict(entry.get("before")), _verdict(entry.get("after"))
        counted[key] = counted.get(key, 0) + 1
    rows = [(verdict_badge(before), verdict_badge(after), str(times)) for (before, after), times in counted.items()]
    return table(("before", "after", "trials"), rows)


def _row(entry: Mapping, details: Mapping[str, str]) -> tuple[object, ...]:
    name = str(entry.get("trial"))
    before, after = mapping(entry.get("before")), mapping(entry.get("after"))
    gone = [reason for reason in _reasons(before) if reason not in _reasons(after)]
    new = [reason for reason in _reasons(after) if reason not in _reasons(before)]
    now = [f"{reason}: {details[reason][:_MAX_DETAIL]}" if details.get(reason) else reason for reason in new]
    why = [f"no longer {reason}" for reason in gone] + [f"now {reason}" for reason in now]
    return (
        tag("a", name, href=f"#trial={quote(name, safe='/@')}"),
        join(verdict_badge(_verdict(before)), " ", ", ".join(_reasons(before))),
        join(verdict_badge(_verdict(after)), " ", ", ".join(_reasons(after))),
        "; ".join(why) or "the same reasons",
    )


def _verdict(judgment: object) -> str:
    return str(mapping(judgment).get("verdict") or "none")


def _reasons(judgment: Mapping) -> list[str]:
    cause = [str(judgment["cause"])] if judgment.get("cause") else []
    return list(dict.fromkeys(cause + [str(reason) for reason in sequence(judgment.get("reasons"))]))
