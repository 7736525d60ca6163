"""The manifest and the seal: what is in a directory, and one digest of that.

Owns writing ``manifest-sha256.txt`` and comparing a directory with one. The seal
shows change against a witness; it does not prove who made the directory.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from agent_eval.evidence import layout
from agent_eval.evidence.manifest_lines import DIGEST, LINE, is_ordered
from agent_eval.evidence.parts import part_findings
from agent_eval.records.digests import sha256_file
from agent_eval.records.problems import EvidenceFault, InvalidInput


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

    Reads every file once, in order, with memory that does not grow with their number. The parts of a merged directory
    are also compared with their own manifests and seals. Raises :class:`EvidenceFault` when a folder cannot be read or a
    merge's plan does not say what its parts are, :class:`InvalidInput` when ``path`` is not a directory or ``seal`` is not 64 hex digits.
    """
    if seal is not None and not DIGEST.fullmatch(seal := seal.strip().lower()):
        raise InvalidInput.one("--seal", "not a SHA-256 digest", "give the 64 hexadecimal digits that the run printed")
    if not os.path.isdir(path):
        raise InvalidInput.one(path, "not an evidence directory", "name the directory that a run printed")
    manifest = os.path.join(path, layout.MANIFEST)
    if os.path.islink(manifest) or (os.path.lexists(manifest) and not os.path.isfile(manifest)):
        return Verification(unsafe=(layout.MANIFEST,), seal_matches=False if seal else None)
    if not os.path.lexists(manifest):
        return Verification(unsealed=True, seal_matches=False if seal else None)
    comparison = _Comparison(path)
    try:
        with open(manifest, "rb") as stream:
            comparison.run(stream)
    except OSError as error:
        raise EvidenceFault.one(path, f"could not be read ({error.strerror})") from None
    found = comparison.digest.hexdigest()
    parts = part_findings(path)
    return Verification(
        _each_once(comparison.missing, parts.missing),
        _each_once(comparison.unexpected, parts.unexpected),
        _each_once(comparison.changed, parts.changed),
        _each_once(comparison.bad_lines, comparison.unsafe, parts.unsafe),
        seal=found,
        seal_matches=None if seal is None else found == seal,
        count=comparison.count,
    )


def _each_once(*names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain(*names)))


class _Comparison:
    """A directory beside its manifest, both in the byte order of the paths, so that neither is held in memory."""

    def __init__(self, root: str) -> None:
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.changed: list[str] = []
        self.unsafe: list[str] = []
        self.bad_lines: list[str] = []
        self.count = 0
        self.digest = hashlib.sha256()
        self._root = root

    def run(self, stream: BinaryIO) -> None:
        """Compare every entry with the lines of ``stream``. Raises ``OSError`` when a folder cannot be read."""
        lines = self._lines(stream)
        # Every manifest that this project writes is in order; sha256sum takes one in any.
        entries = self._once(lines if is_ordered(stream) else iter(sorted(lines, key=lambda line: line[0])))
        expected = next(entries, None)
        for relative, entry in layout.walk(self._root):
            while expected is not None and expected[0] < relative:
                self.missing.append(expected[0])
                expected = next(entries, None)
            if relative.endswith("/"):
                if expected is None or not expected[0].startswith(relative):
                    self.unexpected.append(relative)
                continue
            named = expected is not None and expected[0] == relative
            if not entry.is_file(follow_symlinks=False):
                self.unsafe.append(relative)
            elif expected is not None and named:
                self._compare(relative, entry, expected[1])
            elif relative != layout.MANIFEST:
                self.unexpected.append(relative)
            if named:
                expected = next(entries, None)
        while expected is not None:
            self.missing.append(expected[0])
            expected = next(entries, None)

    def _compare(self, relative: str, entry: os.DirEntry[str], digest: str) -> None:
        try:
            same = sha256_file(entry.path) == digest
        except (OSError, ValueError):
            same = False
        if not same:
            self.changed.append(relative)

    def _lines(self, stream: BinaryIO) -> Iterator[tuple[str, str]]:
        """Path and digest of each safe line; the others are kept as bad. Their bytes go into the seal as they are read."""
        for raw in stream:
            self.digest.update(raw)
            line = raw.decode("utf-8", "backslashreplace")
            match = LINE.fullmatch(line)
            if match is None or not layout.is_safe_path(match.group(2)):
                self._refuse(line)
            else:
                yield match.group(2), match.group(1)

    def _once(self, lines: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        previous = ""
        for path, digest in lines:
            if path == previous:
                self._refuse(f"{digest}  {path}")
                continue
            previous = path
            self.count += 1
            yield path, digest

    def _refuse(self, line: str) -> None:
        self.bad_lines.append(f"{layout.MANIFEST}: {line.strip()[:200]}")
