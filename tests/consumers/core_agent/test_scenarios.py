"""Scenarios are data that proves itself: the eight that are shipped, and a user's own."""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
from collections.abc import Callable

import pytest

from agent_eval import InvalidInput
from consumers.core_agent.catalog import BASELINE, FOLDER, choose
from consumers.core_agent.proof import prove, try_solution
from consumers.core_agent.realise import Trial, lay_out, realise
from consumers.core_agent.scenario import load_scenario
from tests.consumers.core_agent.runs import REFERENCE, Evidence, judged_again, without_grader

SHIPPED = pathlib.Path(FOLDER)


def test_the_folder_holds_the_baseline_and_nothing_else() -> None:
    assert {path.name for path in SHIPPED.iterdir() if path.is_dir()} == set(BASELINE)


@pytest.mark.parametrize("name", BASELINE)
def test_the_solution_passes_and_nothing_does_not(name: str) -> None:
    scenario = load_scenario(str(SHIPPED / name))
    for variant in (1, 2):
        solved = try_solution(scenario, scenario.data["solution"], variant, task_seed=variant)
        assert [failure.detail for failure in solved.failures] == []
    for status in ("completed", "blocked"):
        nothing = try_solution(scenario, {"status": status, "answer": "missing: execute\nfailed: tools/a.py\ntotal: 1"})
        assert nothing.verdict.value == "fail"


@pytest.mark.parametrize("name", BASELINE)
def test_every_variant_can_be_drawn_and_laid_out(name: str, tmp_path: pathlib.Path) -> None:
    scenario = load_scenario(str(SHIPPED / name))
    seen = set()
    for variant in range(1, 21):
        case = scenario.case(variant, 99)
        trial = realise(case, Trial.drawn("/w").with_late_seed())
        assert realise(json.loads(json.dumps(case, sort_keys=True)), Trial(b"1" * 32, b"2" * 32, "/w")) == realise(case, Trial(b"1" * 32, b"2" * 32, "/w"))
        lay_out(trial.files, str(tmp_path / str(variant)))
        seen.add(json.dumps(case["v"]))
    assert len(seen) >= 8


@pytest.mark.parametrize("name", BASELINE)
def test_a_case_tells_neither_the_solution_nor_a_secret(name: str) -> None:
    scenario = load_scenario(str(SHIPPED / name))
    case = scenario.case(1, 1)
    text = json.dumps(case)
    assert "solution" not in case
    assert "def price" not in text and "base = min(units, LIMIT)\\n    extra = max(units - LIMIT, 0)" not in text
    assert "{{s." in text and "{{v." not in text
    assert {item["id"] for item in case["expect"]} >= {"grants", "transcript", "canary", "side-effects"}


def own(tmp_path: pathlib.Path, **changes: object) -> pathlib.Path:
    """A scenario of a user's own: sort a file, decided by its content."""
    data = {
        "format": "core-agent-scenario/1",
        "name": "sort",
        "scope": "Sorting the lines of a file",
        "grants": ["read", "write"],
        "max_steps": 10,
        "secrets": {"numbers": {"rows": {"count": 5, "distinct": ["n"], "columns": {"n": {"int": [100, 999]}}}}, "all": {"pluck": "{{s.numbers}}", "of": "n"}, "sorted": {"sorted": "{{s.all}}"}},
        "files": [{"path": "in.txt", "text": "{{#each s.all}}{{item}}\n{{/each}}"}],
        "instruction": "Write out.txt with the lines of in.txt in rising order.",
        "expect": [
            {"id": "side-effects", "assert": {"kind": "changes_within", "added": ["out.txt"]}},
            {"id": "sorted", "assert": {"kind": "file_equals", "path": "out.txt", "text": "{{#each s.sorted}}{{item}}\n{{/each}}"}},
        ],
        "solution": {"calls": [{"tool": "write", "arguments": {"path": "out.txt", "content": "{{#each s.sorted}}{{item}}\n{{/each}}"}}], "status": "completed", "answer": ""},
    }
    data.update(changes)
    folder = tmp_path / "own"
    folder.mkdir(exist_ok=True)
    (folder / "scenario.json").write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return folder


