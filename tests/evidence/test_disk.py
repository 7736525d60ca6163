"""Full disks, failing writes, too few resources, and evidence that its own subject takes away."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from agent_eval.evidence.files import Files
from agent_eval.evidence.manifest import verify
from agent_eval.evidence.reader import EvidenceReader
from tests.evidence.crashes import TRIALS, CrashRun
from tests.supervise.lab import another_users_python, public_copy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASS = 'echo "{\\"passed\\": true}" >"$0"; '


class Failing(Files):
    """Real operations; the ones numbered ``at`` and, with ``on``, all after it fail with ``code``."""

    __slots__ = ("at", "code", "count", "on")

    def __init__(self, at: int, code: int, on: bool) -> None:
        self.at = at
        self.code = code
        self.on = on
        self.count = 0

    def _try(self, operation, place, *arguments):
        self.count += 1
        if self.count == self.at or (self.on and self.count > self.at):
            raise OSError(self.code, os.strerror(self.code), str(place))
        return operation(place, *arguments)

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        self._try(super().make_directory, path, mode)

    def create(self, path: str, data: bytes) -> None:
        self._try(super().create, path, data)

    def open_append(self, path: str) -> int:
        return self._try(super().open_append, path)

    def append(self, descriptor: int, line: bytes) -> None:
        self._try(super().append, descriptor, line)

    def sync_file(self, path: str) -> None:
        self._try(super().sync_file, path)

    def sync_all(self, directory: str) -> None:
        self._try(super().sync_all, directory)

    def rename(self, source: str, target: str) -> None:
        self._try(super().rename, source, target)


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: the subreaper is Linux's")
@pytest.mark.parametrize(("code", "on"), [(errno.ENOSPC, False), (errno.EROFS, True)])
def test_a_failure_at_every_write_of_a_run(tmp_path, code, on):
    """One write fails, or every one from there on: the run ends by itself, says so, and keeps what was finished."""
    number = 0
    while True:
        number += 1
        run = CrashRun(tmp_path / f"run{number}", files=Failing(number, code, on))
        run.start()
        exit_code = run.wait()
        run.assert_nobody_is_left()
        counts = run.assert_honest()
        if exit_code == 0:
            assert counts["passed"] == TRIALS and counts["sealed"]
            break
        assert exit_code in ((2, 3, 5) if not on else (2, 3)), number
        if exit_code == 5:
            assert counts["passed"] + counts["void"] == TRIALS and counts["void"] == 1
        elif counts is not None:
            assert not counts["sealed"]
    assert number > 4 * TRIALS


def namespace_with_disk(tmp_path: pathlib.Path, size: str, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``script`` in ``tmp_path`` with a small disk of its own mounted at ``disk``; skips where that is not allowed."""
    prefix = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if not shutil.which("unshare"):
        pytest.skip("skipped: no unshare here")
    (tmp_path / "disk").mkdir()
    line = f"mount -t tmpfs -o size={size} none disk || exit 77; {script}"
    done = subprocess.run([*prefix, "sh", "-c", line, sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("skipped: namespaces are not allowed here")
    return done


def test_a_disk_that_output_fills_up(tmp_path, write_case):
    small = write_case(id="small", command=["sh", "-c", PASS + "echo hi", "{report}"])
    big = write_case(id="big", command=["sh", "-c", PASS + "head -c 1000000 /dev/zero", "{report}"])
    run = f'"$0" "{ROOT}/run.py" check --case "$1" --case "$2" --trials 2 -o disk/evidence; code=$?; cp -a disk/evidence out; exit $code'
    done = namespace_with_disk(tmp_path, "300k", run, str(small), str(big))
    assert "Traceback" not in done.stderr
    assert "recording-failed" in done.stdout
    # What the output left of the disk may hold the seal or not.
    assert done.returncode in (3, 5), done.stderr
    assert verify(str(tmp_path / "out")).unsealed is (done.returncode == 3)
    reader = EvidenceReader.open(str(tmp_path / "out"), unsealed_ok=True)
    verdicts = {(trial.case_id, trial.number): trial.record["judgment"]["verdict"] for trial in reader.trials()}
    assert verdicts["small", 1] == verdicts["small", 2] == "pass"
    assert "pass" not in {verdict for (case, _), verdict in verdicts.items() if case == "big"}


def test_a_disk_that_the_subject_fills_fails_the_subject(tmp_path, write_case):
    """Its scratch and the evidence share the disk; when its files are gone the record can be written."""
    script = "dd if=/dev/zero of=fill bs=64k count=100 2>/dev/null; head -c 100000 /dev/zero; exit 0"
    case = write_case(command=["sh", "-c", script, "{report}"])
    run = f'TMPDIR=$PWD/disk "$0" "{ROOT}/run.py" check --case "$1" -o disk/evidence --json; code=$?; cp -a disk/evidence out; exit $code'
    done = namespace_with_disk(tmp_path, "2m", run, str(case))
    assert done.returncode == 1, (done.stdout, done.stderr)
    (trial,) = EvidenceReader.open(str(tmp_path / "out"), unsealed_ok=True).trials()
    assert trial.record["judgment"]["verdict"] == "fail"
    assert verify(str(tmp_path / "out")).ok


@pytest.mark.parametrize(
    ("deed", "exit_codes"),
    [
        ('mv "$1" "$1.moved"', (3,)),
        ('rm -rf "$1"', (3,)),
        ('rm -r "$1/trials/case/002"', (1,)),
        ('mv "$1/trials/case/002" "$1/../away"', (1,)),
        ('echo x >"$1/trials/case/002/stdout.bin"', (3,)),
        ('ln -s /dev/null "$1/trials/case/002/stdout.bin"', (3,)),
        ('echo "{}" >"$1/trials/case/002/trial.json"', (3,)),
        ('rm -r "$1/trials/case/002"; mkdir "$1/../other"; ln -s "$1/../other" "$1/trials/case/002"', (3,)),
        ('chmod 000 "$1"', (1, 3)),
        ('chmod 555 "$1/trials/case/002"', (1, 3)),
    ],
)
def test_a_subject_that_takes_its_evidence_away_fails(run_py, write_case, tmp_path, deed, exit_codes):
    """In its second trial; the first one stays as it was. (With ``-x`` each trial is recorded before the next one starts.)"""
    evidence = tmp_path / "evidence"
    script = f'if test -e "$2"; then {deed}; fi; touch "$2"; echo out; {PASS}'
    case = write_case(command=["sh", "-c", script, "{report}", str(evidence), str(tmp_path / "second")])
    done = run_py("check", "--case", case, "--trials", 2, "-o", evidence, "-x", 2)
    if deed.startswith("chmod"):
        for place in (evidence, *evidence.glob("trials/case/*")):
            place.chmod(0o700)
    assert "Traceback" not in done.stderr
    assert done.returncode in exit_codes, (done.stdout, done.stderr)
    assert "fail case/002" in done.stderr and "evidence-tampered" in done.stderr
    assert "pass case/001" in done.stderr
    kept = next(place for place in (evidence, tmp_path / "evidence.moved", None) if place is None or place.exists())
    if kept is not None:
        first = json.loads((kept / "trials" / "case" / "001" / "trial.json").read_text())
        assert first["judgment"]["verdict"] == "pass"


@pytest.mark.parametrize("deed", ['echo "{}" >>"$1/journal.jsonl"', 'rm "$1/journal.jsonl"', 'echo x >>"$1/plan.json"', 'touch "$1/more"'])
def test_the_runs_own_files_changed_by_a_subject_are_noticed(run_py, write_case, tmp_path, deed):
    evidence = tmp_path / "evidence"
    case = write_case(command=["sh", "-c", f"{deed}; {PASS}", "{report}", str(evidence)])
    done = run_py("check", "--case", case, "-o", evidence)
    assert done.returncode == 3
    assert "changed-before-seal" in done.stderr
    assert verify(str(evidence)).unsealed


@pytest.mark.parametrize("limit", [9, 12, 13, 14])
def test_too_few_descriptors_are_void_or_enough(write_case, tmp_path, limit):
    case = write_case(command=["sh", "-c", PASS, "{report}"])
    evidence = tmp_path / "evidence"
    change = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))"
    done = limited(change, ["check", "--case", str(case), "-o", str(evidence), "--json"], tmp_path, sys.executable, ROOT)
    assert "Traceback" not in done.stderr
    summary = json.loads((evidence / "summary.json").read_text())
    assert (done.returncode, summary["passed"], summary["void"]) in ((0, 1, 0), (4, 0, 1))
    if summary["void"]:
        (trial,) = EvidenceReader.open(str(evidence)).trials()
        assert trial.record["judgment"]["cause"] == "no-resources"
        assert "Too many open files" in trial.record["judgment"]["failures"][0]["detail"]


