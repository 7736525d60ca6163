"""The compare verdict: its rules, its error rates, and that nothing which gets worse ever helps."""

from __future__ import annotations

import random
import time

import pytest

from agent_eval.measure.comparison import (
    CaseCounts,
    Change,
    Collapse,
    Comparison,
    ComparisonVerdict,
    collapsed,
    compare,
)
from agent_eval.measure.comparison_record import comparison_record
from agent_eval.measure.domain import OutOfDomain
from agent_eval.measure.exact import wins_needed

IMPROVED, REGRESSED, INCONCLUSIVE = ComparisonVerdict
ORDER = {REGRESSED: 0, INCONCLUSIVE: 1, IMPROVED: 2}
PASS, FAIL = CaseCounts(passed=1), CaseCounts(failed=1)


def tables(wins: int, losses: int, both: int = 0, neither: int = 0) -> tuple[dict, dict]:
    """Incumbent and candidate with so many cases of each kind, one trial each."""
    pairs = [(FAIL, PASS)] * wins + [(PASS, FAIL)] * losses + [(PASS, PASS)] * both + [(FAIL, FAIL)] * neither
    return {f"c{i}": a for i, (a, _) in enumerate(pairs)}, {f"c{i}": b for i, (_, b) in enumerate(pairs)}


def verdict(wins: int, losses: int, **options: object) -> ComparisonVerdict:
    return compare(*tables(wins, losses, 3, 3), **options).verdict


def test_the_verdict_turns_exactly_where_the_exact_test_does() -> None:
    assert verdict(5, 0) is IMPROVED
    assert verdict(4, 0) is INCONCLUSIVE
    assert verdict(7, 1) is IMPROVED
    assert verdict(6, 1) is INCONCLUSIVE
    assert verdict(0, 5) is REGRESSED
    assert verdict(0, 4) is INCONCLUSIVE
    assert verdict(9, 9) is verdict(0, 0) is INCONCLUSIVE


def test_one_more_case_of_fifty_is_noise() -> None:
    # 41/50 against 40/50: what a count comparison promotes.
    assert compare(*tables(1, 0, 40, 9)).verdict is INCONCLUSIVE
    assert compare(*tables(6, 5, 35, 4)).verdict is INCONCLUSIVE


def test_a_look_spends_its_share_of_alpha() -> None:
    assert verdict(6, 0, look=1) is IMPROVED
    assert verdict(5, 0, look=1) is INCONCLUSIVE
    assert verdict(6, 0, look=2) is INCONCLUSIVE
    assert verdict(7, 0, look=2) is IMPROVED
    assert verdict(13, 0, look=20) is INCONCLUSIVE
    assert verdict(14, 0, look=20) is IMPROVED
    assert compare(*tables(1, 0), look=3).alpha_spent == pytest.approx(0.05 / 12, rel=1e-15)
    assert compare(*tables(1, 0)).alpha_spent == 0.05


def test_an_exact_tie_with_alpha_decides() -> None:
    assert verdict(3, 0, alpha=0.125) is IMPROVED
    assert verdict(0, 3, alpha=0.125) is REGRESSED
    assert verdict(1, 0, alpha=0.5) is IMPROVED


@pytest.mark.parametrize("alpha", [0.51, 0.9, 0.0, -1.0, float("nan")])
def test_an_alpha_that_would_call_noise_improved_is_refused(alpha: float) -> None:
    with pytest.raises(OutOfDomain):
        compare(*tables(1, 0), alpha=alpha)


def test_no_case_is_refused() -> None:
    with pytest.raises(OutOfDomain):
        compare({}, {})


def test_a_critical_regression_forbids_improved_and_nothing_else() -> None:
    incumbent, candidate = tables(12, 1)
    assert compare(incumbent, candidate).verdict is IMPROVED
    lost = next(case.id for case in compare(incumbent, candidate).cases if case.change is Change.REGRESSION)
    found = compare(incumbent, candidate, critical=frozenset({lost}))
    assert found.verdict is INCONCLUSIVE
    assert [case.id for case in found.critical_regressions] == [lost]
    assert found.decisive.blocked_by_critical and not found.decisive.attainable
    assert compare(incumbent, candidate, critical=frozenset({"c0"})).verdict is IMPROVED


