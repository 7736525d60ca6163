"""Text from evidence: what a terminal would obey, and what hides, is shown as an escape."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from agent_eval.report.visible_text import cells, clock, count, escape, fit, pad, seconds, size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066x\u2069\u200f\u200b\ufeff", "\\u2066x\\u2069\\u200f\\u200b\\ufeff"),
        ("\u2028\u2029\u00a0\u3000", "\\u2028\\u2029\\xa0\\u3000"),
        ("\U000e0041\U000e007f", "\\U000e0041\\U000e007f"),
        ("name\udc80", "name\\udc80"),
        ("Grüße, 北京, שלום", "Grüße, 北京, שלום"),
        ("", ""),
    ],
)
def test_escape(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_no_character_that_steers_a_display_survives() -> None:
    steering = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) in steering:
            assert escape(chr(code)).isascii(), hex(code)


def test_a_tower_of_combining_marks_is_cut_open() -> None:
    assert escape("a" + "\u0301" * 2) == "a\u0301\u0301"
    assert "\\u0301" in escape("a" + "\u0301" * 50)


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("北京", 4), ("e\u0301", 1), ("", 0)])
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize("width", range(0, 12))
def test_fit_never_exceeds_its_width(width: int) -> None:
    for text in ("abcdefghijkl", "北京北京北京北京", "ab"):
        assert cells(fit(text, width)) <= width


def test_fit_and_pad() -> None:
    assert fit("abcdefghij", 8) == "abcde..."
    assert fit("abc", 8) == "abc"
    assert pad("北", 4) == "北  "
    assert pad("7", 3, right=True) == "  7"


def test_numbers_for_people() -> None:
    assert [count(n, "process", "processes") for n in (1, 2)] == ["1 process", "2 processes"]
    assert [size(n) for n in (None, 1, 1023, 1536, 8 << 20, 3 << 40)] == [
        "unknown", "1 byte", "1023 bytes", "1.5 KiB", "8.0 MiB", "3.0 TiB",
    ]  # fmt: skip
    assert [seconds(s) for s in (None, 0.0123, 3.4, 125.0)] == ["-", "0.012 s", "3.40 s", "2:05"]
    assert [clock(s) for s in (0, 61, 3723)] == ["0:00", "1:01", "1:02:03"]
