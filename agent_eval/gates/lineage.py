"""A lineage directory: made once, opened under its lock, checked whole, mended, then written.

Owns what all contracts share: creation, the opening entry, frozen files and their drift, closing a lineage whose
frozen inputs changed, and crash recovery of live files. It does not know any contract's rules.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent_eval.gates import live
from agent_eval.gates.files import Files
from agent_eval.gates.ledger import LEDGER_NAME, Chain, Entry, Ledger, check_blobs, named_blobs, read_chain, recordable
from agent_eval.gates.lock import LineageLock
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem

LOCK_WAIT_S = 5.0


@dataclass(slots=True)
class Lineage:
    """An open lineage. ``entries`` grows as the ledger does; ``files`` is the write seam."""

    directory: str
    ledger: Ledger
    files: Files = field(default_factory=Files)

    @property
    def entries(self) -> list[Entry]:
        """Every entry, oldest first."""
        return self.ledger.entries

    @property
    def opened(self) -> Entry:
        """The opening entry: identity, configuration and everything frozen."""
        return next(entry for entry in self.entries if entry.kind == "opened")

    @property
    def config(self) -> dict:
        """The configuration as it was frozen."""
        return self.opened.body["config"]

    @property
    def root(self) -> live.LiveRoot:
        """The folder of the live files."""
        return live.LiveRoot(self.directory, self.opened.body["root"])

    def of_kind(self, *kinds: str) -> list[Entry]:
        """The entries of these kinds, oldest first."""
        return [entry for entry in self.entries if entry.kind in kinds]

    def blob(self, entry: Entry, name: str) -> bytes:
        """The bytes that an entry names."""
        return self.ledger.blobs.get(entry.body["blobs"][name])

    def until(self, seq: int) -> Lineage:
        """The lineage as it stood before entry ``seq``, for reading."""
        ledger = Ledger(self.directory, self.files)
        ledger.entries = [entry for entry in self.entries if entry.seq < seq]
        return Lineage(self.directory, ledger, self.files)

    def frozen_drift(self) -> list[Problem]:
        """Every frozen input file that is gone or has other bytes than at the opening."""
        return frozen_drift(self.directory, self.entries)

    def live_drift(self) -> list[Problem]:
        """Every live file that is not in its recorded state."""
        return live.drift(self.root, live.expected(self.entries))


def frozen_drift(directory: str, entries: list[Entry]) -> list[Problem]:
    """See :meth:`Lineage.frozen_drift`; a missing file fails closed. A later entry may freeze another file in its place."""
    frozen: dict[str, dict[str, str]] = {}
    for entry in entries:
        frozen |= entry.body.get("frozen_files", {})
    problems = []
    for name, item in sorted(frozen.items()):
        path = os.path.join(os.path.realpath(directory), item["path"])
        try:
            found = sha256_bytes(live.read_regular(path).data)
        except InvalidInput:
            problems.append(Problem(name, f"{item['path']} is missing or not a regular file", "open a new lineage"))
            continue
        if found != item["sha256"]:
            problems.append(Problem(name, f"{item['path']} changed since the lineage was opened", "open a new lineage"))
    return problems


@contextlib.contextmanager
def create(directory: str, files: Files, wait_s: float = LOCK_WAIT_S) -> Iterator[Lineage]:
    """A new, empty lineage, locked. The directory must not exist, or hold only an unfinished creation."""
    made = not os.path.lexists(directory)
    if made:
        parent = os.path.dirname(os.path.abspath(directory))
        if not os.path.isdir(parent):
            raise InvalidInput.one(directory, "its parent folder does not exist")
        files.make_directory(directory)
    elif not os.path.isdir(directory):
        raise InvalidInput.one(directory, "is not a directory")
    elif set(os.listdir(directory)) - {"lock", "blobs", LEDGER_NAME, "head.json", ".head.json.agent-eval-new"}:
        raise InvalidInput.one(directory, "is not empty", "name a directory that does not exist")
    lock = LineageLock(directory)
    lock.acquire(wait_s)
    try:
        ledger = Ledger(directory, files)
        ledger.create()
        ledger.open()
        if any(entry.kind != "recovered" for entry in ledger.entries):
            raise InvalidInput.one(directory, "is a lineage already", "a lineage is opened once; name a new directory")
        yield Lineage(directory, ledger, files)
    finally:
        lock.release()


@contextlib.contextmanager
def open_for_writing(directory: str, contract: str, files: Files, wait_s: float = LOCK_WAIT_S) -> Iterator[Lineage]:
    """A lineage of this contract, locked, checked whole, and with an interrupted change of live files finished."""
    require_lineage(directory)
    lock = LineageLock(directory)
    lock.acquire(wait_s)
    try:
        ledger = Ledger(directory, files)
        ledger.open()
        require_contract(directory, ledger.entries, contract)
        unfinished = live.pending(ledger.entries)
        if unfinished is not None:
            live.finish(ledger, files, unfinished, recovered=True)
        yield Lineage(directory, ledger, files)
    finally:
        lock.release()


def open_for_reading(directory: str, contract: str) -> Lineage:
    """A lineage as it is, unlocked and unmended. Raises :class:`EvidenceFault` at the first break."""
    require_lineage(directory)
    chain = read_chain(directory)
    ledger = Ledger(directory, Files())
    problem = chain.break_ or check_blobs(chain, ledger.blobs)
    if problem:
        raise EvidenceFault([problem])
    ledger.entries = list(chain.entries)
    require_contract(directory, ledger.entries, contract)
    return Lineage(directory, ledger)


def check(directory: str, head: str | None = None) -> tuple[Chain, list[Problem], list[str]]:
    """Everything that can be checked without the contract: (chain, problems, notes). Writes nothing.

    ``head`` is a digest seen earlier: it must be that of some entry, else the ledger was rewritten or cut.
    """
    require_lineage(directory)
    chain = read_chain(directory)
    ledger = Ledger(directory, Files())
    problems = [problem for problem in (chain.break_, check_blobs(chain, ledger.blobs)) if problem]
    if head is not None and head not in {entry.digest for entry in chain.entries}:
        problems.append(Problem("--head", "no entry of this ledger has that digest", "the ledger was rewritten or cut"))
    notes = []
    if chain.torn_bytes:
        notes.append(f"{chain.torn_bytes} bytes of an unfinished entry; the next command removes them")
    named = set() if problems else {digest for entry in chain.entries for digest in named_blobs(entry, ledger.blobs)}
    orphans = len(ledger.blobs.names() - named)
    if orphans and not problems:
        notes.append(f"{orphans} blobs that no entry names (left by an interrupted command)")
    if live.pending(list(chain.entries)):
        notes.append("a change of live files was interrupted; the next writing command finishes it")
    return chain, problems, notes


def require_lineage(directory: str) -> None:
    """Raise InvalidInput when there is no ledger at ``directory``."""
    if not os.path.lexists(os.path.join(directory, LEDGER_NAME)):
        raise InvalidInput.one(directory, f"is not a lineage: it has no {LEDGER_NAME}", "open one first (init or open)")


def require_contract(directory: str, entries: list[Entry], contract: str) -> None:
    """Raise InvalidInput when the lineage was never opened or belongs to another contract."""
    first = next((entry for entry in entries if entry.kind != "recovered"), None)
    if first is None or first.kind != "opened":
        raise InvalidInput.one(directory, "was never opened: its creation was interrupted", "run init or open again")
    if first.body.get("contract") != contract:
        raise InvalidInput.one(directory, f"is a lineage of {first.body.get('contract')}, not of {contract}")


def ancestor(directory: str | None, contract: str) -> dict[str, str] | None:
    """How an opening names the lineage that it follows; nothing of it but its identity is carried over."""
    if directory is None:
        return None
    before = open_for_reading(directory, contract)
    return {"lineage": before.opened.body["lineage"], "head": before.ledger.head}


def new_id() -> str:
    """A lineage id that no other lineage has."""
    return os.urandom(16).hex()


def freeze(lineage: Lineage, paths: Mapping[str, str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Store every named file as a blob; returns (frozen_files, blobs) for the opening entry."""
    frozen, blobs = {}, {}
    base = os.path.realpath(lineage.directory)
    for name, path in paths.items():
        digest = lineage.ledger.blobs.put(live.read_regular(path).data)
        # The parent is resolved and the name is not: a symlink is refused by read_regular.
        place = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(path))
        frozen[name] = {"path": recordable(os.path.relpath(place, base)), "sha256": digest}
        blobs[f"frozen:{name}"] = digest
    return frozen, blobs


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON of a value."""
    return sha256_bytes(strict_json.canonical(value))