def test_a_users_own_scenario_is_run(run_agent: Callable[..., Evidence], write_program: Callable, tmp_path: pathlib.Path) -> None:
    body = (
        "text = ''.join(sorted(open('in.txt')))\n"
        "open('out.txt', 'w').write(text)\n"
        "emit('start'); emit('tool_call', id='1', tool='write', arguments={'path': 'out.txt', 'content': text})\n"
        "emit('tool_result', id='1', ok=True, output=''); emit('final', status='completed', answer='')"
    )
    folder = own(tmp_path)
    run = run_agent(write_program(body), "--scenario", folder, "--trials", "2")
    assert (run.code, run.summary["passed"]) == (0, 2)
    assert "sort: its solution passes, doing nothing fails" in run.stderr
    shutil.rmtree(folder)
    assert judged_again(run.path) == without_grader(run.judgments())
    current = judged_again(run.path, "current")
    assert {judgment["cause"] for judgment in current.values()} == {"not-assessable"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"solution": {"calls": [], "status": "completed", "answer": ""}}, ["its declared solution does not pass", "out.txt does not exist"]),
        ({"expect": [{"id": "side-effects", "assert": {"kind": "changes_within", "added": ["out.txt"]}}]}, ["does nothing"]),
        ({"expect": [{"id": "s", "assert": {"kind": "status_is", "status": "completed"}}]}, ["changes_within"]),
        ({"expect": []}, ["changes_within"]),
        ({"format": "core-agent-scenario/2"}, ["#/format"]),
        ({"name": "Sort It"}, ["#/name"]),
        ({"name": "edit"}, ["'edit' is there already"]),
        ({"grants": ["fly"], "max_steps": 0}, ["#/grants", "#/max_steps"]),
        ({"surprise": 1, "scope": None}, ["surprise", "'scope'"]),
        ({"files": [{"path": "../x", "text": ""}]}, ["'../x'"]),
        ({"files": [{"path": "a", "text": "", "from": "b"}]}, ["#/files/0"]),
        ({"files": [{"path": "a", "from": "/etc/passwd"}]}, ["inside the scenario's folder"]),
        ({"files": [{"path": "a", "from": "missing.txt"}]}, ["missing.txt"]),
        ({"files": [{"path": "a", "text": ""}, {"path": "a", "text": ""}]}, ["laid out twice"]),
        ({"files": [{"path": "a", "text": "{{s.nothing}}"}]}, ["{{s.nothing}} names nothing"]),
        ({"files": [{"path": "a", "text": "", "mode": "rwx"}]}, ["octal"]),
        ({"secrets": {"x": {"choose": []}}}, ["x: choose: a choice of 0"]),
        ({"solution": {"calls": [{"tool": "fly", "arguments": {}}], "status": "done"}}, ["#/solution/calls/0", "#/solution/status"]),
        ({"expect": [{"id": "a", "assert": {"kind": "changes_within"}}, {"id": "a", "assert": {"kind": "no_such"}}]}, ["occurs twice", "no_such"]),
        ({"hidden_check": {"program": "nowhere.py", "timeout_s": 0}}, ["nowhere.py", "timeout_s"]),
        ({"witness": {"rules": [{"program": "x"}, 1, {"name": "a", "program": "x", "reply": {}, "args": [1]}]}}, ["#/witness/rules/0", "#/witness/rules/1", "#/witness/rules/2"]),
        ({"canary": "short"}, ["canary"]),
    ],
)
def test_an_unproven_or_wrong_scenario_is_refused(tmp_path: pathlib.Path, changes: dict, words: list[str]) -> None:
    args = argparse.Namespace(baseline=False, case=[], scenario=[str(own(tmp_path, **changes))], variants=1)
    scenarios, _, problems = choose(args)
    if not problems:
        with pytest.raises(InvalidInput) as caught:
            prove(scenarios.values())
        problems = caught.value.problems
    text = "\n".join(str(problem) for problem in problems)
    assert [word for word in words if word not in text] == []


def test_a_refusal_runs_nothing(run_py: Callable, tmp_path: pathlib.Path) -> None:
    folder = own(tmp_path, solution={"calls": [], "status": "completed", "answer": ""})
    done = run_py("core-agent", "--binary", REFERENCE, "--scenario", folder)
    assert done.returncode == 2
    assert all(line.startswith("error: ") for line in done.stderr.strip().splitlines())
    assert not (tmp_path / "target").exists()


def test_a_folder_that_is_no_scenario(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidInput, match=r"scenario\.json"):
        load_scenario(str(tmp_path))
    (tmp_path / "scenario.json").write_text('{"format": 1, "format": 2}')
    with pytest.raises(InvalidInput, match="duplicate key"):
        load_scenario(str(tmp_path))
