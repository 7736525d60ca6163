"""Trials on a Dask cluster of three worker processes, one of which is killed in the middle of a trial.

Not part of the default tests: it needs a package registry. From the root of the repository:

    python3 tests/real/engines/run_dask.py [--venv DIR]

It installs ``distributed`` in a throw-away virtual environment (``--venv``: an existing one that has it), starts a
scheduler and workers on 127.0.0.1, and does twelve trials three times: with the settings that the
README asks for, with Dask's defaults to show what goes wrong then, and with the defaults and
``dask_engine:once``. Then the coordinator is interrupted, and killed, while the workers run trials for it. It counts how
often the subject really ran, looks for processes left behind, and ends with 0 when everything held.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import venv

from lab import Checks, Lab, end, wait_for

WORKERS = 3
CASES = 4
TRIALS = 3
WAITING = "c2"


def main(argv: list[str]) -> int:
    """Install, run the three parts, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", metavar="DIR", help="a virtual environment that has distributed (default: make one and delete it)")
    args = parser.parse_args(argv)
    checks = Checks()
    with Lab() as lab:
        python = os.path.join(args.venv or install(os.path.join(lab.path, "venv")), "bin", "python")
        versions = "import dask, distributed, platform; print('Python', platform.python_version(), 'dask', dask.__version__, 'distributed', distributed.__version__)"
        print(time.strftime("%Y-%m-%d"), subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True).stdout.strip())
        lost = {"planned": 12, "passed": 8, "failed": 3, "void": 1, "interrupted": 0, "unrun": 0}
        retried = {**lost, "passed": 9, "void": 0}
        print("allowed-failures 0, Client.get_executor(pure=False, retries=0):")
        part(lab, checks, python, "plain", {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}, lost, runs_again=0)
        print("Dask's defaults, the same executor: what the settings are for")
        part(lab, checks, python, "plain", {}, retried, runs_again=1)
        print("Dask's defaults, dask_engine:once:")
        part(lab, checks, python, "once", {}, lost, runs_again=0)
        for number in (signal.SIGINT, signal.SIGKILL):
            print(f"the coordinator gets {number.name} while a trial of 8 s at most runs:")
            without_coordinator(lab, checks, python, number)
    return checks.exit_code()


def install(folder: str) -> str:
    """A virtual environment with ``distributed``."""
    venv.create(folder, with_pip=True)
    subprocess.run([os.path.join(folder, "bin", "pip"), "install", "--quiet", "distributed"], check=True)
    return folder


def part(lab: Lab, checks: Checks, python: str, factory: str, settings: dict[str, str], counts: dict[str, int], *, runs_again: int) -> None:
    """One cluster, one run, one killed worker."""
    name = f"{factory}-{len(lab.started)}"
    cluster, address = start_cluster(lab, python, name, settings)
    run, asked_by = start_run(lab, python, name, factory, address, "90")
    workers = cluster[1:]
    checks.expect("the trial's supervisor was started by one of our workers", asked_by in [worker.pid for worker in workers], True)
    killed = next(worker for worker in workers if worker.pid == asked_by)
    killed.send_signal(signal.SIGKILL)
    began = time.monotonic()
    code = run.wait(60)
    found = lab.evidence(name)
    checks.expect("counts", found["counts"], counts)
    checks.expect("exit code (1: c1 fails)", code, 1)
    starts = lab.starts()
    checks.expect("times that the subject ran", starts, {f"c{index}": TRIALS + (runs_again if f"c{index}" == WAITING else 0) for index in range(CASES)})
    checks.expect("records", len(lab.trials(name)), CASES * TRIALS)
    for record in lab.trials(name):
        if record["judgment"]["verdict"] == "void":
            print(f"       {record['case_id']}/{record['number']:03d}: {record['judgment']['cause']}: {record['worker_lost'][:110]}")
            checks.expect("cause", record["judgment"]["cause"], "worker-lost")
    checks.expect("verify", found["verify"], 0)
    checks.expect("ended before the trial's own limit", time.monotonic() - began < 45, True)
    checks.expect("left of the killed worker's trial", lab.left_behind(*(process.pid for process in cluster)), [])
    end_cluster(lab, checks, cluster)


