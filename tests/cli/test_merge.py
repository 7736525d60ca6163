"""What may be merged, what is kept of it, and what a merged directory says: no fail is left out, and nothing is half there."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = str(ROOT / "tests" / "programs" / "checker.py")
COUNTS = ("planned", "passed", "failed", "void", "interrupted", "unrun")
# What a checker looks at lies beside it: a file on its command line would be part of its identity.
FLAKY = """
import json, os, sys
json.dump({"passed": os.path.exists(os.path.join(os.path.dirname(__file__), "flip"))}, open(sys.argv[1], "w"))
"""
INTERRUPTING = """
import json, os, signal, sys, time
here = os.path.dirname(__file__)
if not os.path.exists(os.path.join(here, "go")):
    open(os.path.join(here, "both", str(os.getpid())), "w").close()
    while len(os.listdir(os.path.join(here, "both"))) < 2:
        time.sleep(0.01)
    with open(os.path.join(here, "harness")) as stream:
        os.kill(int(stream.read()), signal.SIGINT)
    time.sleep(60)
json.dump({"passed": True}, open(sys.argv[1], "w"))
"""
TAMPERING = """
import json, shutil, sys
json.dump({"passed": False}, open(sys.argv[1], "w"))
shutil.rmtree(sys.argv[2])
"""


@pytest.fixture(scope="module")
def two_shards(tmp_path_factory) -> pathlib.Path:
    """A folder with the parts ``s1`` and ``s2`` of two trials of a passing and of a failing case."""
    folder = tmp_path_factory.mktemp("shards")
    cases = []
    for name, action in (("ok", "pass"), ("bad", "fail")):
        case = {"id": name, "scope": "what a test needs", "command": [sys.executable, CHECKER, "{report}", action]}
        (folder / f"{name}.json").write_text(json.dumps(case))
        cases += ["--case", str(folder / f"{name}.json")]
    for index in (1, 2):
        command = [sys.executable, str(ROOT / "run.py"), "check", *cases, "--trials", "2", "--shard", f"{index}/2", "-o", f"s{index}"]
        assert subprocess.run(command, cwd=folder, capture_output=True, timeout=60).returncode == 1
    return folder


@pytest.fixture
def shards(two_shards, tmp_path) -> Callable[[], list[str]]:
    """``shards()``: copies of the two parts in ``tmp_path``."""

    def copy() -> list[str]:
        for name in ("s1", "s2"):
            shutil.copytree(two_shards / name, tmp_path / name)
        return ["s1", "s2"]

    return copy


@pytest.fixture
def interrupted(run_py, write_case, tmp_path) -> Callable[[str], str]:
    """``interrupted("first")``: a run of four trials at once of which two were interrupted while the others were unrun."""
    script = tmp_path / "interrupting.py"
    script.write_text(INTERRUPTING)
    (tmp_path / "both").mkdir()
    case = write_case(id="slow", command=[sys.executable, str(script), "{report}"])
    # exec: the harness has the shell's process number.
    start = f"echo $$ > {tmp_path}/harness; exec {sys.executable} {ROOT}/run.py "

    def make(output: str, *command: str) -> str:
        for file in (tmp_path / "both").iterdir():
            file.unlink()
        arguments = command or ("check", "--case", str(case), "--trials", "4")
        done = subprocess.run(["sh", "-c", start + " ".join([*arguments, "-j", "2", "-q", "-o", output])], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 130, done.stderr
        return output

    return make


def reseal(path: pathlib.Path) -> None:
    """What anybody can do to a directory of his own."""
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and file != path / "manifest-sha256.txt")
    lines = [f"{hashlib.sha256((path / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (path / "manifest-sha256.txt").write_text("".join(lines))


def counts(text: str) -> list[int]:
    summary = json.loads(text)
    return [summary[name] for name in COUNTS]


def left_over(folder: pathlib.Path, name: str = "merged") -> list[str]:
    return [found for found in os.listdir(folder) if found == name or "draft" in found]


# A fail is never left out.


@pytest.mark.parametrize("arguments", [("--failed", "first1"), ("first1", "case/001")])
def test_a_rerun_for_debugging_is_never_merged(run_py, write_case, tmp_path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "flaky.py").write_text(FLAKY)
    case = write_case(command=[sys.executable, str(tmp_path / "flaky.py"), "{report}"])
    assert run_py("check", "--case", case, "--trials", 2, "--shard", "1/2", "-o", "first1").returncode == 1
    (tmp_path / "flip").touch()
    assert run_py("check", "--case", case, "--trials", 2, "--shard", "2/2", "-o", "first2").returncode == 0
    assert run_py("rerun", *arguments, "-o", "again").returncode == 0
    for parts in (["again", "first2"], ["first1", "again", "first2"]):
        done = run_py("merge", *parts, "-o", "merged")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "again: is a rerun for debugging" in done.stderr
        assert not left_over(tmp_path)
    assert run_py("merge", "first1", "first2", "-o", "merged").returncode == 1


def test_a_rerun_counts_only_beside_what_it_reran(run_py, interrupted, tmp_path) -> None:
    interrupted("v0")
    interrupted("v1", "rerun", "--unrun", "v0")
    (tmp_path / "go").touch()
    assert run_py("rerun", "--unrun", "v1", "-o", "v2").returncode == 0
    assert json.loads((tmp_path / "v2/plan.json").read_text())["rerun"] == "unrun"
    for parts in (["v2"], ["v2", "v0"], ["v1", "v2"]):
        done = run_py("merge", *parts, "-o", "merged")
        assert done.returncode == 2, parts
        assert "which is not given; give the directory that it reran too" in done.stderr
        assert "is in" not in done.stderr
        assert not left_over(tmp_path)
    found = []
    for index, parts in enumerate((["v0", "v1", "v2"], ["v2", "v0", "v1"], ["v2", "v1", "v0"])):
        merged = run_py("merge", *parts, "-o", f"merged{index}", "--json")
        assert merged.returncode == 0, merged.stderr
        summary = json.loads(merged.stdout)
        found.append([summary["passed"], summary["rerun_after_interrupt"], summary["rerun_after_unrun"]])
        assert run_py("verify", f"merged{index}").returncode == 0
    assert found == [[4, 4, 2]] * 3, "two trials were interrupted twice, two were unrun before they were run"


def test_two_reruns_of_one_directory_and_another_copy_of_it_are_refused(run_py, interrupted, tmp_path) -> None:
    interrupted("v0")
    (tmp_path / "go").touch()
    for name in ("a", "b"):
        assert run_py("rerun", "--unrun", "v0", "-o", name).returncode == 0
    done = run_py("merge", "v0", "a", "b", "-o", "merged")
    assert done.returncode == 2
    assert "slow/001 is in" in done.stderr and "give one chain of reruns" in done.stderr
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    assert "is the same run as" in run_py("merge", "v0", "a", "c", "-o", "merged").stderr
    (tmp_path / "v0/summary.json").write_text((tmp_path / "v0/summary.json").read_text() + " ")
    reseal(tmp_path / "v0")
    done = run_py("merge", "v0", "a", "-o", "merged")
    assert done.returncode == 2
    assert "now it has" in done.stderr
    assert not left_over(tmp_path)


def test_a_rerun_that_left_an_interrupted_trial_unrun_leaves_it_interrupted(run_py, interrupted, tmp_path) -> None:
    interrupted("v0")
    shutil.copytree(tmp_path / "v0", tmp_path / "v1")
    plan = json.loads((tmp_path / "v0/plan.json").read_text())
    seal = hashlib.sha256((tmp_path / "v0/manifest-sha256.txt").read_bytes()).hexdigest()
    rerun = plan | {"kind": "rerun", "run_id": "second", "rerun": "unrun", "source": {"run_id": plan["run_id"], "seal": seal}}
    shutil.rmtree(tmp_path / "v1/trials")
    (tmp_path / "v1/plan.json").write_text(json.dumps(rerun))
    reseal(tmp_path / "v1")
    merged = run_py("merge", "v1", "v0", "-o", "merged", "--json")
    assert counts(merged.stdout) == [4, 0, 0, 0, 2, 2]
    assert json.loads(merged.stdout)["rerun_after_interrupt"] == 0


def test_a_fail_that_could_not_be_recorded_stays_a_fail(run_py, write_case, tmp_path) -> None:
    (tmp_path / "tampering.py").write_text(TAMPERING)
    case = write_case(command=[sys.executable, str(tmp_path / "tampering.py"), "{report}", str(tmp_path / "first/trials/case/001")])
    first = run_py("check", "--case", case, "-o", "first", "--json")
    assert counts(first.stdout) == [1, 0, 1, 0, 0, 0]
    assert json.loads(first.stdout)["unrecorded"] == ["case/001"]
    assert run_py("rerun", "--unrun", "first").returncode == 2, "nothing is left"
    for command in (["merge", "first"], ["regrade", "first"], ["regrade", "merged"]):
        done = run_py(*command, "--json", "-o", {"merge": "merged"}.get(command[0], f"of-{command[1]}"))
        assert done.returncode == 1, command
        assert counts(done.stdout) == [1, 0, 1, 0, 0, 0]
        assert json.loads(done.stdout)["cases"]["case"]["reasons"] == {"evidence-tampered": 1}
    for name in ("first", "merged", "of-first", "of-merged"):
        assert run_py("report", name, "--junit", f"{name}.xml").returncode == 0
        assert "evidence-tampered" in (tmp_path / f"{name}.xml").read_text()
    assert counts(run_py("rerun", "--failed", "first", "-o", "again", "--json").stdout)[0] == 1
    # A directory of before the verdict was kept: nobody can tell any more.
    summary = json.loads((tmp_path / "first/summary.json").read_text())
    (tmp_path / "first/summary.json").write_text(json.dumps({key: value for key, value in summary.items() if key != "unrecorded_judgments"}))
    reseal(tmp_path / "first")
    assert counts(run_py("regrade", "first", "--json").stdout) == [1, 0, 0, 1, 0, 0]


def test_a_recheck_counts_what_has_no_record_as_the_run_did(run_py, tmp_path) -> None:
    agent = ROOT / "consumers/core_agent/reference_agent.py"
    assert run_py("core-agent", "--binary", agent, "--case", "edit", "--trials", 2, "-o", "first").returncode == 0
    summary = json.loads((tmp_path / "first/summary.json").read_text())
    (case_id,) = summary["cases"]
    shutil.rmtree(tmp_path / f"first/trials/{case_id}/002")
    failure = {"reason": "evidence-tampered", "detail": "", "evidence": []}
    judgment = {"verdict": "fail", "basis": "recomputed", "cause": None, "failures": [failure], "checks": [], "grader": {}}
    lost = {"unrecorded": [f"{case_id}/002"], "unrecorded_judgments": {f"{case_id}/002": judgment}}
    (tmp_path / "first/summary.json").write_text(json.dumps(summary | lost))
    reseal(tmp_path / "first")
    done = run_py("recheck", "first", "--json")
    assert done.returncode == 1, done.stderr
    assert counts(done.stdout) == [2, 1, 1, 0, 0, 0]


# What is copied.


def test_folders_that_no_manifest_names_are_not_copied(run_py, shards, tmp_path) -> None:
    parts = shards()
    (tmp_path / "s2/manifest-sha256.txt").unlink()
    (tmp_path / "s2/trials/ok/009/deep").mkdir(parents=True)
    assert run_py("merge", *parts, "-o", "merged").returncode == 2, "unsealed"
    merged = run_py("merge", *parts, "--unsealed", "-o", "merged", "--json")
    assert run_py("verify", "merged", "--seal", json.loads(merged.stdout)["seal"]).returncode == 0
    assert run_py("regrade", "merged").returncode == merged.returncode == 1


def plant_pipe(folder: pathlib.Path) -> str:
    os.mkfifo(folder / "x")
    return "x: unsafe: not a plain file"


def plant_link(folder: pathlib.Path) -> str:
    (folder / "x").symlink_to("/etc/hostname")
    return "x: unsafe: not a plain file"


def plant_folder_link(folder: pathlib.Path) -> str:
    (folder / "x").symlink_to("/etc")
    return "x: unsafe: not a plain file"


def plant_name(folder: pathlib.Path) -> str:
    (folder / "a name").write_text("x")
    return "a name: unsafe: a name that no manifest can hold"


def plant_endless_file(folder: pathlib.Path) -> str:
    with open(folder / "x", "wb") as stream:
        stream.truncate(1 << 40)
    return "x: unsafe: larger than 1 GiB"


def plant_deep_folders(folder: pathlib.Path) -> str:
    before = os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    finally:
        os.chdir(before)
    return "s2: could not be read (File name too long)"


@pytest.mark.parametrize("plant", [plant_endless_file, plant_deep_folders, plant_pipe, plant_link, plant_folder_link, plant_name])
def test_what_a_subject_planted_in_an_unsealed_part_is_refused(run_py, shards, tmp_path, plant: Callable[[pathlib.Path], str]) -> None:
    parts = shards()
    (tmp_path / "s2/manifest-sha256.txt").unlink()
    text = plant(next((tmp_path / "s2/trials/ok").iterdir()))
    done = run_py("merge", *parts, "--unsealed", "-o", "merged", timeout_s=30)
    assert done.returncode == 3
    assert text in done.stderr and done.stderr.count("\n") == 1
    assert not left_over(tmp_path)


def test_captured_files_of_an_unsealed_part_are_compared_with_their_records(run_py, shards, tmp_path) -> None:
    parts = shards()
    (tmp_path / "s2/manifest-sha256.txt").unlink()
    report = next((tmp_path / "s2/trials/bad").glob("*/owner-report.json"))
    report.write_text('{"passed": true }')
    done = run_py("merge", *parts, "--unsealed", "-o", "merged")
    assert done.returncode == 3
    assert "owner-report.json: changed" in done.stderr
    report.unlink()
    assert "owner-report.json: missing" in run_py("merge", *parts, "--unsealed", "-o", "merged").stderr
    assert not left_over(tmp_path)


def test_a_folder_that_cannot_be_read_is_a_fault_of_the_directory(run_py, shards, tmp_path) -> None:
    parts = shards()
    plant_deep_folders(tmp_path / "s2/trials")
    for command in (["verify", "s2"], ["regrade", "s2"], ["merge", *parts, "-o", "merged"]):
        done = run_py(*command)
        assert done.returncode == 3, command
        assert done.stderr == "error: s2: could not be read (File name too long)\n"


# What the journal of an unsealed part does not vouch for stays so.


def test_everybody_agrees_about_a_part_that_was_interrupted(run_py, shards, tmp_path) -> None:
    parts = shards()
    part = tmp_path / "s2"
    (part / "manifest-sha256.txt").unlink()
    journal = [line for line in (part / "journal.jsonl").read_text().splitlines(keepends=True)]
    dropped = [line for line in journal if '"finished"' in line and '"ok"' in line]
    (part / "journal.jsonl").write_text("".join(line for line in journal if line not in dropped and '"sealing"' not in line))
    assert len(dropped) == 1
    expected = [4, 1, 2, 0, 1, 0]
    merged = run_py("merge", *parts, "--unsealed", "-o", "merged", "--json")
    assert counts(merged.stdout) == expected
    assert counts(run_py("status", "merged", "--json").stdout) == expected
    number = json.loads(dropped[0])["number"]
    assert f"ok/{number:03d}" not in run_py("show", "merged").stdout
    assert run_py("show", "merged", f"ok/{number:03d}").returncode == 2
    assert counts(run_py("regrade", "merged", "-o", "again", "--json").stdout) == expected
    assert counts(run_py("regrade", "s2", "--unsealed", "--json").stdout) == [2, 0, 1, 0, 1, 0]
    for name in ("merged", "again"):
        done = run_py("report", name, "--junit", f"{name}.xml")
        assert done.returncode == 0, done.stderr
        assert "started and never finished" in (tmp_path / f"{name}.xml").read_text()
    assert run_py("verify", "merged").returncode == 0


def test_a_summary_that_was_never_sealed_is_nobodys_word(run_py, shards, tmp_path) -> None:
    parts = shards()
    part = tmp_path / "s2"
    (part / "manifest-sha256.txt").unlink()
    name = next(json.loads(line) for line in (part / "journal.jsonl").read_text().splitlines() if '"started"' in line)
    (part / "journal.jsonl").write_text("".join(line + "\n" for line in (part / "journal.jsonl").read_text().splitlines() if '"finished"' not in line))
    summary = json.loads((part / "summary.json").read_text())
    summary["unrecorded"] = [f"{name['case_id']}/{name['number']:03d}"]
    (part / "summary.json").write_text(json.dumps(summary))
    assert counts(run_py("merge", *parts, "--unsealed", "-o", "merged", "--json").stdout) == [4, 1, 1, 0, 2, 0]


# A merged directory and its parts.


def test_verify_looks_at_each_parts_own_manifest_and_seal(run_py, shards, tmp_path) -> None:
    assert run_py("merge", *shards(), "-o", "merged").returncode == 1
    part = next(path for path in (tmp_path / "merged/parts").iterdir() if (path / "trials/bad/001").is_dir())
    (part / "trials/bad/001/owner-report.json").write_text('{"passed": true}')
    reseal(tmp_path / "merged")
    done = run_py("verify", "merged")
    name = f"parts/{part.name}/trials/bad/001/owner-report.json"
    assert done.returncode == 3
    assert f"changed: {name}\n" in done.stdout
    assert json.loads(run_py("verify", "merged", "--json").stdout)["changed"] == [name]
    assert f"{name}: changed" in run_py("regrade", "merged").stderr
    reseal(part)
    reseal(tmp_path / "merged")
    done = run_py("verify", "merged")
    assert done.returncode == 3
    assert f"changed: parts/{part.name}/manifest-sha256.txt\n" in done.stdout


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda path: (path / "parts/1/extra").write_text("x"), "unexpected: parts/1/extra"),
        (lambda path: (path / "parts/1/summary.json").unlink(), "missing: parts/1/summary.json"),
        (lambda path: (path / "parts/1/manifest-sha256.txt").unlink(), "missing: parts/1/manifest-sha256.txt"),
        (lambda path: shutil.copytree(path / "parts/1", path / "parts/3"), "unexpected: parts/3"),
        (lambda path: shutil.rmtree(path / "parts/2"), "missing: parts/2/"),
    ],
)
def test_parts_that_are_not_those_that_were_merged(run_py, shards, tmp_path, damage: Callable[[pathlib.Path], object], text: str) -> None:
    assert run_py("merge", *shards(), "-o", "merged").returncode == 1
    damage(tmp_path / "merged")
    reseal(tmp_path / "merged")
    done = run_py("verify", "merged")
    assert done.returncode == 3
    assert text in done.stdout.splitlines()


def test_records_of_an_unsealed_part_are_vouched_for_in_the_merged_directory_too(run_py, shards, tmp_path) -> None:
    parts = shards()
    (tmp_path / "s2/manifest-sha256.txt").unlink()
    assert run_py("merge", *parts, "--unsealed", "-o", "merged").returncode == 1
    record = next((tmp_path / "merged/parts/2/trials/bad").glob("*/trial.json"))
    record.write_text(record.read_text().replace('"verdict":"fail"', '"verdict":"pass"'))
    reseal(tmp_path / "merged")
    for command in ("verify", "regrade", "show"):
        done = run_py(command, "merged")
        assert done.returncode == 3, command
        assert f"parts/2/trials/bad/{record.parent.name}/trial.json: changed or missing since the journal named it" in done.stderr


# Nothing is half there.


AT_ONE_OPERATION = """
import os, sys
from agent_eval.cli.main import main
from agent_eval.evidence.files import Files

