"""Connections to the real model service, kept alive between requests.

Owns the pool and sending one request. It does not look into bodies and retries only a
kept connection that the service had closed before it answered anything.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

from .service import Service
from .wire import MAX_HEAD_BYTES, Head, WireError, read_head

CONNECT_TIMEOUT_S = 30.0
#: Not passed on: they belong to one connection, or would make the body unreadable.
_HOP_FIELDS = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer",
                         "upgrade", "proxy-connection", "accept-encoding", "expect"})


class Unreachable(Exception):
    """The model service cannot be reached; the text says why."""


class Connection:
    """One connection to the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.used = False

    def close(self) -> None:
        """Close it now."""
        self.writer.close()


class Pool:
    """Idle connections to one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._idle: list[Connection] = []
        self._tls: ssl.SSLContext | None = None

    async def take(self, *, fresh: bool = False) -> Connection:
        """An idle connection, or a new one. Raises :class:`Unreachable`."""
        while self._idle and not fresh:
            connection = self._idle.pop()
            if not connection.reader.at_eof() and not connection.writer.is_closing():
                return connection
            connection.close()
        if self.service.tls and self._tls is None:
            self._tls = ssl.create_default_context()
        opening = asyncio.open_connection(self.service.host, self.service.port, ssl=self._tls, limit=MAX_HEAD_BYTES)
        try:
            reader, writer = await asyncio.wait_for(opening, CONNECT_TIMEOUT_S)
        except (TimeoutError, OSError) as error:
            raise Unreachable(str(error) or "no answer to the connection") from None
        return Connection(reader, writer)

    def give(self, connection: Connection) -> None:
        """Keep a connection whose response was read whole."""
        connection.used = True
        self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def request_head(head: Head, path: str, service: Service, length: int | None, key: tuple[str, str] | None) -> bytes:
    """The head of the forwarded request. ``key`` replaces what the agent authorised itself with."""
    host = service.host if service.port in (80, 443) else f"{service.host}:{service.port}"
    dropped = _HOP_FIELDS | ({"authorization", "x-api-key", "x-goog-api-key", "api-key"} if key else frozenset())
    fields = [(name, value) for name, value in head.fields if name not in dropped]
    # A compressed response could not be read by whoever judges the record.
    fields += [("host", host), ("accept-encoding", "identity")]
    if key:
        fields.append(key)
    if length is not None:
        fields.append(("content-length", str(length)))
    elif head.chunked:
        fields.append(("transfer-encoding", "chunked"))
    lines = [f"{head.first[0]} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


async def ask(pool: Pool, head: bytes, body: bytes, when_sent: Callable[[], None]) -> tuple[Connection, Head]:
    """Send a request whose body is at hand; the connection and the head of the answer.

    ``when_sent`` is called while the service works on it.
    """
    connection = await pool.take()
    try:
        return connection, await _send(connection, head, body, when_sent)
    except (Unreachable, ConnectionError, WireError):
        connection.close()
        if not connection.used:
            raise
    # The service had closed an idle connection; nothing was answered on it.
    connection = await pool.take(fresh=True)
    return connection, await _send(connection, head, body, when_sent)


async def _send(connection: Connection, head: bytes, body: bytes, when_sent: Callable[[], None]) -> Head:
    connection.writer.write(head + body)
    await connection.writer.drain()
    when_sent()
    return await answer_head(connection)


async def ask_streaming(pool: Pool, head: bytes, pieces: AsyncIterator[bytes]) -> tuple[Connection, Head]:
    """Send a request whose body is still coming in, already framed."""
    connection = await pool.take(fresh=True)
    connection.writer.write(head)
    async for piece in pieces:
        connection.writer.write(piece)
        await connection.writer.drain()
    return connection, await answer_head(connection)


async def answer_head(connection: Connection) -> Head:
    """The head of the final answer: interim ones (100-199) are passed over."""
    while True:
        found = await read_head(connection.reader)
        if found is None:
            raise Unreachable("the service closed the connection without an answer")
        if not found.first[1].startswith("1"):
            return found
