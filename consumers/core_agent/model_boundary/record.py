"""What is kept of a trial's exchanges: one line each, and the bodies by digest.

Owns ``model.jsonl`` and the bodies in a trial's private folder (outside the evidence; the harness
copies them in). Nothing is written that a :class:`Redactor` has not seen.
A body over the parse limit is kept as bytes and not looked into.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent_eval import clock

from .exchange import Collected, Finish, Reply, Request, ToolResult
from .redact import Redactor, Stream
from .routes import APIS

MAX_PARSED_BYTES = 8 << 20
#: A tool result is in the request body whole; its line keeps this much of it.
MAX_RESULT_CHARS = 4000
INDEX_NAME = "model.jsonl"
BODIES_NAME = "bodies"
PACKED_NAME = "bodies.packed"
#: Bodies up to this size are held until they are whole.
MAX_SMALL_BYTES = 256 << 10
MAX_READ_BYTES = 1 << 30


class BodyFile:
    """One body on its way to the record: redacted as it comes.

    A small one is held and appended to the trial's one file of bodies when it is whole: making a file for
    each would cost more than everything else. A large one has its own, ``bodies/<sha256>``.
    """

    def __init__(self, record: TrialRecord, name: str) -> None:
        self._record = record
        self._path = os.path.join(record.folder, BODIES_NAME, f".{name}")
        self._stream = Stream(record.redactor)
        self._digest = hashlib.sha256()
        self._small: bytearray = bytearray()
        self._descriptor: int | None = None
        self.seen_bytes = 0
        self.kept_bytes = 0

    def add(self, piece: bytes) -> None:
        """Bytes as they came over the wire."""
        self.seen_bytes += len(piece)
        self._keep(self._stream.feed(piece))

    def _keep(self, data: bytes) -> None:
        self._digest.update(data)
        self.kept_bytes += len(data)
        if self._descriptor is None:
            self._small += data
            if len(self._small) <= MAX_SMALL_BYTES:
                return
            data, self._small = bytes(self._small), bytearray()
            try:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except OSError:
                # Somebody removed the trial's folder. The digest still says what went over the wire.
                self._descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        while data:
            data = data[os.write(self._descriptor, data):]

    def finish(self) -> dict[str, object] | None:
        """Digest and sizes of what is kept; ``None`` when there was nothing."""
        self._keep(self._stream.finish())
        if not self.seen_bytes:
            return None
        name = self._digest.hexdigest()
        if self._descriptor is None:
            self._record.append_body(name, bytes(self._small))
        else:
            os.close(self._descriptor)
            self._descriptor = None
            with contextlib.suppress(OSError):
                os.rename(self._path, os.path.join(self._record.folder, BODIES_NAME, name))
        return {"sha256": name, "seen_bytes": self.seen_bytes, "kept_bytes": self.kept_bytes,
                "redacted": self.seen_bytes != self.kept_bytes, "parsed": self.seen_bytes <= MAX_PARSED_BYTES}


def read_bodies(folder: str) -> Iterator[bytes]:
    """Every body of a finished record, each once. What stands there in another form was not written here: it ends the reading."""
    packed = read_regular(os.path.join(folder, PACKED_NAME)) or b""
    place = 0
    while (end := packed.find(b"\n", place)) >= 0:
        words = packed[place:end].split()
        if len(words) != 2 or not words[1].isdigit():
            break
        place = end + 1 + int(words[1])
        yield packed[end + 1:place]
    own = os.path.join(folder, BODIES_NAME)
    for name in sorted(os.listdir(own)) if os.path.isdir(own) else ():
        data = read_regular(os.path.join(own, name))
        if data is not None:
            yield data


def read_regular(path: str, max_bytes: int = MAX_READ_BYTES) -> bytes | None:
    """The content of a regular file, ``None`` for anything else: an agent can reach these files and put a FIFO or a link there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        return file.read(max_bytes) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


class ReplyReader:
    """Reads a response while it passes, without keeping it: server-sent events, or one JSON body."""

    def __init__(self, api: str, content_type: str) -> None:
        self._api = APIS[api]
        self._events = "event-stream" in content_type
        self._rest = bytearray()
        self._size = 0
        self.collected = Collected()

    def feed(self, piece: bytes) -> None:
        """Bytes of the response body."""
        self._size += len(piece)
        if self._size > MAX_PARSED_BYTES and not self._events:
            self._rest.clear()
            return
        self._rest += piece
        if self._events:
            *lines, rest = self._rest.split(b"\n")
            self._rest = bytearray(rest[:MAX_PARSED_BYTES])
            for line in lines:
                self._line(bytes(line))

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            self.collected.ended = True
            return
        event = _object(data)
        if isinstance(event, dict):
            self._api.read_event(self.collected, event)

    def finish(self) -> Reply:
        """The reply, as far as it came."""
        if self._events and self._rest:
            self._line(bytes(self._rest))
        elif not self._events and self._size <= MAX_PARSED_BYTES:
            body = _object(bytes(self._rest))
            for part in body if isinstance(body, list) else [body]:
                if isinstance(part, dict):
                    self._api.read_body(self.collected, part)
        self._rest.clear()
        return self.collected.reply()