at, what, count = int(sys.argv[1]), int(sys.argv[2]), 0

def counting(call):
    def operation(*args, **options):
        global count
        count += 1
        if count == at and what == 0:
            raise OSError(28, "No space left on device")
        if count == at:
            os.kill(os.getpid(), what)
        return call(*args, **options)
    return operation

for name in ("make_directory", "create", "open_append", "append", "sync_all", "sync_file", "rename"):
    setattr(Files, name, counting(getattr(Files, name)))
sys.exit(main(sys.argv[3:]))
"""


def at_one_operation(folder: pathlib.Path, at: int, what: int, *command: str) -> subprocess.CompletedProcess[str]:
    """The command while signal ``what`` comes, or the disk is full (0), at the ``at``-th operation on a file."""
    (folder / "at_one_operation.py").write_text(AT_ONE_OPERATION)
    arguments = [sys.executable, "at_one_operation.py", str(at), str(what), *command, "-o", "merged"]
    return subprocess.run(arguments, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", [("merge", "s1", "s2"), ("regrade", "s1"), ("compare", "s1", "s1")])
def test_a_signal_leaves_nothing_and_says_so(run_py, shards, tmp_path, number: signal.Signals, command: tuple[str, ...]) -> None:
    shards()
    for at in (1, 2, 5, 9, 15):
        done = at_one_operation(tmp_path, at, number, *command)
        assert done.returncode == 128 + number, done.stderr
        assert done.stderr == f"error: interrupted by {number.name}; nothing was kept\n"
        assert not left_over(tmp_path)
    assert at_one_operation(tmp_path, 100_000, number, *command).returncode == {"compare": 4}.get(command[0], 1)
    assert left_over(tmp_path) == ["merged"]


@pytest.mark.parametrize("command", [("merge", "s1", "s2"), ("regrade", "s1"), ("compare", "s1", "s1")])
def test_a_full_disk_leaves_nothing_and_says_so(run_py, shards, tmp_path, command: tuple[str, ...]) -> None:
    shards()
    for at in (2, 5, 9, 15):
        done = at_one_operation(tmp_path, at, 0, *command)
        assert done.returncode == 3, done.stderr
        assert done.stderr.startswith(f"error: {tmp_path}/merged: ")
        assert "No space left on device" in done.stderr
        assert done.stderr.count("\n") == 1 and "draft" not in done.stderr
        assert not left_over(tmp_path)


def test_a_name_that_is_taken_is_kept(run_py, shards, tmp_path) -> None:
    parts = shards()
    (tmp_path / "merged").mkdir()
    done = run_py("merge", *parts, "-o", "merged")
    assert done.returncode == 2
    assert "merged: exists already" in done.stderr
    assert os.listdir(tmp_path / "merged") == []
    assert run_py("merge", *parts, "-o", "nowhere/merged").returncode == 2
    assert left_over(tmp_path) == ["merged"]
    for _ in range(2):
        assert run_py("merge", *parts, "-q").returncode == 1
    assert len(run_py("list", "runs").stdout.splitlines()) == 2
