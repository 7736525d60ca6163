"""Relative POSIX paths as they are written down: one normal form, confined to a root.

Owns the text of paths. It does not look at a file system: whether a symlink leads
outside is for whoever opens the file.
"""

from __future__ import annotations

import re
import unicodedata

_DRIVE = re.compile(r"[A-Za-z]:")


class PathError(ValueError):
    """A path that is not relative and confined; the message says why."""


def normal_path(text: str) -> str:
    """``text`` without ``./`` and doubled or trailing slashes.

    Raises :class:`PathError` for a path that is empty, absolute, has a drive letter, a backslash,
    a NUL or a ``..``: even one that stays inside, because two readers may resolve it differently.
    """
    if "\\" in text:
        raise PathError(f"{text!r} has a backslash")
    if "\0" in text:
        raise PathError("a path has a NUL character")
    if text.startswith("/") or text == "~" or text.startswith("~/"):
        raise PathError(f"{text!r} is not relative")
    if _DRIVE.match(text):
        raise PathError(f"{text!r} has a drive letter")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise PathError(f"{text!r} has a '..'")
    if not parts:
        raise PathError("the path is empty")
    return "/".join(parts)


def collisions(paths: list[str]) -> list[tuple[str, str]]:
    """Pairs of different paths that are one file where case or Unicode form does not count."""
    if len({path.lower() for path in paths}) == len(set(paths)) and all(path.isascii() for path in paths):
        return []
    seen: dict[str, str] = {}
    found: list[tuple[str, str]] = []
    for path in paths:
        other = seen.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if other != path:
            found.append((other, path))
    return found
