"""The overview of the page: what was decided, on how many, within which limits, by whom.

Owns the sections that need no script: they are complete in the file, readable with
scripting off and on paper. Intervals come from ``measure``; nothing is averaged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from agent_eval.measure.intervals import clopper_pearson
from agent_eval.report.charts import dot_interval, gauge, interval_axis
from agent_eval.report.markup import Markup, join, tag, text
from agent_eval.report.records_view import RunRecords, TrialLine, largest_k, mapping, number, sequence
from agent_eval.report.tables import proportion, reliability_text
from agent_eval.report.visible_text import count, seconds, size

MAX_CASE_ROWS = 150
MAX_MATRIX_CELLS = 20_000
"""Each is an element of its own that a browser has to lay out."""
TALL_ROWS = 25
_MARKS = {"pass": "✓", "fail": "✗", "void": "○", "interrupted": "◌", "unrun": "·"}
_SLOWEST = 10
_MAX_FACTS = 200
_MAX_FACT = 2_000
PLOT = "pass@k and pass^k, 95 % interval"


def section(identifier: str, title: str, *content: object) -> Markup:
    """A titled section, or nothing when it would be empty."""
    body = join(*content)
    heading = tag("h2", title, id=f"h-{identifier}")
    return tag("section", heading, body, id=identifier, aria_labelledby=f"h-{identifier}") if body else Markup("")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, kind: str = "") -> Markup:
    """A table whose cells carry their heading, for narrow screens; nothing without rows.

    One of more than :data:`TALL_ROWS` rows scrolls in itself, except the list of trials, which ends the page.
    """
    written = [
        tag("tr", *(tag("td", cell, data_label=heading) for heading, cell in zip(headings, row, strict=True)))
        for row in rows
    ]
    if not written:
        return Markup("")
    tall = len(written) > TALL_ROWS and kind != "list"
    head = tag("thead", tag("tr", *(tag("th", _heading(heading), scope="col") for heading in headings)))
    return tag("div", tag("table", head, tag("tbody", *written), class_=kind or None), class_="scroll tall" if tall else "scroll")


def _heading(heading: str) -> object:
    if heading != PLOT:
        return heading
    return join(heading, tag("div", tag("span"), interval_axis(), tag("span"), class_="plot"))


def trial_link(line: TrialLine, label: object | None = None) -> Markup:
    """A link to the trial's details; plain text for a trial without a record."""
    shown = text(line.name if label is None else label)
    return tag("a", shown, href=f"#trial={quote(line.name, safe='/@')}") if line.recorded else shown


def verdict_badge(verdict: str) -> Markup:
    """The verdict as a word with its mark: colour alone never says it."""
    return tag("span", f"{_MARKS.get(verdict, '')} {verdict}".strip(), class_=f"badge {verdict}")


def cards(run: RunRecords) -> Markup:
    """The counts: passed of planned first, then passed of judged, then what planned is made of besides."""
    found = run.summary
    judged = found["passed"] + found["failed"]
    shown = [
        ("passed of planned", f"{found['passed']}/{found['planned']}", "pass", found["passed"] == found["planned"]),
        ("passed of judged", f"{found['passed']}/{judged}", "pass", 0 < found["passed"] == judged),
    ]
    for name, style in (("failed", "fail"), ("void", "void"), ("interrupted", "void"), ("unrun", "unrun")):
        shown.append((name, str(found[name]), style, found[name] > 0))
    items = [
        tag("li", tag("strong", value, class_=style if strong else "zero" if value == "0" else None), tag("span", label))
        for label, value, style, strong in shown
    ]
    return tag("ul", *items, class_="cards", aria_label="Counts of trials")


def basis_line(run: RunRecords) -> Markup:
    """How the judgments came about, counted apart."""
    parts = []
    for name, counted in mapping(run.summary.get("basis")).items():
        numbers = ", ".join(f"{value} {key}" for key, value in mapping(counted).items() if number(value))
        parts.append(f"{name}: {numbers or 'none'}")
    return tag("p", "Basis of the judgments: ", "; ".join(parts), class_="note") if parts else Markup("")


def reliability_line(run: RunRecords) -> Markup:
    """pass@k and pass^k over the cases, as the summary has them."""
    words = reliability_text(run.summary)
    return tag("p", words, class_="note") if words else Markup("")


def case_table(run: RunRecords) -> Markup:
    """A row per case: counts, and pass@k and pass^k with their intervals as numbers and as a drawing."""
    counted = run.cases
    hidden = len(counted) - MAX_CASE_ROWS
    if hidden > 0:
        counted.sort(key=lambda item: (number(item[1].get("passed")) or 0) / (number(item[1].get("planned")) or 1))
    rows = [_case_row(run, case_id, found) for case_id, found in counted[:MAX_CASE_ROWS]]
    place = "in the matrix" if len(run.lines) <= MAX_MATRIX_CELLS else "in summary.json"
    note = f"The {MAX_CASE_ROWS} cases with the smallest passed share; {hidden} more are {place}." if hidden > 0 else ""
    legend = tag(
        "p",
        "pass@k: at least one of k trials passes. pass^k: all k pass. ● of the judged trials, with the exact 95 % interval "
        "(Clopper-Pearson, carried over to k trials); ○ of the planned ones, where that differs. Cases are never pooled.",
        class_="note",
    )
    return join(tag("p", note, class_="note") if note else None, table(("case", "passed", PLOT, "reasons"), rows, kind="cases"), legend)


