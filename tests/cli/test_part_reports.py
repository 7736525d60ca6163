"""A shard and a rerun are ordinary directories: whatever reads a run reads them, with their own denominator and saying so."""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKER = str(ROOT / "tests" / "programs" / "checker.py")
AGENT = ROOT / "consumers" / "core_agent" / "reference_agent.py"


def run(cwd: pathlib.Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, ROOT / "run.py", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Every kind of part, made once."""
    folder = tmp_path_factory.mktemp("parts")
    cases = []
    for name, action in (("good", "pass"), ("bad", "fail")):
        case = {"id": name, "scope": "what a test needs", "command": [sys.executable, CHECKER, "{report}", action]}
        (folder / f"{name}.json").write_text(json.dumps(case))
        cases += ["--case", f"{name}.json"]
    check = ("check", *cases, "--trials")
    for code, *arguments in (
        (1, *check, 2, "--shard", "1/2", "-o", "shard"),
        (1, "regrade", "shard", "-o", "regraded"),
        (1, *check, 1, "--shard", "2/2", "-o", "one-case"),
        (4, *check, 2, "--shard", "5/5", "-o", "empty"),
        (1, *check, 3, "-o", "whole"),
        (1, "rerun", "--failed", "whole", "-o", "rerun"),
    ):
        done = run(folder, *arguments)
        assert done.returncode == code, done.stderr
    return folder


@pytest.fixture
def parts(made: pathlib.Path, tmp_path: pathlib.Path) -> dict[str, tuple[str, int]]:
    """A copy of each: what is said of it, and how many trials it has."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    run_id = json.loads((tmp_path / "whole" / "plan.json").read_text())["run_id"]
    return {
        "shard": ("part 1 of 2 of the plan: 2 of its 4 trials", 2),
        "regraded": ("part 1 of 2 of the plan: 2 of its 4 trials", 2),
        "one-case": ("part 2 of 2 of the plan: 1 of its 2 trials", 1),
        "empty": ("part 5 of 5 of the plan: 0 of its 4 trials", 0),
        "rerun": (f"rerun of {run_id}: 3 of the plan's 6 trials (what failed, for debugging)", 3),
    }


CASES = ("--case", "good.json", "--case", "bad.json")


def test_every_format_of_every_part_has_its_own_denominator_and_says_that_it_is_a_part(run_py, parts, tmp_path) -> None:
    for name, (words, trials) in parts.items():
        done = run_py("report", name, "-o", f"{name}.html", "--junit", f"{name}.xml", "--markdown", f"{name}.md")
        assert (done.returncode, done.stderr) == (0, ""), name
        page = (tmp_path / f"{name}.html").read_text()
        assert words.replace("'", "&#39;") in page or words.replace("'", "&#x27;") in page or words in page, name
        assert f" of {trials} planned trial" in page, name
        suites = ElementTree.parse(tmp_path / f"{name}.xml").getroot()
        assert suites.attrib["tests"] == str(trials) == str(len(suites.findall("*/testcase")))
        said = {found.attrib["value"] for found in suites.findall("*/properties/property[@name='part']")}
        assert said == ({words} if trials else set()), name
        markdown = (tmp_path / f"{name}.md").read_text()
        assert words in markdown and f"/{trials}" in markdown, name

        done = run_py("attest", name)
        assert (done.returncode, done.stderr) == (0, ""), name
        predicate = json.loads(done.stdout)["predicate"]
        named = [*predicate["passedTests"], *predicate["warnedTests"], *predicate["failedTests"]]
        assert len(named) == trials
        assert predicate["configuration"][0]["annotations"]["planned"] == trials
        assert predicate["configuration"][1]["annotations"]["part"] == words

        done = run_py("export", name, "--format", "inspect", "-o", f"{name}.json")
        assert (done.returncode, done.stderr) == (0, ""), name
        log = json.loads((tmp_path / f"{name}.json").read_text())
        assert len(log["samples"]) == log["results"]["total_samples"] == trials
        assert log["eval"]["metadata"]["agent_eval"]["part"] == words
        assert log["eval"]["dataset"]["sample_ids"] == list(dict.fromkeys(sample["id"] for sample in log["samples"]))

        for command in ("status", "show"):
            done = run_py(command, name)
            assert done.returncode == 0 and words in done.stdout, (command, name)
            assert f"planned {trials}" in done.stdout
        json_status = json.loads(run_py("status", name, "--json").stdout)
        assert (json_status["planned"], json_status["part"]) == (trials, words)


def test_a_whole_run_says_nothing_of_parts(run_py, parts, tmp_path) -> None:
    done = run_py("check", *CASES, "--junit", "j.xml", "--markdown", "m.md", "-o", "w")
    assert "part " not in done.stdout
    assert "name=\"part\"" not in (tmp_path / "j.xml").read_text()
    assert "part " not in (tmp_path / "m.md").read_text()
    assert json.loads(run_py("status", "w", "--json").stdout)["part"] is None
    assert "part" not in json.loads(run_py("attest", "w").stdout)["predicate"]["configuration"][1]["annotations"]


def test_a_shard_that_writes_the_ci_formats_with_its_run(run_py, parts, tmp_path) -> None:
    done = run_py("check", *CASES, "--trials", 2, "--shard", "1/2", "--junit", "j.xml", "--markdown", "m.md", "-o", "s")
    assert (done.returncode, [line for line in done.stderr.splitlines() if "error" in line]) == (1, [])
    assert done.stdout.splitlines()[1] == "part 1 of 2 of the plan: 2 of its 4 trials"
    assert ElementTree.parse(tmp_path / "j.xml").getroot().attrib["tests"] == "2"
    assert "part 1 of 2" in (tmp_path / "m.md").read_text()


def test_parts_are_compared_case_by_case_as_far_as_they_go(run_py, parts) -> None:
    done = run_py("compare", "shard", "shard", "-o", "c1", "--json")
    record = json.loads(done.stdout)
    assert (done.returncode, record["pairs"]["matched"]) == (4, 2)
    assert record["incumbent"]["trials"]["planned"] == record["candidate"]["trials"]["planned"] == 2
    assert record["incumbent"]["part"] == parts["shard"][0]
    shown = run_py("compare", "shard", "shard", "-o", "c2").stdout
    assert f"incumbent: {parts['shard'][0]}" in shown and f"candidate: {parts['shard'][0]}" in shown
    assert run_py("report", "c2", "-o", "c2.html").returncode == 0
    # A case that the candidate's part does not have counts against it, and it is said.
    record = json.loads(run_py("compare", "whole", "one-case", "-o", "c3", "--json").stdout)
    assert record["pairs"]["only_in_incumbent"] == ["good"] and record["regressions"] == ["good"]
    assert record["incumbent"]["part"] is None
    done = run_py("compare", "whole", "empty")
    assert done.returncode == 2 and "plans no trial" in done.stderr


def test_a_list_of_runs_says_which_is_a_part(run_py, parts, tmp_path) -> None:
    assert run_py("check", *CASES, "--trials", 2, "--shard", "2/2").returncode == 1
    assert run_py("check", *CASES).returncode == 1
    lines = run_py("list", "runs").stdout.splitlines()
    assert sum("part 2 of 2 of the plan: 2 of its 4 trials" in line for line in lines) == 1
    assert len(lines) == 2


def reseal(folder: pathlib.Path) -> None:
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.name != "manifest-sha256.txt")
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "manifest-sha256.txt").write_text("".join(sorted(lines, key=lambda line: line[66:])))


