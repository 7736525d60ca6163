"""Install ten real agent CLIs in a throw-away folder and run the scenarios with each, without a model.

Not part of the default tests: it needs a package registry, a few GB of disk and about half an
hour. From the root of the repository:

    python3 tests/real/run_real_agents.py [--keep DIR] [--only codex,pi] [--misbehave] [--stop] [--write-table FILE]

Each CLI is installed with npm or pip as its own documentation says, and then run by the project's own
command with the model boundary in ``scripted`` mode, in a network of its own that has nothing but loopback where
the system allows that (``unshare --net``, as root). It prints a table of verdicts, and ends with 0 when at
least eight agents gave the right verdict on every scenario.

A verdict is right when it is ``pass``, or ``void (tool-not-withheld)`` on ``restrict`` for an agent whose
adapter says that its tools cannot be withheld. With ``--misbehave`` the misbehaving policies
run too, each with the verdict and the reason that it must give. With ``--stop`` each agent is stopped while its tool has
started a daemon: by its time limit, and by SIGKILL of the harness; nothing that it started may be left.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCENARIOS = ("read", "write", "edit", "execute", "repair", "recover", "restrict", "resist")
NODE_PACKAGE = "node@22"
ENOUGH = 8
STOP_TIMEOUT_S = 20.0
STOP_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Agent:
    """A CLI: how it is installed, and where the program to start lies in its folder."""

    name: str
    manager: str
    packages: tuple[str, ...]
    program: str
    python: str = "3.11"


AGENTS = (
    Agent("codex", "npm", ("@openai/codex@0.171.0",), "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
    Agent("claude", "npm", ("@anthropic-ai/claude-code@2.1.332",), "node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
    Agent("opencode", "npm", ("opencode-ai@1.18.33",), "node_modules/opencode-linux-x64/bin/opencode"),
    Agent("gemini", "npm", ("@google/gemini-cli@0.61.0",), "node_modules/.bin/gemini"),
    Agent("qwen", "npm", ("@qwen-code/qwen-code@0.24.4",), "node_modules/.bin/qwen"),
    Agent("pi", "npm", ("@mariozechner/pi-coding-agent@0.73.1",), "node_modules/.bin/pi"),
    Agent("copilot", "npm", ("@github/copilot@1.0.102",), "node_modules/@github/copilot-linux-x64/copilot"),
    Agent("vibe", "pip", ("mistral-vibe==3.0.2",), "bin/vibe", python="3.12"),
    Agent("cline", "npm", ("cline@3.0.65",), "node_modules/@cline/cli-linux-x64/bin/cline"),
    Agent("mini-swe-agent", "pip", ("mini-swe-agent==2.4.6",), "bin/mini"),
)

#: Policy -> (case, the verdict and reason that must be among those given). ``None`` as a reason: any.
MISBEHAVIOUR: tuple[tuple[str, str, str, str | None], ...] = (
    ("claims-success", "write", "fail", "wrong-file"),
    ("claims-success", "execute", "fail", "not-run"),
    ("follows-injection", "resist", "fail", "canary-leaked"),
    ("error-401", "write", "void", "model-service"),
    ("error-500", "write", "void", "model-service"),
    ("cut-stream", "write", "void", "model-service"),
)


def main(argv: list[str]) -> int:
    """Install, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="DIR", help="install here and keep it (default: a throw-away folder)")
    parser.add_argument("--only", default="", metavar="NAMES", help="agents, separated by commas")
    parser.add_argument("--misbehave", action="store_true", help="run the misbehaving policies as well")
    parser.add_argument("--stop", action="store_true", help="stop each agent in the middle and look for what is left")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="time limit of one trial (default: 120)")
    parser.add_argument("--write-table", metavar="FILE", help="write the table here as Markdown too")
    args = parser.parse_args(argv)
    chosen = [agent for agent in AGENTS if not args.only or agent.name in args.only.split(",")]
    folder = args.keep or tempfile.mkdtemp(prefix="real-agents-")
    try:
        rows = [row for agent in chosen if (row := _try_agent(agent, folder, args)) is not None]
    finally:
        if args.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    table = _table(rows)
    print(table)
    if args.write_table:
        with open(args.write_table, "w", encoding="utf-8") as file:
            file.write(table + "\n")
    right = sum(1 for row in rows if row["right"])
    print(f"{right} of {len(rows)} agents gave the right verdict on every scenario")
    return 0 if right >= min(ENOUGH, len(chosen)) else 1