def test_no_more_processes_are_void(tmp_path):
    """The limit does not bind root, so root runs it as somebody else, from a place where that user may look."""
    change = "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))"
    interpreter = sys.executable
    if os.geteuid() == 0:
        change = f"os.setgroups([]); os.setgid(65533); os.setuid(65533); {change}"
        interpreter = another_users_python()
        if interpreter is None:
            pytest.skip("skipped: no Python that another user may run")
    with public_copy("agent_eval", "consumers", "run.py") as root:
        place = root / "place"
        place.mkdir()
        place.chmod(0o777)
        case = place / "case.json"
        case.write_text(json.dumps({"id": "case", "scope": "limits", "command": ["/bin/true", "{report}"]}))
        case.chmod(0o644)
        done = limited(change, ["check", "--case", str(case), "-o", str(place / "evidence")], place, interpreter, root)
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert "no-resources" in done.stdout and "Traceback" not in done.stderr


def limited(change: str, arguments: list[str], cwd: pathlib.Path, interpreter: str, root: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """``run.py`` in a process that first does ``change`` to itself."""
    program = f"import os, resource, sys; {change}; os.execv(sys.argv[1], sys.argv[1:])"
    argv = [sys.executable, "-c", program, interpreter, "-B", str(root / "run.py"), *arguments]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60)
