"""Shards and merge, reruns, and trials on an executor's workers: the denominator never changes silently."""

from __future__ import annotations

import json
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = str(ROOT / "tests" / "programs" / "checker.py")


@pytest.fixture
def cases(write_case) -> list[str]:
    found = []
    for index, action in enumerate(("pass", "fail", "pass")):
        found += ["--case", str(write_case(id=f"c{index}", command=[sys.executable, CHECKER, "{report}", action]))]
    return found


def shards(run_py, cases: list[str], count: int, *extra: str) -> list[str]:
    for index in range(1, count + 1):
        done = run_py("check", *cases, "--trials", 4, "--shard", f"{index}/{count}", "-o", f"s{index}", *extra)
        assert done.returncode in (0, 1), done.stderr
    return [f"s{index}" for index in range(1, count + 1)]


def counts(text: str) -> dict[str, int]:
    summary = json.loads(text)
    return {name: summary[name] for name in ("planned", "passed", "failed", "void", "interrupted", "unrun")}


def test_merged_shards_are_the_whole_run(run_py, cases, tmp_path) -> None:
    parts = shards(run_py, cases, 3)
    whole = json.loads(run_py("check", *cases, "--trials", 4, "-o", "whole", "--json").stdout)
    done = run_py("merge", *parts, "-o", "merged", "--json")
    merged = json.loads(done.stdout)
    assert done.returncode == whole["exit_code"] == 1
    assert counts(done.stdout) == counts(json.dumps(whole))
    for case_id, case in whole["cases"].items():
        assert {k: v for k, v in case.items() if k != "wall_s"} == {k: v for k, v in merged["cases"][case_id].items() if k != "wall_s"}
    plans = [json.loads((tmp_path / name / "plan.json").read_text()) for name in (*parts, "merged", "whole")]
    assert len({plan["plan_sha256"] for plan in plans}) == 1
    for index, name in enumerate(parts, 1):
        for file in (tmp_path / name).rglob("*"):
            if file.is_file():
                assert (tmp_path / "merged" / "parts" / str(index) / file.relative_to(tmp_path / name)).read_bytes() == file.read_bytes()
    assert run_py("verify", "merged").returncode == 0
    regraded = json.loads(run_py("regrade", "merged", "--json").stdout)
    assert regraded["changes"] == {"same": 12, "changed": 0, "not_assessable": 0}
    assert "c1/004: fail" in run_py("show", "merged", "c1/004").stdout


def test_a_report_of_a_shard_has_the_trials_of_the_shard(run_py, cases, tmp_path) -> None:
    shards(run_py, cases, 2)
    done = run_py("report", "s1", "--junit", "s1.xml", "-o", "s1.html")
    assert done.returncode == 0, done.stderr
    planned = json.loads((tmp_path / "s1" / "plan.json").read_text())["planned"]
    assert 0 < planned < 12
    assert f'tests="{planned}"' in (tmp_path / "s1.xml").read_text().split("\n")[1]
    assert (tmp_path / "s1.html").read_text().count('class="unrun"') == 0


def test_merge_refuses_gaps_overlaps_other_plans_and_damage(run_py, cases, tmp_path) -> None:
    parts = shards(run_py, cases, 3)
    assert run_py("check", *cases, "--trials", 3, "-o", "other").returncode == 1
    for arguments, word in ((parts[:2], "in no part"), ([*parts, parts[0]], "twice"), ([*parts, "other"], "another plan")):
        done = run_py("merge", *arguments, "-o", "merged")
        assert done.returncode == 2, arguments
        assert word in done.stderr
        assert not (tmp_path / "merged").exists()
    assert run_py("check", *cases, "--trials", 4, "--shard", "1/2", "-o", "half").returncode == 1
    done = run_py("merge", *parts, "half", "-o", "merged")
    assert done.returncode == 2
    assert "is in" in done.stderr
    partial = run_py("merge", *parts[:2], "--partial", "-o", "partial", "--json")
    assert counts(partial.stdout)["unrun"] == 4
    assert counts(partial.stdout)["planned"] == 12
    (tmp_path / "s3" / "summary.json").write_text("{}")
    done = run_py("merge", *parts, "-o", "merged")
    assert done.returncode == 3
    assert "s3: summary.json: changed" in done.stderr
    assert not (tmp_path / "merged").exists()