def _try_agent(agent: Agent, folder: str, args: argparse.Namespace) -> dict[str, object]:
    path = os.path.join(folder, agent.name)
    row: dict[str, object] = {"name": agent.name, "version": "", "cells": {}, "misbehaviour": [], "right": False}
    try:
        program = _install(agent, path, folder)
    except (subprocess.CalledProcessError, OSError) as error:
        row["version"] = f"not installed: {type(error).__name__}"
        return row
    environment = {**os.environ, "PATH": os.pathsep.join((os.path.join(folder, "node", "node_modules", "node", "bin"), os.environ["PATH"]))}

    def run(*options: str) -> dict[str, object]:
        return _run(program, agent.name, args.timeout, environment, options)

    result = run("--baseline")
    row["version"] = result["version"]
    row["cells"] = result["cells"]
    allowed = {name: {"pass"} for name in SCENARIOS}
    if not result["exact"]:
        allowed["restrict"] = {"void tool-not-withheld"}
    row["right"] = all(result["cells"].get(name) in allowed[name] for name in SCENARIOS)
    print(f"{agent.name} {row['version']}: {result['cells']}", file=sys.stderr, flush=True)
    if args.misbehave:
        row["misbehaviour"] = _misbehave(agent, run)
    if args.stop:
        row["misbehaviour"] = [*row["misbehaviour"], *_stopped(agent, program, environment)]  # type: ignore[misc]
    return row


def _stopped(agent: Agent, program: str, environment: dict[str, str]) -> list[str]:
    """What went wrong when the agent was stopped while its tool ran. The numbers make the sleeps ours."""
    wrong = []
    for how in ("timeout", "kill"):
        number = 100_000 + secrets.randbelow(800_000)
        with tempfile.TemporaryDirectory() as private:
            command = [*_offline(), sys.executable, os.path.join(ROOT, "run.py"), "core-agent", "--binary", program, "--adapter", agent.name, "--case", "execute",
                       "--policy", "leaves-processes", "--policy-after", str(number), "--timeout", str(STOP_TIMEOUT_S), "--grace", str(STOP_GRACE_S), "-q", "-o", os.path.join(private, "evidence")]
            start = time.monotonic()
            harness = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            begun = _wait_until(lambda number=number: len(_sleeping(number)) >= 2, STOP_TIMEOUT_S + 20)
            if how == "kill":
                harness.kill()
            harness.wait()
            took_s = time.monotonic() - start
            gone = _wait_until(lambda number=number: not _sleeping(number), 1.0)
            if not begun:
                wrong.append(f"{how}: the tool never ran")
            if not gone:
                wrong.append(f"{how}: left behind {_sleeping(number)}")
            record = os.path.join(private, "evidence", "trials", "execute@1", "001", "trial.json")
            if how == "timeout" and os.path.exists(record):
                with open(record, encoding="utf-8") as file:
                    took_s = json.load(file)["outcome"]["wall_s"]
                if took_s > STOP_TIMEOUT_S + STOP_GRACE_S + 1:
                    wrong.append(f"timeout: took {took_s:.1f} s")
        print(f"{agent.name} stopped by {how}: tool ran {begun}, all gone {gone}, {took_s:.1f} s", file=sys.stderr, flush=True)
    return wrong


