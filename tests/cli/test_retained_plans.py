"""A plan that somebody else wrote: what does not hold of it is one line and exit 3, and nothing is written."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from agent_eval.cli.main import main
from agent_eval.records.plan import plan_sha256

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = str(ROOT / "tests" / "programs" / "checker.py")
COMMANDS = (["verify", "b"], ["merge", "a", "b"], ["regrade", "b"], ["compare", "a", "b"], ["status", "b"], ["show", "b"])
MISSING = object()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> pathlib.Path:
    """A folder with two shards ``a`` and ``b``, and ``r``, a rerun of what ``first`` had left."""
    folder = tmp_path_factory.mktemp("plans")
    case = {"id": "case", "scope": "what a test needs", "not_scored": ["x"], "command": [sys.executable, CHECKER, "{report}", "fail"]}
    (folder / "case.json").write_text(json.dumps(case))
    trials = ["check", "--case", str(folder / "case.json"), "--trials", "2"]
    commands = [[*trials, "--shard", f"{index}/2", "-o", name] for index, name in ((1, "a"), (2, "b"))]
    for command in (*commands, [*trials, "-x", "1", "-o", "first"], ["rerun", "--unrun", "first", "-o", "r"]):
        assert subprocess.run([sys.executable, str(ROOT / "run.py"), *command], cwd=folder, capture_output=True, timeout=60).returncode == 1
    return folder


@pytest.fixture
def copy(made, tmp_path, monkeypatch) -> pathlib.Path:
    """A copy to be changed, which is also the current folder."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def change(directory: pathlib.Path, digest: bool = False, **fields: Any) -> None:
    """Change fields of the plan, and seal the directory as anybody can; with ``digest`` the plan's too."""
    plan = json.loads((directory / "plan.json").read_text())
    plan = {name: value for name, value in (plan | fields).items() if value is not MISSING}
    if digest:
        plan["plan_sha256"] = plan_sha256(plan)
    (directory / "plan.json").write_text(json.dumps(plan))
    names = sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file() and file.name != "manifest-sha256.txt")
    lines = [f"{hashlib.sha256((directory / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (directory / "manifest-sha256.txt").write_text("".join(lines))


def assert_refused(capsys, command: list[str], text: str, code: int = 3) -> None:
    before = sorted(os.listdir("."))
    capsys.readouterr()
    found = main(command)
    errors = capsys.readouterr().err
    assert found == code, (command, errors)
    assert text in errors and errors.count("\n") == 1, (command, errors)
    assert set(os.listdir(".")) - set(before) <= {"target"}
    assert not os.path.exists("target") or not os.listdir("target/agent-evals")


@pytest.mark.parametrize(
    "fields",
    [
        {"trials": 7, "planned": 1},
        {"limits": {"timeout_s": 1, "max_output_bytes": 1024, "grace_s": 0}},
        {"subject": {}},
        {"task_seed": 5},
        {"plan_sha256": "0" * 64},
        {"evaluator": {"version": "9", "source_sha256": "0" * 64}},
    ],
)
def test_a_plan_that_is_not_what_its_digest_names(copy, capsys, fields: dict[str, Any]) -> None:
    change(copy / "b", **fields)
    for command in (["verify", "b"], ["merge", "a", "b"], ["merge", "b", "a"], ["regrade", "b"], ["compare", "a", "b"], ["rerun", "--unrun", "b"]):
        assert_refused(capsys, command, "plan.json: is not the plan that its plan_sha256 names")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("trials", [MISSING, "2", -1, 10**9, True]),
        ("cases", [MISSING, {}, [5], [{"id": "../x"}]]),
        ("chosen", [5, {"case": [7]}, {"case": [1, 1]}, {"case": 1}, {"other": [1]}, {"case": ["1"]}]),
        ("planned", [MISSING, 5, "1"]),
        ("plan_sha256", [MISSING, 5, "x"]),
        ("kind", ["nonsense", 5, None]),
        ("run_id", [MISSING, 5, ""]),
        ("consumer", [MISSING, 5]),
        ("evaluator", [MISSING, 5, {}, {"version": 1, "source_sha256": "0" * 64}]),
        ("argv", [MISSING, 5, [5]]),
        ("limits", [MISSING, [], {}, {"timeout_s": "x", "max_output_bytes": 1, "grace_s": 1}]),
        ("subject", [MISSING, 5]),
        ("task_seed", [MISSING, "x"]),
        ("rerun", ["nonsense", 5]),
        ("counted", [5, {}]),
        ("parts", [5, [5]]),
    ],
)
def test_a_plan_of_another_shape(copy, capsys, name: str, values: list[Any]) -> None:
    for value in values:
        change(copy / "b", **{name: value})
        for command in (*COMMANDS, ["rerun", "--unrun", "b"]):
            assert_refused(capsys, command, "plan.json: ")
        shutil.rmtree(copy / "b")
        shutil.copytree(copy / "a", copy / "b")