def _case_row(run: RunRecords, case_id: str, found: Mapping) -> tuple[object, ...]:
    passed, failed, planned = (int(number(found.get(name)) or 0) for name in ("passed", "failed", "planned"))
    rest = [f"{found[name]} {name}" for name in ("void", "interrupted", "unrun") if number(found.get(name))]
    shares = join(
        tag("b", f"{passed}/{planned}"), " planned", tag("br"), f"{passed}/{passed + failed} judged",
        *(join(tag("br"), part) for part in rest),
    )  # fmt: skip
    reasons = [f"{reason} ×{times}" for reason, times in mapping(found.get("reasons")).items()]
    scope = run.scope_of(case_id)
    name = join(tag("b", case_id), tag("br"), tag("span", scope, class_="note")) if scope else tag("b", case_id)
    return name, shares, _plot(case_id, found, passed, passed + failed, planned), ", ".join(reasons)


def _plot(case_id: str, found: Mapping, passed: int, judged: int, planned: int) -> object:
    """A line for one trial, and for the largest k that is defined one line for pass@k and one for pass^k."""
    able, reliable = mapping(found.get("pass_at_k")), mapping(found.get("pass_hat_k"))
    low, high = bounds(passed, judged)
    lines = [("pass@1 = pass^1", passed / judged if judged else None, low, high)]
    k = max(1, largest_k(able, reliable))
    if k > 1:
        lines.append((f"pass@{k}", number(able.get(str(k))), 1 - (1 - low) ** k, 1 - (1 - high) ** k))
        lines.append((f"pass^{k}", number(reliable.get(str(k))), low**k, high**k))
    drawn = []
    for label, share, lower, upper in lines:
        words = f"{proportion(share)} ({lower:.2f}–{upper:.2f})" if judged else "nothing judged"
        ring = passed / planned if planned and label == lines[0][0] else None
        drawing = dot_interval(share, lower, upper, ring, f"{case_id}, {label}: {words}")
        drawn.append(tag("div", tag("span", label, class_="num"), drawing, tag("span", words, class_="num"), class_="plot"))
    return join(*drawn)


def bounds(passed: int, judged: int) -> tuple[float, float]:
    """The exact 95 % interval of a proportion; all of 0..1 when nothing was judged."""
    return clopper_pearson(passed, judged) if judged else (0.0, 1.0)


def matrix(run: RunRecords, detailed: Container[str]) -> Markup:
    """Cases by trials; the cell of a trial whose name is in ``detailed`` links to its details.

    At most about :data:`MAX_MATRIX_CELLS` cells: then the cases with the smallest passed share, in the order of the plan.
    """
    by_case: dict[str, list[TrialLine]] = {}
    for line in run.lines:
        by_case.setdefault(line.case_id, []).append(line)
    shown = _matrix_cases(by_case)
    rows = [
        tag("tr", tag("th", case_id, scope="row"), *(tag("td", _cell(line, line.name in detailed)) for line in by_case[case_id]))
        for case_id in shown
    ]
    legend = ", ".join(f"{mark} {verdict}" for verdict, mark in _MARKS.items())
    hidden = len(by_case) - len(shown)
    more = f" {count(hidden, 'more case')} with a passed share no smaller; all are in summary.json." if hidden else None
    return join(
        tag("div", tag("table", tag("tbody", *rows), class_="matrix", id="grid"), class_="scroll tall"),
        tag("p", legend, ". Arrow keys move between cells.", more, class_="note"),
    )


def _matrix_cases(by_case: Mapping[str, list[TrialLine]]) -> list[str]:
    left = MAX_MATRIX_CELLS
    if sum(map(len, by_case.values())) <= left:
        return list(by_case)
    shares = {name: sum(line.verdict == "pass" for line in lines) / len(lines) for name, lines in by_case.items()}
    chosen = set()
    for name in sorted(by_case, key=shares.__getitem__):
        left -= len(by_case[name])
        if left < 0:
            break
        chosen.add(name)
    return [name for name in by_case if name in chosen]


def _cell(line: TrialLine, linked: bool) -> Markup:
    mark, label = _MARKS[line.verdict], f"{line.name}: {', '.join((line.verdict, *line.reasons))}"
    if not linked:
        return tag("span", mark, class_=line.verdict, title=label)
    return tag("a", mark, href=f"#trial={quote(line.name, safe='/@')}", class_=line.verdict, title=label, aria_label=label)


