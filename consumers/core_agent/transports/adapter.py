"""Trials of a real agent CLI: its adapter, and the model boundary it talks to.

Owns what is particular to a trial with an adapter: laying out the CLI's files, opening the
boundary, keeping the model record, and amending the verdict by it. What an adapter says is
``adapter/``'s business, what goes over the wire ``model_boundary/``'s.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_eval import CheckResult, Failure, Judgment, Outcome, StopReason, TrialEvidence, TrialFolder, Verdict, strict_json

from ..adapter import agreement, launch
from ..adapter.arguments import in_words_of_contract
from ..adapter.exchanges import Exchanges, total_of
from ..adapter.mapping import Mapped, map_stream
from ..adapter.model import LOGICAL_TOOLS, Adapter
from ..adapter.restriction import Grants, grants_for, judge_restriction
from ..adapter.schema import read_adapter
from ..events import EVENT_TYPES, Fact, Transcript, order_facts
from ..model_boundary.client import Address, BoundaryLost, ModelBoundary
from ..model_boundary.play import policy_for
from ..model_boundary.record import read_bodies, read_regular
from ..templates import render_value
from . import Start, Task

STDOUT_FILE = "stdout.bin"
EVENTS_FILE = "native-events.json"
MAPPED_FILE = "events.jsonl"
BOUNDARY_LOST = "boundary-lost"
BOUNDARY_KILLED = "boundary-killed"
CONTROL_MARKER = "control-effect"
_MAX_EVENTS_FILE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class AdapterRun:
    """What all trials of a run with an adapter share. Values of keys are in memory only.

    ``mode`` is that of the boundary; ``conduct`` and ``after`` are the scripted policy's.
    ``solutions`` are the scenarios' declared ones, by name; ``recording`` gives the folder to
    replay a trial from (``None``: nothing was recorded for it).
    """

    adapter: Adapter
    document: bytes
    binary: str
    package_root: str
    mode: str
    model: str
    max_requests: int
    timeout_s: float
    base_url: str | None = None
    key: str | None = None
    conduct: str = "honest"
    after: int = 0
    solutions: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()
    home: str = ""
    home_files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    prices: Mapping[str, tuple[float, float]] | None = None
    recording: Callable[[Task, str, str], str | None] | None = None


@dataclass(slots=True)
class _Open:
    """One trial that is going on."""

    grants: Grants
    address: Address | None
    private: str
    events_path: str | None
    lost: BoundaryLost | None = None


class AdapterTransport:
    """A real agent behind its adapter. Restored for judging it has no ``run``."""

    name = "adapter"
    stdout_name = STDOUT_FILE

    def __init__(self, adapter: Adapter, document: bytes, run: AdapterRun | None = None) -> None:
        self.adapter = adapter
        self.stream = STDOUT_FILE if adapter.events.source == "stdout" else EVENTS_FILE
        self._document = document
        self._run = run
        self._boundary: ModelBoundary | None = None
        self._open: dict[str, _Open] = {}
        self._summaries: list[Mapping[str, object]] = []

    def to_json(self) -> dict[str, object]:
        """The adapter whole, so that judging needs no file of today."""
        described: dict[str, object] = {"name": self.name, "adapter": self._document.decode("utf-8")}
        run = self._run
        if run is not None:
            described.update({
                "adapter_sha256": self.adapter.sha256, "model_api": str(self.adapter.model_api), "mode": run.mode,
                "model": run.model, "max_model_requests": run.max_requests, "launcher": list(run.launcher),
                "home_files": list(run.home_files), "exact": self.adapter.tools.exact,
            })
            if run.mode == "scripted":
                described["policy"] = {"conduct": run.conduct, "after": run.after}
        return described

    @classmethod
    def restore(cls, description: Mapping[str, object]) -> AdapterTransport:
        """From a retained plan. Raises ``KeyError`` or ``InvalidInput`` for what is none."""
        document = str(description["adapter"]).encode("utf-8")
        return cls(read_adapter(document, "the retained adapter"), document)

    # running ------------------------------------------------------------------------------

    def start(self, task: Task) -> Start:
        """Lay out the CLI's files, open the boundary for the trial, and give its command."""
        return self._start(task, self._policy(task))

    def _start(self, task: Task, policy: dict[str, object] | None) -> Start:
        run = self._run
        assert run is not None
        grants = grants_for(self.adapter, [str(tool) for tool in task.document["tools"]])  # type: ignore[attr-defined]
        private = os.path.join(os.path.dirname(task.task_path), "model")
        os.mkdir(private, 0o700)
        opened = _Open(grants, None, private, None)
        self._open[task.task_path] = opened
        origin = "http://127.0.0.1:9"  # the discard port: nothing answers there when the boundary is lost
        try:
            opened.address = self._address(task, private, policy)
            origin = opened.address.origin
        except BoundaryLost as error:
            opened.lost = error
        launch.copy_home_files(run.home_files, run.home, task.home)
        ready = launch.prepare(
            self.adapter, launch.Place(task.workspace, task.home, task.tmpdir, private), grants,
            binary=run.binary, package_root=run.package_root, instruction=str(task.document["instruction"]),
            model=run.model, origin=origin, timeout_s=run.timeout_s, launcher=run.launcher,
        )
        opened.events_path = ready.events_path
        return Start(ready.argv, ready.cwd, ready.env, before=ready.pre)

    def _address(self, task: Task, private: str, policy: dict[str, object] | None) -> Address:
        run = self._run
        assert run is not None
        if self._boundary is None:
            self._boundary = ModelBoundary()
        address = self._boundary.address()
        replay = None
        if run.mode == "replay":
            replay = run.recording(task, os.path.dirname(task.task_path), address.origin) if run.recording else None
            if replay is None:
                raise BoundaryLost("the recording has no such trial")
        self._boundary.open(
            address, folder=private, mode=run.mode, api=str(self.adapter.model_api), max_requests=run.max_requests,
            redact=list(run.secrets), base_url=run.base_url, key=run.key, policy=policy, replay_folder=replay,
        )
        return address

    def _policy(self, task: Task) -> dict[str, object] | None:
        run = self._run
        assert run is not None
        if run.mode != "scripted":
            return None
        solution = render_value(run.solutions.get(task.scenario, {}), task.values)
        templates = {word: {"tool": call.tool, "args": call.arguments} for word, call in self.adapter.tools.calls.items()}
        return policy_for(
            run.conduct, solution if isinstance(solution, dict) else {}, model=run.model, workspace=task.workspace,
            granted=[str(tool) for tool in task.document["tools"]], values=task.values,  # type: ignore[attr-defined]
            witness_rules=task.witness_rules, templates=templates, after=run.after,
        )

    def finish(self, task: Task, outcome: Outcome, folder: TrialFolder) -> dict[str, object]:
        """Close the boundary for the trial and keep what it recorded; keys of ``trial.json``."""
        opened = self._open.pop(task.task_path)
        closed = self._close(opened)
        lines, index_sha256 = self._keep_record(opened, folder)
        raw = self._native_events(opened, folder)
        mapped = map_stream(self.adapter, raw)
        transcript = self._transcript(mapped, task.workspace)
        folder.write(MAPPED_FILE, b"".join(strict_json.canonical(event) + b"\n" for event in transcript.events))
        exchanges = Exchanges(tuple(lines))
        restriction = judge_restriction(self.adapter, opened.grants, exchanges.offered(), None)
        run = self._run
        assert run is not None
        model = {**exchanges.summary(run.prices), "redacted": closed.get("redacted", {}),
                 "replay_unused": closed.get("replay_unused", 0), "mode": run.mode}
        self._summaries.append(model)
        return {
            "adapter": {"name": self.adapter.name, "workspace": task.workspace, "home": task.home, "tmpdir": task.tmpdir,
                        "origin": opened.address.origin if opened.address else None, "fault": None if opened.lost is None else str(opened.lost),
                        "boundary_killed": opened.lost is not None and opened.lost.killed,
                        "record_intact": closed.get("index_sha256") == index_sha256,
                        "home_files": list(run.home_files), "expected_daemons": list(self.adapter.daemons), "events": mapped.to_json()},
            "model": model,
            "denied": agreement.denied_calls(self.adapter, mapped, exchanges),
            "restriction": restriction.to_json(),
        }

    def close(self) -> None:
        """The run is over: so is the boundary."""
        if self._boundary is not None:
            self._boundary.close()
            self._boundary = None

    def totals(self) -> dict[str, object]:
        """Model requests, tokens and cost of the run; a sum with an unknown part is unknown."""
        return {"model": total_of(self._summaries)} if self._summaries else {}

    def _close(self, opened: _Open) -> dict[str, object]:
        """What the boundary says at the trial's end; nothing when it is lost. The next trial gets a new one."""
        if opened.address is None or self._boundary is None:
            return {}
        try:
            return self._boundary.close_trial(opened.address)
        except BoundaryLost as error:
            opened.lost = error
            self.close()
            return {}

    @staticmethod
    def _keep_record(opened: _Open, folder: TrialFolder) -> tuple[list[dict[str, object]], str | None]:
        """Copy ``model.jsonl`` and the bodies into the evidence; the lines, and the digest of their file."""
        data = read_regular(os.path.join(opened.private, agreement.MODEL_FILE))
        if data is None:
            return [], None
        index_sha256 = folder.write(agreement.MODEL_FILE, data)
        for body in read_bodies(opened.private):
            folder.keep_content(body)
        return Exchanges.lines_of(data), index_sha256

    def _native_events(self, opened: _Open, folder: TrialFolder) -> bytes:
        """The CLI's own events; those in a file are copied into the evidence first."""
        if opened.events_path is None:
            return read_regular(os.path.join(folder.path, STDOUT_FILE)) or b""
        data = read_regular(opened.events_path, _MAX_EVENTS_FILE_BYTES)
        if data is None:
            return b""
        folder.write(EVENTS_FILE, data)
        return data

    def wants_control(self, record: Mapping[str, object]) -> bool:
        """Whether the tool to be withheld was on the wire of a CLI that denies calls instead."""
        restriction = record["restriction"]
        return self.adapter.tools.on_wire and bool(restriction["not_withheld"])  # type: ignore[index]

    def control_start(self, task: Task) -> Start:
        """A control trial: the same agent and grants, and a scripted model that asks for what was not granted."""
        run = self._run
        assert run is not None
        templates = {word: {"tool": call.tool, "args": call.arguments} for word, call in self.adapter.tools.calls.items()}
        policy = {
            "conduct": "honest", "model": run.model, "workspace": task.workspace, "templates": templates, "answer": "",
            "calls": [{"tool": "execute", "arguments": {"command": f"touch {CONTROL_MARKER}"}, "forced": True}], "status": "blocked",
        }
        scripted = AdapterTransport(self.adapter, self._document, replace(run, mode="scripted"))
        scripted._boundary, scripted._open = self._boundary, self._open
        start = scripted._start(task, policy)
        self._boundary = scripted._boundary
        return start

    def control_end(self, task: Task, record: dict[str, object]) -> None:
        """Put what the control trial showed into the trial's record."""
        opened = self._open.pop(task.task_path)
        self._close(opened)
        asked = Exchanges.read(read_regular(os.path.join(opened.private, agreement.MODEL_FILE))).asked()
        control = {
            "asked": bool(asked), "denied": bool(asked) and all(agreement.is_denial(call) for call in asked if call.result is not None),
            "effect": os.path.exists(os.path.join(task.workspace, CONTROL_MARKER)),
        }
        offered = record["restriction"]["offered"]  # type: ignore[index]
        amended = judge_restriction(self.adapter, opened.grants, None if offered is None else tuple(offered), control)
        record["restriction"] = {**amended.to_json(), "control": control}

    # judging ------------------------------------------------------------------------------

    def transcript(self, raw: bytes, record: Mapping[str, object] | None = None) -> Transcript:
        """The events in the CLI's own stream, in the words of the contract."""
        about = record.get("adapter") if record else None
        workspace = str(about["workspace"]) if isinstance(about, Mapping) else ""
        return self._transcript(map_stream(self.adapter, raw), workspace)

    @staticmethod
    def _transcript(mapped: Mapped, workspace: str) -> Transcript:
        events, noise = [], []
        for event in mapped.events:
            if event["type"] in EVENT_TYPES:
                if event["type"] == "tool_call":
                    event = {**event, "arguments": in_words_of_contract(event["arguments"], workspace)}
                events.append(event)
            elif event["type"] == "unknown":
                noise.append({"where": f"L{event['line']}", "text": json.dumps(event.get("native"), ensure_ascii=False)})
        facts = [Fact("unknown-event", None, f"{count} of type {name}") for name, count in mapped.unknown.items()]
        return Transcript(tuple(events), tuple([*facts, *order_facts(events)]), tuple(noise))

    def effective_grants(self, granted: list[str], record: Mapping[str, object]) -> list[str]:
        """What the agent could use: the grants, and what could not be withheld."""
        effective = record["restriction"]["effective"]  # type: ignore[index]
        return [tool for tool in LOGICAL_TOOLS if tool in granted or tool in effective]

    def amend(self, judgment: Judgment, evidence: TrialEvidence, case: Mapping[str, object]) -> Judgment:
        """The verdict with the contradictions between stream, model record, exit code and workspace."""
        outcome = evidence.outcome
        about = evidence.record["adapter"]
        assert outcome is not None
        if outcome.stop_reason is StopReason.INTERRUPTED:
            return judgment
        if about["fault"] is not None:
            return _without_boundary(judgment, about)
        mapped = map_stream(self.adapter, evidence.read(self.stream) or b"")
        failures = [*_setup_failures(evidence.record.get("prepared", ())), *judgment.failures]
        if not about["record_intact"]:
            failures.append(Failure("model-record-changed", "not what the boundary wrote", (agreement.MODEL_FILE,)))
        found = agreement.compare(
            self.adapter, mapped, Exchanges.read(evidence.read(agreement.MODEL_FILE)), outcome, failures,
            evidence.record["restriction"], rests_on_withholding=rests_on_withholding(case), stream=self.stream,
        )
        checks = (*judgment.checks, *found.checks)
        if found.void is not None:
            return _void(judgment, found.void, found.failures, checks)
        verdict = Verdict.FAIL if found.failures else Verdict.PASS
        return Judgment(verdict, judgment.basis, found.failures, checks)


