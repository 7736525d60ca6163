"""Before the seal: is everything on disk still what was written, and nothing else there?

Owns the one pass over a directory that takes the digests for its manifest and compares them with
what the writer holds in memory. A subject of the same user can write into the directory: that is
noticed here, not prevented.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes, sha256_file

_NOT_LISTED = (layout.MANIFEST, layout.MANIFEST_DRAFT)


class Witness:
    """Compares files with what is known of them.

    ``fixed`` is path and digest of the run's own files; ``finished`` is case, number and raw digest of each trial's record,
    which in turn names the trial's files. ``changed`` holds relative paths after the pass.
    """

    def __init__(self, fixed: Mapping[str, str], finished: Mapping[tuple[str, int], bytes]) -> None:
        self.changed: list[str] = []
        self._fixed = fixed
        self._finished = finished
        self._records = 0

    def digests(self, root: str) -> Iterator[tuple[str, str]]:
        """Path and digest of every file to be listed, in the manifest's order. Raises ``OSError``."""
        seen_fixed = 0
        for folder, files in _by_trial(root):
            if folder is None:
                name, digest = files[0][0], _digest(files[0][1])
                if name in self._fixed:
                    seen_fixed += 1
                known = digest if name.startswith(f"{layout.PARTS}/") else self._fixed.get(name)
                self._compare(name, digest, known)
                yield name, digest
            else:
                yield from self._trial(folder, files)
        if seen_fixed < len(self._fixed):
            self.changed += [name for name in self._fixed if not os.path.lexists(os.path.join(root, name))]
        if self._records < len(self._finished):
            self.changed += [name for name in map(_record_name, self._finished) if not os.path.lexists(os.path.join(root, name))]

    def _compare(self, name: str, digest: str, known: str | None) -> None:
        if digest != known or not layout.is_safe_path(name):
            self.changed.append(name)

    def _trial(self, folder: str, files: list[tuple[str, os.DirEntry[str]]]) -> Iterator[tuple[str, str]]:
        _, case_id, number = folder.split("/")
        known = self._finished.get((case_id, int(number))) if number.isdigit() else None
        named: Mapping[str, str] = {}
        start = len(folder) + 1
        pending: list[tuple[str, str]] = []
        for name, entry in files:
            if name[start:] != layout.TRIAL_RECORD:
                pending.append((name, _digest(entry)))
                continue
            data = _read(entry)
            digest = sha256_bytes(data)
            pending.append((name, digest))
            if known is None or digest != known.hex():
                self.changed.append(name)
            else:
                self._records += 1
                named = _files_of(data)
        # A trial whose record could not be written may have left captured files: they are listed as they are.
        unrecorded = known is None and all(name[start:] != layout.TRIAL_RECORD for name, _ in pending)
        for name, digest in pending:
            if name[start:] != layout.TRIAL_RECORD and not unrecorded:
                self._compare(name, digest, named.get(name[start:]))
        found = {name[start:] for name, _ in pending}
        self.changed += [f"{folder}/{name}" for name in named if name not in found]
        yield from pending


def _files_of(data: bytes) -> Mapping[str, str]:
    files: Any = strict_json.parse_object(data)["files"]
    return files


def _record_name(trial: tuple[str, int]) -> str:
    return f"{layout.trial_folder(*trial)}/{layout.TRIAL_RECORD}"


def _by_trial(root: str) -> Iterator[tuple[str | None, list[tuple[str, os.DirEntry[str]]]]]:
    """Files in order: those of a trial's folder together, every other one alone with ``None``."""
    folder: str | None = None
    gathered: list[tuple[str, os.DirEntry[str]]] = []
    for name, entry in layout.walk(root):
        if name.endswith("/") or name in _NOT_LISTED:
            continue
        parts = name.split("/", 3)
        own = "/".join(parts[:3]) if parts[0] == layout.TRIALS and len(parts) == 4 else None
        if own != folder:
            if folder is not None:
                yield folder, gathered
            folder, gathered = own, []
        if own is None:
            yield None, [(name, entry)]
        else:
            gathered.append((name, entry))
    if folder is not None:
        yield folder, gathered


def _digest(entry: os.DirEntry[str]) -> str:
    """Digest of a plain file; of nothing when something else took its place, which no record can match."""
    try:
        return sha256_file(entry.path)
    except (OSError, ValueError):
        return ""


def _read(entry: os.DirEntry[str]) -> bytes:
    try:
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(descriptor, "rb") as stream:
        return stream.read()
