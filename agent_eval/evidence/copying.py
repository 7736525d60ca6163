"""Copying the files of one evidence directory into another, byte for byte.

Owns which files are copied (those that the manifest names; of an unsealed directory every plain one) and
that each is what the manifest, or the journal and the records, say it is. It writes no manifest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator

from agent_eval.evidence import layout
from agent_eval.evidence.files import Files
from agent_eval.evidence.manifest_lines import LINE
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records.digests import open_file
from agent_eval.records.problems import EvidenceFault, Problem

_BLOCK_BYTES = 1 << 20
_MAX_NAMED = 20
_MAX_FILE_BYTES = 1 << 30  # a workspace snapshot stops there, and everything else earlier


def require_plain(source: EvidenceReader) -> None:
    """Refuse an unsealed directory that holds something else than plain files under names a manifest can have.

    A subject of the same user can plant a FIFO, a link, a device or a file without end, and kill its harness. Raises
    :class:`EvidenceFault`.
    """
    problems = []
    for name, entry in _entries(source):
        if not entry.is_file(follow_symlinks=False):
            what = "not a plain file"
        elif not layout.is_safe_path(name):
            what = "a name that no manifest can hold"
        elif entry.stat(follow_symlinks=False).st_size > _MAX_FILE_BYTES:
            what = f"larger than {_MAX_FILE_BYTES >> 30} GiB, which no run keeps"
        else:
            continue
        problems.append(Problem(f"{source.path}/{name}", f"unsafe: {what}", "take it out of the directory"))
    if problems:
        raise EvidenceFault(problems[:_MAX_NAMED])


def _entries(source: EvidenceReader) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry but folders. Raises :class:`EvidenceFault` when one cannot be read."""
    try:
        yield from (found for found in layout.walk(source.path) if not found[0].endswith("/"))
    except OSError as error:
        raise EvidenceFault.one(source.path, f"could not be read ({error.strerror})") from None


def copy_evidence(source: EvidenceReader, target: str, files: Files, go_on: Callable[[], None]) -> None:
    """Copy the files of ``source`` into the new folder ``target``; empty folders are not copied, no manifest names one.

    ``go_on`` is called before each file and may raise. Raises :class:`EvidenceFault` when a file of the source is not
    what it was, ``OSError`` when the copy cannot be written.
    """
    files.make_directory(target)
    made = {""}
    for name, digest in _sealed_files(source) if source.sealed else _vouched(source).items():
        go_on()
        folder, _, _ = name.rpartition("/")
        _make_folders(target, folder, made, files)
        copied = _copy_file(source, name, os.path.join(target, name), files)
        if digest is not None and copied != digest:
            raise EvidenceFault.one(f"{source.path}/{name}", "changed while it was copied, or since it was recorded")
    if not source.sealed:
        copy = EvidenceReader(target, source.plan, None)
        if (copy.unfinished, copy.finished) != (source.unfinished, source.finished):
            raise EvidenceFault.one(source.path, "went on while it was copied", "wait until its run has ended")


def _make_folders(root: str, folder: str, made: set[str], files: Files) -> None:
    if folder not in made:
        _make_folders(root, folder.rpartition("/")[0], made, files)
        files.make_directory(os.path.join(root, folder))
        made.add(folder)


def _copy_file(source: EvidenceReader, name: str, target: str, files: Files) -> str:
    """Copy one file in blocks; returns its digest."""
    path = os.path.join(source.path, name)
    try:
        reading = open_file(path)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else "not a plain file"
        raise EvidenceFault.one(path, f"could not be read ({what})") from None
    digest = hashlib.sha256()
    try:
        writing = files.open_append(target)
        try:
            while block := reading.read(_BLOCK_BYTES):
                files.append(writing, block)
                digest.update(block)
        finally:
            os.close(writing)
    finally:
        reading.close()
    return digest.hexdigest()


def _sealed_files(source: EvidenceReader) -> Iterator[tuple[str, str | None]]:
    """What the manifest names, and the manifest itself. It was safe when the directory was opened; its digest is the seal."""
    with open(os.path.join(source.path, layout.MANIFEST), encoding="utf-8") as stream:
        for line in stream:
            match = LINE.fullmatch(line)
            if match is None or not layout.is_safe_path(match.group(2)):
                raise EvidenceFault.one(f"{source.path}/{layout.MANIFEST}", "changed while it was copied")
            yield match.group(2), match.group(1)
    yield layout.MANIFEST, source.seal


def _vouched(source: EvidenceReader) -> dict[str, str | None]:
    """Every file of an unsealed directory; those of a finished trial with the digests that its journal and its record give."""
    found: dict[str, str | None] = {name: None for name, _ in _entries(source)}
    missing = []
    for trial in source.trials():
        folder = layout.trial_folder(trial.case_id, trial.number)
        for name, digest in ((layout.TRIAL_RECORD, trial.sha256), *trial.record["files"].items()):
            if f"{folder}/{name}" not in found:
                missing.append(Problem(f"{source.path}/{folder}/{name}", "missing, and its trial's record names it"))
            found[f"{folder}/{name}"] = digest
    if missing:
        raise EvidenceFault(missing[:_MAX_NAMED])
    return found
