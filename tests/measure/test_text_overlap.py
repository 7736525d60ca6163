"""Overlap by words: what normalisation ignores, what n-grams find, what is boilerplate."""

from __future__ import annotations

import pytest

from agent_eval.measure.text_overlap import boilerplate, canaries, holds_words, ngram_length, ngrams, normalise


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello,  World!", "hello world"),
        ("ｆｕｌｌ width", "full width"),
        ("Straße", "STRASSE"),
        ("a-b_c", "a b c"),
        ("line\nbreak\tand\u00a0space", "line break and space"),
        ("“quoted” — text…", "quoted text"),
        ("Ünïcode é", "ünïcode e\u0301"),
        ("x = 1 + 2", "x 1 2"),
    ],
)
def test_case_punctuation_width_and_spacing_do_not_matter(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_letters_and_digits_do_matter() -> None:
    assert normalise("wörd 1") != normalise("word 1")
    assert normalise("item 12") != normalise("item 1 2")
    assert normalise("!?…") == ""


def test_ngrams_are_runs_of_words_and_short_texts_are_whole() -> None:
    assert ngrams(list("abcd"), 3) == {"a b c", "b c d"}
    assert ngrams(list("ab"), 3) == {"a b"}
    assert ngrams([], 3) == set()


def test_the_length_is_the_fifth_percentile_between_8_and_13() -> None:
    assert ngram_length([100] * 20) == 13
    assert ngram_length([2] * 20) == 8
    assert ngram_length([11] * 50 + [50] * 50) == 11
    assert ngram_length([3] + [40] * 39) == 13
    assert ngram_length([]) == 13


def test_boilerplate_is_in_more_than_ten_sources() -> None:
    assert boilerplate([{"a"}] * 10) == set()
    assert boilerplate([{"a", "b"}] * 5 + [{"a"}] * 6) == {"a"}


def test_words_are_found_whole() -> None:
    assert holds_words("market strategy", "market")
    assert not holds_words("marketing strategy", "market")
    assert not holds_words("anything", "")


def test_canaries_of_the_public_form_are_found_however_they_are_written() -> None:
    guid = "26b5c67b-86ce-4b4d-8b8d-123456789abc"
    for line in (f"# x canary GUID {guid}", f"CANARY guid: {guid.upper()}", f"canary GUID {guid.replace('-', '')}."):
        assert canaries(f"before\n{line}\nafter") == {guid}
    assert canaries(f"a GUID {guid}") == set()
