#!/usr/bin/env python3
"""What supervision costs: the guardian's share of a no-op trial, reaction to timeouts, a flood.

Usage: bench_supervise.py [--rounds 9] [--trials 200]. Prints one table. Every ratio is taken within a round
against ``subprocess.run`` with capture on the same program, and the median of the rounds is printed.
"""

# ruff: noqa: E402 (the package is beside, not installed)
from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from programs import compile_programs

from agent_eval.supervise import linux
from agent_eval.supervise.command import Command
from agent_eval.supervise.environment import MARK_VARIABLE, build_environment
from agent_eval.supervise.process import prepare_process
from agent_eval.supervise.scratch import Scratch
from agent_eval.supervise.slot import Slot

PY = (sys.executable, "-I", "-S", "-c")
TIMEOUT_CASES = {
    "obeys SIGTERM": "import time; time.sleep(60)",
    "ignores SIGTERM": "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(60)",
    "setsid daemon": "import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork(): os._exit(0)\ntime.sleep(60)",
    "64 processes": "import os,time\nfor _ in range(6): os.fork()\ntime.sleep(60)",
}


class Bench:
    """One slot, one folder, and the programs."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.mark = f"bench-{os.getpid()}"
        self.slot = Slot(self.mark)
        self.env = build_environment(home=folder, tmpdir=folder)
        self.number = 0
        self.programs = compile_programs(folder)

    def command(self, *argv: str, timeout_s: float = 60.0, grace_s: float = 0.1, cap: int = 8 << 20) -> Command:
        self.number += 1
        place = f"{self.folder}/{self.number}"
        return Command(
            argv=argv, cwd=self.folder, env=self.env, timeout_s=timeout_s, grace_s=grace_s, max_output_bytes=cap,
            stdout_path=f"{place}.out", stderr_path=f"{place}.err", report_source=f"{place}.rep", report_path=f"{place}.json",
        )  # fmt: skip

    def bare(self) -> None:
        subprocess.run((self.programs.noop, f"{self.folder}/bare"), capture_output=True, stdin=subprocess.DEVNULL)

    def ours(self) -> None:
        command = self.command(self.programs.noop, f"{self.folder}/{self.number + 1}.rep")
        assert self.slot.run(command).exit_code == 0


def microseconds(work: Callable[[], None], trials: int) -> float:
    began = time.perf_counter()
    for _ in range(trials):
        work()
    return (time.perf_counter() - began) / trials * 1e6


def overhead(bench: Bench, rounds: int, trials: int) -> None:
    bare, ours = [], []
    for number in range(rounds):
        pair = ((bare, bench.bare), (ours, bench.ours))
        for figures, work in pair if number % 2 else pair[::-1]:
            figures.append(microseconds(work, trials))
    ratio = statistics.median(o / b for o, b in zip(ours, bare, strict=True))
    print(f"no-op trial   subprocess.run {statistics.median(bare):7.0f} us   supervised {statistics.median(ours):7.0f} us   ratio {ratio:.2f}")


def survivors(mark: str) -> int:
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    return sum(linux.has_variable(int(name), wanted) for name in os.listdir("/proc") if name.isdigit())


def timeouts(bench: Bench, rounds: int) -> None:
    for name, program in TIMEOUT_CASES.items():
        late, used = [], ""
        for _ in range(rounds):
            began = time.monotonic()
            outcome = bench.slot.run(bench.command(*PY, program, timeout_s=0.25, grace_s=0.1))
            grace_s = 0.1 if any(step.signal == "SIGKILL" for step in outcome.stop_steps) else 0.0
            used = " + grace" if grace_s else ""
            late.append((time.monotonic() - began - 0.25 - grace_s) * 1000)
        print(f"timeout       {name:16} {statistics.median(late):6.1f} ms beyond the limit{used}, survivors {survivors(bench.mark)}")


def flood(bench: Bench, rounds: int) -> None:
    seconds, kept = [], set()
    for _ in range(rounds):
        began = time.monotonic()
        outcome = bench.slot.run(bench.command(bench.programs.flood))
        seconds.append(time.monotonic() - began)
        kept.add(outcome.stdout.kept_bytes)
    peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
    with open(f"/proc/{bench.slot.guardian}/status") as file:
        peaks += [int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")]
    print(
        f"flood         1 GiB offered, kept {kept}: {statistics.median(seconds):.3f} s, "
        f"peak memory harness {peaks[0]:.0f} MiB, guardian {peaks[1]:.0f} MiB"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--trials", type=int, default=200)
    args = parser.parse_args()
    if not linux.IS_LINUX or not shutil.which("cc"):
        print("skipped: needs Linux and a C compiler")
        return 0
    prepare_process()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with Scratch() as scratch:
        bench = Bench(scratch.path)
        with bench.slot:
            overhead(bench, args.rounds, args.trials)
            timeouts(bench, args.rounds)
            flood(bench, args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