def test_trials_of_a_case_are_one_outcome_and_never_counted_as_cases() -> None:
    many = {"only": CaseCounts(passed=20)}, {"only": CaseCounts(failed=20)}
    assert compare(*many).verdict is INCONCLUSIVE
    assert compare(many[1], many[0]).verdict is INCONCLUSIVE


def test_collapse_rules() -> None:
    assert collapsed(CaseCounts(passed=2, failed=1), Collapse.MAJORITY)
    assert not collapsed(CaseCounts(passed=2, failed=1), Collapse.ALL_PASS)
    assert not collapsed(CaseCounts(passed=2, failed=2), Collapse.MAJORITY)
    assert not collapsed(CaseCounts(passed=1, void=1), Collapse.MAJORITY)
    assert not collapsed(CaseCounts(), Collapse.ALL_PASS)


def changes(incumbent: CaseCounts | None, candidate: CaseCounts | None, rule: Collapse = Collapse.ALL_PASS) -> Change:
    both = [{} if side is None else {"c": side} for side in (incumbent, candidate)]
    return compare(*both, collapse=rule).cases[0].change


def test_every_doubt_counts_against_the_candidate() -> None:
    for doubt in (CaseCounts(void=1), CaseCounts(interrupted=1), CaseCounts(unrun=1), None):
        assert changes(PASS, doubt) is Change.REGRESSION
        assert changes(FAIL, doubt) is Change.BOTH_FAIL
        assert changes(doubt, PASS) is Change.BOTH_PASS
        assert changes(doubt, FAIL) is Change.REGRESSION
    assert changes(CaseCounts(void=1), CaseCounts(void=1)) is Change.REGRESSION


def test_fewer_trials_are_missing_trials() -> None:
    assert changes(CaseCounts(passed=3), CaseCounts(passed=1)) is Change.REGRESSION
    assert changes(CaseCounts(passed=1), CaseCounts(passed=2, failed=1)) is Change.REGRESSION
    assert changes(CaseCounts(failed=1), CaseCounts(passed=3)) is Change.WIN
    assert changes(CaseCounts(failed=1), CaseCounts(passed=2, failed=1), Collapse.MAJORITY) is Change.BOTH_PASS


def test_the_observed_flag_and_what_was_assumed() -> None:
    found = compare({"c": CaseCounts(passed=1, void=1)}, {"c": CaseCounts(passed=2)}).cases[0]
    assert (found.assumed_incumbent, found.assumed_candidate, found.observed) == (1, 0, False)
    assert compare({"c": PASS}, {"c": PASS}).cases[0].observed


def test_decisive_says_how_many_wins_are_missing_and_whether_the_suite_has_them() -> None:
    for wins, losses, neither in ((0, 0, 9), (3, 1, 2), (3, 1, 4), (4, 0, 1), (2, 5, 30)):
        found = compare(*tables(wins, losses, 5, neither))
        assert found.decisive.more_wins == wins_needed(losses, 0.05) - wins
        assert found.decisive.headroom == neither
        assert found.decisive.attainable == (found.decisive.more_wins <= neither)
        more = found.decisive.more_wins
        if found.decisive.attainable:
            assert compare(*tables(wins + more, losses, 5, neither - more)).verdict is IMPROVED
            assert compare(*tables(wins + more - 1, losses, 5, neither - more + 1)).verdict is not IMPROVED


def test_no_discordant_case_gives_no_certainty() -> None:
    found = compare(*tables(0, 0, 50, 50))
    assert found.interval_method == "clopper-pearson-no-discordant"
    assert found.interval[0] < -0.03 and found.interval[1] > 0.03
    assert compare(*tables(1, 0, 49, 50)).interval_method == "newcombe-paired"


