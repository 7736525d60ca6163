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
        *(f"{name}: {escape(str(record[name]['part']))}" for name in ("incumbent", "candidate") if record[name].get("part")),
        *_model_lines(record),
        f"a case passes by {rule['collapse']}; alpha {rule['alpha']:g}{look}",
    ]
    cases = {case["id"]: case for case in record["cases"]}
    for title, key in (("regressions", "regressions"), ("wins", "wins")):
        listed = [cases[case_id] for case_id in record[key]]
        lines += ["", f"{title}: {len(listed)}", *_case_lines(listed, whole=key == "regressions")]
    return [*lines, "", *_apart_lines(record, cases), "", *_aggregate_lines(record)]


def _model_lines(record: Mapping) -> list[str]:
    """Which models stood behind the subjects; said also where a model did and no plan names it."""
    models = [record[name].get("model") for name in ("incumbent", "candidate")]
    if any(model is not None for model in models):
        shown = [escape(str(model)) if model is not None else "not recorded" for model in models]
        return [f"model: {shown[0]}" if shown[0] == shown[1] else f"models: incumbent {shown[0]}, candidate {shown[1]}"]
    subjects = [record[name].get("subject") or {} for name in ("incumbent", "candidate")]
    if any(subject.get("subject_kind") == "model" for subject in subjects):
        return ["model: recorded on neither side, so whether it is the same could not be checked"]
    return []


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


def rate_text(found: Mapping) -> str:
    """A rate record (`right`, `total`) with its interval."""
    return share(found["right"], found["total"], found["confidence"])


def judge_lines(record: Mapping) -> list[str]:
    """A judge validation: the two rates apart, the table, the disagreements, the corrected rate."""
    cells, unparsed = record["confusion"], record["unparsed"]
    scope = f" of split {record['split']}" if record["split"] else ""
    lines = [
        f"{count(record['items'], 'labelled item')}{scope}: {record['positives']} pass, {record['negatives']} fail",
        "",
        f"TPR (passes that the judge passes)  {rate_text(record['tpr'])}",
        f"TNR (fails that the judge fails)    {rate_text(record['tnr'])}",
        f"context only: agreement {rate_text(record['agreement'])}; kappa {_or_undefined(record['kappa'])}",
        "",
        "                 judge: pass   judge: fail   unparsed",
        f"  label: pass    {cells['tp']:>11}   {cells['fn']:>11}   {unparsed['positives']:>8}",
        f"  label: fail    {cells['fp']:>11}   {cells['tn']:>11}   {unparsed['negatives']:>8}",
    ]
    if record["failure_modes"]:
        caught = (f"{escape(mode)}  {rate_text(found)}" for mode, found in record["failure_modes"].items())
        lines += ["", *bullet_lines("failure modes, caught", caught)]
    listed = (f"{escape(one['id'])}  label {one['label']}, judge {one['verdict']}" for one in record["disagreements"])
    lines += ["", *bullet_lines("disagreements", listed), "", *_prevalence_lines(record["prevalence"])]
    if record["split"] == "test":
        lines.append("note: the test split was consulted; a judge that is changed after this needs fresh labels")
    if record["few_of_a_class"]:
        lines.append("note: fewer than 30 items of a class; the intervals say how little that supports")
    lines += _threshold_lines(record["thresholds"])
    return [*lines, "this holds for the judge, prompt, model and parser that gave these verdicts, and no other"]


