"""Values of and beside their shapes."""

from __future__ import annotations

import pytest

from agent_eval.records import shapes
from agent_eval.records.shapes import ShapeError

SHAPE = shapes.record(
    {
        "count": shapes.whole(1, 5),
        "seconds": shapes.number(0, 1e9),
        "digest": shapes.text("[0-9a-f]{4}"),
        "sure": shapes.flag,
        "kind": shapes.one_of(None, "a", "b"),
        "parts": shapes.array(shapes.optional(shapes.text())),
        "named": shapes.mapping(shapes.text("[a-z]+"), shapes.whole()),
    },
    {"note": shapes.anything},
)
GOOD = {"count": 5, "seconds": 0, "digest": "00ff", "sure": False, "kind": None, "parts": ["x", None], "named": {"a": 0}}


@pytest.mark.parametrize("more", [{}, {"note": [1]}, {"kind": "b"}, {"count": 1}, {"seconds": 10**9}, {"seconds": 1.5}, {"parts": [], "named": {}}])
def test_values_of_the_shape(more):
    SHAPE({**GOOD, **more}, "it")
    with pytest.raises(ShapeError):
        SHAPE([{**GOOD, **more}], "it")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"count": 0}, "it.count is 0, not a whole number from 1 to 5"),
        ({"count": 6}, "it.count"),
        ({"count": True}, "it.count is True"),
        ({"count": 1.0}, "it.count is 1.0"),
        ({"seconds": -0.1}, "it.seconds is -0.1, not a number from 0 to 1e+09"),
        ({"seconds": float("inf")}, "it.seconds"),
        ({"seconds": 1e308}, "it.seconds is 1e+308"),
        ({"seconds": 10**400}, "it.seconds is 1000"),
        ({"seconds": float("nan")}, "it.seconds"),
        ({"seconds": False}, "it.seconds"),
        ({"seconds": "1"}, "it.seconds"),
        ({"digest": "00fg"}, "of the form [0-9a-f]{4}"),
        ({"digest": "00ff\n"}, "it.digest"),
        ({"digest": 5}, "not a string"),
        ({"sure": 0}, "not true or false"),
        ({"kind": "c"}, "one of None, a, b"),
        ({"kind": []}, "it.kind"),
        ({"parts": ("x",)}, "not an array"),
        ({"parts": ["x", 1]}, "it.parts[1] is 1"),
        ({"named": []}, "not an object"),
        ({"named": {"A": 0}}, "a name in it.named is 'A'"),
        ({"named": {"a": None}}, "it.named['a'] is None"),
        ({"other": 1}, "it has a member 'other' that it may not have"),
        ({"digest": "\ud800" * 500}, "it.digest is '\\ud800\\ud800"),
    ],
)
def test_values_beside_the_shape(more, words):
    with pytest.raises(ShapeError) as caught:
        SHAPE({**GOOD, **more}, "it")
    text = str(caught.value)
    assert words in text
    assert text.isascii()
    assert len(text) < 200


@pytest.mark.parametrize("name", GOOD)
def test_a_member_that_is_missing(name):
    with pytest.raises(ShapeError, match=f"^it has no {name}$"):
        SHAPE({key: value for key, value in GOOD.items() if key != name}, "it")