@pytest.mark.parametrize("value", [MISSING, 5, {}, {"run_id": "x", "seal": 5}, {"run_id": 5, "seal": None}])
def test_a_rerun_that_does_not_say_of_what(copy, capsys, value: Any) -> None:
    change(copy / "r", source=value)
    assert_refused(capsys, ["merge", "first", "r"], "source does not say what was rerun")


@pytest.mark.parametrize(
    ("argv", "text", "code"),
    [
        ([], "argv is no command line of check", 3),
        (["verify", "x"], "argv is no command line of check", 3),
        (["check", "--help"], "--help", 2),
        (["check", "-h"], "-h", 2),
        (["check"], "--case", 2),
        (["check", "--nonsense"], "--nonsense", 2),
    ],
)
def test_a_retained_command_line_that_plans_nothing(copy, capsys, argv: list[str], text: str, code: int) -> None:
    change(copy / "first", argv=argv)
    assert_refused(capsys, ["rerun", "--unrun", "first"], text, code)


def test_a_part_that_reran_what_reran_it(copy, capsys) -> None:
    for name, other in (("a", "y"), ("b", "x")):
        change(copy / name, kind="rerun", rerun="unrun", run_id={"a": "x", "b": "y"}[name], source={"run_id": other, "seal": None})
        (copy / name / "manifest-sha256.txt").unlink()
        (copy / name / "journal.jsonl").write_text("")
    assert main(["merge", "a", "b", "--unsealed"]) == 2
    assert capsys.readouterr().err.count("reran a directory that in turn reran it") == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("unrecorded", 5), ("unrecorded", ["case/009"]), ("unrecorded", [5]), ("unrecorded", ["case/002"]), ("unrecorded_judgments", 5)],
)
def test_a_summary_that_misstates_what_has_no_record(copy, capsys, name: str, value: Any) -> None:
    summary = json.loads((copy / "b/summary.json").read_text())
    (copy / "b/summary.json").write_text(json.dumps(summary | {name: value}))
    change(copy / "b")
    for command in (["merge", "a", "b"], ["regrade", "b"], ["rerun", "--unrun", "b"], ["report", "b", "-o", "b.html"]):
        assert_refused(capsys, command, "summary.json: ")


@pytest.mark.parametrize("value", [MISSING, "1", None])
def test_a_summary_that_does_not_count(copy, capsys, value: Any) -> None:
    summary = json.loads((copy / "b/summary.json").read_text()) | {"failed": value}
    (copy / "b/summary.json").write_text(json.dumps({name: found for name, found in summary.items() if found is not MISSING}))
    change(copy / "b")
    for command in (["status", "b"], ["show", "b"], ["report", "b"]):
        assert_refused(capsys, command, "summary.json: ")


@pytest.mark.parametrize("value", [MISSING, 5, {}, {"verdict": "maybe"}])
def test_a_record_without_a_judgment_of_this_format(copy, capsys, value: Any) -> None:
    record = copy / "b/trials/case/002/trial.json"
    fields = json.loads(record.read_text()) | {"judgment": value}
    record.write_text(json.dumps({name: found for name, found in fields.items() if found is not MISSING}))
    change(copy / "b")
    assert_refused(capsys, ["merge", "a", "b"], "trials/case/002/trial.json: ")
    assert_refused(capsys, ["rerun", "--unrun", "b"], "trials/case/002/trial.json: ")


@pytest.mark.parametrize("fields", [{"identity": 5}, {"identity": {}}, {"outcome": {}}, {"request": MISSING, "identity": MISSING, "outcome": MISSING}])
def test_a_record_that_cannot_be_judged_again(copy, capsys, fields: dict[str, Any]) -> None:
    record = copy / "b/trials/case/002/trial.json"
    found = json.loads(record.read_text()) | fields
    record.write_text(json.dumps({name: value for name, value in found.items() if value is not MISSING}))
    change(copy / "b")
    assert_refused(capsys, ["regrade", "b"], "case/002")


# Evidence is never written into.


@pytest.mark.parametrize("folder", ["a", "a/trials/case"])
def test_without_a_name_nothing_is_made_inside_evidence(run_py, copy, folder: str) -> None:
    before = sorted(map(str, (copy / "a").rglob("*")))
    case, a, b = str(copy / "case.json"), str(copy / "a"), str(copy / "b")
    for command in (["check", "--case", case], ["merge", a, b], ["regrade", a], ["compare", a, b], ["rerun", a, "case/001"]):
        done = run_py(*command, cwd=copy / folder)
        assert done.returncode == 2, command
        assert f"would lie inside the evidence in {copy}/a; name a new directory with --output" in done.stderr
    for command in (["report", b], ["attest", b, "-o", "x.json"], ["check", "--case", case, "--junit", "x.xml", "-o", str(copy / "new")]):
        done = run_py(*command, cwd=copy / folder)
        assert done.returncode == 2, command
        assert "lies inside the evidence directory" in done.stderr
    assert sorted(map(str, (copy / "a").rglob("*"))) == before
    assert run_py("regrade", a, "-o", copy / "elsewhere", cwd=copy / folder).returncode == 1
    assert run_py("verify", a).returncode == 0
