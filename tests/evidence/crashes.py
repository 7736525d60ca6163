"""A run of short, leaky trials in a forked process, made to be killed, and what must hold afterwards."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from agent_eval.cli import consumers
from agent_eval.cli.parsing import CommandParser
from agent_eval.cli.run_command import parse
from agent_eval.evidence.files import Files
from agent_eval.evidence.manifest import verify
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.status import status
from agent_eval.measure.summary import Tally
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.supervise import linux
from agent_eval.supervise.environment import MARK_VARIABLE
from agent_eval.supervise.process import prepare_process
from agent_eval.trials.run import RunOptions
from agent_eval.trials.run import run as run_trials
from tests.supervise.lab import wait_until

TRIALS = 4
GONE_WITHIN_S = 1.0
# Leaves two daemons: one with the marker, one whose environment and session tell nothing.
LEAKY = 'setsid sleep 60 >/dev/null 2>&1 & env -i setsid sleep $1 >/dev/null 2>&1 & echo out; echo "{\\"passed\\": true}" >"$0"; sleep 0.01'


class Silent:
    """An observer that looks away."""

    tick = None

    def begun(self, path: str, plan: dict) -> None:
        """Nothing."""

    def started(self, case_id: str, number: int) -> None:
        """Nothing."""

    def finished(self, trial: object) -> None:
        """Nothing."""


@dataclass
class CrashRun:
    """One run in a process of its own. ``nap`` is the argument by which its unmarked daemons are known."""

    folder: Path
    files: Files | None = None
    jobs: int = 1
    pid: int = 0
    status: int | None = None
    nap: str = field(default_factory=lambda: f"61.{int.from_bytes(os.urandom(6))}")

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        case = self.folder / "case.json"
        command = ["sh", "-c", LEAKY, "{report}", self.nap]
        case.write_text(json.dumps({"id": "leaky", "scope": "to be killed", "command": command}))
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                code = self._run(case)
            finally:
                os._exit(code)

    def _run(self, case: Path) -> int:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.environ["TMPDIR"] = str(self.folder)  # a killed run leaves its scratch: with the test's own files
        prepare_process()
        consumer = consumers.load("check")
        argv = ["--case", str(case), "--trials", str(TRIALS), "--grace", "0.2", "--timeout", "20"]
        args = parse(consumer, CommandParser(prog="check", allow_abbrev=False), argv)
        options = RunOptions(("check", *argv), output=str(self.evidence), jobs=self.jobs)
        try:
            result = run_trials(consumer, consumer.plan(args), options, Silent(), Tally, self.files)
        except InvalidInput:
            return 2
        except EvidenceFault:
            return 3
        return 3 if result.seal is None else result.summary["exit_code"]

    def guardians(self) -> tuple[int, ...]:
        return linux.children_of(self.pid)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, within_s: float = 60.0) -> int:
        """The exit code, or minus the signal."""
        until = time.monotonic() + within_s
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                self.kill()
                os.waitpid(self.pid, 0)
                raise AssertionError("the run hangs")
            else:
                time.sleep(0.001)
        return self.status

    def survivors(self) -> set[int]:
        """The trials' processes that are alive: marked ones, and those with our argument."""
        mark = f"{MARK_VARIABLE}={self._run_id()}".encode()
        found = set()
        for name in os.listdir("/proc"):
            if name.isdigit() and self._is_ours(name, mark):
                facts = linux.facts_of(int(name))
                if facts is not None and facts.alive:
                    found.add(int(name))
        return found

    def _is_ours(self, name: str, mark: bytes) -> bool:
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        is_nap = self.nap.encode() in arguments and arguments[0] == b"sleep"
        return is_nap or linux.has_variable(int(name), mark)

    def _run_id(self) -> str:
        try:
            return json.loads((self.evidence / "plan.json").read_bytes())["run_id"]
        except FileNotFoundError:
            return "none"

    def assert_nobody_is_left(self) -> None:
        assert wait_until(lambda: not self.survivors(), GONE_WITHIN_S), self.survivors()

    def assert_honest(self) -> dict | None:
        """Nothing finished is lost, everything planned is counted, and only a whole directory calls itself sealed."""
        if not (self.evidence / "plan.json").exists():
            return None
        found = verify(str(self.evidence))
        sealed = (self.evidence / "manifest-sha256.txt").exists()
        assert found.unsealed is not sealed
        assert found.ok is sealed
        assert found.changed == () or not sealed
        reader = EvidenceReader.open(str(self.evidence), unsealed_ok=True)
        counts = status(reader)
        assert counts["planned"] == TRIALS
        assert sum(counts[name] for name in ("passed", "failed", "void", "interrupted", "unrun")) == TRIALS
        assert counts["sealed"] is sealed
        trials = list(reader.trials())
        unrecorded = reader.summary["unrecorded"] if sealed else ()
        assert len(trials) >= counts["finished"] - len(unrecorded)
        for trial in trials:
            assert trial.record["judgment"]["verdict"] in ("pass", "fail", "void")
            if trial.record["judgment"]["verdict"] == "pass":
                assert trial.read("stdout.bin") == b"out\n"
        return counts