def test_a_part_whose_summary_and_records_disagree_is_not_shown(run_py, parts, tmp_path) -> None:
    summary = tmp_path / "shard" / "summary.json"
    true = json.loads(summary.read_text())
    for change, said in (
        ({"passed": 2, "failed": 0, "judged": 2}, "passed is 2, the trials' records say 1"),
        # The denominator is the plan's, not whatever the summary says.
        ({"planned": 4, "unrun": 2}, "planned is 4, the trials' records say 2"),
    ):
        summary.write_text(json.dumps({**true, **change}))
        reseal(tmp_path / "shard")
        for command in (["report", "-o", "p.html"], ["attest"], ["export", "--format", "inspect", "-o", "e.json"]):
            done = run_py(command[0], "shard", *command[1:])
            assert done.returncode == 3, command
            assert said in done.stderr


def test_a_record_taken_out_of_a_part_is_missed(run_py, parts, tmp_path) -> None:
    folder = tmp_path / "shard" / "trials" / "bad" / "001"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.parent.rmdir()
    reseal(tmp_path / "shard")
    done = run_py("report", "shard", "-o", "p.html")
    assert done.returncode == 3
    assert "failed is 1, the trials' records say 0" in done.stderr
    assert "unrun is 0, the trials' records say 1" in done.stderr


