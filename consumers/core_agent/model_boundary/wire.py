"""HTTP/1.1 as far as agents and model services speak it: heads, bodies, chunks.

Owns reading a head, streaming a body however it is framed, and writing responses.
Limits: a head of 64 KiB; what is longer is refused, not read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

MAX_HEAD_BYTES = 64 << 10
READ_BYTES = 64 << 10

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict",
           413: "Content Too Large", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
           500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable"}


class WireError(Exception):
    """The peer does not speak HTTP as expected, or ended in the middle. ``status`` is what to answer."""

    def __init__(self, status: int, what: str) -> None:
        self.status = status
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class Head:
    """First line and header fields. ``fields`` keeps order and repeats; names are lower-case."""

    first: tuple[str, str, str]
    fields: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """The value of the first field of that name, or empty."""
        return next((value for field, value in self.fields if field == name), "")

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.get("transfer-encoding").lower()

    @property
    def length(self) -> int | None:
        """The declared length of the body, ``None`` when there is none."""
        text = self.get("content-length").strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit()) or len(text) > 15:
            raise WireError(400, f"content-length {text[:40]!r} is no number")
        return int(text)


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head, or ``None`` when the peer closed before one began."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise WireError(400, "the connection ended inside a head") from None
        return None
    except asyncio.LimitOverrunError:
        raise WireError(431, f"the head is longer than {MAX_HEAD_BYTES} bytes") from None
    lines = raw.decode("latin-1").strip("\r\n").split("\r\n")
    first = lines[0].split(" ", 2)
    if len(first) < 2 or "HTTP/1" not in lines[0]:
        raise WireError(400, "not HTTP/1.1")
    fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise WireError(400, "a header field is not written right")
        fields.append((name.lower(), value.strip()))
    return Head((first[0], first[1], first[2] if len(first) > 2 else ""), tuple(fields))


async def body_pieces(reader: asyncio.StreamReader, head: Head, *, response: bool = False) -> AsyncIterator[bytes]:
    """The body piece by piece, as it comes. Raises :class:`WireError` when it ends too early, or the connection breaks."""
    try:
        async for piece in _pieces(reader, head, response=response):
            yield piece
    except OSError as error:
        # Told apart from a break of the other connection, to which the pieces are passed on.
        raise WireError(502 if response else 400, f"the connection broke: {error}") from None


async def _pieces(reader: asyncio.StreamReader, head: Head, *, response: bool) -> AsyncIterator[bytes]:
    if head.chunked:
        async for piece in _chunks(reader):
            yield piece
        return
    left = head.length
    if left is None and not response:
        return
    while left is None or left > 0:
        piece = await reader.read(READ_BYTES if left is None else min(left, READ_BYTES))
        if not piece:
            if left is None:
                return
            raise WireError(502 if response else 400, f"the body ended {left} bytes too early")
        if left is not None:
            left -= len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    try:
        while True:
            line = await reader.readuntil(b"\n")
            try:
                left = int(line.split(b";")[0].strip(), 16)
                if left < 0:
                    raise ValueError(left)
            except ValueError:
                raise WireError(400, "a chunk's length is no number") from None
            if left == 0:
                while (await reader.readuntil(b"\n")).strip():
                    pass
                return
            while left:
                piece = await reader.read(min(left, READ_BYTES))
                if not piece:
                    raise WireError(502, "the body ended inside a chunk")
                left -= len(piece)
                yield piece
            await reader.readexactly(2)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise WireError(502, "the body ended inside a chunk") from None


def head_bytes(status: int, fields: list[tuple[str, str]]) -> bytes:
    """A response head."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of no bytes, the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def json_response(status: int, body: object, *, close: bool = False) -> bytes:
    """A whole JSON response."""
    data = json.dumps(body).encode()
    fields = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
    if close:
        fields.append(("Connection", "close"))
    return head_bytes(status, fields) + data
