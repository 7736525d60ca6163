"""Shards under GNU parallel, and as the pods of a Kubernetes Indexed Job would do them.

Not part of the default tests: it needs GNU parallel. From the root of the repository:

    apt-get install -y --no-install-recommends parallel && python3 tests/real/engines/run_shards.py

The second part needs no cluster: what a pod of an Indexed Job gets is the environment variable JOB_COMPLETION_INDEX, so
each pod is a process with that. Both are merged and compared with the run in one piece. It ends with 0 when everything held.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

from lab import Checks, Lab

SHARDS = 8
CASES = 3
TRIALS = 5


def main() -> int:
    """Both parts, each against the whole run."""
    if shutil.which("parallel") is None:
        sys.exit("not installed: parallel; apt-get install -y --no-install-recommends parallel")
    checks = Checks()
    with Lab() as lab:
        version = subprocess.run(["parallel", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
        print(time.strftime("%Y-%m-%d"), version, "Python", sys.version.split()[0])
        options = [*lab.cases(CASES), "--trials", str(TRIALS)]
        checks.expect("the run in one piece (1: c1 fails)", lab.run_py("check", *options, "-o", "whole").returncode, 1)
        lab.starts()
        print(f"parallel ... --shard {{}}/{SHARDS} -o shard-{{}} ::: 1 ... {SHARDS}, merge:")
        under_parallel(lab, options)
        compare(lab, checks, [f"shard-{index}" for index in range(1, SHARDS + 1)], "merged")
        print(f"JOB_COMPLETION_INDEX=0 ... {SHARDS - 1}, --shard auto/{SHARDS}, two pods at a time, merge:")
        pods(lab, options)
        compare(lab, checks, [f"pod-{index}" for index in range(SHARDS)], "merged-pods")
        checks.expect("left behind", lab.left_behind(), [])
    return checks.exit_code()


def under_parallel(lab: Lab, options: list[str]) -> None:
    """As the README says it."""
    command = ["parallel", sys.executable, lab.runner, "check", *options, "--shard", f"{{}}/{SHARDS}", "-o", "shard-{}", ":::"]
    indexes = [str(index) for index in range(1, SHARDS + 1)]
    environment = {**lab.environment, "HOME": lab.path}  # where parallel keeps its own files
    subprocess.run([*command, *indexes], cwd=lab.path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def pods(lab: Lab, options: list[str]) -> None:
    """One container command for each index, ``parallelism: 2``."""
    script = f'exec "$0" "$1" check {" ".join(options)} --shard auto/{SHARDS} -o pod-$JOB_COMPLETION_INDEX'
    for first in range(0, SHARDS, 2):
        pair = [
            lab.start("sh", "-c", script, sys.executable, lab.runner, name=f"pod-{index}", env={"JOB_COMPLETION_INDEX": str(index)})
            for index in range(first, min(first + 2, SHARDS))
        ]
        for pod in pair:
            pod.wait(120)


def compare(lab: Lab, checks: Checks, parts: list[str], merged_name: str) -> None:
    """Each trial ran once, and the merged directory counts what the whole run counts."""
    checks.expect("times that the subject ran", lab.starts(), {f"c{index}": TRIALS for index in range(CASES)})
    checks.expect("merge without the last shard is refused", lab.run_py("merge", *parts[:-1], "-o", f"gap-{merged_name}").returncode, 2)
    checks.expect("merge", lab.run_py("merge", *parts, "-o", merged_name).returncode, 1)
    merged, whole = lab.evidence(merged_name), lab.evidence("whole")
    checks.expect("counts", merged["counts"], whole["counts"])
    timeless = [{case: {**facts, "wall_s": None} for case, facts in found["cases"].items()} for found in (merged, whole)]
    checks.expect("every case is the same but for times", timeless[0] == timeless[1], True)
    checks.expect("verify", merged["verify"], 0)


if __name__ == "__main__":
    sys.exit(main())
