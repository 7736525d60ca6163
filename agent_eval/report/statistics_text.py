"""Comparisons, judge validations and audits in words for a terminal.

Owns: the wording and number of digits of statistical results; counts always come first.
Does not own: any arithmetic beyond percentages, and the records it words (`agent_eval.measure`). The HTML page of a
comparison is `changes_page`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_eval.measure.intervals import clopper_pearson
from agent_eval.report.visible_text import count, escape

_MAX_LISTED = 40
_SETTLED = {0: "the candidate improved", 1: "the candidate regressed", 4: "the evidence decides neither way"}
_COLUMNS = ("failed", "void", "interrupted", "unrun")


def share(passed: int, total: int, conf: float = 0.95) -> str:
    """`18/20, 90.0 %, 95 % CI 68.3-98.8` (Clopper-Pearson); `0/0` alone where there is nothing to divide."""
    if total == 0:
        return "0/0"
    lower, upper = clopper_pearson(passed, total, conf)
    return f"{passed}/{total}, {_percent(passed / total)} %, {conf * 100:g} % CI {_percent(lower)}-{_percent(upper)}"


def _percent(value: float) -> str:
    """One decimal, and never 0.0 or 100.0 for what is neither 0 nor 1."""
    shown = f"{100.0 * value:.1f}"
    if shown == "0.0" and value > 0.0:
        return "<0.1"
    return ">99.9" if shown == "100.0" and value < 1.0 else shown


def p_text(p: float) -> str:
    """A p-value in three digits."""
    return f"{p:.3g}"


def verdict_line(record: Mapping) -> str:
    """A comparison's verdict in one line, with its test, every regression by name and every waived difference."""
    table, rule = record["table"], record["rule"]
    worse = record["verdict"] == "regressed"
    p = record["p_regressed" if worse else "p_improved"]
    relation = "<=" if p <= rule["alpha_spent"] else ">"
    parts = [
        f"{record['verdict']}: {count(table['wins'], 'win')}, {count(table['regressions'], 'regression')}"
        f" of {count(record['pairs']['cases'], 'case')}, exact one-sided p {p_text(p)} {relation} {p_text(rule['alpha_spent'])}"
    ]
    if record["regressions"]:
        critical = set(record["critical_regressions"])
        parts.append("regressed on " + ", ".join(escape(c) + (" (critical)" if c in critical else "") for c in record["regressions"]))
    if record["verdict"] == "inconclusive":
        parts.append(_decisive(record["decisive"]))
    if record["different"]:
        parts.append("not alike: " + ", ".join(f"{d['term']} ({escape(d['detail'])})" for d in record["different"]))
    return "; ".join(parts)


def _decisive(decisive: Mapping) -> str:
    if decisive["blocked_by_critical"]:
        return "a regression on a critical case forbids improved, however many wins there are"
    need = f"{count(decisive['more_wins'], 'more clean win')} would decide"
    room = f"{count(decisive['headroom'], 'case')} that both fail"
    if decisive["attainable"]:
        return f"{need}, and this suite has {room}"
    return f"{need}, and this suite cannot give them: it has {room}"


def comparison_lines(record: Mapping) -> list[str]:
    """A comparison: regressions by case first, then wins, then what was kept apart, the aggregate last."""
    rule = record["rule"]
    look = "" if rule["look"] is None else f" at look {rule['look']}: {p_text(rule['alpha_spent'])} to spend"
    lines = [
        f"incumbent {escape(str(record['incumbent']['run_id']))}, candidate {escape(str(record['candidate']['run_id']))}",
        f"a case passes by {rule['collapse']}; alpha {rule['alpha']:g}{look}",
    ]
    cases = {case["id"]: case for case in record["cases"]}
    for title, key in (("regressions", "regressions"), ("wins", "wins")):
        listed = [cases[case_id] for case_id in record[key]]
        lines += ["", f"{title}: {len(listed)}", *_case_lines(listed, whole=key == "regressions")]
    return [*lines, "", *_apart_lines(record, cases), "", *_aggregate_lines(record)]


