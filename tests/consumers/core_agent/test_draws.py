"""The data language of scenarios: draws and templates."""

from __future__ import annotations

import collections

import pytest

from consumers.core_agent.draws import DrawError, Stream, derive, draw, draw_group
from consumers.core_agent.templates import TemplateError, render_text, render_value


def one(spec: object, **known: object) -> object:
    return draw(spec, Stream(b"seed"), known)


def test_a_stream_is_the_same_for_good() -> None:
    # Literal values: variants of released scenarios must not change with Python or with this code.
    stream = Stream(b"seed")
    assert [stream.below(1000) for _ in range(5)] == [177, 71, 918, 726, 817]
    assert Stream(b"seed").take(4).hex() == "1a30d3c0"


def test_a_stream_is_uniform() -> None:
    stream = Stream(b"u")
    counts = collections.Counter(stream.below(7) for _ in range(7000))
    assert set(counts) == set(range(7))
    # 99.99 % of a chi-square with 6 degrees of freedom lies below 27.9.
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 27.9


def test_other_labels_give_other_streams() -> None:
    assert len({derive(b"s"), derive(b"s", "a"), derive(b"s", "b"), derive(b"s", "a", "b"), derive(b"t", "a")}) == 5


ROWS = [{"k": "a", "n": 3}, {"k": "b", "n": 5}, {"k": "a", "n": 4}]


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("plain", "plain"),
        (7, 7),
        (["{{rows.0.k}}", 1], ["a", 1]),
        ({"text": "{{rows.1.n}} of {{rows.0.k}}"}, "5 of a"),
        ({"where": "{{rows}}", "column": "k", "equals": "a"}, [ROWS[0], ROWS[2]]),
        ({"where": "{{rows}}", "column": "k", "equals": ["b", "c"]}, [ROWS[1]]),
        ({"pluck": "{{rows}}", "of": "n"}, [3, 5, 4]),
        ({"sum": "{{rows}}", "of": "n"}, 12),
        ({"largest": "{{rows}}", "of": "n"}, ROWS[1]),
        ({"group": "{{rows}}", "by": "k", "adding": "n"}, [{"key": "a", "count": 2, "sum": 7}, {"key": "b", "count": 1, "sum": 5}]),
        ({"at": [5, 6], "index": 1}, 6),
        ({"size": "{{rows}}"}, 3),
        ({"sorted": [3, 1, 2]}, [1, 2, 3]),
        ({"join": ["a", 1], "with": ", "}, "a, 1"),
        ({"range": [2, 4]}, [2, 3, 4]),
        ({"around": 5, "by": 1}, [4, 5, 6]),
        ({"concat": [[1], [2, 3]]}, [1, 2, 3]),
        ({"total": [1, 2]}, 3),
        ({"without": ["a", "b"], "item": "a"}, ["b"]),
        ({"int": [4, 4]}, 4),
    ],
)
def test_forms(spec: object, value: object) -> None:
    assert one(spec, rows=ROWS) == value


def test_random_forms_stay_within_their_bounds() -> None:
    stream = Stream(b"x")
    assert {draw({"int": [1, 3]}, stream, {}) for _ in range(200)} == {1, 2, 3}
    assert {draw({"choose": ["a", "b"]}, stream, {}) for _ in range(100)} == {"a", "b"}
    assert len(draw({"hex": 8}, stream, {})) == 16
    assert len(set(draw({"words": 50}, stream, {}))) == 50
    assert sorted(draw({"sample": [1, 2, 3], "count": 3}, stream, {})) == [1, 2, 3]


def test_rows_are_distinct_where_asked() -> None:
    rows = one({"rows": {"count": 10, "distinct": ["n"], "columns": {"n": {"int": [1, 10]}, "twice": "{{row.n}}{{row.n}}"}}})
    assert sorted(row["n"] for row in rows) == list(range(1, 11))
    assert all(row["twice"] == f"{row['n']}{row['n']}" for row in rows)


def test_the_order_of_keys_changes_nothing() -> None:
    group = {"b": {"text": "{{s.a}}!"}, "a": {"hex": 4}, "rows": {"rows": {"count": 2, "columns": {"z": {"hex": 2}, "a": "{{row.z}}"}}}}
    turned = {"rows": {"rows": {"columns": {"a": "{{row.z}}", "z": {"hex": 2}}, "count": 2}}, "a": {"hex": 4}, "b": {"text": "{{s.a}}!"}}
    assert draw_group(group, "s", b"1", {}) == draw_group(turned, "s", b"1", {})
    assert draw_group(group, "s", b"1", {}) != draw_group(group, "s", b"2", {})


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"chose": ["a"]}, "exactly one of"),
        ({"choose": ["a"], "hex": 2}, "exactly one of"),
        ({"hex": 2, "with": "x"}, "no field 'with'"),
        ({"choose": []}, "choice of 0"),
        ({"int": [5, 1]}, "choice of -3"),
        ({"int": "x"}, "int"),
        ({"words": 10_000}, "of a list of"),
        ({"text": "{{nothing.here}}"}, "names nothing"),
        ({"rows": {"count": 3, "distinct": ["n"], "columns": {"n": {"int": [1, 2]}}}}, "no more different"),
        ({"rows": {"count": 10_000, "columns": {"n": 1}}}, "count is"),
        ({"rows": {"columns": 1}}, "columns"),
        ({"rows": {"columns": {}, "cuont": 1}}, "cuont"),
        ({"range": [0, 100_000]}, "at most"),
        ({"at": [1], "index": 4}, "at"),
    ],
)
def test_what_cannot_be_drawn_is_said(spec: object, word: str) -> None:
    with pytest.raises(DrawError, match=word):
        one(spec)


def test_a_circle_of_references_is_named() -> None:
    with pytest.raises(DrawError, match="refers to itself"):
        draw_group({"a": "{{s.b}}", "b": "{{s.a}}"}, "s", b"1", {})


def test_templates() -> None:
    values = {"v": {"n": 3, "list": ["x", "y"], "rows": [{"a": 1}, {"a": 2}]}}
    assert render_text("n={{v.n}} {{#each v.rows}}<{{item.a}}{{v.n}}>{{/each}}", values) == "n=3 <13><23>"
    assert render_value({"k": ["{{v.list}}", "{{v.n}}", "a{{v.n}}"]}, values) == {"k": [["x", "y"], 3, "a3"]}
    assert render_text("{ {} {{ }} }", values, only={"v"}) == "{ {} {{ }} }"


def test_roots_that_are_not_asked_for_stay() -> None:
    values = {"v": {"n": 3}, "s": {"n": 4}}
    text = "{{v.n}}{{s.n}}{{#each s.rows}}{{v.n}}{{item}}{{/each}}"
    assert render_text(text, values, only={"v"}) == "3{{s.n}}{{#each s.rows}}3{{item}}{{/each}}"
    assert render_value("{{s.n}}", values, only={"v"}) == "{{s.n}}"


@pytest.mark.parametrize("text", ["{{v.x}}", "{{v.list}} and", "{{#each v.n}}{{/each}}", "{{V.n}}", "{{ v.n }}", "{{v.list.9}} x"])
def test_wrong_tags(text: str) -> None:
    with pytest.raises(TemplateError):
        render_text(text, {"v": {"n": 3, "list": ["x"]}})


def test_what_a_value_holds_is_not_a_template() -> None:
    assert render_text("{{v.a}}", {"v": {"a": "{{v.b}}", "b": "no"}}) == "{{v.b}}"
