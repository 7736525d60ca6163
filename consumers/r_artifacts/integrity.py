"""The folder and its manifest: is everything there that `complete.json` declares, whole, and nothing else?

Owns the integrity checks and the reading of raw bytes: every byte that is parsed later is the byte that was hashed.
Never follows a symlink, never opens anything but a regular file inside the folder, reads with bounds.
Does not look into the files; `attachments.py` and `tables.py` do.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field

from .documents import MAX_DOCUMENT_BYTES, DocumentError, Reader, brief, is_count, is_digest, parse_object
from .findings import Comparison, Ledger, Place

MANIFEST = "complete.json"
SCHEMA, SCHEMA_VERSION = "airway-deseq2-artifacts", 1
ROLES = ("counts", "sample_table", "size_factors", "normalized_counts", "results", "dispersions", "coefficients",
         "lfc_shrunken", "top_genes", "results_metadata", "summary", "figure", "dds", "session_info", "script")
PARSED_ROLES = frozenset(ROLES) - {"figure", "dds", "session_info", "script"}
MAX_KEPT_BYTES = 128 * 1024 * 1024      # of one file that is parsed
MAX_HASHED_BYTES = 4 * 1024 * 1024 * 1024
_MAX_ENTRIES = 20_000                   # of a folder that is listed
_MAX_FILES = 1_000                      # that a manifest may declare
_MAX_PATH = 1_024
_CHUNK = 1 << 20
_TIME = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ\Z")


class UnsafeFile(Exception):
    """A file that must not be opened, or could not be; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One declared file."""

    path: str
    role: str
    size_bytes: int
    sha256: str


@dataclass(slots=True)
class Folder:
    """What integrity leaves for the rest: the manifest's facts and the bytes of each role that could be read."""

    manifest: dict[str, object] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    by_role: dict[str, Entry] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)

    def path(self, role: str) -> str:
        return self.by_role[role].path if role in self.by_role else role


def check_folder(root: str, ledger: Ledger) -> Folder | None:
    """All integrity checks of one folder; None when there is no list of files to go by."""
    check = ledger.add(Comparison("manifest", f"{MANIFEST} is a complete {SCHEMA} manifest"))
    folder = Folder()
    try:
        folder.manifest, bom = parse_object(read_bounded(root, MANIFEST, MAX_DOCUMENT_BYTES))
    except (UnsafeFile, DocumentError) as error:
        check.require(False, Place(MANIFEST, what=str(error)))
        return None
    if bom:
        ledger.accept(f"{MANIFEST}: a BOM")
    _check_manifest(folder, check, ledger)
    if not folder.entries:
        return None
    _check_roles(folder, ledger)
    safe = _check_paths(root, folder, ledger)
    present = _check_set(root, folder, safe, ledger)
    _check_digests(root, folder, present, ledger)
    return folder


def _check_manifest(folder: Folder, check: Comparison, ledger: Ledger) -> None:
    reader = Reader(folder.manifest)
    reader.take("schema", lambda value: value == SCHEMA, f'"{SCHEMA}"')
    reader.take("schema_version", lambda value: value == SCHEMA_VERSION and is_count(value),
                f"{SCHEMA_VERSION} (the only version that this checker knows)")
    reader.take("status", lambda value: value == "complete", '"complete"')
    times = [reader.take(name, lambda value: isinstance(value, str) and _TIME.match(value) is not None,
                         "a time as YYYY-MM-DDTHH:MM:SSZ") for name in ("started_utc", "finished_utc")]
    if all(times) and times[0] > times[1]:
        reader.faults.append(("finished_utc", f"is before started_utc {times[0]}"))
    folder.facts = {
        "design": reader.text("design"), "reference_level": reader.text("reference_level"),
        "factor": reader.text("contrast/factor"), "numerator": reader.text("contrast/numerator"),
        "denominator": reader.text("contrast/denominator"), "alpha": reader.number("alpha", 0, 1),
        "n_samples": reader.count("n_samples"), "n_genes": reader.count("n_genes"),
    }
    reader.text("dataset/name")
    for name in ("counts_source_sha256", "metadata_source_sha256"):
        reader.digest(f"dataset/{name}")
    for name in ("R", "DESeq2"):
        reader.text(f"versions/{name}")
    versions = folder.manifest.get("versions")
    folder.facts["versions"] = {name: value for name, value in versions.items() if isinstance(value, str)} if isinstance(
        versions, dict) else {}
    reader.take("command", lambda value: isinstance(value, list) and bool(value) and all(
        isinstance(one, str) and one for one in value), "a list of texts")
    _read_entries(folder, reader)
    check.compared += 16
    for path, what in reader.faults:
        check.wrong(Place(MANIFEST, what=f"{path} {what}"))
    if reader.unboxed:
        ledger.accept(f"{MANIFEST}: a scalar written as a one-element array")


