"""verify, status, show, list, regrade as an auditor meets them: another folder, no checker, no original paths."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = ROOT / "tests" / "programs" / "checker.py"


@pytest.fixture
def evidence(run_py, write_case, tmp_path) -> pathlib.Path:
    """A sealed run of a passing and a failing case, moved away from where it was made; checker and cases are gone."""
    checker = tmp_path / "checker.py"
    shutil.copy(CHECKER, checker)
    good = write_case(id="good", command=[sys.executable, str(checker), "{report}", "pass"], not_scored=["this", "that"])
    bad = write_case(id="bad", command=[sys.executable, str(checker), "{report}", "fail"], identity_files=[str(checker)])
    done = run_py("check", "--case", good, "--case", bad, "--trials", 2, "-o", "made")
    assert done.returncode == 1
    for path in (checker, good, bad):
        path.unlink()
    elsewhere = tmp_path / "elsewhere" / "evidence"
    elsewhere.parent.mkdir()
    (tmp_path / "made").rename(elsewhere)
    return elsewhere


def trial_records(directory: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("trial.json"))}


def tree_of(directory: pathlib.Path) -> dict[str, tuple[bytes, int]]:
    return {str(p.relative_to(directory)): (p.read_bytes(), p.stat().st_mtime_ns) for p in directory.rglob("*") if p.is_file()}


def test_regrade_needs_only_the_directory_and_never_touches_it(run_py, evidence, tmp_path) -> None:
    before = tree_of(evidence)
    first = run_py("regrade", evidence, "-o", "first", "--json")
    second = run_py("regrade", evidence, "-o", "second", "--json")
    assert first.returncode == second.returncode == 1
    assert json.loads(first.stdout)["changes"] == {"same": 4, "changed": 0, "not_assessable": 0}
    assert trial_records(tmp_path / "first") == trial_records(tmp_path / "second")
    for name, data in trial_records(evidence).items():
        again = json.loads(trial_records(tmp_path / "first")[name])
        assert json.dumps(again["judgment"]) == json.dumps(json.loads(data)["judgment"])
    assert tree_of(evidence) == before
    plan = json.loads((tmp_path / "first" / "plan.json").read_text())
    assert plan["kind"] == "regrade"
    assert plan["source"]["seal"] == json.loads(run_py("status", evidence, "--json").stdout)["seal"]
    assert plan["source_sealed"] is True
    changes = json.loads((tmp_path / "first" / "changes.json").read_text())
    assert [entry["trial"] for entry in changes["trials"]] == ["good/001", "good/002", "bad/001", "bad/002"]
    assert changes["trials"][2]["before"] == changes["trials"][2]["after"] == {"verdict": "fail", "cause": None, "reasons": ["owner-failed"]}
    assert run_py("verify", "first").returncode == 0
    assert run_py("regrade", "first").returncode == 2, "a regrade holds no trials to judge"


def test_regrade_starts_no_process(run_py, evidence, tmp_path) -> None:
    log = tmp_path / "started"
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "def hook(event, args):\n"
        "    if event in ('subprocess.Popen', 'os.fork', 'os.posix_spawn', 'os.exec', 'socket.connect', 'os.system'):\n"
        f"        open({str(log)!r}, 'a').write(event + '\\n')\n"
        "sys.addaudithook(hook)\n"
    )
    done = run_py("regrade", evidence, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert not log.exists(), log.read_text()


@pytest.mark.parametrize("name", ["trials/bad/001/owner-report.json", "cases/good.json", "summary.json"])
def test_nothing_is_judged_when_the_evidence_does_not_hold(run_py, evidence, tmp_path, name: str) -> None:
    with open(evidence / name, "ab") as stream:
        stream.write(b" ")
    done = run_py("regrade", evidence, "-o", "new")
    assert done.returncode == 3
    assert f"{name}: changed" in done.stderr
    assert not (tmp_path / "new").exists()


def test_an_unsealed_directory_is_used_only_when_asked(run_py, evidence) -> None:
    (evidence / "manifest-sha256.txt").unlink()
    assert run_py("verify", evidence).returncode == 3
    assert "unsealed" in run_py("verify", evidence).stdout
    assert run_py("regrade", evidence).returncode == 2
    done = run_py("regrade", evidence, "--unsealed", "-o", "new", "--json")
    assert done.returncode == 1
    summary = json.loads(done.stdout)
    assert summary["source_sealed"] is False
    assert summary["changes"]["same"] == 4


def test_verify_names_each_kind(run_py, evidence) -> None:
    (evidence / "extra").write_text("x")
    (evidence / "trials/good/001/stdout.bin").write_text("x")
    (evidence / "cases/bad.json").unlink()
    (evidence / "link").symlink_to("plan.json")
    done = run_py("verify", evidence, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 3
    assert found["unexpected"] == ["extra", "trials/good/001/stdout.bin"] or found["changed"] == ["trials/good/001/stdout.bin"]
    assert found["missing"] == ["cases/bad.json"]
    assert found["unsafe"] == ["link"]


def test_status_counts(run_py, evidence) -> None:
    counts = json.loads(run_py("status", evidence, "--json").stdout)
    expected = {"planned": 4, "finished": 4, "passed": 2, "failed": 2, "void": 0, "interrupted": 0, "unrun": 0, "sealed": True}
    assert {name: counts[name] for name in expected} == expected
    assert "planned 4 = 2 passed, 2 failed" in run_py("status", evidence).stdout


def test_show_says_why_and_where(run_py, evidence) -> None:
    listed = run_py("show", evidence).stdout
    assert "bad/001  fail" in listed
    shown = run_py("show", evidence, "bad/1").stdout
    assert "owner-failed" in shown
    assert str(evidence / "trials/bad/001/owner-report.json") in shown
    for name in ("bad/003", "bad", "worse/001", "bad/x"):
        done = run_py("show", evidence, name)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_control_characters_in_evidence_never_reach_the_terminal(run_py, write_case) -> None:
    hostile = "\x1b]0;title\x07\x1b[2J\u202e"
    report = json.dumps({"passed": False, "checks": [{"id": f"x{hostile}", "passed": False, "detail": hostile}]})
    case = write_case(command=["sh", "-c", 'printf "%s" "$1" > "$0"; printf "\\033[2J"', "{report}", report], scope=f"scope {hostile}", not_scored=[hostile])
    runs = [run_py("check", "--case", case, "-o", "hostile"), run_py("check", "--case", case, "--dry-run")]
    runs += [run_py("show", "hostile", "case/001"), run_py("show", "hostile"), run_py("regrade", "hostile")]
    for done in runs:
        for text in (done.stdout, done.stderr):
            assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_last_and_list(run_py, write_case, tmp_path) -> None:
    case = write_case(command=[sys.executable, str(CHECKER), "{report}", "pass"])
    for _ in range(2):
        assert run_py("check", "--case", case).returncode == 0
    names = sorted(os.listdir(tmp_path / "target" / "agent-evals"), key=lambda name: (name.partition("-")[0], len(name), name))
    assert len(names) == 2, "two runs in the same second get two directories"
    assert names[-1] in run_py("status", "@last").stdout
    listed = run_py("list", "runs").stdout.splitlines()
    assert [line.split()[0].rsplit("/", 1)[1] for line in listed] == names
    assert "check" in run_py("list", "consumers").stdout
    assert run_py("list", "cases").returncode == 0


def test_help_names_every_command(run_py) -> None:
    shown = run_py("--help").stdout
    for name in ("check", "core-agent", "verify", "status", "show", "list", "regrade", "recheck", "rerun", "merge"):
        assert f"\n  {name}" in shown
    assert run_py("verify", "--help").returncode == 0
    assert run_py("--version").stdout.startswith("agent-eval ")


def test_it_works_from_any_folder_by_absolute_path(run_py, write_case, tmp_path) -> None:
    case = write_case(command=[sys.executable, str(CHECKER), "{report}", "pass"])
    other = tmp_path / "some" / "folder"
    other.mkdir(parents=True)
    assert run_py("check", "--case", case, cwd=other).returncode == 0
    assert (other / "target" / "agent-evals").is_dir()


def test_recheck_of_a_consumer_without_after_states_is_refused(run_py, evidence) -> None:
    done = run_py("recheck", evidence)
    assert done.returncode == 2
    assert "regrade" in done.stderr