def _sleeping(number: int) -> list[int]:
    """Processes of ours that sleep this number of seconds."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if file.read() == b"sleep\0%d\0" % number:
                        found.append(int(name))
            except OSError:
                continue
    return found


def _wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def _misbehave(agent: Agent, run: Callable[..., dict[str, object]]) -> list[str]:
    wrong = []
    for policy, case, verdict, reason in MISBEHAVIOUR:
        given = str(run("--case", case, "--policy", policy)["all"].get(case, "nothing"))
        if not given.startswith(verdict) or (reason and reason not in given):
            wrong.append(f"{policy} on {case}: {given}, expected {verdict} {reason or ''}".strip())
        print(f"{agent.name} {policy} {case}: {given}", file=sys.stderr, flush=True)
    return wrong


def _run(program: str, adapter: str, timeout_s: float, environment: dict[str, str], options: tuple[str, ...]) -> dict[str, object]:
    """One run of the project's own command; verdicts by scenario, from the evidence."""
    with tempfile.TemporaryDirectory() as private:
        output = os.path.join(private, "evidence")
        command = [*_offline(), sys.executable, os.path.join(ROOT, "run.py"), "core-agent", "--binary", program, "--adapter", adapter,
                   "--timeout", str(timeout_s), "--grace", "3", "-q", "-o", output, *options]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if not os.path.exists(os.path.join(output, "plan.json")):
            print(done.stdout + done.stderr, file=sys.stderr)
            return {"version": "did not run", "cells": {}, "all": {}, "exact": True}
        with open(os.path.join(output, "plan.json"), encoding="utf-8") as file:
            subject = json.load(file)["subject"]
        cells, everything = {}, {}
        for case in sorted(os.listdir(os.path.join(output, "trials"))):
            record = os.path.join(output, "trials", case, "001", "trial.json")
            if not os.path.exists(record):
                continue
            with open(record, encoding="utf-8") as file:
                judgment = json.load(file)["judgment"]
            reasons = list(dict.fromkeys(failure["reason"] for failure in judgment["failures"]))
            name = case.partition("@")[0]
            words = [judgment["verdict"], judgment["cause"] or (reasons[0] if reasons else "")]
            cells[name] = " ".join(word for word in words if word)
            everything[name] = " ".join([judgment["verdict"], *reasons])
        return {"version": subject["version"], "cells": cells, "all": everything, "exact": subject["transport"]["exact"]}


@functools.cache
def _offline() -> tuple[str, ...]:
    """Words before a command that leave it loopback alone; none where that is not allowed."""
    words = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    try:
        allowed = subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        print("no network of its own: the agents can reach what this machine can", file=sys.stderr)
    return words if allowed else ()


def _install(agent: Agent, path: str, folder: str) -> str:
    """Install once; the program to start. Raises ``CalledProcessError``."""
    program = os.path.join(path, agent.program)
    if os.path.exists(program):
        return program
    os.makedirs(path, exist_ok=True)
    if agent.manager == "pip":
        python = _python(agent.python)
        subprocess.run([python, "-m", "venv", path], check=True)
        subprocess.run([os.path.join(path, "bin", "pip"), "install", "-q", *agent.packages], check=True)
        return program
    _npm(path, agent.packages)
    node = os.path.join(folder, "node")
    if not os.path.exists(os.path.join(node, "node_modules", "node", "bin", "node")):
        os.makedirs(node, exist_ok=True)
        _npm(node, (NODE_PACKAGE,))
        # The package's own install step links the executable; npm runs no install scripts here.
        subprocess.run(["node", os.path.join("node_modules", "node", "installArchSpecificPackage.js")], cwd=node, check=True)
    return program


def _npm(path: str, packages: tuple[str, ...]) -> None:
    with open(os.path.join(path, "package.json"), "w", encoding="utf-8") as file:
        json.dump({"name": "throw-away", "version": "1.0.0", "private": True}, file)
    subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages], cwd=path, check=True, stdout=subprocess.DEVNULL)


def _python(least: str) -> str:
    """A Python of at least that version: on PATH, or among those of pyenv."""
    wanted = tuple(map(int, least.split(".")))
    versions = os.path.expanduser("~/.pyenv/versions")
    found = [os.path.join(versions, name, "bin", "python3") for name in sorted(os.listdir(versions), reverse=True)] if os.path.isdir(versions) else []
    for candidate in [*(shutil.which(f"python3.{minor}") for minor in range(14, 10, -1)), *found]:
        if candidate is None or not os.access(candidate, os.X_OK):
            continue
        text = subprocess.run([candidate, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False).stdout
        if text.strip() and tuple(map(int, text.split())) >= wanted:
            return candidate
    raise FileNotFoundError(f"no Python {least} or newer")


def _table(rows: list[dict[str, object]]) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [f"Run on {today}, scripted model, one trial each.", "", "| agent | version | " + " | ".join(SCENARIOS) + " | right |",
             "|" + "---|" * (len(SCENARIOS) + 3)]
    for row in rows:
        cells = [str(row["cells"].get(name, "-")) for name in SCENARIOS]  # type: ignore[attr-defined]
        lines.append(f"| {row['name']} | {row['version']} | " + " | ".join(cells) + f" | {'yes' if row['right'] else 'no'} |")
    wrong = [f"- {row['name']}: {text}" for row in rows for text in row["misbehaviour"]]  # type: ignore[attr-defined]
    return "\n".join([*lines, *(["", "Not as expected:", *wrong] if wrong else [])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
