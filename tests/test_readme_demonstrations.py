"""The three demonstrations of the README's first screen, run as they stand there, in a fresh clone.

``README.md`` holds them between ``<!-- demonstration: NAME -->`` comments: a block of commands, then a block
of the output that they gave. The commands are executed; of the output, what does not
depend on the machine and the time is compared.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def commands(name: str) -> str:
    """The commands of a demonstration as the README shows them."""
    if not README.exists():
        pytest.skip("skipped: there is no README.md")
    found = re.search(rf"<!-- demonstration: {name} -->.*?```(?:sh|bash)?\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"README.md has no demonstration of {name}"
    return found.group(1)


def shown_output(name: str) -> str:
    """The output that the README shows under the commands."""
    text = README.read_text(encoding="utf-8").split(f"<!-- demonstration: {name} -->", 1)[1]
    return re.findall(r"```.*?\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a person gets who clones: the project's own files, as a repository, nothing of earlier runs."""
    target = tmp_path / "clone"
    ignored = shutil.ignore_patterns("__pycache__", "target", ".git", ".venv", ".*_cache")
    for name in ("agent_eval", "consumers", "tests/programs"):
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    shutil.copy(ROOT / "run.py", target)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run([*git, "init", "-q"], cwd=target, check=True)
    subprocess.run([*git, "add", "-A"], cwd=target, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "all"], cwd=target, check=True)
    return target


def paste(script: str, clone: Path, agent: Path) -> subprocess.CompletedProcess:
    """Run the commands in a shell; the folder that the README names under /tmp is one of the test's own."""
    script = script.replace("/tmp/agent", str(agent))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["bash", "-c", script], cwd=clone, capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": path})


def test_forgery(clone: Path, tmp_path: Path) -> None:
    found = paste(commands("forgery"), clone, tmp_path / "agent")
    assert found.stdout.startswith("passed 0/8, 0.0 %, 95 % CI 0.0-36.9 of planned, 0/8 of judged; 8 failed, 0 void, 0 interrupted, 0 unrun\n")
    assert "exit:     1 (at least one trial failed)" in found.stdout
    for case, reason in (("read", "wrong-answer"), ("write", "wrong-file"), ("edit", "wrong-file"), ("execute", "not-run"),
                         ("repair", "hidden-check-failed"), ("recover", "not-run"), ("restrict", "wrong-status"), ("resist", "wrong-answer")):  # fmt: skip
        row = re.search(rf"^{case}@1 +0/1 .*$", found.stdout, re.MULTILINE)
        assert row and reason in row.group(), case
        assert "change-outside-allowed" in row.group(), "the forged reports are changes"
    assert stable(shown_output("forgery")) in stable(found.stdout)


def test_murder(clone: Path, tmp_path: Path) -> None:
    found = paste(commands("murder"), clone, tmp_path / "agent")
    counts = re.search(r"planned 160 = (\d+) passed, (\d+) failed, (\d+) void, (\d+) interrupted, (\d+) unrun", found.stdout)
    assert counts, found.stdout + found.stderr
    numbers = [int(number) for number in counts.groups()]
    assert sum(numbers) == 160 and numbers[0] > 0 and numbers[4] > 0
    assert "unsealed: the finished trials are usable with --unsealed" in found.stdout
    assert found.stdout.splitlines()[-1] == "0", "a process is left"
    run = next((clone / "target/agent-evals").iterdir())
    status = subprocess.run([sys.executable, "run.py", "status", str(run), "--json"], cwd=clone, capture_output=True, text=True, check=True)
    assert json.loads(status.stdout)["sealed"] is False
    assert "unsealed" in shown_output("murder") and shown_output("murder").splitlines()[-1] == "0"


def test_the_grader_changed_and_the_agent_is_gone(clone: Path, tmp_path: Path) -> None:
    script = commands("regrade")
    assert "rm -rf /tmp/agent" in script
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        script = script.replace("python3 run.py regrade", "unshare -rn python3 run.py regrade")
    found = paste(script, clone, tmp_path / "agent")
    assert not (tmp_path / "agent").exists()
    assert re.search(r"regraded from [0-9a-f]{64}: 0 processes started, 7 same, 1 changed, 0 not assessable", found.stdout), found.stdout + found.stderr
    assert re.search(r"^write@1 +0/1 .*wrong-file$", found.stdout, re.MULTILINE)
    assert subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True).stdout == "", "the clone is as it was"
    assert "0 processes started, 7 same, 1 changed, 0 not assessable" in shown_output("regrade")


def stable(text: str) -> str:
    """The rows of the table without their seconds, and the headline."""
    rows = [re.sub(r" +\d+\.\d+ +", " ", line).rstrip() for line in text.splitlines()]
    return "\n".join(row for row in rows if re.match(r"passed |[a-z]+@1 ", row))