def test_an_unsealed_part_is_reported_on_its_own_trials(run_py, parts, tmp_path) -> None:
    (tmp_path / "shard" / "manifest-sha256.txt").unlink()
    done = run_py("report", "shard", "--unsealed", "--junit", "j.xml")
    assert (done.returncode, done.stderr) == (0, "")
    assert ElementTree.parse(tmp_path / "j.xml").getroot().attrib["tests"] == "2"
    record = json.loads(run_py("compare", "shard", "shard", "--unsealed", "-o", "c", "--json").stdout)
    assert record["incumbent"]["trials"] == {"planned": 2, "judged": 2, "passed": 1, "failed": 1, "void": 0, "interrupted": 0, "unrun": 0}


def test_a_recheck_of_a_shard_is_of_the_same_part(run_py, tmp_path) -> None:
    shard = run_py("core-agent", "--binary", AGENT, "--case", "edit", "--case", "repair", "--trials", 2, "--shard", "2/4", "-o", "s", "--json")
    assert json.loads(shard.stdout)["planned"] == 1, shard.stderr
    done = run_py("recheck", "s", "-o", "r", "--json")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["planned"], summary["passed"], summary["unrun"]) == (0, 1, 1, 0)
    assert run_py("report", "r", "-o", "r.html").returncode == 0
    assert "part 2 of 4 of the plan: 1 of its 4 trials" in run_py("status", "r").stdout


# The first time it is about to fail it interrupts its own run instead; the next draw of the trial passes.
ESCAPING = """
import json, os, signal, sys
flag = sys.argv[2] + "/flag"
if os.path.exists(flag):
    json.dump({"passed": True}, open(sys.argv[1], "w"))
else:
    open(flag, "w").close()
    harness = int(open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()[1])
    os.kill(harness, signal.SIGINT)
    sys.exit(130)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: reads /proc")
def test_a_draw_after_an_interrupt_is_said_wherever_the_whole_is_shown(run_py, write_case, tmp_path) -> None:
    (tmp_path / "escaping.py").write_text(ESCAPING)
    case = write_case(command=[sys.executable, str(tmp_path / "escaping.py"), "{report}", str(tmp_path)])
    assert run_py("check", "--case", case, "--trials", 2, "-o", "first").returncode == 130
    rest = run_py("rerun", "--unrun", "first", "-o", "rest")
    assert rest.returncode == 0
    assert "of the plan's 2 trials (what was unrun or interrupted)" in rest.stdout
    merged = run_py("merge", "first", "rest", "-o", "whole")
    words = "1 trial was interrupted and drawn again: a subject can interrupt its own run to get another draw, so look at why"
    assert merged.returncode == 0 and words in merged.stdout
    assert run_py("report", "whole", "-o", "p.html", "--markdown", "m.md", "--junit", "j.xml").returncode == 0
    for name in ("p.html", "m.md", "j.xml"):
        assert words in (tmp_path / name).read_text(), name
    assert json.loads(run_py("attest", "whole").stdout)["predicate"]["configuration"][0]["annotations"]["rerun_after_interrupt"] == 1
    regraded = run_py("regrade", "whole", "-o", "again")
    assert words in regraded.stdout, "a second judging does not make it forgotten"
    assert json.loads((tmp_path / "again" / "summary.json").read_text())["rerun_after_interrupt"] == 1
    assert run_py("check", "--case", case, "-o", "plain").returncode == 0
    assert "drawn again" not in run_py("merge", "plain", "-o", "alone").stdout
