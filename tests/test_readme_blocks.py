"""The scripts for engines in the README can be copied whole, and do what they say with the environment that the engine gives.

The engines themselves are in ``tests/real``; here a stand-in for ``srun`` runs its arguments, and a pod is its command.
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
PLANNED = 20


def block(name: str) -> str:
    """The block of that name, whole."""
    found = re.search(rf"<!-- block: {name} -->\n```\w+\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"README.md has no block {name}"
    return found.group(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the script runs: the project's ``run.py``, a case of which every trial fails, and an ``srun``."""
    (tmp_path / "run.py").symlink_to(ROOT / "run.py")
    case = {"id": "case", "scope": "that a shard ends with exit 1", "command": ["false", "{report}"]}
    (tmp_path / "case.json").write_text(json.dumps(case))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    (programs / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "srun").chmod(0o755)
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), **more}


def run(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=folder, env=environment(folder, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def check_merged(folder: Path, parts: list[str]) -> None:
    done = run(folder, "python3", "run.py", "merge", *parts, "-o", "merged", "--json")
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["planned"], summary["failed"], summary["unrun"]) == (PLANNED, PLANNED, 0)


def test_the_slurm_script(folder: Path) -> None:
    script = folder / "shards.sh"
    script.write_text(block("slurm"))
    lines = block("slurm").splitlines()
    assert lines[0] == "#!/bin/sh"
    assert all(line.startswith("#SBATCH --") for line in lines[1:-1]), "sbatch reads options only before the first command"
    low, high = map(int, re.search(r"--array=(\d+)-(\d+)$", block("slurm"), re.M).groups())  # type: ignore[union-attr]
    for task in range(low, high + 1):
        facts = {"ID": task, "MIN": low, "MAX": high, "STEP": 1, "COUNT": high - low + 1}
        done = run(folder, "sh", str(script), **{f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in facts.items()})
        assert done.returncode == 1, done.stderr
    parts = re.search(r"sbatch shards.sh`, then\n`python3 run.py merge (\S+) -o whole", README.read_text()).group(1)  # type: ignore[union-attr]
    check_merged(folder, sorted(path.name for path in folder.glob(parts)))


def test_the_script_for_gnu_parallel(folder: Path) -> None:
    assert block("parallel").startswith("#!/bin/sh\n")
    if shutil.which("parallel") is None:
        pytest.skip("skipped: parallel is not installed")
    script = folder / "shards.sh"
    script.write_text(block("parallel"))
    done = run(folder, "sh", str(script))
    assert done.returncode == 1, done.stderr
    assert f"passed 0/{PLANNED}" in done.stdout
    assert json.loads((folder / "whole" / "summary.json").read_text())["unrun"] == 0


def test_the_kubernetes_job(folder: Path) -> None:
    text = block("kubernetes")
    numbers = {name: int(value) for name, value in re.findall(r"^ +(\w+): (\d+)$", text, re.M)}
    assert numbers == {"completions": 8, "parallelism": 8, "backoffLimitPerIndex": 0, "maxFailedIndexes": 8}
    assert "restartPolicy: Never" in text and "completionMode: Indexed" in text
    argv = json.loads(re.search(r"command: (\[.*\])$", text, re.M).group(1))  # type: ignore[union-attr]
    assert "--shard auto/8 " in argv[2]
    script = argv[2].replace("/cases/", f"{folder}/").replace("/evidence/", f"{folder}/")
    for index in range(numbers["completions"]):
        done = run(folder, *argv[:2], script, JOB_COMPLETION_INDEX=str(index))
        assert done.returncode == 1, done.stderr
    again = run(folder, *argv[:2], script, JOB_COMPLETION_INDEX="0")
    assert again.returncode == 2 and "exists" in again.stderr, "a pod that is started again is refused"
    check_merged(folder, [f"shard-{index}" for index in range(8)])
