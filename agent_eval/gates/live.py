"""Live files: read exactly, changed exactly, and finished after a crash.

Owns the protocol around a change of files that others use (a skill, a policy): blobs, ledger entry with ``apply``,
live files, check, ``applied`` entry. What a crash leaves between two of these steps is rolled forward by
:func:`finish` at the next start. Bytes that nobody announced and that stand in the way are kept as blobs.
It does not know why a file changes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval.gates.files import Files, replace_file
from agent_eval.gates.ledger import Entry, Ledger, recordable
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem

MAX_LIVE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class FileState:
    """What a live file is: digest of its bytes and its permission bits."""

    sha256: str
    mode: int

    def to_json(self) -> dict[str, object]:
        """The state as it stands in an entry; the mode is octal text."""
        return {"sha256": self.sha256, "mode": f"{self.mode:04o}"}

    @classmethod
    def from_json(cls, value: Mapping) -> FileState:
        """The state that :meth:`to_json` wrote."""
        return cls(value["sha256"], int(value["mode"], 8))


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes and permission bits that a live file has or shall have."""

    data: bytes
    mode: int

    @property
    def state(self) -> FileState:
        """Its digest form."""
        return FileState(sha256_bytes(self.data), self.mode)


class LiveRoot:
    """A folder with declared files, kept relative to the lineage, so that both can move together."""

    __slots__ = ("path", "relative")

    def __init__(self, lineage: str, relative: str) -> None:
        self.relative = relative
        self.path = os.path.normpath(os.path.join(os.path.realpath(lineage), relative))

    @classmethod
    def at(cls, lineage: str, folder: str) -> LiveRoot:
        """The root at an existing folder."""
        return cls(lineage, recordable(os.path.relpath(os.path.realpath(folder), os.path.realpath(lineage))))

    def read(self, path: str) -> Content:
        """The declared file at relative ``path``. Raises InvalidInput: symlink on the way, not regular, too large."""
        return read_regular(self.absolute(path))

    def absolute(self, path: str) -> str:
        """Where ``path`` is. Raises InvalidInput when it leaves the root or a part of it is a symlink."""
        parts = recordable(path).split("/")
        if not path or any(part in ("", ".", "..") for part in parts):
            raise InvalidInput.one(path or "file", "must be a relative path inside the root, without . and ..")
        current = self.path
        for part in parts[:-1]:
            current = os.path.join(current, part)
            if os.path.islink(current):
                raise InvalidInput.one(path, f"{part} is a symbolic link", "declare the file where it really is")
        return os.path.join(current, parts[-1])


