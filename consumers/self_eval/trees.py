"""What really changed: two trees, or a git revision and its working tree, file by file.

Owns listing files with digests and comparing the lists. Links are not followed, and nothing in a
tree is executed: of git, only object reading is used, because an index or a configuration that a subject wrote can
hide changes (assume-unchanged, excludes) and run programs (fsmonitor, filters).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from agent_eval import InvalidInput, digests, relative_paths

MAX_ENTRIES = 200_000
MAX_DEPTH = 64

Tree = dict[str, str]
"""Path -> what is there: mode and digest, or the target of a link."""


def list_tree(root: str, option: str, *, skip: frozenset[str] = frozenset((".git",))) -> Tree:
    """Every file below ``root`` with its mode and digest; top-level names in ``skip`` are left out.

    Raises ``InvalidInput`` naming ``option`` when the folder cannot be read whole, or is larger than 200,000
    entries or 64 levels: half a comparison would hide changes.
    """
    if not os.path.isdir(root):
        raise InvalidInput.one(option, f"{root} is not a folder")
    tree: Tree = {}
    try:
        for path, entry in _walk(root, "", skip, 0):
            tree[path] = describe(entry.path)
            if len(tree) > MAX_ENTRIES:
                raise InvalidInput.one(option, f"{root} has more than {MAX_ENTRIES} files", "compare a smaller folder")
    except (OSError, ValueError) as error:
        raise InvalidInput.one(option, f"{root} cannot be read whole ({error})") from None
    return tree


def _walk(folder: str, prefix: str, skip: frozenset[str], depth: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
    if depth > MAX_DEPTH:
        raise ValueError(f"deeper than {MAX_DEPTH} levels")
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if depth == 0 and entry.name in skip:
            continue
        path = prefix + readable(entry.name)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, path + "/", skip, depth + 1)
        else:
            yield path, entry


def readable(name: str) -> str:
    """A file name as text; bytes that are not UTF-8 are written as ``\\xNN``, which no receipt can declare."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def describe(path: str) -> str:
    """What stands at ``path``, as text that is equal when it is the same."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return "link " + readable(os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        return f"special {stat.S_IFMT(status.st_mode):o}"
    kind = "program" if status.st_mode & 0o100 else "file"
    return f"{kind} {digests.sha256_file(path)}"


def difference(before: Tree, after: Tree) -> dict[str, list[str]]:
    """The paths that were added, removed and changed, sorted."""
    return {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(path for path in before.keys() & after.keys() if before[path] != after[path]),
    }


def artifact_digests(root: str, paths: list[str]) -> dict[str, str | None]:
    """The digest of each file below ``root``, ``None`` for what is not a regular file inside it."""
    real_root = os.path.realpath(root)
    found: dict[str, str | None] = {}
    for path in paths:
        full = os.path.join(root, relative_paths.normal_path(path))
        inside = os.path.realpath(full).startswith(real_root.rstrip("/") + "/")
        try:
            found[path] = digests.sha256_file(full) if inside else None
        except (OSError, ValueError):
            found[path] = None
    return found
