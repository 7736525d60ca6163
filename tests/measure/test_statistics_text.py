"""Statistical results in words: counts first, no digit that the data do not support."""

from __future__ import annotations

from agent_eval.report.statistics_text import p_text, reliability_text, share


def test_a_share_shows_counts_first_then_percent_then_interval() -> None:
    assert share(18, 20) == "18/20, 90.0 %, 95 % CI 68.3-98.8"
    assert share(0, 3, 0.9) == "0/3, 0.0 %, 90 % CI 0.0-63.2"
    assert share(0, 0) == "0/0"


def test_what_is_not_all_or_nothing_never_looks_like_it() -> None:
    assert share(99_999, 100_000) == "99999/100000, >99.9 %, 95 % CI >99.9->99.9"
    assert share(1, 100_000).startswith("1/100000, <0.1 %, 95 % CI <0.1-<0.1")
    assert share(100_000, 100_000) == "100000/100000, 100.0 %, 95 % CI >99.9-100.0"


def test_both_reliabilities_are_always_named() -> None:
    assert reliability_text({"k": 3, "pass_at_k": 1.0, "pass_hat_k": 0.25}) == "pass@3 1.000, pass^3 0.250 (unweighted means over cases)"
    assert "undefined" in reliability_text(None)


def test_p_values_have_three_digits() -> None:
    assert [p_text(p) for p in (0.03515625, 1.0, 1.2345e-9)] == ["0.0352", "1", "1.23e-09"]
