"""The ledger of a lineage: append-only, hash-chained JSON lines, and the head that witnesses its length.

Owns the form of an entry, appending with its syncs, and reading everything back with the first break named.
Entry: ``seq`` (dense from 0), ``prev`` (digest of the entry before, 64 zeros for the first), ``kind``, ``at``,
``actor``, ``body``, ``digest`` = sha256 of the canonical JSON of the other six. Strings are NFC; free text is a
JSON string like any other and cannot start a line. A body may name blobs under ``blobs`` ({name: digest}); those named in
``blob_lists`` are JSON lists of further digests, so that thousands of captured files do not make a line long.
It does not know what a kind means; the contracts fold entries into states.

``head.json`` holds the count and digest of the last entry that was completely written. A chain alone cannot
show that its end was cut off; the head can, unless it was put back too: then only a copy outside can (every
command prints the head, ``verify --head`` takes it).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agent_eval.gates.blobs import BlobStore
from agent_eval.gates.files import Files, replace_file
from agent_eval.records import strict_json
from agent_eval.records.clock import now_at
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem

NO_DIGEST = "0" * 64
LEDGER_NAME, HEAD_NAME = "ledger.jsonl", "head.json"
HEAD_FORMAT = "agent-eval/ledger-head/1"
_KEYS = {"seq", "prev", "kind", "at", "actor", "body", "digest"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. ``body`` is plain JSON; ``digest`` covers everything else."""

    seq: int
    prev: str
    kind: str
    at: str
    actor: str
    body: dict
    digest: str

    def line(self) -> bytes:
        """The bytes of the line, its end included."""
        return strict_json.canonical({**self._covered(), "digest": self.digest}) + b"\n"

    def expected_digest(self) -> str:
        """The digest that the other fields have."""
        return sha256_bytes(strict_json.canonical(self._covered()))

    def blobs(self) -> tuple[str, ...]:
        """The digests that the body names."""
        named = self.body.get("blobs", {})
        return tuple(value for value in named.values() if isinstance(value, str)) if isinstance(named, dict) else ()

    def _covered(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "prev": self.prev,
            "kind": self.kind,
            "at": self.at,
            "actor": self.actor,
            "body": self.body,
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """A ledger as it was read. ``torn_bytes`` is an unfinished last line, which only a crash leaves.

    ``break_`` is the first thing that does not hold; entries before it are those that do.
    """

    entries: tuple[Entry, ...]
    torn_bytes: int = 0
    break_: Problem | None = None
    head_behind: bool = False

    @property
    def head(self) -> str:
        """Digest of the last entry, 64 zeros when there is none."""
        return self.entries[-1].digest if self.entries else NO_DIGEST


def normalised(value: object) -> Any:
    """``value`` with every string in NFC, as the ledger writes it. Raises InvalidInput for what JSON cannot hold."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput.one(repr(value)[:80], "is not Unicode text", "use names that are valid UTF-8") from None
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        result = {normalised(key): normalised(item) for key, item in value.items()}
        if len(result) != len(value):
            raise InvalidInput.one("names", "two names differ only in how Unicode composes them", "write them in NFC")
        return result
    if isinstance(value, (list, tuple)):
        return [normalised(item) for item in value]
    return value


def recordable(path: str) -> str:
    """``path``, when an entry can hold it exactly. Raises InvalidInput for one that NFC would change or that is no text."""
    if normalised(path) != path:
        raise InvalidInput.one(path, "is not in Unicode normal form C, in which the ledger writes", "rename it")
    return path


def read_chain(lineage: str) -> Chain:
    """Read and check the whole chain and its head; blobs are checked by :func:`check_blobs`."""
    for _ in range(20):
        before = _read_head(lineage)
        chain = _read_lines(lineage, before)
        if _read_head(lineage) == before:  # else an entry was added while reading: read again
            return chain
    raise EvidenceFault.one(lineage, "the ledger changes all the time", "try again when no command is writing")


def check_blobs(chain: Chain, blobs: BlobStore) -> Problem | None:
    """The first entry that names a missing or changed blob, as a problem."""
    seen: set[str] = set()
    for entry in chain.entries:
        for digest in named_blobs(entry, blobs):
            problem = blobs.problem(digest) if digest not in seen else None
            if problem:
                return Problem(f"{LEDGER_NAME} line {entry.seq + 1}", f"its blob {digest} {problem}")
            seen.add(digest)
    return None


def named_blobs(entry: Entry, blobs: BlobStore) -> Iterator[str]:
    """Every digest that an entry rests on: those in its body, then those in the lists that its body names."""
    yield from entry.blobs()
    for name in entry.body.get("blob_lists", ()):
        yield from cast("list[str]", strict_json.parse(blobs.get(entry.body["blobs"][name])))


class Ledger:
    """A ledger that may be written: the caller holds the lineage's lock."""

    __slots__ = ("_files", "_midway", "_path", "blobs", "entries", "lineage")

    def __init__(self, lineage: str, files: Files) -> None:
        self.lineage = lineage
        self.blobs = BlobStore(lineage, files)
        self.entries: list[Entry] = []
        self._files = files
        self._path = os.path.join(lineage, LEDGER_NAME)
        self._midway = False

    def create(self) -> None:
        """Start an empty ledger in an existing directory; what an interrupted start left is completed."""
        self.blobs.create()
        if not os.path.lexists(os.path.join(self.lineage, HEAD_NAME)):
            self._write_head(0, NO_DIGEST)
        if not os.path.lexists(self._path):
            self._files.create(self._path, b"")
            self._files.sync_directory(self.lineage)

    def open(self) -> None:
        """Read everything. Raises :class:`EvidenceFault` at the first break; mends what only a crash leaves."""
        chain = read_chain(self.lineage)
        problem = chain.break_ or check_blobs(chain, self.blobs)
        if problem:
            raise EvidenceFault([problem])
        self.entries = list(chain.entries)
        if chain.torn_bytes:
            self._files.truncate(self._path, os.path.getsize(self._path) - chain.torn_bytes)
        if chain.head_behind:
            self._write_head(len(self.entries), chain.head)
        if chain.torn_bytes:
            self.append("recovered", "agent-eval", {"torn_bytes": chain.torn_bytes})

    def append(self, kind: str, actor: str, body: Mapping[str, object]) -> Entry:
        """Add one entry durably: its blobs are there already, then the line, then the head."""
        if self._midway:  # an exception cut the last append: what is on disk counts, not what this process remembers
            self._midway = False
            self.open()
        prev = self.entries[-1].digest if self.entries else NO_DIGEST
        unsigned = Entry(len(self.entries), prev, kind, now_at(), str(normalised(actor)), dict(normalised(body)), "")
        entry = Entry(**{**unsigned._covered(), "digest": unsigned.expected_digest()})
        reread = _parse_line(entry.line()[:-1], self.entries)
        if reread != entry:  # an input near the limits of strict JSON (depth) lies beyond them inside an entry
            raise InvalidInput.one(kind, f"would not read back from the ledger: {reread}", "make the input flatter")
        self._midway = True
        self._files.append(self._path, entry.line())
        self._write_head(entry.seq + 1, entry.digest)
        self.entries.append(entry)
        self._midway = False
        return entry

    @property
    def head(self) -> str:
        """Digest of the last entry."""
        return self.entries[-1].digest if self.entries else NO_DIGEST

    def _write_head(self, count: int, digest: str) -> None:
        data = strict_json.pretty({"format": HEAD_FORMAT, "entries": count, "digest": digest})
        replace_file(self._files, os.path.join(self.lineage, HEAD_NAME), data)


def _read_head(lineage: str) -> tuple[int, str] | Problem:
    where = HEAD_NAME
    try:
        with open(os.path.join(lineage, HEAD_NAME), "rb") as stream:
            value = strict_json.parse_object(stream.read(4096))
    except FileNotFoundError:
        return Problem(where, "is missing", "without it a shortened ledger cannot be told from a whole one")
    except (OSError, strict_json.JsonError) as error:
        return Problem(where, f"cannot be read: {error}")
    count, digest = value.get("entries"), value.get("digest")
    if value.get("format") != HEAD_FORMAT or type(count) is not int or not isinstance(digest, str):
        return Problem(where, f"is not of format {HEAD_FORMAT}")
    return count, digest


def _read_lines(lineage: str, head: tuple[int, str] | Problem) -> Chain:
    try:
        with open(os.path.join(lineage, LEDGER_NAME), "rb") as stream:
            data = stream.read()
    except OSError as error:
        return Chain((), break_=Problem(LEDGER_NAME, f"cannot be read: {error.strerror}"))
    if isinstance(head, Problem):
        return Chain((), break_=head)
    *lines, tail = data.split(b"\n")
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        entry = _parse_line(line, entries)
        if isinstance(entry, str):
            return Chain(tuple(entries), break_=Problem(f"{LEDGER_NAME} line {number}", entry))
        entries.append(entry)
    return _against_head(entries, len(tail), head)


def _parse_line(line: bytes, before: list[Entry]) -> Entry | str:
    try:
        value: dict[str, Any] = strict_json.parse_object(line)
    except strict_json.JsonError as error:
        return f"is not an entry: {error}"
    if set(value) != _KEYS or not isinstance(value["body"], dict) or type(value["seq"]) is not int:
        return "is not an entry: it has other fields"
    entry = Entry(**value)
    if entry.line() != line + b"\n":
        return "is not in canonical form"
    if entry.seq != len(before):
        return f"has seq {entry.seq}, expected {len(before)}"
    if entry.prev != (before[-1].digest if before else NO_DIGEST):
        return "does not follow the entry before it (prev is another digest)"
    if entry.digest != entry.expected_digest():
        return "has other content than its digest says"
    return entry


def _against_head(entries: list[Entry], torn_bytes: int, head: tuple[int, str]) -> Chain:
    count, digest = head
    kept = tuple(entries)
    if count > len(entries):
        what = f"ends after {len(entries)} entries, {HEAD_NAME} has seen {count}: entries were removed"
        return Chain(kept, torn_bytes, Problem(f"{LEDGER_NAME} line {len(entries) + 1}", what))
    witnessed = entries[count - 1].digest if count else NO_DIGEST
    if witnessed != digest:
        return Chain(kept, torn_bytes, Problem(f"{LEDGER_NAME} line {count}", f"is not the entry that {HEAD_NAME} has seen"))
    if len(entries) > count + 1:  # a crash leaves at most one entry that the head has not seen
        return Chain(kept, torn_bytes, Problem(HEAD_NAME, f"has seen {count} entries of {len(entries)}: it was put back"))
    return Chain(kept, torn_bytes, None, head_behind=len(entries) == count + 1)