def _case_lines(listed: list[Mapping], *, whole: bool) -> list[str]:
    shown = listed if whole else listed[:_MAX_LISTED]
    lines = []
    for case in shown:
        mark = "  critical" if case["critical"] else ""
        before = _trials(case["incumbent"], case["assumed_incumbent"], "counted as passed")
        after = _trials(case["candidate"], case["assumed_candidate"], "counted as not passed")
        lines.append(f"  {escape(case['id'])}{mark}  incumbent {before}; candidate {after}")
    if len(shown) < len(listed):
        lines.append(f"  and {len(listed) - len(shown)} more in comparison.json")
    return lines


def _trials(counts: Mapping | None, assumed: int, how: str) -> str:
    if counts is None:
        return f"does not have it ({how})"
    rest = [f"{counts[name]} {name}" for name in _COLUMNS if counts[name]]
    absent = assumed - (counts["planned"] - counts["judged"])
    if absent > 0:
        rest.append(f"{absent} fewer planned")
    doubt = f", {how}" if assumed else ""
    detail = f" ({', '.join(rest)}{doubt})" if rest else ""
    return f"{counts['passed']}/{counts['planned']} passed{detail}"


def _apart_lines(record: Mapping, cases: Mapping[str, Mapping]) -> list[str]:
    pairs = record["pairs"]
    lines = [f"cases: {pairs['matched']} in both"]
    for key, side, how in (
        ("only_in_incumbent", "incumbent", "the candidate counts as not passed"),
        ("only_in_candidate", "candidate", "the incumbent counts as passed"),
    ):
        lines.append(f"  only in the {side}: {_names(pairs[key])}" + (f" ({how})" if pairs[key] else ""))
    doubtful = [case_id for case_id in pairs["not_wholly_judged"] if cases[case_id]["incumbent"] and cases[case_id]["candidate"]]
    lines.append(f"  with a void or missing trial: {_names(doubtful)}" + (" (against the candidate)" if doubtful else ""))
    return lines


def _names(names: list[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"{len(names)}: {', '.join(escape(name) for name in names[:_MAX_LISTED])}{more}"


def _aggregate_lines(record: Mapping) -> list[str]:
    found, total = record["difference"], record["pairs"]["cases"]
    lines = ["aggregate (never decides, and never rescues a regression)"]
    for name in ("incumbent", "candidate"):
        one, trials = record[name], record[name]["trials"]
        lines.append(f"  {name}: cases {share(one['cases_passed'], total)}")
        rest = ", ".join(f"{trials[key]} {key}" for key in _COLUMNS)
        lines.append(f"    trials {trials['passed']}/{trials['planned']} planned, {trials['passed']}/{trials['judged']} judged; {rest}")
        lines.append(f"    {reliability_text(one['reliability'])}")
    bound = _percent(record["regression_rate_upper"])
    lines += [
        f"  difference {100 * found['value']:+.1f} points, {100 * found['confidence']:g} % CI {100 * found['lower']:+.1f} to {100 * found['upper']:+.1f} ({found['method']})",
        f"  regressions {record['table']['regressions']}/{total}, at most {bound} % of such cases at {100 * record['rule']['confidence']:g} %",
    ]
    return lines


def reliability_text(found: Mapping | None) -> str:
    """pass@k and pass^k, always both and named; said to be undefined where no k is."""
    if found is None:
        return "pass@k and pass^k: undefined (a case has no judged trial)"
    k = found["k"]
    return f"pass@{k} {found['pass_at_k']:.3f}, pass^{k} {found['pass_hat_k']:.3f} (unweighted means over cases)"


def comparison_closing(record: Mapping, path: str, seal: str) -> list[str]:
    """The last lines: verdict, evidence directory, seal, exit code."""
    code = record["exit_code"]
    return [
        f"verdict:  {record['verdict_line']}",
        f"evidence: {escape(path)}",
        f"seal:     {seal}",
        f"exit:     {code} ({_SETTLED[code]})",
    ]


def bullet_lines(title: str, items: Iterable[str]) -> list[str]:
    """A titled list, `none` where it is empty."""
    listed = [f"  {item}" for item in items]
    return [f"{title}: {len(listed)}", *listed] if listed else [f"{title}: none"]