def worsened(source: random.Random, states: list[str]) -> list[str]:
    """One trial made worse: pass to anything else, fail to a void or missing one, void to missing."""
    ladder = {"pass": ["fail", "void", "interrupted", "unrun"], "fail": ["void", "interrupted", "unrun"], "void": ["unrun", "interrupted"]}
    places = [index for index, state in enumerate(states) if state in ladder]
    if not places:
        return states
    index = source.choice(places)
    return [*states[:index], source.choice(ladder[states[index]]), *states[index + 1 :]]


def random_table(source: random.Random, cases: int, trials: int, rate: float) -> dict[str, list[str]]:
    weights = (rate, 1 - rate, 0.05, 0.02, 0.03)
    words = ("pass", "fail", "void", "interrupted", "unrun")
    return {f"c{i}": source.choices(words, weights, k=trials) for i in range(cases)}


def counted(table: dict[str, list[str]]) -> dict[str, CaseCounts]:
    return {case: CaseCounts.of(states) for case, states in table.items()}


def strength(found: Comparison) -> tuple[int, float, float]:
    return ORDER[found.verdict], -found.p_improved, found.p_regressed


@pytest.mark.parametrize("seed", range(6))
def test_making_any_trial_worse_never_improves_any_verdict(seed: int) -> None:
    source = random.Random(seed)
    moved = 0
    for _ in range(120):
        cases, trials = source.randint(1, 14), source.randint(1, 3)
        options: dict = {
            "alpha": source.choice((0.05, 0.2, 0.5)),
            "look": source.choice((None, 1, 2)),
            "collapse": source.choice(list(Collapse)),
            "critical": frozenset(source.sample([f"c{i}" for i in range(cases)], source.randint(0, 1))),
        }
        incumbent = random_table(source, cases, trials, source.random())
        candidate = random_table(source, cases, trials, source.random())
        before = compare(counted(incumbent), counted(candidate), **options)
        for _ in range(6):
            case = source.choice(list(candidate))
            candidate = {**candidate, case: worsened(source, candidate[case])}
            after = compare(counted(incumbent), counted(candidate), **options)
            assert strength(after) <= strength(before)
            moved += strength(after) < strength(before)
            before = after
        # A whole case that the candidate loses is worse still.
        gone = {case: states for case, states in candidate.items() if case != source.choice(list(candidate))}
        if gone:
            assert strength(compare(counted(incumbent), counted(gone), **options)) <= strength(before)
    assert moved > 50


@pytest.mark.parametrize("seed", range(3))
def test_an_incumbent_trial_that_turns_void_or_missing_never_helps_the_candidate(seed: int) -> None:
    source = random.Random(100 + seed)
    for _ in range(120):
        cases, trials = source.randint(1, 12), source.randint(1, 3)
        rule = source.choice(list(Collapse))
        incumbent = random_table(source, cases, trials, source.random())
        candidate = counted(random_table(source, cases, trials, source.random()))
        before = compare(counted(incumbent), candidate, collapse=rule)
        case = source.choice(list(incumbent))
        index = source.randrange(trials)
        doubtful = list(incumbent[case])
        doubtful[index] = source.choice(("void", "interrupted", "unrun"))
        after = compare(counted({**incumbent, case: doubtful}), candidate, collapse=rule)
        assert strength(after) <= strength(before)


def null_pairs(source: random.Random, cases: int) -> tuple[int, int]:
    """Wins and losses of two equally good subjects on cases of mixed difficulty."""
    wins = losses = 0
    for _ in range(cases):
        rate = source.choice((0.1, 0.5, 0.5, 0.8, 0.95))
        before, after = source.random() < rate, source.random() < rate
        wins += after and not before
        losses += before and not after
    return wins, losses


def decided(wins: int, losses: int, look: int | None) -> ComparisonVerdict:
    return compare(*tables(wins, losses), look=look).verdict if wins + losses else INCONCLUSIVE


