"""Contamination: found by text, boilerplate ignored, short items whole, nothing dropped."""

from __future__ import annotations

import random

import pytest

from agent_eval.measure.contamination import Source, TextItem, audit_contamination

WORDS = [f"word{n}" for n in range(400)]


def prose(seed: int, length: int = 30) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def levels(items: list[TextItem], sources: list[Source], **options: object) -> dict[str, str]:
    found = audit_contamination(items, sources, **options)
    named = {entry["id"]: entry["level"] for entry in found["queue"]}
    return {item.id: named.get(item.id, "none") for item in items}


def test_a_whole_item_is_confirmed_whatever_its_case_and_punctuation() -> None:
    text = prose(1)
    leaked = Source("trace", f"so: {text.upper().replace(' ', ', ')}! end")
    assert levels([TextItem("a", text), TextItem("b", prose(2))], [leaked]) == {"a": "confirmed", "b": "none"}


def test_thirteen_words_are_possible_and_twelve_are_not() -> None:
    text = prose(3).split()
    assert levels([TextItem("a", " ".join(text))], [Source("s", "x " + " ".join(text[5:18]) + " y")]) == {"a": "possible"}
    assert levels([TextItem("a", " ".join(text))], [Source("s", "x " + " ".join(text[5:17]) + " y")]) == {"a": "none"}


def test_the_id_does_not_matter() -> None:
    assert levels([TextItem("a", prose(4))], [Source("a", "only the name a is here")]) == {"a": "none"}
    assert levels([TextItem("new-id", prose(4))], [Source("old", prose(4))]) == {"new-id": "confirmed"}


def test_short_items_are_matched_whole_and_not_skipped() -> None:
    items = [TextItem("short", "Capital of France?"), *(TextItem(f"long{n}", prose(n)) for n in range(30))]
    assert levels(items, [Source("s", "what is the capital of france then")])["short"] == "confirmed"
    assert levels(items, [Source("s", "the capital city of france")])["short"] == "none"
    assert levels(items, [Source("s", "capital of francesca")])["short"] == "none"


def test_boilerplate_does_not_flag_everything_and_is_said() -> None:
    licence = " ".join(f"licence{n}" for n in range(20))
    items = [TextItem(f"i{n}", f"{prose(n)} {licence}") for n in range(12)]
    found = audit_contamination(items, [Source("repository", licence)])
    assert found["queue"] == []
    assert found["only_boilerplate"] == [item.id for item in items]
    few = audit_contamination(items[:3], [Source("repository", licence)])
    assert few["levels"] == {"none": 0, "possible": 3, "confirmed": 0}


def test_an_item_that_leaked_into_many_sources_is_not_boilerplate() -> None:
    sources = [Source(f"s{n}", f"{prose(100 + n)} {prose(5)}") for n in range(15)]
    assert levels([TextItem("a", prose(5))], sources) == {"a": "confirmed"}


def test_the_suites_own_canary_confirms_and_others_are_listed() -> None:
    own, other = "26b5c67b-86ce-4b4d-8b8d-123456789abc", "11111111-2222-3333-4444-555555555555"
    sources = [Source("patch", f"canary GUID {own}"), Source("page", f"canary GUID {other}")]
    found = audit_contamination([TextItem("a", prose(6))], sources, own_canaries=frozenset({own}))
    assert found["suite_canary_seen"]
    assert found["queue"][0] == {"id": None, "level": "confirmed", "reasons": [{"kind": "canary", "source": "patch", "detail": own}]}
    assert [sighting["own"] for sighting in found["canaries"]] == [True, False]
    inside = audit_contamination([TextItem("a", f"{prose(6)} canary GUID {own}")], sources[:1])
    assert inside["suite_canary_seen"]


def test_the_same_text_in_two_splits_is_confirmed_on_both_sides() -> None:
    items = [TextItem("a", prose(7), split="train"), TextItem("b", prose(7).title(), split="test"), TextItem("c", prose(7), split="train")]
    found = levels(items, [])
    assert found["a"] == found["b"] == "confirmed"
    assert levels([TextItem("a", prose(7), split="train"), TextItem("b", prose(7), split="train")], []) == {"a": "none", "b": "none"}


def test_an_item_older_than_the_cutoff_is_possible() -> None:
    items = [
        TextItem("old", prose(8), created="2025-01-31"),
        TextItem("new", prose(9), created="2025-02-01"),
        TextItem("undated", prose(10)),
    ]
    assert levels(items, [], cutoff="2025-02-01") == {"old": "possible", "new": "none", "undated": "none"}


def test_scores_are_shown_with_and_without_and_nothing_leaves_silently() -> None:
    items = [TextItem(f"d{n}", prose(n), passed=True) for n in range(4)] + [
        TextItem(f"c{n}", prose(50 + n), passed=n < 2) for n in range(6)
    ]
    scores = audit_contamination(items, [Source(f"s{n}", prose(n)) for n in range(4)])["scores"]
    counts = {name: (scores[name]["passed"], scores[name]["total"]) for name in ("all", "without_confirmed", "clean", "dirty")}
    assert counts == {"all": (6, 10), "without_confirmed": (2, 6), "clean": (2, 6), "dirty": (4, 4)}
    gap = scores["clean_minus_dirty"]
    assert gap["value"] == pytest.approx(2 / 6 - 1)
    assert gap["lower"] < gap["value"] < gap["upper"] < 0
    assert audit_contamination([TextItem("a", prose(1))], [])["scores"] is None
    assert audit_contamination(items, [])["scores"]["clean_minus_dirty"] is None


def test_an_empty_text_matches_nothing() -> None:
    assert levels([TextItem("empty", "?!"), TextItem("b", prose(1))], [Source("s", ""), Source("t", prose(2))]) == {
        "empty": "none",
        "b": "none",
    }