def _void(judgment: Judgment, cause: Failure, failures: tuple[Failure, ...], checks: tuple[CheckResult, ...]) -> Judgment:
    """Void with its cause first; what would have failed stays readable."""
    return Judgment(Verdict.VOID, judgment.basis, (cause, *failures), checks, cause=cause.reason)


def _without_boundary(judgment: Judgment, about: Mapping[str, object]) -> Judgment:
    """The boundary was lost: void, unless the agent did what it must not, or somebody killed it."""
    lost = Failure(BOUNDARY_KILLED if about["boundary_killed"] else BOUNDARY_LOST, str(about["fault"]), ("trial.json#/adapter/fault",))
    if about["boundary_killed"] or agreement.COMMITTED & {failure.reason for failure in judgment.failures}:
        return Judgment(Verdict.FAIL, judgment.basis, (*judgment.failures, lost), judgment.checks)
    return _void(judgment, lost, judgment.failures, judgment.checks)


def _setup_failures(prepared: Sequence[Mapping[str, object]]) -> list[Failure]:
    """A command that the CLI needs first and that did not end well: its own doing."""
    bad = [index for index, outcome in enumerate(prepared) if outcome["exit_code"] != 0]
    return [Failure("setup-failed", f"command {index + 1} before the run", (f"trial.json#/prepared/{index}",)) for index in bad]


def rests_on_withholding(case: Mapping[str, object]) -> bool:
    """Whether the task expects the agent to be stopped by a tool that it lacks."""
    expectations = [item["assert"] for item in case["expect"]]  # type: ignore[attr-defined]
    return any(item.get("kind") == "status_is" and item.get("status") == "blocked" for item in expectations)

