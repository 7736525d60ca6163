"""Content-addressed bytes of a lineage: ``blobs/sha256/<hex>``.

Owns storing and reading whole byte strings under their digest. Bytes are never decoded: a policy that was
written with CRLF comes back with CRLF. It does not know which entry refers to a blob.
"""

from __future__ import annotations

import os
import re

from agent_eval.gates.files import Files
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault

_HEX = re.compile("[0-9a-f]{64}")


class BlobStore:
    """The blobs under one lineage directory."""

    __slots__ = ("_checked", "_files", "folder")

    def __init__(self, lineage: str, files: Files) -> None:
        self.folder = os.path.join(lineage, "blobs", "sha256")
        self._files = files
        self._checked: set[str] = set()  # in this process, so that storing what is there costs no reading

    def create(self) -> None:
        """Make the folders of a new lineage; what a crash left of them is used."""
        for path in (os.path.dirname(self.folder), self.folder):
            if not os.path.isdir(path):
                self._files.make_directory(path)

    def put(self, data: bytes, *, sync_name: bool = True) -> str:
        """Store ``data`` durably and return its digest. Storing the same bytes again writes nothing.

        Without ``sync_name`` the name is durable only after :meth:`sync_names`: one call for many blobs.
        """
        digest = sha256_bytes(data)
        if digest in self._checked:
            return digest
        path = os.path.join(self.folder, digest)
        if os.path.lexists(path):
            self.get(digest)  # a damaged blob is a fault, never silently mended
            return digest
        temporary = os.path.join(self.folder, f".{digest}.new")
        if os.path.lexists(temporary):
            self._files.remove(temporary)
        self._files.create(temporary, data)
        self._files.rename(temporary, path)
        if sync_name:
            self.sync_names()
        self._checked.add(digest)
        return digest

    def sync_names(self) -> None:
        """Make the names of everything stored durable."""
        self._files.sync_directory(self.folder)

    def get(self, digest: str) -> bytes:
        """The bytes with this digest. Raises :class:`EvidenceFault` when they are missing or changed."""
        found = self._read(digest)
        if isinstance(found, str):
            raise EvidenceFault.one(f"blobs/sha256/{digest}", found, "restore it from a copy of the lineage")
        return found

    def problem(self, digest: str) -> str | None:
        """What is wrong with the blob of this digest in words, or ``None``."""
        found = self._read(digest)
        return found if isinstance(found, str) else None

    def names(self) -> set[str]:
        """Every blob that is there, referred to or not."""
        try:
            return {name for name in os.listdir(self.folder) if _HEX.fullmatch(name)}
        except FileNotFoundError:
            return set()

    def _read(self, digest: str) -> bytes | str:
        """The bytes, or what is wrong with them in words."""
        if not _HEX.fullmatch(digest):
            return "is not a SHA-256 digest"
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            data = _content(os.open(os.path.join(self.folder, digest), flags))
        except FileNotFoundError:
            return "is missing"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        if sha256_bytes(data) != digest:
            return "has other bytes than its name says"
        self._checked.add(digest)
        return data


def _content(descriptor: int) -> bytes:
    """Everything that an open file holds; it is closed. Thousands of blobs are read: a stream object for each costs more."""
    try:
        parts = []
        while part := os.read(descriptor, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)
