"""A trial is named CASE/NNN in ASCII digits, wherever a command takes one."""

from __future__ import annotations

import sys

import pytest

from agent_eval.evidence.layout import parse_trial_name

NAMELESS = ["ok/\u0660\u0660\u0661", "ok/\u00b2", "ok/" + "9" * 5000, "ok/1 ", "ok/+1", "ok/1_0", "ok/-1", "ok/", "/001", "ok", "001", "", "ok/1/"]


@pytest.mark.parametrize(("text", "expected"), [("ok/001", ("ok", 1)), ("ok/1", ("ok", 1)), ("edit@1/020", ("edit@1", 20)), ("a.b-c/9999", ("a.b-c", 9999))])
def test_what_names_a_trial(text: str, expected: tuple[str, int]) -> None:
    assert parse_trial_name(text) == expected


@pytest.mark.parametrize("text", NAMELESS)
def test_what_names_none(text: str) -> None:
    assert parse_trial_name(text) is None


def test_commands_that_take_a_trial_refuse_what_names_none(run_py, write_case, tmp_path) -> None:
    program = "import json, sys; json.dump({'passed': True}, open(sys.argv[1], 'w'))"
    assert run_py("check", "--case", write_case(id="ok", command=[sys.executable, "-c", program, "{report}"]), "-o", "e").returncode == 0
    for text in ("ok/\u0660\u0660\u0661", "ok/\u00b2", "ok/" + "9" * 5000):
        for command in (("rerun", "e", text), ("show", "e", text), ("core-agent", "--receipt", f"e/trials/{text}")):
            done = run_py(*command, "-o", tmp_path / "new") if command[0] == "rerun" else run_py(*command)
            assert done.returncode == 2, command[0]
            assert done.stderr.count("\n") == 1 and done.stderr.startswith("error: "), done.stderr[:300]
            assert not (tmp_path / "new").exists()
    assert run_py("rerun", "e", "ok/001", "-q").returncode == 0
    assert "ok/001: pass" in run_py("show", "e", "ok/1").stdout
