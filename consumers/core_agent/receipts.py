"""From what was observed of a run to the receipt that self-evaluation scores.

Owns building a receipt from a trial's evidence (or from a stream and two workspace trees). It is
not the agent's own account: calls that only the model record shows are in it, and files come from
the workspace, so an agent cannot hide what it did. What was not observed is left out, never empty.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence

from agent_eval import EvidenceReader, InvalidInput, RetainedTrial, location, strict_json, workspace

from .adapter import load
from .adapter.agreement import hidden_calls
from .adapter.arguments import in_words_of_contract
from .adapter.exchanges import Exchanges
from .adapter.mapping import map_stream
from .events import parse_events
from .transports import MODEL_FILE, restore
from .transports.adapter import AdapterTransport
from .trial import AFTER_FILE

#: Reading a skill is what suites ask about: a file of this name is one.
SKILL_NAME = "SKILL.md"
_SKILL_EVENT = "skill-read"
_TRIAL_NUMBER = re.compile("[0-9]{1,4}")


def from_trial(where: str) -> bytes:
    """The receipt of the retained trial at ``DIR/CASE/NNN`` (DIR may be ``@last``). Raises ``InvalidInput`` or ``EvidenceFault``."""
    directory, name, number = _split(where)
    reader = EvidenceReader.open(location.resolve(directory))
    trial = reader.trial(name, number)
    if trial is None:
        raise InvalidInput.one("--receipt", f"{directory} has no trial {name}/{number:03d}", "see run.py show DIR")
    transport = restore(reader.plan["subject"]["transport"])
    raw = trial.read(transport.stream) or b""
    transcript = transport.transcript(raw, trial.record)
    hidden = []
    if isinstance(transport, AdapterTransport):
        exchanges = Exchanges.read(trial.read(MODEL_FILE))
        hidden = hidden_calls(transport.adapter, map_stream(transport.adapter, raw), exchanges)
    lines = Lines(list(transcript.events))
    lines.add_hidden([(call.name, call.arguments) for call in hidden])
    after = trial.read(AFTER_FILE)
    changes = strict_json.parse_object(after)["changes"] if after is not None else None
    return _receipt(lines, changes, {
        "runId": f"{reader.plan['run_id']}/{trial.case_id}/{trial.number:03d}",
        "agent": _agent(reader.plan["subject"]),
        **_times(trial),
        "cost": _cost(trial, lines),
        "interrupted": trial.record["outcome"]["stop_reason"] == "interrupted",
    })


def from_files(events_path: str, before: str, after: str, adapter: str | None) -> bytes:
    """The receipt of a run of which there is a stream and its workspace before and after. Raises ``InvalidInput``."""
    try:
        with open(events_path, "rb") as file:
            raw = file.read()
        changes = [change.to_json() for change in workspace.difference(workspace.snapshot(before), workspace.snapshot(after))]
    except OSError as error:
        raise InvalidInput.one(str(error.filename or events_path), error.strerror or "cannot be read", "give an existing file or folder") from None
    if adapter is None:
        events = list(parse_events(raw).events)
    else:
        events = list(AdapterTransport(load.load(adapter), b"").transcript(raw, {"adapter": {"workspace": os.path.abspath(after)}}).events)
    lines = Lines(events)
    return _receipt(lines, changes, {"runId": os.path.basename(events_path), "cost": {"toolCalls": lines.calls}})


class Lines:
    """Events and commands of a receipt, under one counter."""

    def __init__(self, events: Sequence[Mapping[str, object]]) -> None:
        self.events: list[dict[str, object]] = []
        self.commands: list[dict[str, object]] = []
        self.calls = 0
        self._next = 0
        results = {str(event["id"]): event for event in events if event["type"] == "tool_result"}
        denied = {str(event["id"]) for event in events if event["type"] == "denied"}
        for event in events:
            if event["type"] == "tool_call":
                key = str(event["id"])
                self._call(str(event["tool"]), event["arguments"], results.get(key), key in denied)
            elif event["type"] == "error":
                self._event("error", str(event["text"]))
            elif event["type"] == "final":
                self._event("final", str(event["status"]))

    def add_hidden(self, calls: Sequence[tuple[str, object]]) -> None:
        """Calls that the agent's own stream leaves out."""
        for name, arguments in calls:
            self.calls += 1
            self._event("unreported-call", f"{name} {strict_json.canonical(arguments).decode()}"[:2000])

    def _call(self, tool: str, arguments: object, result: Mapping[str, object] | None, denied: bool) -> None:
        self.calls += 1
        given = in_words_of_contract(arguments, "")
        if denied:
            self._event("denied", tool)
        elif tool == "execute":
            self._command(given, result)
        else:
            path = given.get("path")
            detail = path if isinstance(path, str) else strict_json.canonical(given).decode()[:2000]
            skill = tool == "read" and isinstance(path, str) and posixpath.basename(path) == SKILL_NAME
            self._event(_SKILL_EVENT if skill else tool, detail)

    def _event(self, kind: str, detail: str) -> None:
        self.events.append({"type": kind, "detail": detail, "seq": self._number()})

    def _command(self, given: Mapping[str, object], result: Mapping[str, object] | None) -> None:
        command: dict[str, object] = {}
        argv, text = given.get("argv"), given.get("command")
        if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
            command["argv"] = argv
        else:
            command["cmd"] = text if isinstance(text, str) and text else strict_json.canonical(dict(given)).decode()
        code = result.get("exit_code") if result is not None else None
        if isinstance(code, int):
            command["exitCode"] = code
        self.commands.append({**command, "seq": self._number()})

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


