"""``check`` as a domain owner meets it: real processes, exit codes, one line per problem."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = str(ROOT / "tests" / "programs" / "checker.py")


def command(action: str, *rest: str) -> list[str]:
    return [sys.executable, CHECKER, "{report}", action, *rest]


def summary_of(done: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(done.stdout)


def only_trial(summary: dict, case: str = "case", number: int = 1) -> dict:
    return json.loads((pathlib.Path(summary["path"]) / "trials" / case / f"{number:03d}" / "trial.json").read_text())


def test_a_pass_from_case_to_seal(run_py, write_case, tmp_path) -> None:
    case = write_case(command=command("pass"), not_scored=["Agent autonomy"])
    done = run_py("check", "--case", case, "--trials", 2)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("passed 2/2")
    assert "not scored: Agent autonomy" in lines
    verdict, evidence, seal, meaning = lines[-4:]
    assert verdict == "verdict:  passed"
    assert meaning == "exit:     0 (every planned trial passed)"
    path = pathlib.Path(evidence.split()[1])
    assert path.parent == tmp_path / "target" / "agent-evals"
    assert (tmp_path / "target" / ".gitignore").read_text() == "*\n"
    assert run_py("verify", path, "--seal", seal.split()[1]).returncode == 0
    assert run_py("verify", path, "--seal", "0" * 64).returncode == 3
    assert (path / "cases" / "case.json").read_bytes() == case.read_bytes()
    assert subprocess.run(["sha256sum", "-c", "--quiet", "manifest-sha256.txt"], cwd=path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "reasons"),
    [
        (command("fail"), ["owner-failed"]),
        (command("exit", "3"), ["nonzero-exit"]),
        (command("exit", "124"), ["nonzero-exit"]),
        (command("silent"), ["missing-report"]),
        (command("text", "{"), ["invalid-report"]),
        (command("text", "[]"), ["invalid-report"]),
        (command("text", '{"passed": 1}'), ["invalid-report"]),
        (command("text", '{"passed": "true"}'), ["invalid-report"]),
        (command("text", '{"passed": false, "passed": true}'), ["invalid-report"]),
        (command("text", '{"passed": true, "x": NaN}'), ["invalid-report"]),
        (command("text", '{"passed": true} '), []),
        (command("text", '{"passed": true, "checks": {}}'), ["invalid-report"]),
        (command("text", '{"passed": true, "checks": [{"id": "a"}]}'), ["invalid-report"]),
        (command("text", '{"passed": true, "checks": [{"id": "a", "passed": 1}]}'), ["invalid-report"]),
        (command("text", '{"passed": true, "limits": "x"}'), ["invalid-report"]),
        (["/nowhere/at/all", "{report}"], ["start-failed"]),
        (["sh", "-c", "kill -s KILL $$", "{report}"], ["signalled", "missing-report"]),
        (["sh", "-c", 'echo "{\\"passed\\": true}" > "$0"; exit 1', "{report}"], ["nonzero-exit"]),
    ],
)
def test_every_reason_by_name(run_py, write_case, arguments: list[str], reasons: list[str]) -> None:
    done = run_py("check", "--case", write_case(command=arguments), "--json")
    summary = summary_of(done)
    assert done.returncode == summary["exit_code"] == (1 if reasons else 0)
    trial = only_trial(summary)
    assert [failure["reason"] for failure in trial["judgment"]["failures"]] == reasons
    regraded = summary_of(run_py("regrade", summary["path"], "--json"))
    assert regraded["changes"] == {"same": 1, "changed": 0, "not_assessable": 0}
    assert only_trial(regraded)["judgment"] == trial["judgment"]


def test_a_report_is_kept_even_when_refused(run_py, write_case) -> None:
    summary = summary_of(run_py("check", "--case", write_case(command=command("text", "not json")), "--json"))
    report = pathlib.Path(summary["path"]) / "trials" / "case" / "001" / "owner-report.json"
    assert report.read_text() == "not json"


def test_timeout_and_output_limit(run_py, write_case) -> None:
    slow = write_case(id="slow", command=command("sleep", "60"), timeout_s=0.2)
    loud = write_case(id="loud", command=["sh", "-c", "while :; do echo xxxxxxxxxxxxxxx; done", "{report}"])
    began = time.monotonic()
    done = run_py("check", "--case", slow, "--case", loud, "--max-output-bytes", "1KiB", "--grace", "0.2", "--json")
    assert time.monotonic() - began < 20
    summary = summary_of(done)
    assert done.returncode == 1
    assert summary["limits_reached"] == {"timeout": 1, "output-limit": 1}
    assert only_trial(summary, "slow")["judgment"]["failures"][0]["reason"] == "timeout"
    loud_trial = only_trial(summary, "loud")
    assert loud_trial["judgment"]["failures"][0]["reason"] == "output-limit"
    assert loud_trial["outcome"]["stdout"]["kept_bytes"] == 1024


def test_identity_changes_are_named(run_py, write_case, tmp_path) -> None:
    watched = tmp_path / "watched"
    watched.write_text("before")
    case = write_case(command=command("touch", str(watched)), identity_files=[str(watched)])
    summary = summary_of(run_py("check", "--case", case, "--json"))
    (failure,) = only_trial(summary)["judgment"]["failures"]
    assert failure["reason"] == "identity-changed"
    assert failure["detail"] == "watched (argument: sha256, size_bytes)"
    assert str(tmp_path) not in json.dumps(only_trial(summary)["judgment"]), "a judgment holds no absolute path"


@pytest.mark.parametrize(
    "change",
    ['chmod 600 "$1"', 'rm "$1"', 'rm "$1"; mkdir "$1"', 'cp "$1" "$1.x"; echo >> "$1.x"; mv "$1.x" "$1"', 'mv "$1" "$1.x"; ln -s "$1.x" "$1"'],
)
def test_every_way_to_change_an_identity(run_py, write_case, tmp_path, change: str) -> None:
    watched = tmp_path / "watched"
    watched.write_text("before")
    watched.chmod(0o644)
    script = f'{change}; echo "{{\\"passed\\": true}}" > "$0"'
    case = write_case(command=["sh", "-c", script, "{report}", str(watched)], identity_files=[str(watched)])
    summary = summary_of(run_py("check", "--case", case, "--json"))
    assert [f["reason"] for f in only_trial(summary)["judgment"]["failures"]] == ["identity-changed"]


def test_what_was_swapped_between_two_trials_is_not_the_one_of_the_plan(run_py, write_case, tmp_path) -> None:
    checker = tmp_path / "checker.sh"
    checker.write_text('#!/bin/sh\necho \'{"passed": false}\' > "$1"\n')
    checker.chmod(0o755)
    # Same size and same mtime: after each trial the checker is another one.
    swap = 'm=$(stat -c %y "$1"); sed -i "s/false/true /" "$1"; touch -d "$m" "$1"'
    case = write_case(command=[str(checker), "{report}"], cleanup=["sh", "-c", swap, "x", str(checker)])
    done = run_py("check", "--case", case, "--trials", 3, "--json")
    summary = summary_of(done)
    assert (done.returncode, summary["passed"], summary["failed"]) == (1, 0, 3)
    reasons = [[f["reason"] for f in only_trial(summary, number=n)["judgment"]["failures"]] for n in (1, 2, 3)]
    assert reasons == [["owner-failed"], ["identity-changed"], ["identity-changed"]]
    assert only_trial(summary, number=2)["judgment"]["failures"][0]["detail"] == "checker.sh (program: not the one of the plan)"
    again = run_py("regrade", summary["path"], "-o", tmp_path / "again", "-q")
    assert json.loads((tmp_path / "again" / "changes.json").read_bytes())["same"] == 3, again.stderr


def test_a_checker_that_changes_itself_fails_every_trial(run_py, write_case, tmp_path) -> None:
    checker = tmp_path / "checker.sh"
    checker.write_text('#!/bin/sh\necho \'{"passed": true}\' > "$1"\necho "# more" >> "$0"\n')
    checker.chmod(0o755)
    case = write_case(command=[str(checker), "{report}"])
    summary = summary_of(run_py("check", "--case", case, "--trials", 3, "--json"))
    assert summary["cases"]["case"]["reasons"] == {"identity-changed": 3}


def test_the_record_says_which_digests_were_reused(run_py, write_case, tmp_path) -> None:
    watched = tmp_path / "watched"
    watched.write_text("as ever")
    os.utime(watched, (1, 1))
    time.sleep(0.05)  # a digest within a tick of the file's ctime is taken again
    case = write_case(command=command("pass"), identity_files=[str(watched)])
    summary = summary_of(run_py("check", "--case", case, "--trials", 2, "--json"))
    first, second = (only_trial(summary, number=n)["identity"] for n in (1, 2))
    assert str(watched) not in first["reused"]
    assert str(watched) in first["reused_after"]
    assert str(watched) in second["reused"]


def test_a_symlink_identity_keeps_its_target(run_py, write_case, tmp_path) -> None:
    (tmp_path / "one").write_text("same")
    (tmp_path / "two").write_text("same")
    link = tmp_path / "link"
    link.symlink_to("one")
    script = 'ln -sfn two "$1"; echo "{\\"passed\\": true}" > "$0"'
    case = write_case(command=["sh", "-c", script, "{report}", str(link)], identity_files=[str(link)])
    trial = only_trial(summary_of(run_py("check", "--case", case, "--json")))
    assert trial["judgment"]["failures"][0]["reason"] == "identity-changed"
    assert "link_target" in trial["judgment"]["failures"][0]["detail"]


def test_leaks_are_reported_and_decide_only_when_asked(run_py, write_case) -> None:
    kept = write_case(id="kept", command=command("leave-a-child"))
    strict = write_case(id="strict", command=command("leave-a-child"), leaks="fail")
    summary = summary_of(run_py("check", "--case", kept, "--case", strict, "--json"))
    assert summary["leaks"]["trials"] == 2
    assert only_trial(summary, "kept")["judgment"]["verdict"] == "pass"
    assert [f["reason"] for f in only_trial(summary, "strict")["judgment"]["failures"]] == ["leaky"]


@pytest.mark.parametrize(("required", "reasons"), [(["a"], []), (["a", "b"], ["invalid-report"]), (["b"], ["invalid-report"])])
def test_required_checks_are_exact(run_py, write_case, required: list[str], reasons: list[str]) -> None:
    summary = summary_of(run_py("check", "--case", write_case(command=command("pass"), required_checks=required), "--json"))
    assert [f["reason"] for f in only_trial(summary)["judgment"]["failures"]] == reasons


def test_cleanup_always_runs_and_is_recorded(run_py, write_case, tmp_path) -> None:
    mark = tmp_path / "cleaned"
    case = write_case(command=command("exit", "9"), cleanup=["sh", "-c", 'echo x >> "$0"', str(mark)])
    summary = summary_of(run_py("check", "--case", case, "--trials", 2, "--json"))
    assert mark.read_text() == "x\nx\n"
    assert only_trial(summary)["cleanup"]["outcome"]["exit_code"] == 0


def test_environment_is_allow_listed_and_only_names_are_written(run_py, write_case) -> None:
    case = write_case(command=command("print-environment"), env=["WANTED"])
    secret = {"WANTED": "wanted-value", "UNWANTED": "canary-4711"}
    summary = summary_of(run_py("check", "--case", case, "--json", env=secret))
    path = pathlib.Path(summary["path"])
    shown, cwd = (path / "trials/case/001/stdout.bin").read_text().splitlines()
    environment = json.loads(shown)
    assert environment["WANTED"] == "wanted-value"
    assert "UNWANTED" not in environment
    assert not pathlib.Path(cwd).exists(), "the scratch folder is gone"
    trial = (path / "trials/case/001/trial.json").read_text()
    assert '"WANTED"' in trial
    for file in path.rglob("*"):
        if file.is_file():
            assert b"canary-4711" not in file.read_bytes()
            assert file.name == "stdout.bin" or b"wanted-value" not in file.read_bytes()


def test_a_credential_shape_in_output_is_flagged_by_place(run_py, write_case, tmp_path) -> None:
    shape = "ghp_" + "a1B2" * 9
    (tmp_path / "shape").write_text(shape)
    case = write_case(command=["sh", "-c", 'cat "$1"; echo "{\\"passed\\": true}" > "$0"', "{report}", str(tmp_path / "shape")])
    trial = only_trial(summary_of(run_py("check", "--case", case, "--json")))
    assert trial["credential_shapes"] == [{"file": "stdout.bin", "pattern": "github-token", "offset": 0}]
    assert shape not in json.dumps(trial)


def test_placeholders_and_a_relative_case(run_py, tmp_path) -> None:
    folder = tmp_path / "owner"
    folder.mkdir()
    (folder / "v.sh").write_text('test -d "$2" && echo "{\\"passed\\": true}" > "$1"; pwd\n')
    case = {"id": "x", "scope": "s", "command": ["sh", "{case_dir}/v.sh", "{report}", "{scratch}"], "identity_files": ["{case_dir}/v.sh"]}
    (folder / "case.json").write_text(json.dumps(case))
    done = run_py("check", "--case", "owner/case.json", "--json")
    assert done.returncode == 0, done.stderr
    roles = {entry["role"]: entry["path"] for entry in only_trial(summary_of(done), "x")["identity"]["before"]}
    assert roles["argument"] == str(folder / "v.sh")


def test_every_refusal_comes_at_once_and_nothing_is_written(run_py, write_case, tmp_path) -> None:
    good = write_case(command=command("pass"))
    bad = write_case(id="bad", command=["x"], nonsense=1)
    done = run_py("check", "--case", good, "--case", good, "--case", bad, "--case", "nothing", "--trials", 21, "--timeout", 601, "--max-output-bytes", "65MiB")
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    for word in ("2 cases have this id", "/nonsense", "/command", "nothing", "--trials", "--timeout", "--max-output-bytes"):
        assert sum(word in line for line in lines) >= 1, word
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["check"],
        ["check", "--nonsense"],
        ["check", "--trials", "x"],
        ["check", "--timeout", "nan"],
        ["check", "--max-output-bytes", "8XiB"],
        ["check", "--jobs", "0"],
        ["nonsense"],
        ["verify", "nothing"],
        ["verify", "."],
        ["status", "."],
        ["status", "@last"],
        ["regrade", "nothing"],
        ["show", "nothing"],
        ["list", "nonsense"],
    ],
)
def test_usage_errors_are_exit_2_without_a_traceback(run_py, arguments: list[str]) -> None:
    done = run_py(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_existing_output_is_refused_and_untouched(run_py, write_case, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    done = run_py("check", "--case", write_case(command=command("pass")), "-o", "out")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert os.listdir(tmp_path / "out") == ["mine"]


def test_a_credential_on_the_command_line_is_refused(run_py, write_case) -> None:
    case = write_case(command=command("pass"))
    done = run_py("check", "--case", case, "-o", "ghp_" + "a1B2" * 9)
    assert done.returncode == 2
    assert "shaped like a credential" in done.stderr
    assert "ghp_" not in done.stderr


def test_init_writes_a_case_to_start_from(run_py, tmp_path) -> None:
    assert run_py("check", "--init", "new.json").returncode == 0
    assert "{report}" in (tmp_path / "new.json").read_text()
    assert run_py("check", "--init", "new.json").returncode == 2
    (tmp_path / "verify.py").write_text("")
    assert run_py("check", "--case", "new.json", "--dry-run").returncode == 0


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: path.write_bytes(b" " * ((1 << 20) + 1))])
def test_a_case_that_is_no_plain_file_of_sensible_size_is_refused_at_once(run_py, tmp_path, make) -> None:
    make(tmp_path / "case.json")
    done = run_py("check", "--case", "case.json", timeout_s=30)
    assert done.returncode == 2
    assert "case.json" in done.stderr


def test_nothing_is_written_into_other_evidence(run_py, write_case, tmp_path) -> None:
    case = write_case(command=command("pass"))
    assert run_py("check", "--case", case, "-o", "one").returncode == 0
    for arguments in (["check", "--case", case, "-o", "one/two"], ["regrade", "one", "-o", "one/trials/new"]):
        done = run_py(*arguments)
        assert done.returncode == 2
        assert "inside the evidence" in done.stderr
    assert run_py("verify", "one").returncode == 0


def test_what_could_not_be_sealed_is_not_called_passed(run_py, write_case, tmp_path) -> None:
    script = 'echo "{\\"passed\\": true}" > "$0"; echo >> "$1/plan.json"'
    case = write_case(command=["sh", "-c", script, "{report}", str(tmp_path / "out")])
    done = run_py("check", "--case", case, "-o", "out")
    assert done.returncode == 3
    assert "plan.json: changed-before-seal" in done.stderr
    assert "verdict:  evidence fault" in done.stdout
    assert json.loads(run_py("status", "out", "--json").stdout or "{}") == {}, "and an unsealed plan must be the one the journal names"


def test_dry_run_runs_and_writes_nothing(run_py, write_case, tmp_path) -> None:
    mark = tmp_path / "ran"
    done = run_py("check", "--case", write_case(command=["touch", str(mark), "{report}"]), "--dry-run")
    assert done.returncode == 0
    assert "1 planned" in done.stdout
    assert not mark.exists()
    assert not (tmp_path / "target").exists()


def test_max_fail_leaves_the_rest_unrun(run_py, write_case) -> None:
    done = run_py("check", "--case", write_case(command=command("fail")), "--trials", 5, "-x", 2, "--json")
    summary = summary_of(done)
    assert (summary["planned"], summary["failed"], summary["unrun"]) == (5, 2, 3)
    assert done.returncode == 1


def test_report_exit_turns_any_program_into_a_checker(run_py, write_case) -> None:
    script = str(ROOT / "consumers" / "check" / "report_exit.py")
    for program, code in ((["true"], 0), (["sh", "-c", "exit 3"], 1), (["/nowhere"], 1), (["sh", "-c", "kill -9 $$"], 1)):
        case = write_case(command=[sys.executable, script, "--report", "{report}", "--", *program])
        done = run_py("check", "--case", case, "--json")
        assert done.returncode == code
        (check,) = only_trial(summary_of(done))["judgment"]["checks"]
        assert (check["id"], check["status"]) == ("exit-code", "pass" if code == 0 else "fail")


def test_interrupt_in_the_third_of_five_trials(write_case, tmp_path) -> None:
    counter = tmp_path / "counter"
    case = write_case(command=command("count", str(counter), "3"))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "run.py"), "check", "--case", str(case), "--trials", "5", "--grace", "0.2", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    end = time.monotonic() + 30
    while not (counter.exists() and len(counter.read_text().splitlines()) == 3):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    summary = json.loads(output)
    assert process.returncode == summary["exit_code"] == 130
    assert [summary[name] for name in ("planned", "passed", "interrupted", "unrun")] == [5, 2, 1, 2]
    trial = only_trial(summary, number=3)
    assert trial["judgment"]["verdict"] == "void"
    assert trial["judgment"]["cause"] == "interrupted"
    assert summary["seal"]


@pytest.mark.parametrize("how", ["| head -1", "> /dev/full", ">&- 2>&- <&-", "| true"])
def test_output_that_cannot_be_written_changes_nothing(write_case, tmp_path, how: str) -> None:
    case = write_case(command=command("pass"))
    line = f'"$0" "$1" check --case "$2" {how}'
    if "|" in how:
        line = f"set -o pipefail; {line}"
    done = subprocess.run(["bash", "-c", line, sys.executable, str(ROOT / "run.py"), str(case)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    (run,) = (tmp_path / "target" / "agent-evals").iterdir()
    assert (run / "manifest-sha256.txt").exists()
    assert json.loads((run / "summary.json").read_text())["exit_code"] == 0


@pytest.mark.parametrize(("action", "code"), [("pass", 0), ("fail", 1)])
@pytest.mark.parametrize(("how", "why"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")])
def test_a_result_that_could_not_be_printed_is_said_and_the_exit_code_stands(write_case, tmp_path, action: str, code: int, how: str, why: str) -> None:
    line = f'"$0" "$1" check --case "$2" -q {how}'
    case = write_case(command=command(action))
    done = subprocess.run(["bash", "-c", line, sys.executable, str(ROOT / "run.py"), str(case)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert done.stderr == f"error: standard output: cannot be written ({why}); the exit code stands, and run.py status and show say the rest from the evidence\n"


def test_a_reader_that_went_away_is_no_error(write_case, tmp_path) -> None:
    line = 'set -o pipefail; "$0" "$1" check --case "$2" -q | true'
    case = write_case(command=command("fail"))
    done = subprocess.run(["bash", "-c", line, sys.executable, str(ROOT / "run.py"), str(case)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")


def test_commands_whose_result_is_what_they_print_do_not_succeed_without(run_py, write_case, tmp_path) -> None:
    assert run_py("check", "--case", write_case(command=command("pass")), "-o", "e").returncode == 0
    case = str(tmp_path / "case.case.json")
    for arguments in (["attest", "e"], ["show", "e"], ["show", "e", "case/001"], ["status", "e"], ["status", "e", "--json"], ["list", "runs"],
                      ["list", "consumers"], ["check", "--case", case, "--dry-run"], ["--help"], ["--version"]):  # fmt: skip
        for how in ("> /dev/full", ">&-"):
            line = f'exec "$0" "$@" {how}'
            done = subprocess.run(["bash", "-c", line, sys.executable, str(ROOT / "run.py"), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert done.returncode == 2, (arguments, how)
            assert done.stderr.startswith("error: standard output: cannot be written (") and done.stderr.count("\n") == 1
        line = 'set -o pipefail; "$0" "$@" | true'
        done = subprocess.run(["bash", "-c", line, sys.executable, str(ROOT / "run.py"), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_jobs_give_the_same_evidence_but_for_times(run_py, write_case, tmp_path) -> None:
    cases = [write_case(id=f"c{i}", command=command("pass" if i % 2 else "fail")) for i in range(4)]
    arguments = [part for case in cases for part in ("--case", case)]
    runs = {}
    for jobs in (1, 2, 3):
        summary = summary_of(run_py("check", *arguments, "--trials", 3, "-j", jobs, "--json"))
        path = pathlib.Path(summary["path"])
        runs[jobs] = {
            trial.parent.name + trial.parent.parent.name: {k: v for k, v in json.loads(trial.read_text()).items() if k in ("judgment", "files", "case_id", "number")}
            for trial in sorted(path.rglob("trial.json"))
        }
        for case in summary["cases"].values():
            del case["wall_s"]
        runs[jobs]["summary"] = {k: v for k, v in summary.items() if k not in ("path", "seal")}
        runs[jobs]["plan"] = json.loads((path / "plan.json").read_text())["plan_sha256"]
    assert runs[1] == runs[2] == runs[3]
