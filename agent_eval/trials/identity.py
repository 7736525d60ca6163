"""Who ran on what: digests of files before and after a trial.

Owns looking at identity files and reusing a digest that cannot have changed. What a
change means is the grader's business.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.records.digests import sha256_file

# A file changed within this time of its digest could change again without a new ctime:
# file systems stamp by the kernel's tick, at most 10 ms apart (CONFIG_HZ=100).
_TICK_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class IdentityFile:
    """A file whose content decides what was judged. ``role`` says why it is looked at."""

    path: str
    role: str


class IdentityTracker:
    """Digests of files, taken again only when a file may have changed since the last one in this run."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], int, dict[str, object]]] = {}

    def look(self, files: Iterable[IdentityFile]) -> tuple[list[dict[str, object]], list[str]]:
        """What each file is now, and the paths whose digest was reused.

        An entry has ``path``, ``role``, ``type`` (``file``, ``missing`` or ``other``), and for a file ``size_bytes``,
        ``mode``, ``sha256`` of what the path leads to, with ``link_target`` when the path is a symlink.
        """
        entries, reused = [], []
        for file in files:
            entry, was_reused = self._look_at(file.path)
            entries.append({"path": file.path, "role": file.role, **entry})
            if was_reused:
                reused.append(file.path)
        return entries, reused

    def _look_at(self, path: str) -> tuple[dict[str, object], bool]:
        target, key_path = None, path
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                target, key_path = _link_target(path), os.path.realpath(path)
                status = os.stat(path)
        except OSError:
            return _with_link({"type": "missing"}, target), False
        if not stat.S_ISREG(status.st_mode):
            return _with_link({"type": "other"}, target), False
        key = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev, status.st_mode)
        known = self._known.get(key_path)
        if known is not None and known[0] == key and known[1] - status.st_ctime_ns > _TICK_NS:
            return _with_link(known[2], target), True
        taken_ns = time.time_ns()
        try:
            digest = sha256_file(key_path)
        except (OSError, ValueError):
            return _with_link({"type": "missing"}, target), False
        entry = {"type": "file", "size_bytes": status.st_size, "mode": f"{status.st_mode & 0o7777:04o}", "sha256": digest}
        self._known[key_path] = (key, taken_ns, entry)
        return _with_link(entry, target), False

    def changed_unseen(self) -> list[str]:
        """Paths whose content is not what the last digest said although nothing else gave it away: looked at before sealing."""
        changed = []
        for path, (key, _, entry) in self._known.items():
            try:
                status = os.stat(path)
                now = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev, status.st_mode)
                if now == key and sha256_file(path) != entry["sha256"]:
                    changed.append(path)
            except (OSError, ValueError):
                continue
        return changed


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _with_link(entry: dict[str, object], target: str | None) -> dict[str, object]:
    return entry if target is None else {**entry, "link_target": target}


def changes(before: list[dict], after: list[dict]) -> tuple[str, ...]:
    """What differs between two looks at the same files, a line for each file. Pure."""
    if before == after:
        return ()
    lines = []
    later = {(entry["path"], entry["role"]): entry for entry in after}
    for entry in before:
        other = later.get((entry["path"], entry["role"]), {"type": "missing"})
        if entry == other:
            continue
        keys = [key for key in ("type", "sha256", "size_bytes", "mode", "link_target") if entry.get(key) != other.get(key)]
        # By name: a judgment holds no absolute path; trial.json has it.
        lines.append(f"{os.path.basename(entry['path'])} ({entry['role']}: {', '.join(keys)})")
    return tuple(lines)


def departures(planned: Iterable[Mapping[str, Any]], found: list[dict]) -> tuple[str, ...]:
    """Which files of a plan (role, name and digest) were not there as planned when a trial began, a line for each. Pure.

    What changed between two trials is the same in both looks of the second one: only the plan gives it away.
    """
    there = {(entry["role"], os.path.basename(entry["path"]), entry.get("sha256")) for entry in found}
    return tuple(
        f"{entry['name']} ({entry['role']}: not the one of the plan)"
        for entry in planned
        if entry["sha256"] is not None and (entry["role"], entry["name"], entry["sha256"]) not in there
    )


def resolve_program(name: str, search_path: str, cwd: str) -> str | None:
    """The file that ``execvp`` would start for ``name``, ``None`` when there is none."""
    if "/" in name:
        path = os.path.join(cwd, name)
        return path if os.path.exists(path) else None
    for folder in search_path.split(os.pathsep):
        path = os.path.join(cwd, folder or ".", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def command_files(argv: Iterable[str], search_path: str, cwd: str) -> list[IdentityFile]:
    """The files that decide what a command does: program, its interpreter, and every argument that names a regular file."""
    argv = list(argv)
    files: dict[str, str] = {}
    program = resolve_program(argv[0], search_path, cwd) if argv else None
    if program is not None:
        files[program] = "program"
        for interpreter in _interpreters(program, search_path, cwd):
            files.setdefault(interpreter, "interpreter")
    for argument in argv[1:]:
        for text in (argument, argument.partition("=")[2]):
            path = os.path.join(cwd, text)
            if text and "\0" not in text and os.path.isfile(path):
                files.setdefault(path, "argument")
                for interpreter in _interpreters(path, search_path, cwd) if os.access(path, os.X_OK) else ():
                    files.setdefault(interpreter, "interpreter")
    return [IdentityFile(path, role) for path, role in files.items()]


def _interpreters(path: str, search_path: str, cwd: str) -> list[str]:
    """The programs named by a script's first line, ``env``'s own argument included."""
    try:
        with open(path, "rb") as stream:
            line = stream.read(256).split(b"\n", 1)[0]
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = os.fsdecode(line[2:]).split()
    found = [word for word in words[:1] if os.path.isfile(word)]
    if found and os.path.basename(found[0]) == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        program = resolve_program(rest[0], search_path, cwd) if rest else None
        if program is not None:
            found.append(program)
    return found
