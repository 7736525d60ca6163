"""Answers from a retained recording.

Owns matching a request to a recorded exchange: the next unused one of the same API, model
and number of tool results. Paths, port and secret of the recorded trial stand for those of
this one. What else differs is drift, said but not refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from .exchange import Call, Finish, Reply, Request, Usage
from .record import BODIES_NAME, INDEX_NAME
from .routes import APIS

PIECE_BYTES = 64 << 10
META_NAME = "replay.json"


@dataclass(slots=True)
class Answer:
    """A recorded answer, as it is to be given again."""

    status: int
    content_type: str
    body: bytes
    cut: bool
    fault: str | None
    drift: list[str] = field(default_factory=list)

    def pieces(self) -> Iterator[bytes]:
        """The body in pieces."""
        for start in range(0, len(self.body), PIECE_BYTES):
            yield self.body[start:start + PIECE_BYTES]


@dataclass(slots=True)
class Replay:
    """The recording of one trial. ``replace`` maps texts of the recorded trial to those of this one."""

    folder: str
    lines: list[dict[str, object]]
    replace: list[tuple[str, str]]
    used: set[int] = field(default_factory=set)

    @classmethod
    def load(cls, folder: str) -> Replay:
        """Raises ``OSError`` or ``ValueError`` for what is no recording."""
        with open(os.path.join(folder, INDEX_NAME), "rb") as file:
            lines = [json.loads(line) for line in file if line.strip()]
        with open(os.path.join(folder, META_NAME), "rb") as file:
            pairs = json.load(file)["replace"]
        # The longest first: a workspace lies inside another path of the trial.
        return cls(folder, lines, sorted(((old, new) for old, new in pairs if old), key=lambda pair: -len(pair[0])))

    def unused(self) -> int:
        """How many recorded answers of the model were never asked for."""
        return sum(1 for index, line in enumerate(self.lines) if line["operation"] == "generate" and index not in self.used)

    def match(self, api: str, operation: str, asked: Request | None, path: str) -> Answer | None:
        """The recorded answer for this request, or ``None``."""
        skipped = False
        for index, line in enumerate(self.lines):
            if index in self.used:
                continue
            if self._same(line, api, operation, asked, path):
                self.used.add(index)
                return self._answer(line, asked, skipped)
            skipped = skipped or line["operation"] == "generate"
        return None

    @staticmethod
    def _same(line: dict[str, object], api: str, operation: str, asked: Request | None, path: str) -> bool:
        if line["api"] != api or line["operation"] != operation or line.get("status") is None:
            return False
        if asked is None:
            return operation != "generate" and line["path"] == path
        return line.get("model") == asked.model and line.get("results_total") == len(asked.results)

    def _answer(self, line: dict[str, object], asked: Request | None, skipped: bool) -> Answer:
        body = self._body(line)
        drift = ["order"] if skipped else []
        if asked is not None:
            drift += self._drift(line, asked)
            body = self._rewritten(line, asked, body)
        else:
            for old, new in self.replace:
                body = body.replace(old.encode(), new.encode())
        return Answer(int(str(line["status"])), str(line["content_type"]), body, line.get("finish") == Finish.CUT,
                      line["fault"] if isinstance(line["fault"], str) else None, drift)

    def _body(self, line: dict[str, object]) -> bytes:
        response = line.get("response")
        if not isinstance(response, dict):
            return b""
        with open(os.path.join(self.folder, BODIES_NAME, str(response["sha256"])), "rb") as file:
            return file.read()

    def _replaced(self, text: str) -> str:
        for old, new in self.replace:
            text = text.replace(old, new)
        return text

    def _drift(self, line: dict[str, object], asked: Request) -> list[str]:
        """What differs beside the key, by name."""
        found = []
        if line.get("tools") != [tool.name for tool in asked.tools]:
            found.append("tools")
        elif line.get("tools_sha256") != _tools_digest(asked):
            found.append("tool-schemas")
        recorded = line.get("results")
        recorded = recorded if isinstance(recorded, list) else []
        # The line holds what was new in that request: the last ones.
        for old, new in zip(reversed(recorded), reversed(asked.results), strict=False):
            if self._replaced(str(old["text"])) != new.text[: len(self._replaced(str(old["text"])))]:
                found.append(f"tool-result:{new.id or '?'}")
        if line.get("stream") is not None and line["stream"] != asked.stream:
            found.append("stream")
        return found

    def _rewritten(self, line: dict[str, object], asked: Request, body: bytes) -> bytes:
        """The body for this trial. A path that is streamed in pieces can only be replaced in the whole reply."""
        calls = line.get("calls")
        whole = json.dumps([line.get("text"), calls])
        if not any(json.dumps(old)[1:-1] in whole for old, _ in self.replace) or not line.get("complete"):
            return body
        listed = calls if isinstance(calls, list) else []
        made = tuple(Call(call["id"], call["name"], json.loads(self._replaced(json.dumps(call["arguments"])))) for call in listed)
        usage = line.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        reply = Reply(self._replaced(str(line.get("text", ""))), made, Finish(str(line["finish"])),
                      Usage(usage.get("input_tokens"), usage.get("output_tokens")))
        api = APIS[str(line["api"])]
        if "event-stream" in str(line["content_type"]):
            return b"".join(api.write_events(reply, asked))
        return json.dumps(api.write_body(reply, asked)).encode()


def _tools_digest(asked: Request) -> str | None:
    tools = [{"name": tool.name, "schema": tool.schema} for tool in asked.tools]
    canonical = json.dumps(tools, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(canonical).hexdigest() if tools else None