def _read_entries(folder: Folder, reader: Reader) -> None:
    files = folder.manifest.get("files")
    if not isinstance(files, list) or not files:
        reader.faults.append(("files", f"is {brief(files)}; it must be a list of files"))
        return
    if len(files) > _MAX_FILES:
        reader.faults.append(("files", f"declares {len(files)} files, more than {_MAX_FILES}"))
        return
    for at, one in enumerate(files):
        where = f"files/{at}"
        if not isinstance(one, dict):
            reader.faults.append((where, f"is {brief(one)}; it must be an object"))
            continue
        inner = Reader(one)
        path, role = inner.text("path"), inner.text("role")
        size = inner.take("bytes", is_count, "a whole number from 0")
        digest = inner.take("sha256", is_digest, "a lower-case sha256")
        reader.faults += [(f"{where}/{name}", what) for name, what in inner.faults]
        if path and role:
            folder.entries.append(Entry(path, role, -1 if size is None else size, digest or ""))
    paths = [entry.path for entry in folder.entries]
    if sorted(paths) != paths:
        reader.faults.append(("files", "is not sorted by path"))


def _check_roles(folder: Folder, ledger: Ledger) -> None:
    check = ledger.add(Comparison("roles", "each role of the schema exactly once"))
    number = Counter(entry.role for entry in folder.entries)
    for role in ROLES:
        paths = [entry.path for entry in folder.entries if entry.role == role]
        check.require(number[role] == 1, Place(MANIFEST, what=f"the role {role} is declared {number[role]} times {paths or ''}".strip()))
    for role in sorted(set(number) - set(ROLES)):
        check.require(False, Place(MANIFEST, what=f"{role!r} is not a role of the schema"))
    folder.by_role = {entry.role: entry for entry in folder.entries if number[entry.role] == 1 and entry.role in ROLES}


def path_fault(path: str) -> str | None:
    """Why a declared path is not a plain relative path, or None."""
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF or ord(char) == 127 for char in path):
        return "has a control character or a lone surrogate"
    if path.startswith("/"):
        return "is absolute"
    if len(path) > _MAX_PATH:
        return f"is longer than {_MAX_PATH} characters"
    if "\\" in path:
        return "has a backslash; the separator is /"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "has an empty, . or .. part"
    if path == MANIFEST:
        return "is the manifest, which cannot declare itself"
    return None


def _check_paths(root: str, folder: Folder, ledger: Ledger) -> list[Entry]:
    """Paths that may be opened: relative, inside, through no symlink, to a regular file or to nothing."""
    check = ledger.add(Comparison("paths", "every declared path is relative, inside the folder, and a regular file"))
    number = Counter(entry.path for entry in folder.entries)
    safe: list[Entry] = []
    for entry in folder.entries:
        fault = path_fault(entry.path)
        if fault is None and number[entry.path] > 1:
            fault = f"is declared {number[entry.path]} times"
        if fault is None:
            fault = _type_fault(root, entry.path)
        if check.require(fault is None, Place(MANIFEST, what=f"the path {entry.path!r} {fault}")):
            safe.append(entry)
    return safe


