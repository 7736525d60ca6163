"""Files of rows: every accepted form reads the same, and nothing is coerced."""

from __future__ import annotations

import json

import pytest

from agent_eval.measure.rows import read_rows
from agent_eval.records.problems import InvalidInput

ITEMS = [{"id": "a", "label": True}, {"id": "b", "label": False}]


def values(name: str, data: str) -> dict[str, bool | None]:
    reading = read_rows(name, data.encode())
    found = {row.id: reading.binary(row, ("label",)) for row in reading.rows}
    assert reading.problems == []
    return found


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.jsonl", '{"id": "a", "label": true}\n\n{"id": "b", "label": false}\n'),
        ("x.json", json.dumps(ITEMS, indent=1)),
        ("x.json", json.dumps({"items": ITEMS})),
        ("x.json", json.dumps({"labels": ITEMS})),
        ("x.json", '{"a": true, "b": false}'),
        ("x.json", '{"a": {"label": 1}, "b": {"label": 0}}'),
        ("x.json", '[{"id": "a", "label": "pass"}, {"id": "b", "label": "fail"}]'),
        ("x.csv", "id,label\na,pass\nb,fail\n"),
        ("x.csv", "\ufefflabel,id\r\ntrue,a\r\n0,b\r\n"),
    ],
)
def test_every_form_reads_the_same(name: str, data: str) -> None:
    assert values(name, data) == {"a": True, "b": False}


@pytest.mark.parametrize("value", ["true", "false", "Pass", "1", "yes", "", 2, -1, 0.0, 1.0, 0.9, None, [], {}, "unparsed"])
def test_what_is_not_binary_is_a_problem_and_never_coerced(value: object) -> None:
    reading = read_rows("x.json", json.dumps([{"id": "a", "label": value}]).encode())
    assert reading.binary(reading.rows[0], ("label",)) is None
    assert [problem.where for problem in reading.problems] == ["x.json, item 1"]
    assert "not binary" in reading.problems[0].what


def test_an_unparsed_verdict_is_declared_and_a_null_is_not() -> None:
    reading = read_rows("x.json", b'[{"id": "a", "verdict": "unparsed"}, {"id": "b", "verdict": null}]')
    assert [reading.binary(row, ("verdict",), unparsed_ok=True) for row in reading.rows] == [None, None]
    assert [problem.where for problem in reading.problems] == ["x.json, item 2"]


def test_a_missing_field_is_a_problem() -> None:
    reading = read_rows("x.json", b'[{"id": "a"}]')
    assert reading.binary(reading.rows[0], ("label", "passed")) is None
    assert "has no label or passed" in reading.problems[0].what


def test_ids_are_text_or_whole_numbers_and_unique() -> None:
    data = '{"id": 7, "label": 1}\n{"id": "7", "label": 1}\n{"id": "", "label": 1}\n{"id": true}\n{"id": 1.5}\n{"label": 1}\n[]\n'
    reading = read_rows("x.jsonl", data.encode())
    assert [row.id for row in reading.rows] == ["7", "7"]
    said = {problem.where: problem.what for problem in reading.problems}
    assert "duplicate id '7', first at line 1" in said["x.jsonl, line 2"]
    assert all("has no id" in said[f"x.jsonl, line {line}"] for line in (3, 4, 5, 6))
    assert "not a JSON object" in said["x.jsonl, line 7"]


def test_the_same_id_in_two_splits_is_an_overlap() -> None:
    reading = read_rows("x.jsonl", b'{"id": "a", "split": "train"}\n{"id": "a", "split": "test"}\n')
    assert "the splits overlap" in reading.problems[0].what


def test_a_broken_line_is_named_and_the_others_are_still_read() -> None:
    reading = read_rows("x.jsonl", b'{"id": "a"}\n{"id": "b", "id": "c"}\n{oops\n{"id": "d"}\n')
    assert [row.id for row in reading.rows] == ["a", "d"]
    assert [problem.where for problem in reading.problems] == ["x.jsonl, line 2", "x.jsonl, line 3"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.json", b""),
        ("x.json", b"[]"),
        ("x.json", b'"text"'),
        ("x.json", b"[1, 2"),
        ("x.json", b'{"a": true, "a": false}'),
        ("x.json", b'[{"id": "a", "label": NaN}]'),
        ("x.json", b"\xef\xbb\xbf[]"),
        ("x.csv", b"id,label\na,1,2\n"),
        ("x.csv", b"\xff\xfe"),
        ("x.csv", b"id,label\n"),
    ],
)
def test_a_file_in_no_accepted_form_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_rows(name, data)
    assert refused.value.problems[0].where.startswith(name)


def test_splits_may_be_listed_beside_the_items() -> None:
    reading = read_rows("x.json", json.dumps({"splits": {"train": ["a"], "test": ["b", 3]}, "items": ITEMS}).encode())
    assert reading.splits == {"train": ["a"], "test": ["b", "3"]}
    assert read_rows("x.json", b'{"splits": 3, "items": [{"id": "a"}]}').problems
