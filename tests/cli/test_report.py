"""``report DIR``: what it writes, what it refuses, and that it never touches the evidence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_eval.cli.report import check_before_run, write_after_run
from agent_eval.records.problems import InvalidInput
from tests.report.synthetic import Directory, judgment, mixed, sha256

RUN = Path(__file__).parents[2] / "run.py"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, RUN, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=60)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_page_goes_into_the_current_folder_under_the_runs_name(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    before = contents(made.path)
    found = run("report", made.path, cwd=tmp_path)
    assert found.returncode == 0 and found.stderr == ""
    assert found.stdout.startswith(f"page: {tmp_path}/e.html (")
    assert (tmp_path / "e.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert contents(made.path) == before


def test_every_format_in_one_go(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    found = run("report", "e", "-o", "p.html", "--junit", "j.xml", "--markdown", "m.md", cwd=tmp_path)
    assert [line.split(":")[0] for line in found.stdout.splitlines()] == ["page", "JUnit", "Markdown"]
    assert ElementTree.parse(tmp_path / "j.xml").getroot().attrib["tests"] == "12"
    assert (tmp_path / "m.md").read_text().startswith("## `core-agent`")
    assert not (tmp_path / "e.html").exists()


def test_only_junit_when_only_junit_is_asked_for(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    assert run("report", "e", "--junit", "j.xml", cwd=tmp_path).stdout.startswith("JUnit: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "j.xml"]


def test_existing_files_are_kept_unless_forced(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    (tmp_path / "p.html").write_text("mine")
    found = run("report", "e", "-o", "p.html", "--junit", "j.xml", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (2, "error: p.html: exists already; name another file or add --force\n")
    assert (tmp_path / "p.html").read_text() == "mine" and not (tmp_path / "j.xml").exists()
    assert run("report", "e", "-o", "p.html", "--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "p.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("e/p.html", "lies inside the evidence directory"),
        ("link/p.html", "lies inside the evidence directory"),
        ("nowhere/p.html", "cannot be written (No such file or directory)"),
        ("folder", "exists already; name another file"),
    ],
)
def test_where_a_page_cannot_go(tmp_path: Path, target: str, problem: str) -> None:
    made = mixed(tmp_path / "e")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("e")
    before = contents(made.path)
    found = run("report", "e", "-o", target, "--force", cwd=tmp_path)
    assert found.returncode == 2 and found.stderr.startswith(f"error: {target}: {problem}") and found.stderr.count("\n") == 1
    assert contents(made.path) == before


def test_one_file_for_two_formats_is_refused(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    found = run("report", "e", "--junit", "x", "--markdown", "./x", cwd=tmp_path)
    assert found.returncode == 2 and "is named for two formats" in found.stderr


def test_evidence_that_does_not_hold_is_not_shown(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    (made.path / "trials/read@1/001/stdout.bin").write_bytes(b"x")
    (made.path / "added").write_bytes(b"")
    found = run("report", "e", cwd=tmp_path)
    assert found.returncode == 3
    assert found.stderr.splitlines() == ["error: added: unexpected", "error: trials/read@1/001/stdout.bin: changed"]
    assert not (tmp_path / "e.html").exists()


def test_what_is_no_evidence_is_said(tmp_path: Path) -> None:
    for name in ("nothing", "."):
        found = run("report", name, cwd=tmp_path)
        assert found.returncode == 2 and "not an evidence directory" in found.stderr


def unsealed(path: Path) -> Directory:
    made = Directory(path, ["a"], 4)
    made.trial("a", 1, judgment("pass"))
    made.trial("a", 2, judgment("fail", "timeout"))
    made.seal()
    for name in ("manifest-sha256.txt", "summary.json"):
        (path / name).unlink()
    journal = [{"event": "planned", "plan_sha256": sha256((path / "plan.json").read_bytes())}]
    for number in (1, 2):
        record = (path / f"trials/a/{number:03d}/trial.json").read_bytes()
        digest = sha256(record)
        journal += [{"event": "started", "case_id": "a", "number": number}, {"event": "finished", "case_id": "a", "number": number, "sha256": digest}]
    journal.append({"event": "started", "case_id": "a", "number": 3})
    (path / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in journal))
    return made


def test_an_unsealed_directory_needs_the_word_and_says_so_in_the_page(tmp_path: Path) -> None:
    unsealed(tmp_path / "e")
    refused = run("report", "e", cwd=tmp_path)
    assert refused.returncode == 2 and "unsealed; add --unsealed" in refused.stderr
    assert run("report", "e", "--unsealed", "-o", "p.html", "--junit", "j.xml", cwd=tmp_path).returncode == 0
    page = (tmp_path / "p.html").read_text()
    assert "1 of 4 planned trials passed" in page and "unsealed" in page
    assert "a/003: interrupted" in page and "a/004: unrun" in page
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0].attrib
    assert (suite["failures"], suite["errors"], suite["skipped"]) == ("1", "1", "1")


def test_the_last_run_is_found(tmp_path: Path) -> None:
    mixed(tmp_path / "target/agent-evals/20261130T140358Z")
    found = run("report", "@last", cwd=tmp_path)
    assert found.returncode == 0 and (tmp_path / "20261130T140358Z.html").exists()


def test_a_file_that_could_not_be_written_whole_is_not_left(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    script = f"ulimit -f 8; exec {sys.executable} {RUN} report e -o p.html"
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1) and "p.html: cannot be written (File too large)" in found.stderr
    assert not (tmp_path / "p.html").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="skipped: root may write everywhere")
def test_a_folder_without_permission_is_said(tmp_path: Path) -> None:
    mixed(tmp_path / "e")
    (tmp_path / "closed").mkdir(mode=0o500)
    found = run("report", "e", "-o", "closed/p.html", cwd=tmp_path)
    assert found.returncode == 2 and "Permission denied" in found.stderr


def test_files_asked_for_with_a_run_are_checked_before_it_and_written_after_it(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    junit, markdown = tmp_path / "j.xml", tmp_path / "m.md"
    junit.write_text("of the run before")
    check_before_run(str(junit), str(markdown))
    lines = write_after_run(str(made.path), str(junit), str(markdown))
    assert [line.split(":")[0] for line in lines] == ["JUnit", "Markdown"]
    assert ElementTree.parse(junit).getroot().attrib["tests"] == "12" and markdown.read_text().startswith("## ")
    assert write_after_run(str(made.path), None, None) == []


def test_every_file_that_a_run_could_not_write_is_named_before_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("somewhere")
    with pytest.raises(InvalidInput) as refused:
        check_before_run(str(tmp_path / "nowhere/j.xml"), str(tmp_path / "link"))
    assert [problem.where for problem in refused.value.problems] == ["--junit", "--markdown"]
