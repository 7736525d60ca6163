"""Proving a scenario: its declared solution passes, and doing nothing fails.

Owns the two runs that a user's own scenario must stand before it may judge anybody. Both
are ordinary trials (same layout, witness, hidden checker and judging) of a small program
that performs the declared tool calls; nothing is written into any evidence.
"""

from __future__ import annotations

import os
import selectors
import sys
import time
from collections.abc import Iterable, Mapping

from agent_eval import (
    InvalidInput,
    Judgment,
    Limits,
    PlannedCase,
    PlannedRun,
    Problem,
    Scratch,
    Services,
    Slot,
    TrialContext,
    TrialEvidence,
    digests,
    identity,
    strict_json,
)

from .judging import judge
from .realise import Trial, realise
from .scenario import Scenario
from .templates import render_value
from .transports import Start, Task
from .transports.native import NativeTransport
from .trial import RunMaterial, run_trial

PROOF_LIMITS = Limits(timeout_s=60.0)
NOTHING = {"calls": [], "status": "completed", "answer": "done"}
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "solution_agent.py")


def prove(scenarios: Iterable[Scenario]) -> None:
    """Accept every scenario or raise ``InvalidInput`` that says of each which proof failed and why."""
    problems = []
    for scenario in scenarios:
        solved = try_solution(scenario, scenario.data["solution"])
        if solved.verdict.value != "pass":
            reasons = "; ".join(failure.detail or failure.reason for failure in solved.failures)
            problems.append(Problem(scenario.folder, f"its declared solution does not pass: {reasons}", "mend the solution or the expectations"))
        for status in ("completed", "blocked", "failed"):
            if try_solution(scenario, {**NOTHING, "status": status}).verdict.value != "fail":
                problems.append(Problem(scenario.folder, f"an agent that does nothing and ends as {status} does not fail", "expect something that only the task brings about"))
    if problems:
        raise InvalidInput(problems)


def try_solution(scenario: Scenario, solution: Mapping[str, object], variant: int = 1, task_seed: int = 1) -> Judgment:
    """The judgment of one trial in which ``solution`` (calls, status, answer; templates) is performed."""
    case = scenario.case(variant, task_seed)
    data = strict_json.pretty(case)
    seed = os.urandom(32)
    values = realise(strict_json.parse_object(data), Trial(seed, None, "")).values
    script = strict_json.canonical(render_value({"calls": [], "answer": "", **solution}, values))
    with Scratch() as private:
        path = os.path.join(private.path, "script.json")
        with open(path, "xb") as stream:
            stream.write(script)
        transport = _SolutionTransport(path)
        hidden = {scenario.name: scenario.hidden} if scenario.hidden is not None else {}
        material = RunMaterial(transport, hidden, PROOF_LIMITS, task_seed, draw=lambda witness: Trial(seed, None, witness))
        planned = PlannedRun((PlannedCase(f"{scenario.name}@{variant}", data),), 1, PROOF_LIMITS, task_seed=task_seed)
        return _one_trial(planned, material, private)


def _one_trial(planned: PlannedRun, material: RunMaterial, private: Scratch) -> Judgment:
    folder = _Folder(private.subfolder("evidence"))
    services = Services()
    with Scratch() as scratch, Slot(f"proof-{os.urandom(8).hex()}") as slot:
        context = TrialContext(planned.cases[0], 1, planned, folder, scratch, identity.IdentityTracker(), services)
        steps = run_trial(context, material)
        try:
            command = next(steps)
            while True:
                slot.start(command)
                _serve_until_done(slot, services)
                command = steps.send(slot.collect())
        except StopIteration as end:
            result = end.value
    record = {**result.record, "identity": result.identity, "outcome": result.outcome.to_json()}
    plan = {"subject": {"transport": material.transport.to_json()}, "task_seed": planned.task_seed}
    evidence = TrialEvidence(plan, planned.cases[0].id, 1, planned.cases[0].data, record, folder.read)
    return judge(evidence, "retained", lambda *_: None)


def _serve_until_done(slot: Slot, services: Services) -> None:
    with selectors.DefaultSelector() as waiting:
        waiting.register(slot.fileno(), selectors.EVENT_READ, None)
        for descriptor, callback in services.callbacks.items():
            waiting.register(descriptor, selectors.EVENT_READ, callback)
        while True:
            ready = waiting.select(max(0.0, slot.deadline() - time.monotonic()))
            for key, _ in ready:
                if key.data is None:
                    return
                key.data()
            if not ready and time.monotonic() >= slot.deadline():
                return


class _Folder:
    """A trial folder that is thrown away; otherwise like that of an evidence directory."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, str] = {}

    def write(self, name: str, data: bytes) -> str:
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as stream:
            stream.write(data)
        digest = self.files[name] = digests.sha256_bytes(data)
        return digest

    def keep_content(self, data: bytes) -> str:
        digest = digests.sha256_bytes(data)
        name = f"files/{digest}"
        return digest if name in self.files else self.write(name, data)

    def adopt(self, name: str, sha256: str, content: bytes | None = None) -> None:
        self.files[name] = sha256

    def read(self, name: str) -> bytes | None:
        if name not in self.files:
            return None
        with open(os.path.join(self.path, name), "rb") as stream:
            return stream.read()


class _SolutionTransport(NativeTransport):
    """The program that performs a declared solution."""

    name = "binary"

    def __init__(self, script_path: str) -> None:
        super().__init__(_PROGRAM)
        self._script_path = script_path

    def start(self, task: Task) -> Start:
        """The program with its script, in the workspace."""
        argv = (sys.executable, "-I", "-S", "-B", _PROGRAM, self._script_path, task.workspace)
        return Start(argv, task.workspace)

    def to_json(self) -> dict[str, object]:
        """By the name of the program alone."""
        return {"name": self.name, "program": os.path.basename(_PROGRAM)}