def limit_gauges(run: RunRecords) -> Markup:
    """How near the trials came to each limit, and how many reached it."""
    shown = []
    ran = [line for line in run.lines if line.wall_s is not None]
    timeout_s, cap = number(run.limits.get("timeout_s")), number(run.limits.get("max_output_bytes"))
    if ran and timeout_s:
        slowest = max(ran, key=lambda line: line.wall_s or 0)
        reached = sum(line.stop_reason == "timeout" for line in ran)
        words = f"longest {seconds(slowest.wall_s)} of {seconds(timeout_s)}"
        shown.append(("wall time", gauge((slowest.wall_s or 0) / timeout_s, words), words, trial_link(slowest), str(reached)))
    if ran and cap:
        largest = max(ran, key=lambda line: line.output_bytes or 0)
        reached = sum(line.stop_reason == "output-limit" for line in ran)
        words = f"largest {size(largest.output_bytes)} of {size(int(cap))}"
        shown.append(("output", gauge((largest.output_bytes or 0) / cap, words), words, trial_link(largest), str(reached)))
    others = mapping(run.summary.get("limits_reached"))
    extra = [f"{name}: {value}" for name, value in others.items() if name not in ("timeout", "output-limit") and number(value)]
    return join(
        table(("limit", "nearest", "measured", "trial", "trials that reached it"), shown),
        tag("p", "Also reached: ", ", ".join(extra), class_="note") if extra else None,
    )


def slowest(run: RunRecords) -> Markup:
    """The slowest trials with their time and peak memory."""
    ran = sorted((line for line in run.lines if line.wall_s is not None), key=lambda line: -(line.wall_s or 0))
    rows = [
        (trial_link(line), verdict_badge(line.verdict), seconds(line.wall_s), size(line.max_rss_bytes))
        for line in ran[:_SLOWEST]
    ]
    return table(("trial", "verdict", "wall time", "peak memory"), rows)


def leaks(run: RunRecords) -> Markup:
    """Trials that left processes behind."""
    leaky = [line for line in run.lines if line.leaked or line.unreaped]
    rows = [(trial_link(line), str(line.leaked), str(line.unreaped or "none")) for line in leaky[:100]]
    if not rows:
        return tag("p", "No trial left a process behind.")
    more = f"{len(leaky) - 100} more leaky trials are in the list." if len(leaky) > 100 else None
    return join(table(("trial", "processes left", "could not be ended"), rows), more)


def reasons(run: RunRecords, verdicts: tuple[str, ...]) -> Markup:
    """How often each reason holds among trials with one of ``verdicts``, with an example of each."""
    times: Counter[str] = Counter()
    example: dict[str, TrialLine] = {}
    for line in run.lines:
        if line.verdict in verdicts:
            for reason in line.reasons:
                times[reason] += 1
                example.setdefault(reason, line)
    rows = [(reason, count(number_, "trial"), trial_link(example[reason])) for reason, number_ in times.most_common(100)]
    return table(("reason", "trials", "first"), rows)


def not_scored(run: RunRecords) -> Markup:
    """What the owners say is not scored; silence is said too."""
    items = [str(item) for item in sequence(run.summary.get("not_scored"))]
    if not items:
        return tag("p", "The cases name nothing that is not scored.")
    return tag("ul", *(tag("li", item) for item in items[:200]))


def identities(run: RunRecords) -> Markup:
    """Who ran on what, and what judged: digests, so that another directory can be compared."""
    plan = run.plan
    rows: list[tuple[object, object]] = [
        ("evidence directory", tag("code", run.path)),
        ("seal", tag("code", run.seal or "none: unsealed")),
        ("run", tag("code", str(plan.get("run_id")))),
        ("made", str(plan.get("created_at"))),
        ("command", tag("code", " ".join(str(part) for part in sequence(plan.get("argv"))))),
        ("plan_sha256", tag("code", str(plan.get("plan_sha256")))),
        ("task seed", str(plan.get("task_seed"))),
    ]
    for name in ("subject", "evaluator", "source", "selection"):
        rows += [(path, tag("code", shown)) for path, shown in _flat(name, plan.get(name))][:_MAX_FACTS]
    changed = [line for line in run.lines if line.identity_changed]
    if changed:
        links = join(*(join(trial_link(line), " ") for line in changed[:50]))
        rows.insert(0, ("identity changed in", links))
    return table(("what", "value"), rows, kind="facts")


def _flat(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Every plain value below ``value`` with the way to it; a list of plain values is one."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{path}.{key}", item)
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, item in enumerate(value):
            yield from _flat(f"{path}.{index + 1}", item)
    elif isinstance(value, bool):
        yield path, str(value).lower()
    elif value not in (None, []):
        shown = ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
        yield path, shown if len(shown) <= _MAX_FACT else f"{shown[:_MAX_FACT]} [...]"