def _type_fault(root: str, path: str) -> str | None:
    """Why what lies at the path must not be opened; None also where nothing lies there (`file-set` says that)."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        part = "/".join(parts[:depth])
        try:
            mode = os.lstat(os.path.join(root, part)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return f"cannot be looked at: {error.strerror}"
        if stat.S_ISLNK(mode):
            return "is a symlink" if depth == len(parts) else f"goes through the symlink {part}"
        if depth == len(parts) and not stat.S_ISREG(mode):
            return "is not a regular file"
    return None


def _check_set(root: str, folder: Folder, safe: list[Entry], ledger: Ledger) -> list[Entry]:
    check = ledger.add(Comparison("file-set", "nothing declared is missing, nothing is there undeclared"))
    declared = {entry.path for entry in folder.entries} | {MANIFEST}
    found, complete = _walk(root, {os.path.dirname(entry.path) for entry in safe})
    check.require(complete, Place("", what=f"more than {_MAX_ENTRIES} entries in the folder"))
    for path in sorted(found - declared):
        check.require(False, Place(path, what="is there and not declared in the manifest"))
    present = []
    for entry in safe:
        there = entry.path in found
        if check.require(there, Place(entry.path, what="is declared and missing")):
            present.append(entry)
    return present


def _walk(root: str, expected_folders: set[str]) -> tuple[set[str], bool]:
    """Relative paths of everything but the folders that a declared path needs."""
    needed = set(expected_folders)
    for path in expected_folders:
        while path:
            needed.add(path)
            path = os.path.dirname(path)
    found: set[str] = set()
    open_folders = [""]
    while open_folders:
        base = open_folders.pop()
        try:
            with os.scandir(os.path.join(root, base) if base else root) as entries:
                for entry in entries:
                    path = f"{base}/{entry.name}" if base else entry.name
                    if entry.is_dir(follow_symlinks=False) and path in needed:
                        open_folders.append(path)
                        continue
                    found.add(path.encode("utf-8", "backslashreplace").decode("utf-8"))
                    if len(found) > _MAX_ENTRIES:
                        return found, False
        except OSError as error:
            found.add(f"{base or '.'} (cannot be listed: {error.strerror})")
    return found, True


def _check_digests(root: str, folder: Folder, present: list[Entry], ledger: Ledger) -> None:
    check = ledger.add(Comparison("file-digests", "size and sha256 of every declared file"))
    wanted = {entry.path for entry in folder.by_role.values()}
    for entry in present:
        try:
            size, digest, data = _hash(root, entry, keep=entry.path in wanted)
        except UnsafeFile as error:
            check.require(False, Place(entry.path, what=str(error)))
            continue
        if check.require(size == entry.size_bytes, Place(entry.path, size, entry.size_bytes, column="bytes")):
            check.require(digest == entry.sha256, Place(entry.path, digest, entry.sha256, column="sha256"))
        if data is not None and entry.role in folder.by_role:
            folder.data[entry.role] = data
        elif entry.role in PARSED_ROLES:
            check.require(False, Place(entry.path, what=f"has more than the {MAX_KEPT_BYTES} bytes that are read of a table"))


def _open(root: str, path: str) -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(os.path.join(root, path), flags)
    except FileNotFoundError as error:
        raise UnsafeFile("is missing") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafeFile("is a symlink") from error
        raise UnsafeFile(f"cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafeFile("is not a regular file")
    return descriptor


def _hash(root: str, entry: Entry, keep: bool) -> tuple[int, str, bytes | None]:
    """Size, sha256 and, when wanted and at most MAX_KEPT_BYTES, the bytes."""
    digest, size, chunks = hashlib.sha256(), 0, []
    with open(_open(root, entry.path), "rb", buffering=0) as stream:
        try:
            on_disk = os.fstat(stream.fileno()).st_size
            if on_disk > MAX_HASHED_BYTES:
                raise UnsafeFile(f"has {on_disk} bytes, more than the {MAX_HASHED_BYTES} that are read")
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > MAX_HASHED_BYTES:
                    raise UnsafeFile("grows while it is read")
                digest.update(chunk)
                if size > MAX_KEPT_BYTES:
                    chunks.clear()
                elif keep:
                    chunks.append(chunk)
        except OSError as error:
            raise UnsafeFile(f"cannot be read: {error.strerror}") from error
    return size, digest.hexdigest(), b"".join(chunks) if keep and size <= MAX_KEPT_BYTES else None


def read_bounded(root: str, path: str, max_bytes: int) -> bytes:
    """The bytes of one regular file of the folder; raises `UnsafeFile` for any other, or a larger one."""
    with open(_open(root, path), "rb") as stream:
        try:
            data = stream.read(max_bytes + 1)
        except OSError as error:
            raise UnsafeFile(f"cannot be read: {error.strerror}") from error
    if len(data) > max_bytes:
        raise UnsafeFile(f"has more than {max_bytes} bytes")
    return data
