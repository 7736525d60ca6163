"""Globs for normalised relative POSIX paths, on the linear-time automaton of ``patterns``.

Owns the syntax of globs: ``*`` and ``?`` stay within one folder, ``**`` as a whole component
crosses folders (``wiki/**`` is everything below ``wiki``, ``**/x`` is ``x`` at any depth),
``[abc]``, ``[a-z]`` and ``[!abc]`` are one character. A name that starts with a dot is a
name like any other, so that ``tests/**`` covers ``tests/.hidden``. It does not normalise paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from .patterns import Pattern, PatternError, translate

MAX_GLOB_CHARS = 256
_FOLDERS = r"(?:[^\0]*/)?"
_NOT_SLASH = "[^/]"


@lru_cache(maxsize=1024)
def compile_glob(text: str) -> Pattern:
    """Compile one glob; raises :class:`PatternError`."""
    return translate(_regex_of(text), text)


def any_glob(texts: tuple[str, ...], *, any_case: bool = False) -> Callable[[str], bool]:
    """A test of normalised paths against several globs at once.

    With ``any_case`` the letters match in any case, for rules that must hold on file
    systems where ``Tests`` and ``tests`` are one folder.
    """
    flag = "(?i)" if any_case else ""
    branches = [_regex_of(text) for text in texts]
    try:
        return translate(flag + "|".join(f"(?:{branch})" for branch in branches), " or ".join(texts)).fullmatch
    except PatternError:
        # Each glob is fine by itself; together they are more steps than one automaton may have.
        patterns = [translate(flag + branch, text) for branch, text in zip(branches, texts, strict=True)]
        return lambda path: any(pattern.fullmatch(path) for pattern in patterns)


def _regex_of(text: str) -> str:
    if len(text) > MAX_GLOB_CHARS:
        raise PatternError(f"{len(text)} characters long, at most {MAX_GLOB_CHARS} are allowed")
    if "\\" in text or "\0" in text or text.startswith("/"):
        raise PatternError("paths are relative, with '/' between folders")
    parts = text.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise PatternError("an empty, '.' or '..' component never matches a normalised path")
    return "".join(_pieces(parts))


def _pieces(parts: list[str]) -> Iterator[str]:
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            yield _NOT_SLASH + r"[^\0]*" if last else _FOLDERS
        elif "**" in part:
            raise PatternError("'**' must be a whole component")
        else:
            yield _component(part) + ("" if last else "/")


def _component(part: str) -> str:
    regex, at = "", 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            regex += _NOT_SLASH + "*"
        elif char == "?":
            regex += _NOT_SLASH
        elif char == "[":
            end = part.find("]", at + 2 if part.startswith("!", at) else at + 1)
            if end < 0:
                raise PatternError("'[' is not closed")
            regex += _characters(part[at:end])
            at = end + 1
        elif char.isascii() and not char.isalnum():
            regex += "\\" + char
        else:
            regex += char
    return regex


def _characters(inside: str) -> str:
    negated = inside.startswith("!")
    escaped = "".join("\\" + char if char in "]^[" else char for char in inside[negated:])
    return f"[{'^' if negated else ''}{escaped}]"
