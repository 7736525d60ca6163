"""The peers: how each runs the same trials, and how to find what is installed.

A peer is a test runner or process harness of others. Each driver writes its peer's own input for a ``Job`` into the job's
folder and returns the command to time; writing the input is not timed. Nothing is installed here: a peer is looked for in
the folders given, then on PATH, and one that is missing is named with what it misses.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVERS = os.path.join(HERE, "drivers")
OUTPUT_CAP_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """``trials`` runs of ``program REPORT ARGUMENT...``, ``workers`` at a time, in the fresh folder ``folder``."""

    folder: str
    trials: int
    workers: int
    program: str
    arguments: tuple[str, ...] = ()
    timeout_s: float = 60.0

    def argv(self, index: int | str) -> list[str]:
        """The command of a trial; with ``"{}"`` for ``index`` a template."""
        return [self.program, os.path.join(self.folder, "reports", f"{index}.json"), *self.arguments]

    def template(self) -> str:
        """The template for a shell."""
        return shlex.join(self.argv("{}")).replace("'{}'", "{}")

    def variables(self) -> dict[str, str]:
        """For drivers that are programs of their own."""
        return {"BENCH_TRIALS": str(self.trials), "BENCH_ARGV": "\x1f".join(self.argv("{}")), "BENCH_TIMEOUT_S": f"{self.timeout_s:g}"}

    def write(self, name: str, text: str) -> str:
        """Write a file of the job; returns its path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path


class Tools:
    """Finds programs, in ``venvs`` and ``npm`` folders before PATH."""

    def __init__(self, venvs: Iterable[str] = (), npm: str | None = None) -> None:
        self.folders = [os.path.join(os.path.abspath(venv), "bin") for venv in venvs]
        if npm is not None:
            self.folders.append(os.path.join(os.path.abspath(npm), "node_modules", ".bin"))

    def find(self, name: str) -> str | None:
        """Path of a program, or ``None``."""
        return shutil.which(name, path=os.pathsep.join([*self.folders, os.environ.get("PATH", os.defpath)]))

    def __getitem__(self, name: str) -> str:
        path = self.find(name)
        if path is None:
            raise KeyError(name)
        return path


def base_environment(folder: str) -> dict[str, str]:
    """This environment without what would steer a peer, and with no telemetry or update check."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "NEXTEST", "INSPECT_"))}
    quiet = {"NO_COLOR": "1", "CARGO_NET_OFFLINE": "true", "PROMPTFOO_CONFIG_DIR": os.path.join(folder, "promptfoo")}
    off = ("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE", "PROMPTFOO_SELF_HOSTED", "PROMPTFOO_DISABLE_REMOTE_GENERATION")
    return {**kept, **quiet, **dict.fromkeys(off, "1")}


Driver = Callable[[Job, Tools], tuple[list[str], dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer: what it needs, what it can do, and its driver.

    ``limits``: it can end a trial at a wall limit, with ``whole_seconds`` only in those. ``most_trials`` keeps the slow ones
    affordable; ``flood`` is false for those that need minutes and gigabytes for a GiB of output. ``one_report``: it runs one command again and again, so that one report is left of all.
    """

    name: str
    driver: Driver
    needs: tuple[str, ...]
    version: tuple[str, ...]
    workers: tuple[int, ...] = (1, 2)
    limits: bool = True
    flood: bool = True
    whole_seconds: bool = False
    most_trials: int = 1_000_000
    one_report: bool = False


