"""The way of one request from its head to its line in the record.

Owns reading the request, asking the mode of the trial for an answer, passing it on and keeping a
copy beside. The three modes differ only in where the answer comes from: a service, a recording, or
a policy.
"""

from __future__ import annotations

import asyncio
import json
import re
import time

from . import wire
from .exchange import Finish, Request
from .policy import Script
from .record import MAX_PARSED_BYTES, BodyFile, ReplyReader
from .routes import APIS
from .session import Budget, Session
from .upstream import Connection, Pool, Unreachable, ask, ask_streaming, request_head

_KEY_FIELD = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
#: A request's body is parsed and stored this long after it was sent, or when its answer is through.
QUICK_ANSWER_S = 0.02
#: An answer is looked into when this much of it was passed on, and at its end.
MAX_UNREAD_BYTES = 64 << 10
#: Fields of a service's answer that go back to the agent.
_STATUS = re.compile("[0-9]{3}")
_ANSWER_FIELDS = ("content-type", "retry-after", "request-id", "x-request-id", "retry-after-ms", "x-should-retry")


class Exchange:
    """One request and its answer."""

    def __init__(self, session: Session, head: wire.Head, path: str, query: str,
                 reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: Budget) -> None:
        self.session = session
        self.head = head
        self.path = path
        self.query = query
        self.reader = reader
        self.writer = writer
        self.budget = budget
        self.line, self.route = session.line(head, path, query)
        self.keep_alive = head.get("connection").lower() != "close"
        self._unkept: bytes | None = None
        self._passed: list[bytes] = []
        self._passed_bytes = 0
        self._answer: BodyFile | None = None
        self._reply: ReplyReader | None = None

    async def run(self) -> bool:
        """Answer the request, write its line; whether the connection can be used again."""
        line = self.line
        try:
            if self.head.get("expect").lower() == "100-continue":
                self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await self._run()
        except (ConnectionError, asyncio.CancelledError) as error:
            line.finish = line.finish or Finish.CLIENT_CLOSED
            self.keep_alive = False
            if isinstance(error, asyncio.CancelledError):
                raise
        except wire.WireError as error:
            self.keep_alive = False
            await self._fail(error.status, str(error), fault=None, finish=Finish.REFUSED)
        finally:
            line.ended_s = time.monotonic()
            self.session.later(self._close_line)
        return self.keep_alive

    def _close_line(self) -> None:
        line = self.line
        self._keep_request()
        self._keep_passed()
        if self._answer is not None:
            line.response = self._answer.finish()
        if self._reply is not None:
            line.reply = self._reply.finish()
            if (line.status or 0) >= 400:
                line.finish = line.finish or Finish.ERROR
        self.session.record.write(line)

    async def _run(self) -> None:
        line, session = self.line, self.session
        if self.route.operation == "generate":
            session.generated += 1
            if session.generated > session.max_requests:
                self.keep_alive = False
                line.fault = "max-model-requests"
                # 403: agents do not repeat it, as they would a 429.
                await self._fail(403, f"model boundary: the limit of {session.max_requests} model requests is reached",
                                 fault="max-model-requests", finish=Finish.REFUSED)
                return
        declared = self.head.length
        if declared is not None and declared > session.max_body_bytes:
            self.keep_alive = False
            await self._fail(413, f"model boundary: a body of {declared} bytes, at most {session.max_body_bytes} are taken",
                             fault="body-too-large", finish=Finish.REFUSED)
            return
        held = MAX_PARSED_BYTES if declared is None else min(declared, MAX_PARSED_BYTES)
        if not self.head.chunked and declared is None:
            held = 0
        await self.budget.take(held)
        try:
            await self._with_body()
        finally:
            await self.budget.give(held)

    async def _with_body(self) -> None:
        """Read the body as far as it is to be parsed; a longer one is passed through or refused."""
        body = bytearray()
        pieces = wire.body_pieces(self.reader, self.head)
        async for piece in pieces:
            body += piece
            if len(body) > MAX_PARSED_BYTES:
                await self._large(bytes(body), pieces)
                return
        self._unkept = bytes(body)
        await self._answer_for(self._unkept)

    def _keep_soon(self) -> None:
        """Keep the request while a slow service works on it; after a quick answer, so that nobody waits."""
        asyncio.get_running_loop().call_later(QUICK_ANSWER_S, self._keep_request)

    def _keep_request(self) -> None:
        """Parse and store the request's body, once."""
        body, self._unkept = self._unkept, None
        if body is None:
            return
        if self.line.conversation is None:
            self.line.conversation = self._parse(body)
        stored = self.session.record.body(f"request-{self.line.number}")
        stored.add(body)
        self.line.request = stored.finish()

    async def _large(self, first: bytes, pieces: object) -> None:
        session = self.session
        stored = session.record.body(f"request-{self.line.number}")
        stored.add(first)
        try:
            await self._pass_large(first, pieces, stored)
        finally:
            self.line.request = stored.finish()

    async def _pass_large(self, first: bytes, pieces: object, stored: BodyFile) -> None:
        session = self.session
        if session.mode != "record":
            self.keep_alive = False
            await self._fail(413, f"model boundary: a body over {MAX_PARSED_BYTES} bytes is kept, not read",
                             fault="body-too-large", finish=Finish.REFUSED)
            return
        chunked = self.head.chunked

        async def passed() -> object:
            yield wire.chunk(first) if chunked else first
            total = len(first)
            async for piece in pieces:  # type: ignore[attr-defined]
                stored.add(piece)
                total += len(piece)
                if total > session.max_body_bytes:
                    raise wire.WireError(413, f"model boundary: a body over {session.max_body_bytes} bytes")
                yield wire.chunk(piece) if chunked else piece
            if chunked:
                yield wire.chunk(b"")

        await self._forward(None, passed())

    def _parse(self, body: bytes) -> Request | None:
        if self.route.operation != "generate":
            return None
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return None
        return APIS[self.route.api].read_request(value, self.route.model) if isinstance(value, dict) else None

    async def _answer_for(self, body: bytes) -> None:
        session = self.session
        if session.mode == "record":
            await self._forward(body, None)
            return
        self.line.conversation = self._parse(body)
        if session.mode == "replay":
            await self._replayed()
        else:
            await self._scripted(body)

    # record -------------------------------------------------------------------------------

    async def _forward(self, body: bytes | None, pieces: object) -> None:
        pool = self.session.pool
        assert pool is not None
        target = pool.service.path(self.path) + (f"?{self.query}" if self.query else "")
        length = len(body) if body is not None else self.head.length
        key = self._key()
        head = request_head(self.head, target, pool.service, length, key)
        try:
            if body is not None:
                connection, answer = await ask(pool, head, body, self._keep_soon)
            else:
                connection, answer = await ask_streaming(pool, head, pieces)  # type: ignore[arg-type]
        except (Unreachable, wire.WireError, OSError) as error:
            await self._fail(502, f"model boundary: the model service cannot be reached: {error}",
                             fault="unreachable", finish=Finish.ERROR)
            return
        await self._pass_back(pool, connection, answer)

    def _key(self) -> tuple[str, str] | None:
        if self.session.key is None:
            return None
        field_name = _KEY_FIELD.get(self.route.api)
        return (field_name, self.session.key) if field_name else ("authorization", f"Bearer {self.session.key}")

    async def _pass_back(self, pool: Pool, connection: Connection, answer: wire.Head) -> None:
        """Pass the answer on as it comes; keep a copy beside."""
        status = int(answer.first[1]) if _STATUS.fullmatch(answer.first[1]) else 502
        content_type = answer.get("content-type")
        fields = [(name, answer.get(name)) for name in _ANSWER_FIELDS if answer.get(name)]
        bodiless = status in (204, 304) or self.head.first[0] == "HEAD"
        length = 0 if bodiless else (None if answer.chunked else answer.length)
        try:
            self._begin(status, content_type, fields, length)
            if not bodiless:
                async for piece in wire.body_pieces(connection.reader, answer, response=True):
                    await self._piece(piece, framed=length is None)
        except wire.WireError:
            # The service ended in the middle: so does the answer, in the same way.
            self.line.fault = "cut"
            self.line.finish = Finish.CUT
            self.keep_alive = False
            connection.close()
            await self._drop()
            return
        except BaseException:
            connection.close()
            raise
        if length is None:
            self.writer.write(wire.chunk(b""))
        await self.writer.drain()
        if answer.get("connection").lower() == "close" or (not answer.chunked and answer.length is None and not bodiless):
            connection.close()
        else:
            pool.give(connection)
        if status >= 400:
            self.line.fault = f"http-{status}"

    # replay -------------------------------------------------------------------------------

    async def _replayed(self) -> None:
        replay = self.session.replay
        assert replay is not None
        found = replay.match(self.route.api, self.route.operation, self.line.conversation, self.line.path)
        if found is None:
            await self._fail(409, "model boundary: the recording has no answer to this request",
                             fault="replay-no-match", finish=Finish.ERROR)
            return
        self.line.drift = found.drift
        self.line.fault = found.fault
        self._begin(found.status, found.content_type, [("content-type", found.content_type)], None)
        for piece in found.pieces():
            await self._piece(piece, framed=True)
        if found.cut:
            self.line.finish = Finish.CUT
            await self._drop()
        else:
            self.writer.write(wire.chunk(b""))
            await self.writer.drain()

    # scripted -----------------------------------------------------------------------------

    async def _scripted(self, body: bytes) -> None:
        policy = self.session.policy
        assert policy is not None
        api = APIS[self.route.api]
        if self.route.operation == "models":
            await self._whole(200, {"object": "list", "data": [{"id": policy.model, "object": "model", "owned_by": "scripted"}]})
            return
        if self.route.operation == "count":
            await self._whole(200, {"input_tokens": len(body) // 4, "totalTokens": len(body) // 4})
            return
        if self.route.operation == "other":
            await self._whole(200 if self.head.first[0] in ("HEAD", "GET") else 404, {})
            return
        conversation = self.line.conversation
        if conversation is None:
            await self._fail(400, "model boundary: the request is no JSON object", fault=None, finish=Finish.ERROR)
            return
        script = policy.answer(conversation)
        if script.status != 200:
            await self._fail(script.status, script.message, fault=f"http-{script.status}", finish=Finish.ERROR)
        elif script.hangs:
            self.line.finish = Finish.NO_ANSWER
            self.line.fault = "no-answer"
            self.keep_alive = False
            self._keep_request()
            # Until the agent gives up or the trial is over.
            await self.reader.read(1)
        elif conversation.stream or self.route.streams:
            await self._stream(script, api.write_events(script.reply, conversation))
        else:
            await self._whole(200, api.write_body(script.reply, conversation), cut=script.cut)

    async def _stream(self, script: Script, events: list[bytes]) -> None:
        self._begin(200, "text/event-stream", [("content-type", "text/event-stream"), ("cache-control", "no-cache")], None)
        for event in events[:1] if script.cut else events:
            await self._piece(event, framed=True)
        if script.cut and not script.quietly:
            self.line.fault = "cut"
            await self._drop()
            return
        self.writer.write(wire.chunk(b""))
        await self.writer.drain()

    # writing ------------------------------------------------------------------------------

    def _begin(self, status: int, content_type: str, fields: list[tuple[str, str]], length: int | None) -> None:
        framing = ("Transfer-Encoding", "chunked") if length is None else ("Content-Length", str(length))
        self.writer.write(wire.head_bytes(status, [*fields, framing]))
        self.line.status = status
        self.line.content_type = content_type
        self._answer = self.session.record.body(f"response-{self.line.number}")
        if self.route.operation == "generate":
            self._reply = ReplyReader(self.route.api, content_type)

    async def _piece(self, piece: bytes, *, framed: bool) -> None:
        """To the agent first; the copy afterwards."""
        self.writer.write(wire.chunk(piece) if framed else piece)
        self.line.first_byte()
        await self.writer.drain()
        self._passed.append(piece)
        self._passed_bytes += len(piece)
        if self._passed_bytes > MAX_UNREAD_BYTES:
            self._keep_passed()

    def _keep_passed(self) -> None:
        """Look into what was passed on and keep it: not for every piece, the next one may be waiting."""
        data = b"".join(self._passed)
        self._passed.clear()
        self._passed_bytes = 0
        if self._answer is not None:
            self._answer.add(data)
        if self._reply is not None:
            self._reply.feed(data)

    async def _whole(self, status: int, body: object, *, cut: bool = False) -> None:
        data = json.dumps(body).encode()
        self._begin(status, "application/json", [("content-type", "application/json")], len(data))
        if self.head.first[0] == "HEAD":
            return
        await self._piece(data[: len(data) // 2] if cut else data, framed=False)
        if cut:
            self.line.fault = "cut"
            await self._drop()

    async def _fail(self, status: int, message: str, *, fault: str | None, finish: Finish) -> None:
        """An error in the API's own form."""
        self.line.fault = fault
        self.line.finish = finish
        if self._answer is None:
            await self._whole(status, APIS[self.route.api].error_body(status, message))
        else:
            await self._drop()

    async def _drop(self) -> None:
        """Close in the middle of an answer, after what was written has gone out."""
        self.keep_alive = False
        await self.writer.drain()
        self.writer.close()
