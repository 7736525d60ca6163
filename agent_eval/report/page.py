"""One self-contained HTML file from an evidence directory.

Owns: the frame of the page, its content security policy, and how much of the captured output
fits into it. The overview is static markup (``overview``); details of a trial are data
(``trial_page``) that the page's one script shows on demand, so that two thousand trials
open at once. Nothing is loaded from elsewhere and nothing from evidence becomes markup.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from agent_eval.records import strict_json
from agent_eval.report import overview
from agent_eval.report.changes_page import changes_section
from agent_eval.report.comparison_page import comparison_sections
from agent_eval.report.markup import Markup, join, tag
from agent_eval.report.overview import section, table, trial_link, verdict_badge
from agent_eval.report.parts_text import part_text, redraw_text
from agent_eval.report.records_view import RunRecords, TrialLine, read_run, retained
from agent_eval.report.trial_page import MIN_TRIAL_BYTES, trial_json
from agent_eval.report.visible_text import seconds
from agent_eval.report.workspace_changes import Contents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_eval.evidence.reader import EvidenceReader

DATA_BUDGET_BYTES = 6_000_000
"""What details of trials take in a page, at most about twice this."""
MAX_TRIAL_BYTES = 120_000
MAX_LISTED_TRIALS = 5_000
_FAIL_WEIGHT = 3
_COMPARE = "compare"
_SECTIONS = (
    ("changes", "Before and after"),
    ("results", "Cases"),
    ("matrix", "Matrix"),
    ("limits", "Limits"),
    ("trials", "Trials"),
    ("identities", "Identities"),
)
_FOLDER = Path(__file__).with_name("page_files")


def report_page(reader: EvidenceReader, summary: Mapping | None = None) -> bytes:
    """The page of a directory, UTF-8. ``summary`` stands in for that of an unsealed one.

    Raises :class:`EvidenceFault` for a record or file that is not what the directory says.
    """
    run = read_run(reader, summary)
    listed = _listed(run)
    style, script = _source("page.css"), _source("page.js")
    title = f"{_headline(run)} · {run.plan.get('consumer')} · {run.plan.get('run_id')}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", style),
    )
    main = _main(reader, run, listed)
    # Encoded piece by piece: as one text the page of a large run takes several times its size.
    pieces = ['<!DOCTYPE html>\n<html lang="en">', head, "<body>", _top(run, main), main]
    written = [piece.encode() for piece in pieces]
    written += [piece.encode() for piece in _details(reader, run, listed)]
    written += [tag("script", script).encode(), b"</body></html>\n"]
    return b"".join(written)


def _source(name: str) -> Markup:
    return Markup((_FOLDER / name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _listed(run: RunRecords) -> list[TrialLine]:
    """The trials with details of their own, in plan order: all, or those that did not pass first."""
    ran = [line for line in run.lines if line.recorded]
    if len(ran) <= MAX_LISTED_TRIALS:
        return ran
    chosen = sorted(ran, key=lambda line: line.verdict == "pass")[:MAX_LISTED_TRIALS]
    names = {line.name for line in chosen}
    return [line for line in ran if line.name in names]


def _top(run: RunRecords, main: Markup) -> Markup:
    """What stands above everything; it links to those sections that ``main`` has."""
    verdict = str(run.summary.get("verdict") or "")
    links = [(name, label) for name, label in _SECTIONS if f'<section id="{name}"' in main]
    return tag(
        "header",
        tag("a", "Skip to the trials", href="#trials", class_="skip") if run.lines else None,
        tag("p", str(run.plan.get("consumer")), " · ", run.kind, " · ", str(run.plan.get("created_at")), class_="note"),
        tag("h1", _headline(run)),
        tag("p", part, class_="note") if (part := part_text(run.plan)) else None,
        tag("p", tag("b", redrawn), class_="note") if (redrawn := redraw_text(run.summary)) else None,
        tag("p", "Verdict: ", tag("b", verdict, class_=_verdict_style(run)), _sealed(run), class_="verdict"),
        tag("nav", *(tag("a", label, href=f"#{target}") for target, label in links), aria_label="Sections"),
    )


def _headline(run: RunRecords) -> str:
    if run.kind == _COMPARE:
        return f"{run.kind}: {run.summary.get('verdict')}"
    return f"{run.summary['passed']} of {run.summary['planned']} planned trials passed"


def _verdict_style(run: RunRecords) -> str:
    """By the exit code, which a comparison has too: 0 is good, 1 is bad, the rest is open."""
    code = run.summary.get("exit_code")
    return "pass" if code == 0 else "fail" if code == 1 else "void"


def _sealed(run: RunRecords) -> Markup:
    if run.seal is None:
        return join(" · ", tag("b", "unsealed", class_="fail"), ": only its finished trials are shown, nothing vouches for the rest")
    return join(" · files match the manifest · seal ", tag("code", run.seal))


def _main(reader: EvidenceReader, run: RunRecords, listed: list[TrialLine]) -> Markup:
    if run.kind == _COMPARE:
        scope = section("not-scored", "Not scored", overview.not_scored(run))
        return tag("main", comparison_sections(reader), scope, section("identities", "Identities", overview.identities(run)))
    whole = tag(
        "div",
        overview.cards(run),
        overview.basis_line(run),
        overview.reliability_line(run),
        changes_section(reader, run),
        section("results", "Cases", overview.case_table(run)),
        section("matrix", "Case by trial", overview.matrix(run, {line.name for line in listed})),
        section("reasons", "Reasons of failed trials", overview.reasons(run, ("fail",))),
        section("voids", "Reasons of void and interrupted trials", overview.reasons(run, ("void", "interrupted"))),
        section("limits", "Limits", overview.limit_gauges(run)),
        section("slowest", "Slowest trials", overview.slowest(run)),
        section("leaks", "Leaks", overview.leaks(run)),
        section("not-scored", "Not scored", overview.not_scored(run)),
        section("identities", "Identities", overview.identities(run)),
        section("trials", "Trials", _filters(run, listed), _trial_list(run, listed)),
        id="overview",
    )
    note = tag("noscript", tag("p", "With scripting off this page shows everything but the details of single trials.", class_="note"))
    return tag("main", note, whole, tag("article", id="trial", hidden=True))


def _filters(run: RunRecords, listed: list[TrialLine]) -> Markup:
    cases = list(dict.fromkeys(line.case_id for line in listed))
    verdicts = list(dict.fromkeys(line.verdict for line in listed))
    found_reasons = sorted({reason for line in listed for reason in line.reasons})
    return tag(
        "div",
        tag("label", "Search", tag("input", type="search", id="f-text", placeholder="reasons, output, paths", autocomplete="off")),
        _select("f-case", "Case", cases),
        _select("f-verdict", "Verdict", verdicts),
        _select("f-reason", "Reason", found_reasons[:500]),
        tag("button", "Clear", type="button", id="f-clear"),
        tag("p", f"{len(listed)} trials", id="f-count", role="status"),
        class_="filters",
        hidden=True,
        id="filters",
    )


def _select(identifier: str, label: str, values: list[str]) -> Markup:
    options = [tag("option", "all", value=""), *(tag("option", value, value=value) for value in values)]
    return tag("label", label, tag("select", *options, id=identifier))


def _trial_list(run: RunRecords, listed: list[TrialLine]) -> Markup:
    left = sum(line.recorded for line in run.lines) - len(listed)
    rows = []
    for line in listed:
        why = "; ".join(f"{reason}: {detail[:160]}" if detail else reason for reason, detail in line.details[:6])
        rows.append((trial_link(line), verdict_badge(line.verdict), seconds(line.wall_s), why))
    note = f"{left} passed trials have no details here; they are in the evidence directory." if left else None
    return join(tag("p", note, class_="note") if note else None, table(("trial", "verdict", "wall time", "why"), rows, kind="list"))


def _details(reader: EvidenceReader, run: RunRecords, listed: list[TrialLine]) -> Iterator[Markup]:
    """A data block per listed trial, in the order of the list: the script finds them by position."""
    weights = {line.name: 1 if line.verdict == "pass" else _FAIL_WEIGHT for line in listed}
    share = DATA_BUDGET_BYTES / max(1, sum(weights.values()))
    contents: dict[str, Contents] = {}
    for line in listed:
        if line.case_id not in contents:
            contents = {line.case_id: Contents(_case(reader, line.case_id))}
        budget = int(min(MAX_TRIAL_BYTES, max(MIN_TRIAL_BYTES, share * weights[line.name])))
        yield tag("script", trial_json(retained(reader, line), run.limits, contents[line.case_id], budget), type="application/json", class_="t")


def _case(reader: EvidenceReader, case_id: str) -> object:
    try:
        return strict_json.parse(reader.case_bytes(case_id))
    except strict_json.JsonError:
        return None
