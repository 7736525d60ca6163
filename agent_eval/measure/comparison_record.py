"""`comparison.json`: a comparison as plain JSON, from which a report is made and a reader can compute it again.

Owns: the format `agent-eval/comparison/1`. It holds neither times nor paths, so that comparing the same two
directories twice gives the same bytes.
Does not own: the arithmetic (`comparison`), nor the wording (`agent_eval.report.statistics_text`).

Keys: `verdict` (improved, regressed, inconclusive), `exit_code`, `rule` {collapse, alpha, look, alpha_spent,
confidence}, `incumbent` and `candidate` {run_id, plan_sha256, seal (null when unsealed), subject, model (null where
the plan says nothing), part (in words, of which part of its plan; null for a whole one), trials (counts), cases_passed, reliability {k, pass_at_k, pass_hat_k} or null}, `different`
[{term, detail}] that was allowed, `pairs` {cases, matched, only_in_incumbent, only_in_candidate, not_wholly_judged},
`table` {wins, regressions, both_pass, both_fail}, `verdict_line` (the verdict in words), `p_improved`, `p_regressed`
(one-sided, exact), `difference` {value, lower, upper, method, confidence} in rates of passed cases,
`regression_rate_upper` (one-sided, Clopper-Pearson), `decisive` {more_wins, headroom, attainable,
blocked_by_critical}, `regressions`, `critical_regressions` and `wins` (case ids), `cases` [{id, critical, change,
incumbent, candidate (counts or null), incumbent_passed, candidate_passed, assumed_incumbent (trials that count as
passed without a verdict), assumed_candidate (as not passed)}].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_eval.measure.comparison import CONFIDENCE, CaseCounts, Change, Comparison, ComparisonVerdict, PairedCase
from agent_eval.measure.comparison_terms import Difference, model_of
from agent_eval.measure.reliability import mean_over_cases, pass_at_k, pass_hat_k
from agent_eval.records.exit_codes import ExitCode

FORMAT = "agent-eval/comparison/1"
_EXIT = {
    ComparisonVerdict.IMPROVED: ExitCode.PASSED,
    ComparisonVerdict.REGRESSED: ExitCode.FAILED,
    ComparisonVerdict.INCONCLUSIVE: ExitCode.NOT_JUDGED,
}


def comparison_record(
    found: Comparison,
    incumbent: Mapping[str, object],
    candidate: Mapping[str, object],
    different: Iterable[Difference],
) -> dict:
    """The content of `comparison.json`; `incumbent` and `candidate` say which run each side was (see `side`)."""
    lower, upper = found.interval
    decisive = found.decisive
    before = [case.incumbent for case in found.cases if case.incumbent is not None]
    after = [case.candidate for case in found.cases if case.candidate is not None]
    k = min((counts.judged for counts in (*before, *after)), default=0)
    return {
        "format": FORMAT,
        "verdict": found.verdict.value,
        "exit_code": int(_EXIT[found.verdict]),
        "rule": {
            "collapse": found.collapse.value,
            "alpha": found.alpha,
            "look": found.look,
            "alpha_spent": found.alpha_spent,
            "confidence": CONFIDENCE,
        },
        "incumbent": {**incumbent, **_totals(before, k), "cases_passed": found.both_pass + found.regressions},
        "candidate": {**candidate, **_totals(after, k), "cases_passed": found.both_pass + found.wins},
        "different": [{"term": item.term.value, "detail": item.detail} for item in different],
        "pairs": _pairs(found.cases),
        "table": {
            "wins": found.wins,
            "regressions": found.regressions,
            "both_pass": found.both_pass,
            "both_fail": found.both_fail,
        },
        "p_improved": found.p_improved,
        "p_regressed": found.p_regressed,
        "difference": {
            "value": found.difference,
            "lower": lower,
            "upper": upper,
            "method": found.interval_method,
            "confidence": CONFIDENCE,
        },
        "regression_rate_upper": found.regression_rate_upper,
        "decisive": {
            "more_wins": decisive.more_wins,
            "headroom": decisive.headroom,
            "attainable": decisive.attainable,
            "blocked_by_critical": decisive.blocked_by_critical,
        },
        "regressions": [case.id for case in found.having(Change.REGRESSION)],
        "critical_regressions": [case.id for case in found.critical_regressions],
        "wins": [case.id for case in found.having(Change.WIN)],
        "cases": [_case(case) for case in found.cases],
    }


def side(plan: Mapping[str, object], seal: str | None) -> dict[str, object]:
    """Which run a side of the comparison was: `run_id`, `plan_sha256`, `subject`, what it says of its model, its seal."""
    facts = {key: plan.get(key) for key in ("run_id", "plan_sha256", "subject")}
    return {**facts, "model": model_of(plan), "seal": seal}


def _totals(counted: list[CaseCounts], k: int) -> dict[str, object]:
    reliability = None
    if k > 0:
        judged = [(one.judged, one.passed) for one in counted]
        # Ten thousand cases have few distinct counts.
        able = {(n, c): pass_at_k(n, c, k) for n, c in set(judged)}
        reliable = {(n, c): pass_hat_k(n, c, k) for n, c in set(judged)}
        reliability = {
            "k": k,
            "pass_at_k": mean_over_cases(able[one] for one in judged),
            "pass_hat_k": mean_over_cases(reliable[one] for one in judged),
        }
    return {"trials": _counts(CaseCounts.total(counted)), "reliability": reliability}


def _counts(counts: CaseCounts) -> dict[str, int]:
    found = {name: getattr(counts, name) for name in CaseCounts.__slots__}
    return {"planned": counts.planned, "judged": counts.judged, **found}


def _pairs(cases: tuple[PairedCase, ...]) -> dict[str, object]:
    return {
        "cases": len(cases),
        "matched": sum(case.incumbent is not None and case.candidate is not None for case in cases),
        "only_in_incumbent": [case.id for case in cases if case.candidate is None],
        "only_in_candidate": [case.id for case in cases if case.incumbent is None],
        "not_wholly_judged": [case.id for case in cases if not case.observed],
    }


def _case(case: PairedCase) -> dict[str, object]:
    return {
        "id": case.id,
        "critical": case.critical,
        "change": case.change.value,
        "incumbent": None if case.incumbent is None else _counts(case.incumbent),
        "candidate": None if case.candidate is None else _counts(case.candidate),
        "incumbent_passed": case.incumbent_passed,
        "candidate_passed": case.candidate_passed,
        "assumed_incumbent": case.assumed_incumbent,
        "assumed_candidate": case.assumed_candidate,
    }
