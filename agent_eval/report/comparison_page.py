"""The page of a comparison directory: which cases a candidate lost and won, and what that decides.

Owns laying out ``comparison.json``, regressions by case first and the aggregate last. Wording of
the verdict and of the aggregate is that of ``statistics_text``; no statistic is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_eval.records import strict_json
from agent_eval.records.problems import EvidenceFault
from agent_eval.report.charts import dot_interval
from agent_eval.report.markup import Markup, join, tag
from agent_eval.report.overview import bounds, section, table
from agent_eval.report.statistics_text import comparison_lines

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader

COMPARISON = "comparison.json"
MAX_ROWS = 2_000
_ORDER = ("regression", "win")
_SIDES = ("incumbent", "candidate")


def comparison_sections(reader: EvidenceReader) -> Markup | None:
    """The sections of a comparison; ``None`` where there is none. Raises :class:`EvidenceFault`."""
    data = reader.read(COMPARISON)
    if data is None:
        return None
    try:
        record = strict_json.parse_object(data)
        return join(_verdict(record), _cases(record), _details(record))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise EvidenceFault.one(COMPARISON, f"not a comparison of this format ({type(error).__name__}: {error})") from None


def _verdict(record: Mapping) -> Markup:
    rows = [
        (name, tag("code", str(record[name]["run_id"])), tag("code", str(record[name]["seal"] or "none: unsealed"))) for name in _SIDES
    ]
    return section("changes", "Before and after", tag("p", tag("b", str(record["verdict_line"]))), table(("side", "run", "seal"), rows))


def _cases(record: Mapping) -> Markup:
    cases = sorted(record["cases"], key=lambda case: _ORDER.index(case["change"]) if case["change"] in _ORDER else len(_ORDER))
    plots = tag("p", "Scale of the drawings: 0 to 100 % of the judged trials, exact 95 % interval; ○ of the planned.", class_="note")
    rows = [_row(case) for case in cases[:MAX_ROWS]]
    left = f"{len(cases) - MAX_ROWS} more are in {COMPARISON}." if len(cases) > MAX_ROWS else None
    return section("results", "Cases", plots, table(("case", "change", *_SIDES), rows, kind="compared"), left)


def _row(case: Mapping) -> tuple[object, ...]:
    styles = {"regression": "fail", "win": "pass"}
    change = tag("span", str(case["change"]).replace("-", " "), class_=f"badge {styles.get(case['change'], 'unrun')}")
    name = join(tag("b", case["id"]), tag("br"), "critical") if case["critical"] else tag("b", case["id"])
    return (name, change, *(_side(case, side) for side in _SIDES))


def _side(case: Mapping, side: str) -> object:
    counts, assumed = case[side], case[f"assumed_{side}"]
    verdict = "passes" if case[f"{side}_passed"] else "does not pass"
    if counts is None:
        return f"not in this run; the case counts as one that {verdict}"
    passed, judged, planned = counts["passed"], counts["judged"], counts["planned"]
    low, high = bounds(passed, judged)
    words = f"{passed}/{planned} planned, {passed}/{judged} judged"
    drawing = dot_interval(passed / judged if judged else None, low, high, passed / planned if planned else None, words)
    rest = [f"{counts[name]} {name}" for name in ("void", "interrupted", "unrun") if counts[name]]
    doubt = [f"{assumed} not judged, assumed"] if assumed else []
    return join(drawing, tag("span", "; ".join([words, *rest, *doubt, verdict]), class_="note"))


def _details(record: Mapping) -> Markup:
    lines = [line for line in comparison_lines(record) if line]
    return section("aggregate", "In words, the aggregate last", tag("pre", *(tag("span", line, class_="ctx") for line in lines)))
