"""What the engine scripts share: cases, the command line, counting, and looking for what is left behind.

Owns a throw-away folder and every process started in it; each is ended by its own id.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
COUNTS = ("planned", "passed", "failed", "void", "interrupted", "unrun")
_TOKEN = "ENGINE_TRY"


class Lab:
    """A throw-away folder with a copy of the project; as a context manager it ends what was started and is removed.

    A copy, because an edit of the sources between two shards makes them parts of two plans, which ``merge`` refuses.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="engine-")
        self.started: list[subprocess.Popen[bytes]] = []
        project = os.path.join(self.path, "project")
        for name in ("agent_eval", "consumers"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(project, name), ignore=shutil.ignore_patterns("__pycache__"))
        self.runner = shutil.copy(os.path.join(ROOT, "run.py"), project)
        self.environment = {**os.environ, _TOKEN: self.path, "PYTHONPATH": f"{project}{os.pathsep}{HERE}"}

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_exception: object) -> None:
        for process in reversed(self.started):
            end(process)
        shutil.rmtree(self.path, ignore_errors=True)

    def start(self, *argv: str, name: str, **more: object) -> subprocess.Popen[bytes]:
        """A process whose output goes to ``name``.log, ended with the lab."""
        with open(os.path.join(self.path, f"{name}.log"), "ab") as log:
            environment = {**self.environment, **more.pop("env", {})}
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.path, env=environment, **more)
        self.started.append(process)
        return process

    def log(self, name: str) -> str:
        """What such a process has said."""
        with open(os.path.join(self.path, f"{name}.log"), encoding="utf-8", errors="replace") as stream:
            return stream.read()

    def cases(self, number: int, *, waiting: str | None = None, python: str = sys.executable) -> list[str]:
        """Options that name ``number`` cases ``c0``, ``c1`` ...; ``waiting`` is one that waits when it first runs."""
        options = []
        for name in (f"c{index}" for index in range(number)):
            command = [python, os.path.join(HERE, "subject.py"), "{report}", self.path, name, *(["wait"] if name == waiting else [])]
            path = os.path.join(self.path, f"{name}.json")
            with open(path, "w", encoding="utf-8") as stream:
                json.dump({"id": name, "scope": "that an engine runs each trial once", "command": command}, stream)
            options += ["--case", path]
        return options

    def run_py(self, *arguments: str, python: str = sys.executable, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
        """One command line, to its end."""
        return subprocess.run(
            [python, self.runner, *arguments], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=timeout_s,
        )  # fmt: skip

    def starts(self) -> dict[str, int]:
        """How often each case really ran since the last call."""
        path = os.path.join(self.path, "started")
        try:
            with open(path, encoding="utf-8") as stream:
                found = collections.Counter(stream.read().split())
            os.unlink(path)
        except FileNotFoundError:
            return {}
        return dict(sorted(found.items()))

    def evidence(self, name: str) -> dict[str, object]:
        """Summary of a directory, with what ``verify`` says and the causes of its voids."""
        folder = os.path.join(self.path, name)
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as stream:
            summary = json.load(stream)
        verified = self.run_py("verify", folder)
        return {"counts": {key: summary[key] for key in COUNTS}, "verify": verified.returncode, "cases": summary["cases"]}

    def trials(self, name: str) -> list[dict]:
        """The trial records of a directory."""
        records = []
        for folder, _, files in os.walk(os.path.join(self.path, name)):
            if "trial.json" in files:
                with open(os.path.join(folder, "trial.json"), encoding="utf-8") as stream:
                    records.append(json.load(stream))
        return sorted(records, key=lambda record: (record["case_id"], record["number"]))

    def left_behind(self, *expected: int, within_s: float = 10.0) -> list[str]:
        """Processes of this lab but those ``expected``, after at most ``within_s``: workers, supervisors and subjects."""
        until = time.monotonic() + within_s
        while (found := self._mine(expected)) and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def _mine(self, expected: tuple[int, ...]) -> list[str]:
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) in (os.getpid(), *expected):
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as stream:
                    environment = stream.read()
                with open(f"/proc/{name}/cmdline", "rb") as stream:
                    command = stream.read()
            except OSError:
                continue
            # A trial's own environment is an allow-list, without our token; its command line names the folder.
            if os.fsencode(f"{_TOKEN}={self.path}") in environment or os.fsencode(self.path) in command:
                found.append(f"{name} {command.replace(bytes(1), b' ').decode(errors='replace')[:100]}")
        return found


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, five seconds, SIGKILL: to this process."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def wait_for(condition, what: str, within_s: float = 60.0) -> None:
    """Ask until it holds; ends the script with ``what`` when it never does."""
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"gave up after {within_s:g} s: {what}")
        time.sleep(0.05)


class Checks:
    """Prints facts and what was expected of them; the exit code of the script."""

    def __init__(self) -> None:
        self.failed = 0

    def expect(self, what: str, found: object, wanted: object) -> None:
        """One line."""
        holds = found == wanted
        self.failed += not holds
        print(f"  {'ok  ' if holds else 'FAIL'} {what}: {found}" + ("" if holds else f", expected {wanted}"), flush=True)

    def exit_code(self) -> int:
        """0 when everything held."""
        print("everything held" if not self.failed else f"{self.failed} did not hold")
        return int(bool(self.failed))