def read_regular(path: str) -> Content:
    """Bytes and mode of a regular file of at most 16 MiB; a final symlink is refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        what = "is a symbolic link" if os.path.islink(path) else f"cannot be read: {error.strerror}"
        raise InvalidInput.one(path, what) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InvalidInput.one(path, "is not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        data = stream.read(MAX_LIVE_BYTES + 1)
    if len(data) > MAX_LIVE_BYTES:
        raise InvalidInput.one(path, f"has more than {MAX_LIVE_BYTES} bytes")
    return Content(data, stat.S_IMODE(status.st_mode))


def change(ledger: Ledger, files: Files, root: LiveRoot, kind: str, actor: str, body: Mapping, targets: Mapping[str, Content]) -> Entry:
    """Record ``kind`` and give every file of ``targets`` its content. Returns the entry that announced it."""
    blobs, changes = dict(body.get("blobs", {})), []
    for path, target in sorted(targets.items()):
        before = None
        if _present(root, path) is not None:  # else missing or a symlink: finish() describes what it displaces
            present = root.read(path)
            blobs[f"from:{path}"] = ledger.blobs.put(present.data)
            before = present.state.to_json()
        blobs[f"to:{path}"] = ledger.blobs.put(target.data)
        changes.append({"path": path, "from": before, "to": target.state.to_json()})
    apply = {"root": root.relative, "files": changes}
    entry = ledger.append(kind, actor, {**body, "apply": apply, "blobs": blobs})
    finish(ledger, files, entry, recovered=False)
    return entry


def finish(ledger: Ledger, files: Files, entry: Entry, *, recovered: bool) -> None:
    """Bring every file of an announced change to its target, check it, and record ``applied``."""
    root = LiveRoot(ledger.lineage, entry.body["apply"]["root"])
    blobs: dict[str, str] = {}
    proofs, displaced = [], []
    for item in entry.body["apply"]["files"]:
        path, target = item["path"], FileState.from_json(item["to"])
        data = ledger.blobs.get(target.sha256)  # before anything is touched
        found = _present(root, path)
        if found != target:
            if item["from"] is None or found != FileState.from_json(item["from"]):
                displaced.append(_keep(ledger, files, root, path, entry.seq, blobs))
            _make_parents(files, root, path)
            replace_file(files, root.absolute(path), data, target.mode)
        if root.read(path).state != target:
            raise EvidenceFault.one(path, "does not have the announced bytes after it was written", "is another process writing it?")
        proofs.append({"path": path, **target.to_json()})
    body = {"of": entry.seq, "files": proofs, "displaced": displaced, "recovered": recovered, "blobs": blobs}
    ledger.append("applied", "agent-eval", body)


def pending(entries: list[Entry]) -> Entry | None:
    """The announced change that was not recorded as applied, if there is one."""
    applied = {entry.body["of"] for entry in entries if entry.kind == "applied"}
    for entry in reversed(entries):
        if "apply" in entry.body:
            return None if entry.seq in applied else entry
    return None


def expected(entries: list[Entry]) -> dict[str, FileState]:
    """The state that every live file must have: that of the last change, or of the opening."""
    states: dict[str, FileState] = {}
    for entry in entries:
        if entry.kind == "opened":
            states |= {item["path"]: FileState.from_json(item) for item in entry.body.get("live", [])}
        for item in entry.body.get("apply", {}).get("files", []):
            states[item["path"]] = FileState.from_json(item["to"])
    return states


def drift(root: LiveRoot, states: Mapping[str, FileState]) -> list[Problem]:
    """Every live file that is not in its expected state."""
    problems = []
    for path, state in sorted(states.items()):
        found = _present(root, path)
        if found == state:
            continue
        if found is None:
            problems.append(Problem(path, "is missing or not a regular file", "rollback --restore puts it back"))
        else:
            what = "mode" if found.sha256 == state.sha256 else "content"
            problems.append(Problem(path, f"changed outside the gate ({what})", "rollback --restore puts it back"))
    return problems


def _present(root: LiveRoot, path: str) -> FileState | None:
    try:
        return root.read(path).state
    except InvalidInput:
        return None


def _make_parents(files: Files, root: LiveRoot, path: str) -> None:
    """The folders of a live file, where somebody removed them."""
    missing = []
    folder = os.path.dirname(root.absolute(path))
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        files.make_directory(folder, 0o755)


def _keep(ledger: Ledger, files: Files, root: LiveRoot, path: str, seq: int, blobs: dict[str, str]) -> dict[str, object]:
    """Keep what stands at ``path`` and was not announced; returns how the entry describes it.

    A file is kept as a blob, a link by its target; anything else (a folder, a FIFO, a huge file) is moved aside.
    """
    absolute = root.absolute(path)
    if os.path.islink(absolute):
        return {"path": path, "kind": "symlink", "target": os.fsencode(os.readlink(absolute)).hex()}
    if not os.path.lexists(absolute):
        return {"path": path, "kind": "missing"}
    try:
        content = root.read(path)
    except InvalidInput:
        aside = f"{path}.displaced-{seq}"
        files.rename(absolute, root.absolute(aside))
        return {"path": path, "kind": "other", "moved_to": aside}
    blobs[f"displaced:{path}"] = ledger.blobs.put(content.data)
    return {"path": path, "kind": "file", **content.state.to_json()}