def without_coordinator(lab: Lab, checks: Checks, python: str, number: signal.Signals) -> None:
    """The trial ends at its own limits, and the workers are ready for the next coordinator."""
    name = f"{number.name}-{len(lab.started)}"
    cluster, address = start_cluster(lab, python, name, {})
    run, _ = start_run(lab, python, name, "plain", address, "8")
    run.send_signal(number)
    began = time.monotonic()
    code = run.wait(60)
    checks.expect("it ends at once", time.monotonic() - began < 5, True)
    if number == signal.SIGINT:
        found = lab.evidence(name)
        checks.expect("exit code and verify", (code, found["verify"]), (130, 0))
        checks.expect("an interrupted trial", found["counts"]["interrupted"] > 0, True)
    checks.expect("left but the cluster, after the trial's limit", lab.left_behind(*(process.pid for process in cluster), within_s=15.0), [])
    checks.expect("workers that live", [process.poll() for process in cluster], [None] * (WORKERS + 1))
    lab.starts()
    end_cluster(lab, checks, cluster)


def start_run(lab: Lab, python: str, name: str, factory: str, address: str, timeout_s: str) -> tuple[subprocess.Popen[bytes], int]:
    """A coordinator with a trial that waits on a worker, and the process that asked for this trial."""
    run = lab.start(
        python, lab.runner, "check", *lab.cases(CASES, waiting=WAITING, python=python), "--trials", str(TRIALS), "-j", str(WORKERS),
        "--timeout", timeout_s, "--grace", "0.5", "--executor", f"dask_engine:{factory}", "-o", os.path.join(lab.path, name),
        name=f"{name}-run", env={"DASK_SCHEDULER": address},
    )  # fmt: skip
    waiting = os.path.join(lab.path, "waiting")
    wait_for(lambda: os.path.islink(waiting), "a trial that runs on a worker")
    asked_by = int(os.readlink(waiting))
    return run, asked_by


def start_cluster(lab: Lab, python: str, name: str, settings: dict[str, str]) -> tuple[list[subprocess.Popen[bytes]], str]:
    """A scheduler and its workers, and where the scheduler is."""
    scheduler, address = start_scheduler(lab, python, name, settings)
    workers = [start_worker(lab, python, address, f"{name}-worker-{index}") for index in range(WORKERS)]
    wait_for(lambda: all("Registered to" in lab.log(f"{name}-worker-{index}") for index in range(WORKERS)), "workers that register")
    return [scheduler, *workers], address


def end_cluster(lab: Lab, checks: Checks, cluster: list[subprocess.Popen[bytes]]) -> None:
    """The workers first."""
    for process in reversed(cluster):
        end(process)
    checks.expect("left when the cluster has ended", lab.left_behind(), [])
    try:
        os.unlink(os.path.join(lab.path, "waiting"))
    except FileNotFoundError:
        pass


def start_scheduler(lab: Lab, python: str, name: str, settings: dict[str, str]) -> tuple[subprocess.Popen[bytes], str]:
    """A scheduler on a free port of 127.0.0.1, and its address."""
    file = os.path.join(lab.path, f"{name}.json")
    arguments = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)
    process = lab.start(python, "-m", "dask", "scheduler", *arguments, name=f"{name}-scheduler", env=settings)
    wait_for(lambda: os.path.exists(file) and os.path.getsize(file) > 0, "a scheduler that says where it is")
    with open(file, encoding="utf-8") as stream:
        return process, json.load(stream)["address"]


def start_worker(lab: Lab, python: str, address: str, name: str) -> subprocess.Popen[bytes]:
    """A worker of one thread; without a nanny, which would start it again."""
    arguments = ("--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", lab.path)
    return lab.start(python, "-m", "dask", "worker", address, *arguments, name=name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