@pytest.mark.parametrize("cases", [20, 60, 200])
def test_type_one_error_at_one_look_is_at_most_alpha(cases: int) -> None:
    source = random.Random(cases)
    runs = 1500
    verdicts = [decided(*null_pairs(source, cases), None) for _ in range(runs)]
    assert verdicts.count(IMPROVED) / runs <= 0.05
    assert verdicts.count(REGRESSED) / runs <= 0.05
    assert verdicts.count(IMPROVED) > 0


def test_type_one_error_over_twenty_declared_looks_is_at_most_alpha() -> None:
    source = random.Random(20)
    runs, honest, peeking = 400, 0, 0
    for _ in range(runs):
        wins = losses = 0
        said = {True: False, False: False}
        for look in range(1, 21):
            more = null_pairs(source, 5)
            wins, losses = wins + more[0], losses + more[1]
            for declared in said:
                said[declared] |= decided(wins, losses, look if declared else None) is IMPROVED
        honest += said[True]
        peeking += said[False]
    assert honest / runs <= 0.05
    assert peeking / runs > 0.08  # what looking twenty times without declaring it does


def test_a_true_improvement_is_found() -> None:
    source = random.Random(1)
    found = 0
    for _ in range(200):
        before = [source.random() < 0.6 for _ in range(120)]
        after = [passed or source.random() < 0.4 for passed in before]
        found += decided(sum(b and not a for a, b in zip(before, after, strict=True)), 0, None) is IMPROVED
    assert found / 200 > 0.99


def test_ten_thousand_cases_take_under_two_seconds() -> None:
    source = random.Random(4)
    incumbent, candidate = (counted(random_table(source, 10_000, 2, rate)) for rate in (0.6, 0.62))
    began = time.process_time()
    found = compare(incumbent, candidate)
    record = comparison_record(found, {}, {}, [])
    assert time.process_time() - began < 2.0
    assert len(record["cases"]) == 10_000
    assert record["table"]["wins"] + record["table"]["regressions"] + record["table"]["both_pass"] + record["table"]["both_fail"] == 10_000


def test_the_record_is_the_same_bytes_twice_and_adds_up() -> None:
    from agent_eval.records import strict_json

    source = random.Random(9)
    sides = [counted(random_table(source, 30, 2, 0.6)) for _ in range(2)]
    records = [comparison_record(compare(*sides), {"run_id": "a"}, {"run_id": "b"}, []) for _ in range(2)]
    assert strict_json.pretty(records[0]) == strict_json.pretty(records[1])
    for name in ("incumbent", "candidate"):
        trials = records[0][name]["trials"]
        assert trials["planned"] == 60 == sum(trials[key] for key in ("passed", "failed", "void", "interrupted", "unrun"))
        assert trials["judged"] == trials["passed"] + trials["failed"]
    assert records[0]["exit_code"] == {"improved": 0, "regressed": 1, "inconclusive": 4}[records[0]["verdict"]]


def test_reliability_is_undefined_where_a_case_was_never_judged() -> None:
    record = comparison_record(compare({"a": PASS, "b": CaseCounts(void=1)}, {"a": PASS, "b": PASS}), {}, {}, [])
    assert record["incumbent"]["reliability"] is None
    record = comparison_record(compare({"a": CaseCounts(passed=1, failed=1)}, {"a": CaseCounts(passed=2)}), {}, {}, [])
    assert record["incumbent"]["reliability"] == {"k": 2, "pass_at_k": 1.0, "pass_hat_k": 0.0}


def test_counts_refuse_unknown_words_and_negative_numbers() -> None:
    with pytest.raises(ValueError):
        CaseCounts.of(["passed"])
    with pytest.raises(OutOfDomain):
        CaseCounts(passed=-1)
    assert CaseCounts.of(["pass", "void", "unrun", "interrupted", "fail"]) == CaseCounts(1, 1, 1, 1, 1)
