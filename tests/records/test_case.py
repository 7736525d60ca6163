"""The check case: every refusal names its JSON path, and all come at once."""

from __future__ import annotations

import json
import pathlib

import pytest

from agent_eval.records.case import expand, parse_case

GOOD = {"id": "a", "scope": "s", "command": ["prog", "{report}"]}


def problems_of(tmp_path: pathlib.Path, **fields: object) -> list[str]:
    data = json.dumps({**GOOD, **fields}).encode()
    case, problems = parse_case(data, "f", str(tmp_path))
    assert (case is None) == bool(problems)
    return [problem.where for problem in problems]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"id": ""}, "f:/id"),
        ({"id": "../a"}, "f:/id"),
        ({"id": ".a"}, "f:/id"),
        ({"id": "a b"}, "f:/id"),
        ({"id": "a/b"}, "f:/id"),
        ({"id": 7}, "f:/id"),
        ({"id": "a" * 101}, "f:/id"),
        ({"scope": ""}, "f:/scope"),
        ({"scope": None}, "f:/scope"),
        ({"command": "prog {report}"}, "f:/command"),
        ({"command": []}, "f:/command"),
        ({"command": ["prog"]}, "f:/command"),
        ({"command": ["prog", "{report}", "{report}"]}, "f:/command"),
        ({"command": ["prog", "--report={report}"]}, "f:/command/1"),
        ({"command": ["prog", 3, "{report}"]}, "f:/command/1"),
        ({"command": ["", "{report}"]}, "f:/command/0"),
        ({"command": ["{report}"]}, "f:/command/0"),
        ({"command": ["a\u0000b", "{report}"]}, "f:/command/0"),
        ({"identity_files": "x"}, "f:/identity_files"),
        ({"identity_files": ["relative"]}, "f:/identity_files/0"),
        ({"identity_files": ["/nowhere/at/all"]}, "f:/identity_files/0"),
        ({"identity_files": ["{case_dir}"]}, "f:/identity_files/0"),
        ({"not_scored": [1]}, "f:/not_scored/0"),
        ({"cwd": "relative"}, "f:/cwd"),
        ({"cwd": "/nowhere/at/all"}, "f:/cwd"),
        ({"env": ["A=B"]}, "f:/env/0"),
        ({"env": ["A", "A"]}, "f:/env/1"),
        ({"timeout_s": 0}, "f:/timeout_s"),
        ({"timeout_s": 601}, "f:/timeout_s"),
        ({"timeout_s": True}, "f:/timeout_s"),
        ({"timeout_s": "5"}, "f:/timeout_s"),
        ({"leaks": "ignore"}, "f:/leaks"),
        ({"required_checks": ["x", "x"]}, "f:/required_checks/1"),
        ({"cleanup": ["rm", "{report}"]}, "f:/cleanup"),
        ({"cleanup": "rm"}, "f:/cleanup"),
        ({"critical": 1}, "f:/critical"),
        ({"identityfiles": []}, "f:/identityfiles"),
        ({"command": ["prog", "ghp_" + "a1B2" * 9, "{report}"]}, "f:/command/1"),
        ({"not_scored": ["sk-" + "a1B2" * 9]}, "f:/not_scored/0"),
    ],
)
def test_each_refusal_names_its_path(tmp_path: pathlib.Path, fields: dict, where: str) -> None:
    assert where in problems_of(tmp_path, **fields)


def test_every_problem_comes_at_once(tmp_path: pathlib.Path) -> None:
    found = problems_of(tmp_path, id="", scope=1, command=["p"], timeout_s=0, nonsense=1)
    assert {"f:/id", "f:/scope", "f:/command", "f:/timeout_s", "f:/nonsense"} <= set(found)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"id": "a", "id": "b"}', b"\xff", b"not json"])
def test_what_is_no_strict_object_is_one_problem(tmp_path: pathlib.Path, data: bytes) -> None:
    case, problems = parse_case(data, "f", str(tmp_path))
    assert case is None
    assert [problem.where for problem in problems] == ["f"]


def test_missing_fields_are_named(tmp_path: pathlib.Path) -> None:
    _, problems = parse_case(b"{}", "f", str(tmp_path))
    assert [problem.where for problem in problems] == ["f:/id", "f:/scope", "f:/command"]


def test_a_full_case(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    fields = {
        "identity_files": ["{case_dir}/x.json"],
        "not_scored": ["n"],
        "cwd": "{scratch}",
        "env": ["A_1"],
        "timeout_s": 2,
        "leaks": "fail",
        "required_checks": ["a"],
        "cleanup": ["rm", "-rf", "{scratch}/x"],
        "critical": True,
        "command": ["{case_dir}/p", "--x={scratch}/y", "{report}"],
    }
    case, problems = parse_case(json.dumps({**GOOD, **fields}).encode(), "f", str(tmp_path))
    assert problems == []
    assert case.identity_files == (str(tmp_path / "x.json"),)
    assert case.command == (f"{tmp_path}/p", "--x={scratch}/y", "{report}")
    assert case.timeout_s == 2.0
    assert case.leaks_fail
    assert [expand(a, scratch="/s", report="/r") for a in case.command] == [f"{tmp_path}/p", "--x=/s/y", "/r"]


def test_a_shape_is_accepted_where_it_was_named(tmp_path: pathlib.Path) -> None:
    data = json.dumps({**GOOD, "command": ["p", "ghp_" + "a1B2" * 9, "{report}"]}).encode()
    for allowed in ("/command/1", "f:/command/1"):
        case, problems = parse_case(data, "f", str(tmp_path), (allowed,))
        assert problems == []
        assert case is not None
    assert parse_case(data, "f", str(tmp_path), ("/command/2",))[0] is None
