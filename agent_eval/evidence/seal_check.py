"""Before the seal: is everything on disk still what was written, and nothing else there?

Owns the one pass over a directory that takes the digests for its manifest and compares them with
what the writer holds in memory. A subject of the same user can write into the directory: that is
noticed here, not prevented.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.records.digests import read_file, sha256_bytes, sha256_file

_NOT_LISTED = (layout.MANIFEST, layout.MANIFEST_DRAFT)
_PIECE_LINES = 1_000
_DIGEST_BYTES = 32


class RecordDigests:
    """The raw SHA-256 of each finished trial's record, by case and number: 32 bytes a trial and little more."""

    __slots__ = ("_by_case", "_count")

    def __init__(self) -> None:
        self._by_case: dict[str, bytearray] = {}
        self._count = 0

    def add(self, case_id: str, number: int, digest: bytes) -> None:
        """Keep a digest. Trials are numbered from 1; each is added once."""
        known = self._by_case.setdefault(case_id, bytearray())
        end = number * _DIGEST_BYTES
        if len(known) < end:
            known.extend(bytes(end - len(known)))
        known[end - _DIGEST_BYTES : end] = digest
        self._count += 1

    def get(self, case_id: str, number: int) -> bytes | None:
        """The digest of a trial's record, ``None`` when it is not finished."""
        end = number * _DIGEST_BYTES
        found = bytes(self._by_case.get(case_id, b"")[max(0, end - _DIGEST_BYTES) : end])
        return found if any(found) else None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for case_id, known in self._by_case.items():
            for number in range(1, len(known) // _DIGEST_BYTES + 1):
                if self.get(case_id, number) is not None:
                    yield case_id, number


class Witness:
    """Compares files with what is known of them.

    ``fixed`` is path and digest of the run's own files; ``finished`` has the digest of each trial's record,
    which in turn names the trial's files. ``changed`` holds relative paths after the pass.
    """

    def __init__(self, fixed: Mapping[str, str], finished: RecordDigests) -> None:
        self.changed: list[str] = []
        self._fixed = fixed
        self._finished = finished
        self._seen_fixed = 0
        self._seen_records = 0

    def manifest(self, root: str) -> Iterator[bytes]:
        """The text of the manifest in pieces of a thousand lines. Raises ``OSError``."""
        lines: list[str] = []
        for name, digest in self.digests(root):
            lines.append(f"{digest}  {name}\n")
            if len(lines) >= _PIECE_LINES:
                yield os.fsencode("".join(lines))
                lines.clear()
        yield os.fsencode("".join(lines))

    def digests(self, root: str) -> Iterator[tuple[str, str]]:
        """Path and digest of every file to be listed, in the manifest's order. Raises ``OSError``."""
        for name, entry in layout.listing(root):
            if name == f"{layout.TRIALS}/":
                yield from self._trials(entry.path, name)
            elif name.endswith("/"):
                yield from self._other_files(layout.walk(entry.path, name))
            elif name not in _NOT_LISTED:
                yield from self._other_files([(name, entry)])
        if self._seen_fixed < len(self._fixed):
            self.changed += [name for name in self._fixed if not os.path.lexists(os.path.join(root, name))]
        if self._seen_records < len(self._finished):
            self.changed += [name for name in map(_record_name, self._finished) if not os.path.lexists(os.path.join(root, name))]

    def _other_files(self, entries: Iterable[tuple[str, os.DirEntry[str]]]) -> Iterator[tuple[str, str]]:
        """Files that belong to no trial: the run's own, those of a merge's parts, and what nobody wrote."""
        for name, entry in entries:
            if name.endswith("/"):
                continue
            digest = _digest(entry.path)
            known = digest if name.startswith(f"{layout.PARTS}/") else self._fixed.get(name)
            self._seen_fixed += name in self._fixed
            self._compare(name, digest, known)
            yield name, digest

    def _trials(self, root: str, prefix: str) -> Iterator[tuple[str, str]]:
        for case, case_entry in layout.listing(root, prefix):
            if not case.endswith("/"):
                yield from self._other_files([(case, case_entry)])
                continue
            for trial, trial_entry in layout.listing(case_entry.path, case):
                if trial.endswith("/"):
                    yield from self._trial(trial, trial_entry.path)
                else:
                    yield from self._other_files([(trial, trial_entry)])

    def _trial(self, folder: str, path: str) -> list[tuple[str, str]]:
        """The files of a trial's folder, ``folder`` being its relative path with a slash at the end."""
        start = len(folder)
        record = b""
        found: dict[str, str] = {}
        for name, entry in layout.walk(path, folder):
            if name.endswith("/"):
                continue
            if name[start:] == layout.TRIAL_RECORD:
                record = _content(entry.path)
                found[layout.TRIAL_RECORD] = sha256_bytes(record)
            else:
                found[name[start:]] = _digest(entry.path)
        listed = [(folder + name, digest) for name, digest in found.items()]
        self._compare_trial(folder, found, record)
        return listed

    def _compare_trial(self, folder: str, found: dict[str, str], record: bytes) -> None:
        """``found`` are the files of the folder with their digests, ``record`` is the content of its ``trial.json``."""
        _, case_id, number, _ = folder.split("/")
        known = self._finished.get(case_id, int(number)) if _is_number(number) else None
        digest = found.pop(layout.TRIAL_RECORD, None)
        named: Mapping[str, str] = {}
        if known is not None and digest == known.hex():
            self._seen_records += 1
            if record.startswith(_opening(case_id, found)) and layout.is_safe_path("/".join((folder[:-1], *found))):
                return  # the usual case, told without reading the record as JSON
            named = _files_of(record)
        elif digest is not None:
            self.changed.append(folder + layout.TRIAL_RECORD)
        elif known is None:
            # A trial whose record could not be written may have left captured files: they are listed as they are.
            named = found
        for name, found_digest in found.items():
            self._compare(folder + name, found_digest, named.get(name))
        self.changed += [folder + name for name in named if name not in found]

    def _compare(self, name: str, digest: str, known: str | None) -> None:
        if not digest or digest != known or not layout.is_safe_path(name):
            self.changed.append(name)


@lru_cache(maxsize=64)  # the same twenty names in every case
def _is_number(name: str) -> bool:
    """Whether a folder's name is a trial's number as it is written, so that no second folder passes for the same trial."""
    return name.isascii() and name.isdecimal() and f"{int(name):03d}" == name


def _opening(case_id: str, files: Mapping[str, str]) -> bytes:
    """How a record begins that names just these files, when no key of its own comes before them.

    Canonical JSON of safe names, which need no escapes. With other names it may read like the record of other files.
    """
    named = ",".join([f'"{name}":"{digest}"' for name, digest in files.items()])
    return os.fsencode(f'{{"case_id":"{case_id}","files":{{{named}}},')


def _files_of(record: bytes) -> Mapping[str, str]:
    files: Any = strict_json.parse_object(record)["files"]
    return files


def _record_name(trial: tuple[str, int]) -> str:
    return f"{layout.trial_folder(*trial)}/{layout.TRIAL_RECORD}"


def _digest(path: str) -> str:
    """Digest of a plain file; of nothing when something else took its place, which no record can match."""
    try:
        return sha256_file(path)
    except (OSError, ValueError):
        return ""


def _content(path: str) -> bytes:
    """Content of a plain file; nothing when something else took its place, which is no record."""
    try:
        return read_file(path, max_bytes=layout.MAX_RECORD_BYTES)
    except (OSError, ValueError):
        return b""
