"""The boundary's process: listens on 127.0.0.1, and ends with the harness.

Owns the listener, the limit on connections, and the control pipe: JSON lines on stdin
(``open``, ``close``) are answered on stdout. It ends when stdin ends or its parent is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from urllib.parse import urlsplit

from . import wire
from .answering import Exchange
from .session import Budget, Session, open_session

MAX_CONNECTIONS = 64
#: Request bodies held at once, in all connections together: keeps 64 streams within 128 MiB.
MAX_HELD_BODIES_BYTES = 24 << 20
PARENT_CHECK_S = 0.25


class Boundary:
    """The sessions and the connections of one run."""

    def __init__(self, max_connections: int) -> None:
        self.max_connections = max_connections
        self.sessions: dict[str, Session] = {}
        self.connections = 0
        self.refused = 0
        self.strangers = 0
        self.budget = Budget(MAX_HELD_BODIES_BYTES)

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        if self.connections >= self.max_connections:
            self.refused += 1
            await self._refuse(writer, 503, f"model boundary: {self.max_connections} connections are open, no more are taken")
            return
        self.connections += 1
        try:
            await self._requests(reader, writer)
        except (ConnectionError, TimeoutError):
            return
        except wire.WireError as error:
            await self._refuse(writer, error.status, f"model boundary: {error}")
        finally:
            self.connections -= 1
            writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (head := await wire.read_head(reader)) is not None:
            target = urlsplit(head.first[1])
            secret, slash, rest = target.path.lstrip("/").partition("/")
            session = self.sessions.get(secret)
            if session is None:
                self.strangers += 1
                await self._refuse(writer, 404, "model boundary: no trial has this address")
                return
            exchange = Exchange(session, head, slash + rest or "/", target.query, reader, writer, self.budget)
            task = asyncio.current_task()
            assert task is not None
            session.tasks.add(task)
            try:
                again = await exchange.run()
            finally:
                session.tasks.discard(task)
            if not again:
                return

    @staticmethod
    async def _refuse(writer: asyncio.StreamWriter, status: int, message: str) -> None:
        writer.write(wire.json_response(status, {"error": {"message": message, "type": "model_boundary"}}, close=True))
        try:
            await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    def open(self, message: dict[str, object]) -> dict[str, object]:
        """Take on a trial."""
        try:
            session = open_session(message)
        except (ValueError, OSError, KeyError) as error:
            return {"ok": False, "error": str(error)}
        self.sessions[session.secret] = session
        return {"ok": True}

    async def close(self, secret: str) -> dict[str, object]:
        """End a trial: what is still going on is stopped and recorded as that."""
        session = self.sessions.pop(secret, None)
        if session is None:
            return {"ok": False, "error": "no trial has this address"}
        running = list(session.tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        session.flush()
        if session.pool is not None:
            session.pool.close()
        session.record.close()
        unused = session.replay.unused() if session.replay is not None else 0
        return {"ok": True, "index_sha256": session.record.index_sha256, "exchanges": session.record.lines, "model_requests": session.generated,
                "redacted": session.record.redactor.found, "replay_unused": unused,
                "connections_refused": self.refused, "strangers": self.strangers}


async def _control(boundary: Boundary) -> None:
    """Answer the harness until the pipe ends."""
    reader = asyncio.StreamReader(limit=16 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    while line := await reader.readline():
        message = json.loads(line)
        if message["op"] == "open":
            _say(boundary.open(message))
        else:
            _say(await boundary.close(message["secret"]))


def _say(message: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


async def _orphaned(parent: int) -> None:
    """Return when the process that started this one is gone."""
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_CHECK_S)


async def _serve(max_connections: int, parent: int) -> None:
    boundary = Boundary(max_connections)
    server = await asyncio.start_server(boundary.connection, "127.0.0.1", 0, limit=wire.MAX_HEAD_BYTES, backlog=256)
    _say({"port": server.sockets[0].getsockname()[1]})
    ends = [asyncio.ensure_future(_control(boundary)), asyncio.ensure_future(_orphaned(parent))]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    # At once, without waiting for streams that hang: nobody is left to read them.
    sys.stdout.flush()
    os._exit(0)


def main(argv: list[str]) -> int:
    """``server.py MAX_CONNECTIONS PARENT_PID``: run until the harness is gone."""
    asyncio.run(_serve(int(argv[0]), int(argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