def _pytest(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    shutil.copy(os.path.join(DRIVERS, "pytest_trials.py"), os.path.join(job.folder, "test_trials.py"))
    several = ["-n", str(job.workers)] if job.workers > 1 else []
    return [tools["pytest"], "-q", "--junitxml=junit.xml", "--rootdir=.", *several], job.variables()


def _lit(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    settings = ["import lit.formats", "config.name = 'trials'", "config.test_format = lit.formats.ShTest(False)", "config.suffixes = ['.test']"]
    settings += [f"config.test_{part}_root = {os.path.join(job.folder, part)!r}" for part in ("source", "exec")]
    job.write("source/lit.cfg", "\n".join(settings) + "\n")
    for index in range(job.trials):
        job.write(f"source/t{index}.test", f"RUN: {shlex.join(job.argv(index))}\n")
    return [tools["lit"], "-j", str(job.workers), "--timeout", f"{job.timeout_s:g}", "-q", "-o", "out.json", "source"], {}


def _meson(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["project('trials')", f"checker = find_program({quoted(job.program)})"]
    for index in range(job.trials):
        arguments = ", ".join(map(quoted, job.argv(index)[1:]))
        lines.append(f"test('t{index}', checker, args: [{arguments}], timeout: {job.timeout_s:g})")
    job.write("meson.build", "\n".join(lines) + "\n")
    environment = {**base_environment(job.folder), "NINJA": tools["ninja"]}
    subprocess.run([tools["meson"], "setup", "build"], cwd=job.folder, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return [tools["meson"], "test", "-C", "build", "--no-rebuild", "-q", "--num-processes", str(job.workers)], {"NINJA": tools["ninja"]}


def _nextest(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    crate = os.path.join(os.path.dirname(job.folder), "nextest-crate")
    target = {"CARGO_TARGET_DIR": os.path.join(crate, "target")}
    if not os.path.isdir(crate):
        os.makedirs(os.path.join(crate, "tests"))
        os.mkdir(os.path.join(crate, "src"))
        shutil.copy(os.path.join(DRIVERS, "nextest_trials.rs"), os.path.join(crate, "tests", "trials.rs"))
        for name, text in {
            "src/lib.rs": "",
            "Cargo.toml": '[package]\nname = "trials"\nversion = "0.1.0"\nedition = "2021"\n'
            '[lib]\ntest = false\ndoctest = false\n[[test]]\nname = "trials"\nharness = false\n',
        }.items():
            with open(os.path.join(crate, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        build = [tools["cargo"], "test", "--no-run", "--offline", "-q"]
        subprocess.run(build, cwd=crate, env={**base_environment(crate), **target}, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    settings = job.write(
        "nextest.toml",
        f'[profile.default]\nslow-timeout = {{ period = "{job.timeout_s * 1000:.0f}ms", terminate-after = 1 }}\nfail-fast = false\n'
        f'[profile.default.junit]\npath = "{job.folder}/junit.xml"\nstore-success-output = true\n[store]\ndir = "{job.folder}/store"\n',
    )
    argv = [tools["cargo-nextest"], "nextest", "run", "--offline", "--manifest-path", os.path.join(crate, "Cargo.toml"), "--config-file", settings]
    argv += ["-j", str(job.workers), "--status-level", "none", "--final-status-level", "none", "--show-progress", "none"]
    return argv, {**job.variables(), **target}


def _parallel(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    argv = [tools["parallel"], "--will-cite", "-j", str(job.workers), "--results", "out", "--joblog", "joblog", "--timeout", f"{job.timeout_s:g}"]
    return [*argv, job.template(), ":::", *map(str, range(job.trials))], {}


def _inspect(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    shutil.copy(os.path.join(DRIVERS, "inspect_trials.py"), os.path.join(job.folder, "trials.py"))
    argv = [tools["inspect"], "eval", "trials.py", "--model", "mockllm/model", "--display", "none", "--log-dir", "logs"]
    return [*argv, "--max-samples", str(job.workers), "--max-subprocesses", str(job.workers)], job.variables()


def _promptfoo(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    provider = f"exec: {job.program}"
    if job.arguments:
        words = job.write("run.sh", f'exec {shlex.quote(job.program)} "$1" {shlex.join(job.arguments)}\n')
        provider = f"exec: sh {words}"
    check = [{"type": "javascript", "value": "output.includes('ok')"}]
    tests = [{"vars": {"path": job.argv(index)[1]}, "assert": check} for index in range(job.trials)]
    job.write("trials.json", json.dumps({"providers": [provider], "prompts": ["{{path}}"], "tests": tests}))
    argv = [tools["promptfoo"], "eval", "-c", "trials.json", "-j", str(job.workers), "--no-cache", "--no-progress-bar", "--no-table", "-o", "out.json"]
    return argv, {"PROMPTFOO_EVAL_TIMEOUT_MS": f"{job.timeout_s * 1000:.0f}"}


def _runexec(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    python = os.path.join(os.path.dirname(tools["runexec"]), "python3")
    os.mkdir(os.path.join(job.folder, "out"))
    numbers = [str(job.trials), str(job.workers), f"{job.timeout_s:.0f}", str(OUTPUT_CAP_BYTES)]
    return [python, os.path.join(DRIVERS, "runexec_trials.py"), *numbers, os.path.join(job.folder, "out"), *job.argv("{}")], {}


def _hyperfine(job: Job, tools: Tools) -> tuple[list[str], dict[str, str]]:
    argv = [tools["hyperfine"], "-N", "--runs", str(job.trials), "--warmup", "0", "--style", "basic", "--export-json", "out.json"]
    return [*argv, "-i", shlex.join(job.argv(0))], {}


PEERS = (
    Peer("hyperfine", _hyperfine, ("hyperfine",), ("hyperfine", "--version"), workers=(1,), limits=False, flood=False, one_report=True),
    Peer("pytest", _pytest, ("pytest",), ("pytest", "--version")),
    Peer("lit", _lit, ("lit",), ("lit", "--version"), whole_seconds=True),
    Peer("meson", _meson, ("meson", "ninja"), ("meson", "--version"), whole_seconds=True, flood=False),
    Peer("nextest", _nextest, ("cargo-nextest", "cargo", "rustc"), ("cargo-nextest", "nextest", "--version"), flood=False),
    Peer("GNU parallel", _parallel, ("parallel",), ("parallel", "--version")),
    Peer("inspect", _inspect, ("inspect",), ("inspect", "--version"), whole_seconds=True),
    Peer("promptfoo", _promptfoo, ("promptfoo", "node"), ("promptfoo", "--version")),
    Peer("runexec", _runexec, ("runexec",), ("runexec", "--version"), whole_seconds=True, most_trials=60),
)


def installed(tools: Tools, wanted: Iterable[str] | None = None) -> tuple[list[Peer], dict[str, str]]:
    """The peers found, and why each of the others is skipped. ``wanted`` names those to look for; default all."""
    names = set(wanted) if wanted is not None else {peer.name for peer in PEERS}
    found, skipped = [], {}
    for peer in PEERS:
        missing = [name for name in peer.needs if tools.find(name) is None]
        if peer.name not in names:
            skipped[peer.name] = "not asked for"
        elif missing:
            skipped[peer.name] = f"not installed ({', '.join(missing)})"
        else:
            found.append(peer)
    return found, skipped


def version_of(peer: Peer, tools: Tools, folder: str) -> str:
    """The first line of ``--version`` that has a digit and is no warning."""
    argv = [tools[peer.version[0]], *peer.version[1:]]
    done = subprocess.run(argv, cwd=folder, env=base_environment(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines()]
    return next((line for line in lines if any(map(str.isdigit, line)) and "Node.js" not in line and "(node:" not in line), "unknown")