def test_rerun_of_what_was_left_completes_the_same_plan(run_py, cases, tmp_path) -> None:
    first = run_py("check", *cases, "--trials", 4, "-x", 1, "-o", "first", "--json")
    assert counts(first.stdout) == {"planned": 12, "passed": 4, "failed": 1, "void": 0, "interrupted": 0, "unrun": 7}
    rest = run_py("rerun", "--unrun", "first", "-o", "rest", "--json")
    assert counts(rest.stdout)["planned"] == 7
    plan = json.loads((tmp_path / "rest" / "plan.json").read_text())
    assert plan["kind"] == "rerun"
    assert plan["source"]["seal"] == json.loads(first.stdout)["seal"]
    merged = run_py("merge", "first", "rest", "-o", "merged", "--json")
    assert counts(merged.stdout) == {"planned": 12, "passed": 8, "failed": 4, "void": 0, "interrupted": 0, "unrun": 0}
    again = json.loads(merged.stdout)
    assert (again["rerun_after_interrupt"], again["rerun_after_unrun"]) == (0, 7), "what was never started was not interrupted"
    assert run_py("rerun", "--unrun", "rest").returncode == 2, "nothing is left"


def test_rerun_refuses_when_something_frozen_differs(run_py, cases, tmp_path) -> None:
    assert run_py("check", *cases, "--trials", 4, "-x", 1, "-o", "first").returncode == 1
    path = pathlib.Path(cases[1])
    path.write_text(path.read_text().replace("what a test needs", "something else"))
    done = run_py("rerun", "--unrun", "first", "-o", "rest")
    assert done.returncode == 2
    assert "cases: differs" in done.stderr
    assert not (tmp_path / "rest").exists()


def test_rerun_for_debugging(run_py, cases, tmp_path) -> None:
    assert run_py("check", *cases, "--trials", 2, "-o", "first").returncode == 1
    failed = run_py("rerun", "--failed", "first", "--json")
    assert counts(failed.stdout)["planned"] == 2
    one = run_py("rerun", "first", "c0/002", "--keep-workspace", "--json")
    assert counts(one.stdout)["passed"] == 1
    kept = next(line for line in one.stderr.splitlines() if "kept" in line).split()[-1]
    assert (pathlib.Path(kept) / "owner-report.json").is_file(), "as the checker left it, though the evidence has it too"
    shutil.rmtree(kept)
    for arguments in (["first"], ["first", "c0/009"], ["first", "x"], ["first", "--unrun", "--failed"]):
        assert run_py("rerun", *arguments).returncode == 2


def test_a_process_pool_gives_the_same_judgments(run_py, cases) -> None:
    here = json.loads(run_py("check", *cases, "--trials", 2, "--json").stdout)
    done = run_py("check", *cases, "--trials", 2, "-j", 2, "--executor", "concurrent.futures:ProcessPoolExecutor", "--json")
    there = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert counts(done.stdout) == counts(json.dumps(here))
    for case_id in here["cases"]:
        for number in ("001", "002"):
            mine, theirs = (json.loads((pathlib.Path(s["path"]) / "trials" / case_id / number / "trial.json").read_text()) for s in (here, there))
            assert mine["judgment"] == theirs["judgment"]
            assert mine["files"] == theirs["files"]
    assert run_py("regrade", there["path"]).returncode == 1


def test_a_worker_that_dies_makes_its_trials_void_and_nothing_is_retried(run_py, write_case, tmp_path) -> None:
    killer = "import os, signal, sys\npid = os.getppid()\nfor _ in range(2):\n    pid = int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])\nopen(sys.argv[2], 'a').write('x')\nos.kill(pid, signal.SIGKILL)\n"
    (tmp_path / "killer.py").write_text(killer)
    case = write_case(command=[sys.executable, str(tmp_path / "killer.py"), "{report}", str(tmp_path / "runs")])
    done = run_py("check", "--case", case, "--trials", 3, "--executor", "concurrent.futures:ProcessPoolExecutor", "--json")
    assert done.returncode == 4, done.stderr
    assert counts(done.stdout)["void"] == 3
    assert (tmp_path / "runs").read_text() == "x"
    path = pathlib.Path(json.loads(done.stdout)["path"])
    trial = json.loads((path / "trials/case/001/trial.json").read_text())
    assert trial["judgment"]["cause"] == "worker-lost"
    assert run_py("regrade", path, "--json").returncode == 4


def test_a_worker_with_another_plan_refuses(run_py, cases, tmp_path) -> None:
    (tmp_path / "changing.py").write_text(
        "import concurrent.futures, dataclasses\n"
        "class Changing(concurrent.futures.ThreadPoolExecutor):\n"
        "    def submit(self, call, trial):\n"
        "        return super().submit(call, dataclasses.replace(trial, plan_sha256='0' * 64))\n"
    )
    done = run_py("check", *cases, "--executor", "changing:Changing", "--json", env={"PYTHONPATH": str(tmp_path)})
    assert counts(done.stdout)["void"] == 3, done.stderr


@pytest.mark.parametrize("text", ["nonsense", "json:nothing", "nowhere_at_all:x", "json:dumps", "builtins:dict"])
def test_what_makes_no_executor_is_refused(run_py, cases, text: str) -> None:
    done = run_py("check", *cases, "--executor", text)
    assert done.returncode == 2
    assert "--executor" in done.stderr
