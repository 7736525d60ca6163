"""The final table and the closing lines say what the summary counts, bounded and inert."""

from __future__ import annotations

import pytest

from agent_eval.records.exit_codes import MEANING
from agent_eval.report.tables import MAX_ROWS, TrialRow, closing_lines, headline, summary_table
from agent_eval.report.visible_text import cells


def case(passed: int, failed: int, planned: int, **rest: object) -> dict:
    judged = passed + failed
    able = {str(k): 1.0 if passed else 0.0 for k in range(1, judged + 1)}
    hat = {str(k): 0.0 if failed else 1.0 for k in range(1, judged + 1)}
    counts = {"void": 0, "interrupted": 0, "unrun": planned - judged, "reasons": {}}
    return {"passed": passed, "failed": failed, "planned": planned, "pass_at_k": able, "pass_hat_k": hat} | counts | rest


def summary(cases: dict[str, dict], **rest: object) -> dict:
    names = ("planned", "passed", "failed", "void", "interrupted", "unrun")
    return {name: sum(found[name] for found in cases.values()) for name in names} | {"cases": cases} | rest


def test_counts_come_first_and_add_up() -> None:
    found = summary({"a": case(1, 1, 3), "b": case(3, 0, 3)})
    text = summary_table({}, found, [TrialRow("a", 1, "pass", (), 1.0), TrialRow("a", 2, "fail", (), 0.5)])
    assert text.splitlines()[0] == "passed 4/6, 66.7 %, 95 % CI 22.3-95.7 of planned, 4/5 of judged; 1 failed, 0 void, 0 interrupted, 1 unrun"
    row = next(line for line in text.splitlines() if line.startswith("a "))
    assert row.split() == ["a", "1/3", "k=2", "1.000", "/", "0.000", "1.50", "1", "unrun"]


def test_single_trials_have_no_column_for_k() -> None:
    text = summary_table({}, summary({"a": case(1, 0, 1)}), [])
    assert "pass@k" not in text
    assert headline(summary({})) == "passed 0/0 of planned, 0/0 of judged; 0 failed, 0 void, 0 interrupted, 0 unrun"


def test_a_case_without_a_judged_trial_is_undefined_and_not_zero() -> None:
    text = summary_table({}, summary({"a": case(0, 0, 2, void=2, unrun=0), "b": case(2, 0, 2)}), [])
    row = next(line for line in text.splitlines() if line.startswith("a "))
    assert "undefined" in row and "0.000" not in row and "2 void" in row


def test_capability_and_reliability_are_named_together() -> None:
    found = summary({"a": case(2, 0, 2)}, reliability={"k": 2, "cases": 1, "pass_at_k": 1.0, "pass_hat_k": 0.5})
    assert "pass@2 1.000 (capability), pass^2 0.500 (reliability): mean over 1 case, of 2 planned trials each" in summary_table({}, found, [])


def test_limits_leaks_and_scope_are_said() -> None:
    found = summary(
        {"a": case(1, 0, 1)},
        limits_reached={"timeout": 2, "output-limit": 0},
        leaks={"trials": 1, "processes": 3, "unreaped": 1},
        not_scored=["Elegance\x1b[2J", "Speed"],
        unrecorded=["a/001"],
        basis={"recomputed": {"passed": 1, "failed": 0, "void": 0}, "owner-attested": {"passed": 0, "failed": 0, "void": 0}},
    )
    lines = summary_table({"subject": {"subject_kind": "scripted"}}, found, []).splitlines()
    assert "limits reached: timeout 2" in lines
    assert "leaky: 1 trial left 3 processes behind" in lines
    assert "could not be ended: 1 process, named in trial.json" in lines
    assert "not recorded: a/001" in lines
    assert "not scored: Elegance\\x1b[2J; Speed" in lines
    assert "basis: recomputed 1 passed" in lines
    assert any("proves the plumbing" in line for line in lines)


def test_nothing_reached_and_nothing_left_is_said_too() -> None:
    lines = summary_table({}, summary({"a": case(1, 0, 1)}, limits_reached={}, leaks={"trials": 0, "processes": 0}), []).splitlines()
    assert "limits reached: none" in lines and "leaks: none" in lines


@pytest.mark.parametrize("width", [60, 100, 160])
def test_reasons_are_cut_to_the_width_and_nothing_reaches_the_terminal_raw(width: int) -> None:
    reasons = {f"reason-{n}\x1b[31m": n for n in range(1, 40)}
    text = summary_table({}, summary({"北京\u202e" * 9: case(0, 1, 1, reasons=reasons), "b": case(1, 0, 1)}), [], width=width)
    assert "\x1b" not in text and "\u202e" not in text
    assert all(cells(line) <= max(width, 90) for line in text.splitlines()[1:]), "the counts are never cut"


def test_thousands_of_cases_give_a_bounded_table_with_the_failures_first() -> None:
    cases = {f"c{n:04d}": case(1, 0, 1) for n in range(3_000)}
    cases["c2999"] = case(0, 1, 1, reasons={"timeout": 1})
    lines = summary_table({}, summary(cases), []).splitlines()
    assert len(lines) < MAX_ROWS + 15
    assert lines[3].split() == ["c2999", "0/1", "-", "timeout"]
    assert "... and 2940 more cases with a passed share no lower; all are in summary.json" in lines


@pytest.mark.parametrize("code", [*MEANING, 134])
def test_the_closing_lines_say_what_the_exit_code_means(code: int) -> None:
    lines = closing_lines("failed", "/tmp/e\x1b", "ab" * 32, code).splitlines()
    assert lines == [
        "verdict:  failed", "evidence: /tmp/e\\x1b", f"seal:     {'ab' * 32}",
        f"exit:     {code} ({MEANING.get(code, 'interrupted by a signal')})",
    ]  # fmt: skip


def test_an_unsealed_run_says_so() -> None:
    assert "seal:     none: unsealed" in closing_lines("incomplete", "/e", None, 3)