def _object(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@dataclass(slots=True)
class Line:
    """The line of one exchange while it goes on."""

    number: int
    api: str
    operation: str
    method: str
    path: str
    credential: int = 1
    started_at: str = field(default_factory=clock.now_at)
    started_s: float = field(default_factory=time.monotonic)
    first_byte_s: float | None = None
    ended_s: float | None = None
    status: int | None = None
    content_type: str = ""
    request: dict[str, object] | None = None
    response: dict[str, object] | None = None
    conversation: Request | None = None
    reply: Reply | None = None
    finish: Finish | None = None
    fault: str | None = None
    drift: list[str] = field(default_factory=list)

    def first_byte(self) -> None:
        """The first byte of the response body went to the agent."""
        if self.first_byte_s is None:
            self.first_byte_s = time.monotonic() - self.started_s


class TrialRecord:
    """The record of one trial, in the folder that the harness made for it."""

    def __init__(self, folder: str, redactor: Redactor) -> None:
        self.folder = folder
        self.redactor = redactor
        os.makedirs(os.path.join(folder, BODIES_NAME), mode=0o700, exist_ok=True)
        self._index = open(os.path.join(folder, INDEX_NAME), "ab", buffering=0)  # noqa: SIM115 - lives as long as the trial
        self._packed = open(os.path.join(folder, PACKED_NAME), "ab", buffering=0)  # noqa: SIM115
        self._bodies: set[str] = set()
        self._index_digest = hashlib.sha256()
        self._results_seen = 0
        self._result_ids: set[str] = set()
        self.lines = 0

    def body(self, name: str) -> BodyFile:
        """A new body to write."""
        return BodyFile(self, name)

    def append_body(self, digest: str, data: bytes) -> None:
        """Append a small body to the file of bodies, unless it is there."""
        if digest not in self._bodies:
            self._bodies.add(digest)
            self._packed.write(b"%b %d\n" % (digest.encode(), len(data)) + data)

    def write(self, line: Line) -> None:
        """Write the line of an exchange that is over."""
        self.lines += 1
        value = self._value(line)
        data = self.redactor.clean(json.dumps(value, sort_keys=True).encode()) + b"\n"
        self._index.write(data)
        self._index_digest.update(data)

    @property
    def index_sha256(self) -> str:
        """Digest of the lines as they were written, from memory: a file that was changed behind our back shows."""
        return self._index_digest.hexdigest()

    def _value(self, line: Line) -> dict[str, object]:
        reply, asked = line.reply, line.conversation
        finish = line.finish or (reply.finish if reply else None)
        value: dict[str, object] = {
            "n": line.number, "api": line.api, "operation": line.operation, "method": line.method, "path": line.path,
            "credential": line.credential, "started_at": line.started_at, "first_byte_s": _rounded(line.first_byte_s),
            "wall_s": _rounded((line.ended_s or time.monotonic()) - line.started_s), "status": line.status, "content_type": line.content_type,
            "request": line.request, "response": line.response, "finish": str(finish) if finish else None,
            "fault": line.fault, "drift": line.drift,
        }
        if asked is not None:
            value.update(self._asked(asked))
        if reply is not None:
            value["text"] = reply.text
            value["calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls]
            value["complete"] = reply.complete and line.fault is None
            value["usage"] = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
        return value

    def _asked(self, asked: Request) -> dict[str, object]:
        """What the request carried; of the tool results only those that no earlier request had."""
        tools = [{"name": tool.name, "schema": tool.schema} for tool in asked.tools]
        canonical = self.redactor.clean(json.dumps(tools, sort_keys=True, separators=(",", ":")).encode())
        digest = hashlib.sha256(canonical).hexdigest()
        if tools:
            self.append_body(digest, canonical)
        return {
            "model": asked.model, "stream": asked.stream, "tools": [tool.name for tool in asked.tools],
            "tools_sha256": digest if tools else None, "results_total": len(asked.results),
            "results": [
                {"id": result.id, "error": result.error, "text": result.text[:MAX_RESULT_CHARS],
                 "truncated": len(result.text) > MAX_RESULT_CHARS}
                for result in self._new_results(asked)
            ],
        }

    def _new_results(self, asked: Request) -> list[ToolResult]:
        """Results that no earlier request had: by id, or by their number where ids are not kept or come again."""
        ids = [result.id for result in asked.results]
        if len(set(ids)) == len(ids) and all(ids):
            new = [result for result in asked.results if result.id not in self._result_ids]
        else:
            new = list(asked.results[self._results_seen:])
        self._result_ids.update(ids)
        self._results_seen = max(self._results_seen, len(ids))
        return new

    def close(self) -> None:
        """No more lines. Bodies that never became whole are removed."""
        self._index.close()
        self._packed.close()
        folder = os.path.join(self.folder, BODIES_NAME)
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                if name.startswith("."):
                    os.unlink(os.path.join(folder, name))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
