"""An adapter is read completely before anything runs: every problem at once."""

from __future__ import annotations

import copy
import json
import pathlib
import re

import pytest

from agent_eval import InvalidInput
from consumers.core_agent.adapter import load
from consumers.core_agent.adapter.schema import read_adapter

SMALL = pathlib.Path(__file__).with_name("small_agent.json")
NOTES = pathlib.Path(__file__).resolve().parents[5] / "shared" / "agents" / "AGENTS.md"


def small() -> dict:
    return json.loads(SMALL.read_bytes())


def problems_of(document: dict) -> dict[str, str]:
    """Pointer of each problem to its text."""
    try:
        read_adapter(json.dumps(document).encode(), "a.json")
    except InvalidInput as error:
        return {problem.where.removeprefix("a.json#"): str(problem) for problem in error.problems}
    return {}


@pytest.mark.parametrize("name", load.names())
def test_every_shipped_adapter_is_whole(name: str) -> None:
    adapter = load.load(name)
    assert adapter.name == name
    assert adapter.tried_version
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", adapter.tried_on or "")
    assert adapter.identity.version is not None
    assert "execute" in adapter.tools.calls


def test_the_sketch_that_the_format_comes_from_is_taken() -> None:
    if not NOTES.is_file():
        pytest.skip("skipped: ../shared/agents/AGENTS.md is not there")
    sketch = re.search(r"```json\n(\{\"schema\":\"agent-adapter/1\".*?)```", NOTES.read_text(encoding="utf-8"), re.DOTALL)
    assert sketch is not None
    document = json.loads(sketch[1])
    assert problems_of(document) == {}
    adapter = read_adapter(json.dumps(document).encode(), "sketch")
    assert adapter.tools.names == {"execute": ("bash",), "write": ("write",)}
    assert adapter.max_model_requests == 50


def test_all_problems_are_said_at_once_with_their_pointers() -> None:
    document = small()
    document["name"] = "Not A Name"
    document["colour"] = "red"
    document["exec"]["argv"] = ["{bin}", "{prompt}", "{wrkspace}"]
    document["exec"]["files"] = {"/etc/passwd": "x", "{home}/../x": "y"}
    document["model_api"] = "telepathy"
    document["tools"]["names"]["fly"] = "wings"
    document["tools"]["exact"] = "yes"
    document["events"]["map"][0]["emit"] = "smoke"
    document["events"]["map"][2]["name"] = "what"
    document["events"]["required"] = ["end", "usage"]
    document["identity"]["version"]["regex"] = "("
    document["outcome"]["exit_map"] = {"300": "x"}
    found = problems_of(document)
    expected = {
        "/name", "/colour", "/exec/argv/2", "/exec/files//etc/passwd", "/exec/files/{home}/../x", "/model_api", "/tools/names/fly",
        "/tools/exact", "/events/map/0/emit", "/events/map/2/name", "/events/required/1", "/identity/version/regex", "/outcome/exit_map/300",
    }
    assert expected <= set(found)
    assert "which is no placeholder" in found["/exec/argv/2"]


@pytest.mark.parametrize(("path", "value", "where"), [
    (("schema",), "agent-adapter/2", "/schema"),
    (("exec", "argv"), ["prog", "{prompt}"], "/exec/argv"),
    (("exec", "argv"), ["{bin}"], "/exec/argv"),
    (("exec", "pre"), ["{bin}"], "/exec/pre"),
    (("exec", "env"), {"A": 1}, "/exec/env/A"),
    (("exec", "stdin"), "pipe", "/exec/stdin"),
    (("identity", "interpreter"), "ruby>=3", "/identity/interpreter"),
    (("events", "source"), "socket", "/events/source"),
    (("events", "map"), [], "/events/map"),
    (("events", "map"), [{"when": {"a": {"near": 1}}, "emit": "end"}], "/events/map/0/when/a"),
    (("events", "map"), [{"when": {"a": {"matches": "("}}, "emit": "end"}], "/events/map/0/when/a/matches"),
    (("events", "map"), [{"when": {}, "emit": "message"}], "/events/map/0/text"),
    (("events", "map"), [{"when": {}, "emit": "message", "text": "@/x"}], "/events/map/0/text"),
    (("events", "unknown"), "drop", "/events/unknown"),
    (("outcome", "exit_ok"), [True], "/outcome/exit_ok"),
    (("limits", "wall_s"), -1, "/limits/wall_s"),
    (("limits", "max_model_requests"), "many", "/limits/max_model_requests"),
    (("tools", "calls", "read", "args"), {"file": "{nothing}"}, "/tools/calls/read/args/file"),
])
def test_each_wrong_field_is_named(path: tuple[str, ...], value: object, where: str) -> None:
    document = copy.deepcopy(small())
    target = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    assert where in problems_of(document)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"schema": 1, "schema": 2}', b"\xff"])
def test_what_is_no_object_is_one_clear_line(data: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_adapter(data, "mine.json")
    problem, = caught.value.problems
    assert str(problem).startswith("mine.json: is not one strict JSON object")


def test_a_name_that_is_not_there_suggests_one() -> None:
    with pytest.raises(InvalidInput, match="did you mean codex"):
        load.load("codx")
    with pytest.raises(InvalidInput, match="No such file"):
        load.load("./nothing.json")


def test_braces_that_are_no_placeholder_stay_and_doubled_ones_are_text() -> None:
    from consumers.core_agent.adapter import template

    values = {"model": "m", "tools_granted": ["a", "b"]}
    assert template.fill({"{model}": "${X} {\"a\": 1} {{model}}", "t": "{tools_granted}"}, values) == {
        "m": "${X} {\"a\": 1} {model}", "t": ["a", "b"],
    }
    assert template.fill_argv(["x={model}", "{tools_granted}"], values) == ["x=m", "a", "b"]