def _receipt(lines: Lines, changes: Sequence[Mapping[str, object]] | None, rest: Mapping[str, object]) -> bytes:
    value: dict[str, object] = {**rest, "events": lines.events, "commands": lines.commands}
    if changes is not None:
        files = [change for change in changes if _entry(change)["type"] != "directory" and isinstance(change.get("path"), str)]
        value["filesTouched"] = sorted({str(change["path"]) for change in files})
        value["artifacts"] = [
            {"path": change["path"], "sha256": _entry(change)["sha256"], "role": change["kind"]}
            for change in files if change["kind"] != "removed" and _entry(change).get("sha256")
        ]
        unnamed = len([change for change in changes if "path" not in change])
        if unnamed:
            value["notes"] = [f"{unnamed} changed files have names that are not UTF-8 and are not listed"]
    return strict_json.pretty(value)


def _entry(change: Mapping[str, object]) -> Mapping[str, object]:
    entry = change["after"] or change["before"]
    assert isinstance(entry, Mapping)
    return entry


def _agent(subject: Mapping[str, object]) -> dict[str, object]:
    transport = subject["transport"]
    model = transport.get("model") if isinstance(transport, Mapping) else None
    return {"harness": f"{subject['name']}/{subject['version'] or 'unknown'}", **({"model": model} if model else {})}


def _times(trial: RetainedTrial) -> dict[str, object]:
    outcome = trial.record["outcome"]
    return {"startedAt": outcome["started_at"]} if outcome.get("started_at") else {}


def _cost(trial: RetainedTrial, lines: Lines) -> dict[str, object]:
    """Numbers that are known; an unknown one is left out."""
    model = trial.record.get("model") or {}
    tokens = [model.get("input_tokens"), model.get("output_tokens")]
    cost: dict[str, object] = {"seconds": trial.record["outcome"]["wall_s"], "toolCalls": lines.calls}
    if all(isinstance(count, int) for count in tokens):
        cost["tokens"] = sum(tokens)
    if isinstance(model.get("cost"), (int, float)):
        cost["usd"] = model["cost"]
    return cost


def _split(where: str) -> tuple[str, str, int]:
    parts = where.rstrip("/").split("/")
    if len(parts) >= 3 and _TRIAL_NUMBER.fullmatch(parts[-1]) and "@" in parts[-2]:
        directory = "/".join(parts[:-2])
        return directory.removesuffix("/trials") or "/", parts[-2], int(parts[-1])
    raise InvalidInput.one("--receipt", f"{where!r} names no trial", "write DIR/CASE/NNN, for example target/agent-evals/RUN/edit@1/001")
