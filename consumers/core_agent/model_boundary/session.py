"""One trial at the boundary: its secret, its limits, its mode and what it has used.

Owns opening a trial and numbering its exchanges. How one is answered is ``answering``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote

from . import wire
from .policy import Policy
from .record import Line, TrialRecord
from .redact import Redactor
from .replay import Replay
from .routes import Route, route
from .service import Service
from .upstream import Pool

_SECRET_FIELDS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization", "cookie")
#: Lines of the record are written this long after the first exchange that waits for it.
PAUSE_S = 0.05
_SECRET_QUERY = frozenset({"key", "api_key", "api-key", "access_token", "token"})


class Budget:
    """Memory for request bodies in all connections together: who does not fit waits."""

    def __init__(self, max_bytes: int) -> None:
        self._free = max_bytes
        self._changed = asyncio.Condition()

    async def take(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= count)
            self._free -= count

    async def give(self, count: int) -> None:
        async with self._changed:
            self._free += count
            self._changed.notify_all()


@dataclass(slots=True)
class Session:
    """What the harness opened for one trial."""

    secret: str
    mode: str
    api: str
    record: TrialRecord
    max_requests: int
    max_body_bytes: int
    pool: Pool | None = None
    key: str | None = None
    replay: Replay | None = None
    policy: Policy | None = None
    numbers: int = 0
    generated: int = 0
    credentials: dict[tuple[str, ...], int] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    pending: list[Callable[[], None]] = field(default_factory=list)

    def later(self, job: Callable[[], None]) -> None:
        """Do what nobody waits for in a pause, or at the trial's end; in order."""
        self.pending.append(job)
        if len(self.pending) == 1:
            asyncio.get_running_loop().call_later(PAUSE_S, self._next)

    def _next(self) -> None:
        """One job at a time: what comes in between is served first."""
        if self.pending:
            self.pending.pop(0)()
        if self.pending:
            asyncio.get_running_loop().call_soon(self._next)

    def flush(self) -> None:
        """Do all of it now."""
        while self.pending:
            self.pending.pop(0)()

    def line(self, head: wire.Head, path: str, query: str) -> tuple[Line, Route]:
        """Number the exchange and note what it authorised itself with, so that it is never written."""
        secrets = _secrets(head, query)
        self.record.redactor.add(secrets)
        found = route(head.first[0], path, self.api)
        self.numbers += 1
        shown = path + ("?" + _safe_query(query) if query else "")
        line = Line(self.numbers, found.api, found.operation, head.first[0], shown)
        # Which credential in the order of their first use, never the credential: an agent that changes it shows.
        key = tuple(secrets)
        line.credential = self.credentials.setdefault(key, len(self.credentials) + 1)
        return line, found


def _secrets(head: wire.Head, query: str) -> list[str]:
    values = []
    for name in _SECRET_FIELDS:
        value = head.get(name)
        values += [value, *value.split()]
    values += [value for name, value in parse_qsl(query) if name.lower() in _SECRET_QUERY]
    return [value for value in values if value.lower() not in ("bearer", "basic")]


def _safe_query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    return "&".join(f"{name}={'[redacted]' if name.lower() in _SECRET_QUERY else quote(value)}" for name, value in pairs)


def open_session(message: dict[str, object]) -> Session:
    """The session that an ``open`` message describes. Raises ``ValueError`` or ``OSError``."""
    redactor = Redactor([str(value) for value in message.get("redact") or ()])  # type: ignore[union-attr]
    record = TrialRecord(str(message["folder"]), redactor)
    session = Session(
        secret=str(message["secret"]), mode=str(message["mode"]), api=str(message["api"]), record=record,
        max_requests=int(str(message["max_requests"])), max_body_bytes=int(str(message["max_body_bytes"])),
    )
    if session.mode == "record":
        session.pool = Pool(Service.parse(str(message["base_url"])))
        key = message.get("key")
        session.key = str(key) if key else None
        redactor.add([session.key] if session.key else [])
    elif session.mode == "replay":
        session.replay = Replay.load(str(message["replay_folder"]))
    else:
        session.policy = Policy.from_json(message["policy"])
    return session
