"""The records of a folder's tree, and how two trees differ.

Owns the typed entries, their JSON form (names that are not UTF-8 are written in
hex) and the comparison. It touches no file: ``workspace`` walks and reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in the tree.

    ``path`` is relative to the root, as raw bytes (``b"."`` is the root itself). ``mode`` is octal
    text of the permission bits. ``size_bytes`` and ``sha256`` are of regular files only; ``sha256`` is
    ``None`` when the content could not be read, and ``error`` then says why (an errno name, ``vanished``
    or ``changed-while-read``). ``links`` is the number of hard links of a file that has more than one.
    """

    path: bytes
    type: str
    mode: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    target: bytes | None = None
    links: int | None = None
    error: str | None = None

    def to_json(self) -> dict[str, object]:
        """The entry as JSON values; absent keys do not apply. Bytes that are not UTF-8 become ``*_hex``."""
        value: dict[str, object] = {**_named("path", self.path), "type": self.type}
        if self.target is not None:
            value |= _named("target", self.target)
        for name in ("mode", "size_bytes", "sha256", "links", "error"):
            if (item := getattr(self, name)) is not None:
                value[name] = item
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Entry:
        """The entry that :meth:`to_json` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        plain: dict[str, Any] = {name: value.get(name) for name in ("mode", "size_bytes", "sha256", "links", "error")}
        target = _raw("target", value) if {"target", "target_hex"} & value.keys() else None
        return cls(path=_raw("path", value), type=str(value["type"]), target=target, **plain)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree at one moment, sorted by raw path.

    ``limit`` names the limit at which the walk stopped (``entries``, ``depth``, ``hashed-bytes``), ``None``
    when it saw everything: beyond it the entries are incomplete.
    """

    entries: tuple[Entry, ...]
    hashed_bytes: int = 0
    limit: str | None = None

    def to_json(self) -> dict[str, object]:
        """The tree as JSON values, for ``workspace-before.json`` and ``workspace-after.json``."""
        return {
            "format": "agent-eval/workspace/1",
            "entries": [entry.to_json() for entry in self.entries],
            "hashed_bytes": self.hashed_bytes,
            "limit": self.limit,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Snapshot:
        """The tree that :meth:`to_json` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        entries = tuple(Entry.from_json(item) for item in value["entries"])
        return cls(entries, value["hashed_bytes"], value["limit"])

    def by_path(self) -> dict[bytes, Entry]:
        """The entries keyed by raw path."""
        return {entry.path: entry for entry in self.entries}


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. ``kind`` is ``added``, ``removed`` or ``changed``.

    ``what`` says in which respects a changed entry differs: ``type``, ``content``, ``mode``, ``target``,
    ``links``, ``unreadable``. Times and inode numbers are no difference.
    """

    path: bytes
    kind: str
    what: tuple[str, ...] = ()
    before: Entry | None = None
    after: Entry | None = None

    def to_json(self) -> dict[str, object]:
        """The change as JSON values."""
        return {
            **_named("path", self.path),
            "kind": self.kind,
            "what": list(self.what),
            "before": self.before.to_json() if self.before else None,
            "after": self.after.to_json() if self.after else None,
        }


@dataclass(frozen=True, slots=True)
class Omission:
    """A file whose content was not kept, only its digest (``None`` when it could not even be read)."""

    path: bytes
    why: str
    size_bytes: int | None = None
    sha256: str | None = None

    def to_json(self) -> dict[str, object]:
        """The omission as JSON values."""
        return {**_named("path", self.path), "why": self.why, "size_bytes": self.size_bytes, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Captured:
    """What :func:`capture` kept: digests of kept contents, and what it left out and why."""

    kept: tuple[str, ...]
    kept_bytes: int
    omitted: tuple[Omission, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The account as JSON values."""
        return {
            "kept": list(self.kept),
            "kept_bytes": self.kept_bytes,
            "omitted": [item.to_json() for item in self.omitted],
        }


def display_path(path: bytes) -> str:
    """A raw path as text for messages: bytes that are not UTF-8 appear as ``\\xNN``."""
    return path.decode("utf-8", "backslashreplace")


def difference(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """Every path at which the two trees differ, sorted by raw path."""
    old, new = before.by_path(), after.by_path()
    changes = []
    for path in sorted(old.keys() | new.keys()):
        was, now = old.get(path), new.get(path)
        if was is None:
            changes.append(Change(path, "added", after=now))
        elif now is None:
            changes.append(Change(path, "removed", before=was))
        elif what := _differences(was, now):
            changes.append(Change(path, "changed", what, was, now))
    return tuple(changes)


def _differences(was: Entry, now: Entry) -> tuple[str, ...]:
    if was.type != now.type:
        return ("type",)
    what = []
    if was.type == "file" and (was.size_bytes, was.sha256) != (now.size_bytes, now.sha256):
        what.append("content")
    what += [name for name in ("mode", "target", "links") if getattr(was, name) != getattr(now, name)]
    if was.error != now.error:
        what.append("unreadable")
    return tuple(what)


def _named(key: str, raw: bytes) -> dict[str, str]:
    try:
        return {key: raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{key}_hex": raw.hex()}


def _raw(key: str, value: Mapping[str, Any]) -> bytes:
    text = value.get(key)
    if isinstance(text, str):
        return text.encode("utf-8")
    return bytes.fromhex(str(value[f"{key}_hex"]))
