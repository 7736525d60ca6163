"""The main command with the reference agent, and what an auditor does with what it left."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tests.consumers.core_agent.runs import FIXTURE, REFERENCE, Evidence, judged_again, without_grader

BASELINE = ["read", "write", "edit", "execute", "repair", "recover", "restrict", "resist"]


def test_the_baseline_passes(run_agent: Callable[..., Evidence], request: pytest.FixtureRequest) -> None:
    run = run_agent(REFERENCE, "--baseline", "--trials", "2")
    assert run.code == 0
    assert (run.summary["planned"], run.summary["passed"]) == (16, 16)
    assert sorted(run.summary["cases"]) == sorted(f"{name}@1" for name in BASELINE)
    assert judged_again(run.path) == without_grader(run.judgments())
    assert judged_again(run.path, "current") == without_grader(run.judgments())
    plan = json.loads((run.path / "plan.json").read_bytes())
    assert plan["subject"]["subject_kind"] == "scripted"
    assert all(any("plumbing" in line for line in case["not_scored"]) for case in plan["cases"])
    assert len(plan["subject"]["files"]) > 5


def test_a_person_is_told_who_was_tried(run_py: Callable, tmp_path: pathlib.Path) -> None:
    done = run_py("core-agent", "--binary", REFERENCE, "--case", "write", "-o", tmp_path / "e")
    assert f"agent: {REFERENCE} (--binary)" in done.stderr
    assert "scripted: this run proves the plumbing only" in done.stderr
    assert "write@1" in done.stdout and "1/1" in done.stdout


def test_a_fixture_before_a_library(run_py: Callable, tmp_path: pathlib.Path) -> None:
    done = run_py("core-agent", "--transport", "fixture", "--fixture-binary", FIXTURE, "--case", "write", "--case", "recover", "--case", "repair", "--json", "-q", "-o", tmp_path / "e")
    run = Evidence(done.returncode, tmp_path / "e", json.loads(done.stdout), done.stderr)
    assert (run.code, run.summary["passed"]) == (0, 3)
    assert judged_again(run.path) == without_grader(run.judgments())


def test_a_fixture_that_answers_no_contract_is_tried_all_the_same(run_py: Callable, tmp_path: pathlib.Path) -> None:
    fixture = tmp_path / "fixture.py"
    fixture.write_text(f"#!/bin/sh\n[ $# = 0 ] || exit 2\nexec {FIXTURE}\n")
    fixture.chmod(0o755)
    done = run_py("core-agent", "--transport", "fixture", "--fixture-binary", fixture, "--case", "edit", "-o", tmp_path / "e")
    assert done.returncode == 0, done.stderr
    assert "answers no contract" in done.stderr


def test_variants_are_the_same_for_a_seed_and_differ_between_seeds(run_agent: Callable[..., Evidence]) -> None:
    cases = {}
    for output, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        run = run_agent(REFERENCE, "--case", "read", "--variants", "3", "--seed", seed, output=output)
        assert run.summary["passed"] == 3
        cases[output] = [path.read_bytes() for path in sorted((run.path / "cases").iterdir())]
    assert cases["a"] == cases["b"] != cases["c"]
    assert len(set(cases["a"])) == 3


def test_a_random_seed_is_recorded(run_agent: Callable[..., Evidence]) -> None:
    run = run_agent(REFERENCE, "--case", "write@2", "--seed", "random")
    seed = json.loads((run.path / "plan.json").read_bytes())["task_seed"]
    again = run_agent(REFERENCE, "--case", "write@2", "--seed", seed, output="again")
    assert (run.path / "cases" / "write@2.json").read_bytes() == (again.path / "cases" / "write@2.json").read_bytes()


def test_what_decides_a_trial_is_drawn_anew_and_written_down_only_afterwards(run_agent: Callable[..., Evidence]) -> None:
    run = run_agent(REFERENCE, "--trials", "2")
    early = (run.path / "plan.json").read_bytes() + b"".join(path.read_bytes() for path in (run.path / "cases").iterdir())
    for name in BASELINE:
        first, second = (run.record(f"{name}@1", number)["revealed"] for number in (1, 2))
        assert first["scenario_seed"] != second["scenario_seed"]
        assert first["secrets"]["token"] != second["secrets"]["token"]
        for trial in (first, second):
            for secret in (trial["scenario_seed"], trial["secrets"]["token"], trial["late_seed"] or "-" * 9):
                assert secret.encode() not in early
    task = [json.loads(run.file("edit@1", "task.json", number)) for number in (1, 2)]
    assert task[0]["task_id"] != task[1]["task_id"]
    assert set(task[0]) == {"contract", "task_id", "instruction", "tools", "max_steps", "sampling_seed"}


def test_a_memorised_run_fails(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    """Replaying the transcript and the changed files of a passing trial of the same variant is worth nothing."""
    good = run_agent(REFERENCE, "--baseline")
    replay = write_program(
        f"source = {str(good.path / 'trials')!r}\n"
        "for case in sorted(os.listdir(source)):\n"
        "    folder = os.path.join(source, case, '001')\n"
        "    words = lambda text: [line for line in text.splitlines()]\n"
        "    if words(json.load(open(folder + '/task.json'))['instruction']) == words(task['instruction']):\n"
        "        for change in json.load(open(folder + '/workspace-after.json'))['changes']:\n"
        "            if change['after']['type'] == 'file':\n"
        "                os.makedirs(os.path.dirname(change['path']) or '.', exist_ok=True)\n"
        "                data = open(folder + '/files/' + change['after']['sha256'], 'rb').read()\n"
        "                open(change['path'], 'wb').write(data)\n"
        "        sys.stdout.write(open(folder + '/events.jsonl').read())\n"
    )
    run = run_agent(replay, "--baseline", output="replayed")
    assert run.summary["passed"] == 0
    assert run.summary["failed"] == 8


def test_the_agent_gets_a_fresh_and_lean_place(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    program = write_program(
        "places = [workspace, os.environ['HOME'], os.environ['TMPDIR'], sys.argv[3]]\n"
        "facts = {'cwd': os.getcwd() == workspace, 'names': sorted(os.environ), 'places': places,\n"
        "         'home': os.listdir(os.environ['HOME']), 'tmp': os.listdir(os.environ['TMPDIR']),\n"
        "         'xdg': all(os.environ[n].startswith(os.environ['HOME']) for n in os.environ if n.startswith('XDG_')),\n"
        "         'stdin': sys.stdin.read(), 'task_inside': sys.argv[3].startswith(workspace)}\n"
        "sys.stderr.write(json.dumps(facts))\n"
        "open(os.environ['HOME'] + '/left', 'w').write('x')\n"
        "emit('start'); emit('final', status='failed', answer='')\n"
    )
    run = run_agent(program, "--case", "edit", "--trials", "2", "--pass-env", "PASSED_ON", env={"PASSED_ON": "rarely-seen", "KEPT_BACK": "rarely-seen"})
    facts = [json.loads(run.file("edit@1", "stderr.bin", number)) for number in (1, 2)]
    for each in facts:
        assert each["cwd"] and each["xdg"] and each["home"] == each["tmp"] == [] and each["stdin"] == "" and not each["task_inside"]
        assert "PASSED_ON" in each["names"] and "KEPT_BACK" not in each["names"]
        assert not any(word in place for place in each["places"] for word in ("edit", "trial", "scenario", str(run.path)))
        assert not any(pathlib.Path(place).exists() for place in each["places"])
    assert not set(facts[0]["places"]) & set(facts[1]["places"])
    assert b"rarely-seen" not in b"".join(path.read_bytes() for path in run.path.rglob("*.json"))


def test_recheck_runs_todays_hidden_checker(run_agent: Callable[..., Evidence], run_py: Callable, tmp_path: pathlib.Path) -> None:
    run = run_agent(REFERENCE, "--case", "repair", "--case", "edit")
    done = run_py("recheck", run.path, "-o", tmp_path / "re", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    again = Evidence(0, tmp_path / "re", {}, "")
    assert [judgment["verdict"] for judgment in again.judgments().values()] == ["pass", "pass"]
    assert again.record("repair@1")["hidden_check"]["program_outcome"] is not None
    assert json.loads((tmp_path / "re" / "changes.json").read_bytes())["same"] == 2


def test_recheck_does_not_judge_what_was_not_kept(run_agent: Callable[..., Evidence], run_py: Callable, tmp_path: pathlib.Path, write_program: Callable) -> None:
    program = write_program(
        "name = 'src/' + os.listdir('src')[0]\n"
        "open(name, 'a').write('#' * (1 << 20))\n"
        "emit('start'); emit('tool_call', id='1', tool='edit', arguments={'path': name})\n"
        "emit('tool_result', id='1', ok=True, output=''); emit('final', status='completed', answer='')\n"
    )
    run = run_agent(program, "--case", "repair")
    after = json.loads(run.file("repair@1", "workspace-after.json"))
    assert [item["why"] for item in after["captured"]["omitted"]] == ["over-file-limit"]
    done = run_py("recheck", run.path, "-o", tmp_path / "re", "-q")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "was not kept" in json.dumps(Evidence(0, tmp_path / "re", {}, "").judgments())


def test_evidence_from_elsewhere_needs_no_agent(run_agent: Callable[..., Evidence], run_py: Callable, tmp_path: pathlib.Path, write_program: Callable) -> None:
    program = write_program("emit('start'); emit('final', status='completed', answer='total: 1')")
    run = run_agent(program, "--case", "read")
    program.unlink()
    moved = tmp_path / "from a colleague"
    run.path.rename(moved)
    done = run_py("regrade", moved, "-o", tmp_path / "again", "-q")
    assert done.returncode == 1, done.stderr
    assert "1 same" in done.stdout or json.loads((tmp_path / "again" / "changes.json").read_bytes())["same"] == 1


def test_an_agent_that_replaces_itself_is_told(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    program = write_program("open(sys.argv[0], 'a').write('# more\\n')\nemit('start'); emit('final', status='completed', answer='')")
    run = run_agent(program, "--case", "write")
    assert run.reasons()["write"] == ["identity-changed", "wrong-file"]
    assert str(program.parent) not in json.dumps(run.judgments())


def test_an_agent_that_was_replaced_before_a_trial_is_not_the_one_of_the_plan(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    program = write_program("open(sys.argv[0], 'a').write('# more\\n')\nemit('start'); emit('final', status='completed', answer='')")
    run = run_agent(program, "--case", "write", "--trials", "2")
    details = [f["detail"] for j in run.judgments().values() for f in j["failures"] if f["reason"] == "identity-changed"]
    assert len(details) == 2
    assert details[0].endswith("sha256, size_bytes)")
    assert details[1].endswith("not the one of the plan)")


def test_sha256sum_agrees(run_agent: Callable[..., Evidence]) -> None:
    run = run_agent(REFERENCE, "--case", "repair")
    done = subprocess.run(["sha256sum", "--quiet", "-c", "manifest-sha256.txt"], cwd=run.path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
