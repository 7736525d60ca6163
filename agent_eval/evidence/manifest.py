"""The manifest and the seal: what is in a directory, and one digest of that.

Owns writing ``manifest-sha256.txt`` and comparing a directory with one. The seal
shows change against a witness; it does not prove who made the directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_eval.evidence import layout
from agent_eval.records.digests import sha256_bytes, sha256_file
from agent_eval.records.problems import InvalidInput

_LINE = re.compile(r"([0-9a-f]{64})  (.+)\n")
SEAL = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of a directory found, each by relative path.

    ``seal`` is the digest of the manifest, ``None`` when unsealed; ``seal_matches`` is
    ``None`` when no witness was given. ``count`` is the number of files compared.
    """

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()
    unsealed: bool = False
    seal: str | None = None
    seal_matches: bool | None = None
    count: int = 0

    @property
    def self_consistent(self) -> bool:
        """Sealed, and every file is there and unchanged, and nothing else is."""
        return not (self.missing or self.unexpected or self.changed or self.unsafe or self.unsealed)

    @property
    def ok(self) -> bool:
        """Self-consistent, and matching the witness when there was one."""
        return self.self_consistent and self.seal_matches is not False

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values."""
        return {
            "missing": list(self.missing),
            "unexpected": list(self.unexpected),
            "changed": list(self.changed),
            "unsafe": list(self.unsafe),
            "unsealed": self.unsealed,
            "seal": self.seal,
            "seal_matches": self.seal_matches,
            "files": self.count,
            "self_consistent": self.self_consistent,
            "ok": self.ok,
        }


def read_seal(root: str) -> str | None:
    """The seal of a directory, ``None`` when it is unsealed."""
    try:
        return sha256_file(os.path.join(root, layout.MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return None


def verify(path: str, seal: str | None = None) -> Verification:
    """Compare a directory with its manifest, and its seal with a witness when one is given.

    Reads every file once, in order, with memory that does not grow with their number.
    Raises :class:`InvalidInput` when ``path`` is not a directory or ``seal`` is not 64 hex digits.
    """
    if seal is not None and not SEAL.fullmatch(seal := seal.strip().lower()):
        raise InvalidInput.one("--seal", "not a SHA-256 digest", "give the 64 hexadecimal digits that the run printed")
    if not os.path.isdir(path):
        raise InvalidInput.one(path, "not an evidence directory", "name the directory that a run printed")
    manifest = os.path.join(path, layout.MANIFEST)
    unsafe: list[str] = []
    if os.path.islink(manifest) or (os.path.lexists(manifest) and not os.path.isfile(manifest)):
        return Verification(unsafe=(layout.MANIFEST,), seal_matches=False if seal else None)
    if not os.path.lexists(manifest):
        return Verification(unsealed=True, seal_matches=False if seal else None)
    with open(manifest, "rb") as stream:
        data = stream.read()
    found = sha256_bytes(data)
    expected = _parse(data, unsafe)
    missing, unexpected, changed = _compare(path, expected, unsafe)
    matches = None if seal is None else found == seal
    return Verification(missing, unexpected, changed, tuple(unsafe), seal=found, seal_matches=matches, count=len(expected))


def _parse(data: bytes, unsafe: list[str]) -> dict[str, str]:
    expected: dict[str, str] = {}
    for raw in data.decode("utf-8", "backslashreplace").splitlines(keepends=True):
        match = _LINE.fullmatch(raw)
        if match is None or not layout.is_safe_path(match.group(2)) or match.group(2) in expected:
            unsafe.append(f"{layout.MANIFEST}: {raw.strip()[:200]}")
            continue
        expected[match.group(2)] = match.group(1)
    return expected


def _compare(root: str, expected: dict[str, str], unsafe: list[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    folders = {parent for path in expected for parent in _parents(path)}
    seen: set[str] = set()
    unexpected: list[str] = []
    changed: list[str] = []
    for relative, entry in layout.walk(root):
        if relative.endswith("/"):
            if relative not in folders:
                unexpected.append(relative)
        elif not entry.is_file(follow_symlinks=False):
            unsafe.append(relative)
            seen.add(relative)
        elif relative in expected:
            seen.add(relative)
            try:
                same = sha256_file(entry.path) == expected[relative]
            except (OSError, ValueError):
                same = False
            if not same:
                changed.append(relative)
        elif relative != layout.MANIFEST:
            unexpected.append(relative)
    missing = [path for path in expected if path not in seen]
    return tuple(missing), tuple(unexpected), tuple(changed)


def _parents(path: str) -> Iterator[str]:
    end = path.find("/")
    while end != -1:
        yield path[: end + 1]
        end = path.find("/", end + 1)
