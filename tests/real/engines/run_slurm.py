"""A Slurm job array on a cluster of one node, made here and taken away again.

Not part of the default tests: it needs root and Debian's packages. From the root of the repository:

    apt-get install -y --no-install-recommends slurm-wlm munge && python3 tests/real/engines/run_slurm.py

It writes a configuration into a throw-away folder, starts munged, slurmctld and slurmd on 127.0.0.1 by
hand, submits an array of four tasks with ``--shard auto``, merges what they leave, and compares that with the same run
done in one piece. Then an array of indexes 3 and 6 is cancelled while a trial runs, and what it left is run again. It ends with 0 when everything held; the daemons are ended by their process ids.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

from lab import Checks, Lab, wait_for

SHARDS = 4
CASES = 3
TRIALS = 4
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def main() -> int:
    """Build the cluster, run, compare."""
    if missing := [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]:
        sys.exit(f"not installed: {', '.join(missing)}; apt-get install -y --no-install-recommends slurm-wlm munge")
    if os.geteuid():
        sys.exit("needs root: slurmd starts each job as the user who submitted it")
    checks = Checks()
    with Lab() as lab:
        os.chmod(lab.path, 0o755)
        lab.environment.update(PATH=_PATH, SLURM_CONF=os.path.join(lab.path, "slurm.conf"))
        version = subprocess.run(["slurmctld", "-V"], env=lab.environment, capture_output=True, text=True, check=True).stdout.strip()
        print(time.strftime("%Y-%m-%d"), version, "Python", sys.version.split()[0])
        daemons = start_cluster(lab)
        whole_array(lab, checks)
        cancelled_array(lab, checks)
        checks.expect("jobs left", slurm(lab, "squeue", "--noheader"), "")
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(20)
        checks.expect("left when the cluster has ended", lab.left_behind(), [])
    return checks.exit_code()


def start_cluster(lab: Lab) -> list[subprocess.Popen[bytes]]:
    """munged, slurmctld and slurmd in the foreground, all on 127.0.0.1."""
    key, munge_socket = os.path.join(lab.path, "munge.key"), os.path.join(lab.path, "munge.socket")
    with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(secrets.token_bytes(128))
    files = [f"--{name}-file={os.path.join(lab.path, 'munged.' + name)}" for name in ("pid", "log", "seed")]
    munged = lab.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge_socket}", *files, name="munged-out")
    wait_for(lambda: os.path.exists(munge_socket), "munged's socket")
    write_configuration(lab, munge_socket)
    controller = lab.start("slurmctld", "-D", "-c", name="slurmctld")
    node = lab.start("slurmd", "-D", name="slurmd")
    wait_for(lambda: "idle" in slurm(lab, "sinfo", "--noheader", "--format=%t", fails=True), "a node that is idle")
    return [munged, controller, node]


def write_configuration(lab: Lab, munge_socket: str) -> None:
    """The smallest slurm.conf that runs a job array without cgroups, accounting and other machines."""
    host = socket.gethostname().split(".")[0]
    controller_port, node_port = free_ports(2)
    for name in ("state", "spool"):
        os.mkdir(os.path.join(lab.path, name))
    lines = (
        "ClusterName=try",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={controller_port}",
        f"SlurmdPort={node_port}",
        "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny",
        "SlurmUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={munge_socket}",
        "CredType=cred/munge",
        f"StateSaveLocation={lab.path}/state",
        f"SlurmdSpoolDir={lab.path}/spool",
        f"SlurmctldPidFile={lab.path}/slurmctld.pid",
        f"SlurmdPidFile={lab.path}/slurmd.pid",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "SwitchType=switch/none",
        "AccountingStorageType=accounting_storage/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SchedulerParameters=sched_interval=1",
        "KillWait=5",
        "ReturnToService=2",
        f"NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN",
        f"PartitionName=main Nodes={host} Default=YES MaxTime=10 State=UP OverSubscribe=NO",
    )
    with open(os.path.join(lab.path, "slurm.conf"), "w", encoding="ascii") as stream:
        stream.write("\n".join(lines) + "\n")


def free_ports(number: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [made.getsockname()[1] for made in sockets]
    for made in sockets:
        made.close()
    return ports


def slurm(lab: Lab, *argv: str, fails: bool = False) -> str:
    """What a Slurm command prints. With ``fails`` it may not work yet."""
    done = subprocess.run(argv, cwd=lab.path, env=lab.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    if done.returncode and not fails:
        sys.exit(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout.strip()


def submit(lab: Lab, array: str, options: list[str], prefix: str) -> str:
    """The job array of the README: each task does its shard of the plan."""
    script = os.path.join(lab.path, f"{prefix}.sh")
    command = f"{sys.executable} {lab.runner} check {' '.join(options)} --shard auto -o {lab.path}/{prefix}-$SLURM_ARRAY_TASK_ID"
    with open(script, "w", encoding="ascii") as stream:
        stream.write(f"#!/bin/sh\n#SBATCH --array={array}\n#SBATCH --output={lab.path}/{prefix}-%a.log\nsrun {command}\n")
    return re.findall(r"[0-9]+", slurm(lab, "sbatch", script))[0]


def finished(lab: Lab, job: str) -> bool:
    """Whether no task of the array is queued or running."""
    return slurm(lab, "squeue", "--noheader", "--jobs", job, fails=True) == ""


def whole_array(lab: Lab, checks: Checks) -> None:
    """Four shards, merged, are the run in one piece."""
    options = [*lab.cases(CASES), "--trials", str(TRIALS)]
    job = submit(lab, f"0-{SHARDS - 1}", options, "shard")
    wait_for(lambda: finished(lab, job), "the array to end", 120.0)
    print(f"sbatch --array=0-{SHARDS - 1}, --shard auto, merge:")
    checks.expect("times that the subject ran", lab.starts(), {f"c{index}": TRIALS for index in range(CASES)})
    parts = [os.path.join(lab.path, f"shard-{index}") for index in range(SHARDS)]
    checks.expect("merge of all but one is refused", lab.run_py("merge", *parts[1:], "-o", "gap").returncode, 2)
    checks.expect("merge (1: c1 fails)", lab.run_py("merge", *parts, "-o", "merged").returncode, 1)
    checks.expect("the run in one piece", lab.run_py("check", *options, "-o", "whole").returncode, 1)
    merged, whole = lab.evidence("merged"), lab.evidence("whole")
    checks.expect("counts", merged["counts"], whole["counts"])
    timeless = [{case: {**facts, "wall_s": None} for case, facts in found["cases"].items()} for found in (merged, whole)]
    checks.expect("every case is the same but for times", timeless[0] == timeless[1], True)
    checks.expect("verify", (merged["verify"], whole["verify"]), (0, 0))
    lab.starts()


def cancelled_array(lab: Lab, checks: Checks) -> None:
    """``scancel`` in the middle of a trial: the shards are sealed, and a rerun of what was left completes the plan."""
    options = [*lab.cases(2, waiting="c0"), "--trials", "2", "--timeout", "100", "--grace", "0.5"]
    job = submit(lab, "3-6:3", options, "cut")
    wait_for(lambda: os.path.islink(os.path.join(lab.path, "waiting")), "a trial that runs")
    slurm(lab, "scancel", job)
    wait_for(lambda: finished(lab, job), "the array to end", 60.0)
    print("sbatch --array=3-6:3 (shards 1/2 and 2/2), scancel while a trial runs, rerun --unrun, merge:")
    parts = [os.path.join(lab.path, f"cut-{index}") for index in (3, 6) if os.path.exists(os.path.join(lab.path, f"cut-{index}"))]
    found = [lab.evidence(part) for part in parts]
    cut = [part for part, evidence in zip(parts, found) if evidence["counts"]["interrupted"] or evidence["counts"]["unrun"]]
    checks.expect("an interrupted trial in a shard", any(evidence["counts"]["interrupted"] for evidence in found), True)
    checks.expect("verify of the shards", {evidence["verify"] for evidence in found}, {0})
    if len(parts) == 1:  # the other task was cancelled while it was queued
        index = 1 if parts[0].endswith("6") else 2
        parts.append(os.path.join(lab.path, "queued"))
        lab.run_py("check", *options, "--shard", f"{index}/2", "-o", parts[-1])
    for number, part in enumerate(cut):
        parts.append(os.path.join(lab.path, f"rest-{number}"))
        lab.run_py("rerun", "--unrun", part, "-o", parts[-1])
    lab.run_py("merge", *parts, "-o", "completed")
    wanted = {"planned": 4, "passed": 2, "failed": 2, "void": 0, "interrupted": 0, "unrun": 0}
    checks.expect("counts", lab.evidence("completed")["counts"], wanted)


if __name__ == "__main__":
    sys.exit(main())
