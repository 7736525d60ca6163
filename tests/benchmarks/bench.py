"""What all measurements share: the folder, the programs, the tools, and how one run of ours or of a peer is timed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from peers import Job, Peer, Tools, base_environment
from programs import Programs
from rounds import Unmeasured, command_seconds

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RUN_PY = os.path.join(ROOT, "run.py")
MOST_TRIALS_OF_A_CASE = 20


@dataclass(slots=True)
class Bench:
    """The settings of one call and its work folder, in which nothing is deleted before the end.

    Deleting files makes new ones dearer on ext4 for minutes, so evidence of early rounds would slow the later ones.
    ``trials`` and ``small`` are the two sizes between which the marginal cost is taken.
    """

    folder: str
    programs: Programs
    tools: Tools
    peers: Sequence[Peer]
    rounds: int
    trials: int = 400
    small: int = 20
    count: int = field(default=0)

    def fresh(self, name: str) -> str:
        """A new empty folder."""
        self.count += 1
        path = os.path.join(self.folder, f"{self.count:05d}-{name.replace(' ', '-')}")
        os.mkdir(path)
        return path

    def cases(self, folder: str, number: int, command: Sequence[str]) -> list[str]:
        """``--case FILE`` for so many cases that all run ``command``."""
        arguments = []
        for index in range(number):
            path = os.path.join(folder, f"case{index}.json")
            with open(path, "w", encoding="ascii") as stream:
                json.dump({"id": f"c{index}", "scope": "benchmark", "command": list(command)}, stream)
            arguments += ["--case", path]
        return arguments

    def check_command(self, folder: str, trials: int, command: Sequence[str], *options: str, most_of_a_case: int = MOST_TRIALS_OF_A_CASE) -> list[str]:
        """The command line of a run of ours with its evidence in ``folder``/out."""
        per_case = math.gcd(trials, most_of_a_case)
        arguments = self.cases(folder, trials // per_case, command)
        return [sys.executable, RUN_PY, "check", "-q", "-o", os.path.join(folder, "out"), "--trials", str(per_case), *arguments, *options]

    def our_seconds(self, trials: int, *options: str) -> float:
        """Seconds of a whole run of ``trials`` no-op trials, evidence and seal included."""
        folder = self.fresh("ours")
        return command_seconds(self.check_command(folder, trials, [self.programs.noop, "{report}"], *options), folder)

    def peer_seconds(self, peer: Peer, trials: int, workers: int) -> float:
        """Seconds of a whole run of a peer over ``trials`` no-op trials; every report must be there."""
        job = self.job(peer.name, trials, workers, self.programs.noop)
        spent = self.run_peer(peer, job)
        reports, expected = len(os.listdir(os.path.join(job.folder, "reports"))), 1 if peer.one_report else trials
        if reports != expected:
            raise Unmeasured(f"left {reports} reports of {expected}")
        return spent

    def job(self, name: str, trials: int, workers: int, program: str, arguments: tuple[str, ...] = (), timeout_s: float = 60.0) -> Job:
        """A job in a fresh folder."""
        folder = self.fresh(name)
        os.mkdir(os.path.join(folder, "reports"))
        return Job(folder, trials, workers, program, arguments, timeout_s)

    def run_peer(self, peer: Peer, job: Job, *, codes: Sequence[int] = (0,), bound_s: float = 300.0, before: Sequence[str] = ()) -> float:
        """Seconds of the peer's command, behind the words ``before``. Raises ``Unmeasured`` when it cannot be prepared."""
        try:
            argv, extra = peer.driver(job, self.tools)
        except subprocess.CalledProcessError as problem:
            said = ((problem.stdout or b"") + (problem.stderr or b"")).decode("utf-8", "replace")
            raise Unmeasured(f"could not be prepared: {' '.join(said[-200:].split())}") from problem
        return command_seconds([*before, *argv], job.folder, {**base_environment(job.folder), **extra}, codes=codes, bound_s=bound_s)