def _or_undefined(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _prevalence_lines(found: Mapping | None) -> list[str]:
    if found is None:
        return []
    head = f"unlabelled items: the judge passes {found['passed']}/{found['total']}"
    if found["unparsed"]:
        head += f", {found['unparsed']} unparsed"
    if "undefined" in found:
        return [head, f"  true pass rate: undefined; {found['undefined']}"]
    low, high = found["value_range"]
    value = f"{_percent(low)} %" if found["value"] is not None else f"{_percent(low)} to {_percent(high)} %"
    clipped = " (clipped to 0-100 %)" if found["clipped"] else ""
    bounds = f"{found['confidence'] * 100:g} % CI {_percent(found['lower'])}-{_percent(found['upper'])}"
    return [head, f"  true pass rate, corrected for the judge: {value}{clipped}, {bounds} ({found['method']})"]


def _threshold_lines(held: Mapping | None) -> list[str]:
    if held is None:
        return []
    return [
        f"required: lower bound of {name.upper()} at least {one['required']:g}, is {one['lower']:.3f}: {'met' if one['met'] else 'not met'}"
        for name, one in held.items()
        if name != "met"
    ]


def audit_lines(record: Mapping) -> list[str]:
    """An audit in words, its queue last."""
    kind = record["format"].rpartition("audit-")[2].partition("/")[0]
    lines = {"contamination": _contamination_lines, "labels": _label_lines, "saturation": _saturation_lines}[kind](record)
    queue = [_queued(entry) for entry in record["queue"]]
    shown = [
        *queue[:_MAX_LISTED],
        *([f"and {len(queue) - _MAX_LISTED} more: --queue FILE writes them all"] if len(queue) > _MAX_LISTED else []),
    ]
    missing = record.get("not_exercised")
    return [
        *lines,
        *([f"not exercised: {'; '.join(missing)}"] if missing else []),
        "",
        f"for a person to look at: {len(queue)}",
        *(f"  {line}" for line in shown),
        "nothing was changed: this is a report and a queue",
    ]


def _queued(entry: Mapping) -> str:
    name = "the suite: " if entry["id"] is None else f"{escape(entry['id'])}: "
    if "level" in entry:
        why = (f"{r['kind']}{' in ' + escape(r['source']) if r['source'] else ''} ({escape(r['detail'])})" for r in entry["reasons"])
        return f"{name}{entry['level']}; {'; '.join(why)}"
    if "signals" in entry:
        why = (f"{s['kind']} ({escape(s['detail'])})" for s in entry["signals"])
        return f"{name}label {entry['label']}; {'; '.join(why)}"
    return f"{name}{entry['kind']}; {escape(entry['detail'])}"


def _contamination_lines(record: Mapping) -> list[str]:
    levels = record["levels"]
    lines = [
        f"{count(record['items'], 'item')} against {count(record['sources'], 'source')}, n-grams of {record['ngram_words']} words",
        f"confirmed {levels['confirmed']}, possible {levels['possible']}, none {levels['none']}",
    ]
    seen = [
        f"{sighting['guid']} in {escape(sighting['source'])}{' (this suite)' if sighting['own'] else ''}" for sighting in record["canaries"]
    ]
    lines += bullet_lines("canaries", seen)
    if record["only_boilerplate"]:
        lines.append(f"share only boilerplate (in more than 10 sources): {_names(record['only_boilerplate'])}")
    scores = record["scores"]
    if scores is not None:
        lines += [
            f"score, {name.replace('_', ' ')}: {share(scores[name]['passed'], scores[name]['total'])}"
            for name in ("all", "without_confirmed", "clean", "dirty")
        ]
        gap = scores["clean_minus_dirty"]
        if gap is not None:
            lines.append(
                f"clean minus dirty {100 * gap['value']:+.1f} points, {100 * gap['confidence']:g} % CI {100 * gap['lower']:+.1f} to {100 * gap['upper']:+.1f} ({gap['method']})"
            )
    return lines


def _label_lines(record: Mapping) -> list[str]:
    lines = [
        f"{count(record['items'], 'label')} against {count(len(record['graders']), 'grader')} and {count(len(record['systems']), 'system')}"
    ]
    lines += [f"{kind}: {number}" for kind, number in record["signals"].items()]
    noise = record["noise"]
    if noise is not None:
        lines.append(f"wrong labels in the reviewed sample: {share(noise['wrong'], noise['reviewed'])}")
    words = {True: "cannot be told from a perfect score", False: "below what the labels allow", None: "label noise unknown"}
    lines += [
        f"score of {escape(name)}: {share(one['passed'], one['total'])}; {words[one['indistinguishable_from_ceiling']]}"
        for name, one in record["scores"].items()
    ]
    return lines


def _saturation_lines(record: Mapping) -> list[str]:
    room = record["headroom"]
    lines = [f"{escape(one['name'])}: {share(one['passed'], one['total'])}" for one in record["candidates"]]
    lines += [
        f"state: {record['state']} (best {escape(record['best'])}, one-sided 95 % lower bound {_percent(record['best_lower_one_sided'])} %, cap {100 * record['cap']:g} %)",
        f"headroom: {count(room['cases'], 'case')} that the best fails; a gate needs {count(room['wins_needed'], 'clean win')} at alpha {room['alpha_spent']:.3g}: "
        + ("cannot promote" if room["cannot_promote"] else "can promote"),
    ]
    dead, top = record["dead"], record["top_two"]
    if dead is not None:
        lines.append(f"dead cases: {len(dead['all_pass'])} that all pass, {len(dead['all_fail'])} that all fail")
    if top is not None:
        told = "told apart" if top["separated"] else "not told apart"
        lines.append(
            f"top two: {escape(top['first'])} wins {top['only_first']}, {escape(top['second'])} wins {top['only_second']}, exact two-sided p {p_text(top['p_two_sided'])}: {told}"
        )
    if record["not_in_every_candidate"]:
        lines.append(f"not in every candidate, left out: {_names(record['not_in_every_candidate'])}")
    return lines
