"""Where evidence directories are: the default place, a name nobody has, and ``@last``.

Owns choosing and finding paths. It does not read what is in a directory.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

from agent_eval.evidence import layout
from agent_eval.evidence.files import Files
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.records.problems import InvalidInput

DEFAULT_ROOT = os.path.join("target", "agent-evals")
LAST = "@last"
_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)(?:-([0-9]+))?")
_MAX_SAME_SECOND = 10_000
_BESIDE_PLAN = (layout.JOURNAL, layout.MANIFEST)


def new_directory(path: str | None, files: Files | None = None) -> EvidenceWriter:
    """Make a new evidence directory: ``path``, or the next free name under ``target/agent-evals`` of the current folder.

    Two runs in the same second get two directories. Raises ``InvalidInput`` when it cannot be made.
    """
    for candidate in new_names(path):
        try:
            return EvidenceWriter.create(candidate, files)
        except InvalidInput:
            if path is not None or not os.path.lexists(candidate):
                raise
    raise InvalidInput.one(DEFAULT_ROOT, "no free name is left", "name a new directory with --output")


def new_names(path: str | None) -> Iterator[str]:
    """Where a new directory may go: ``path``, or the free names under the default place, which is made when it is not there.

    Raises ``InvalidInput`` when that lies inside a run's evidence: it would change that evidence.
    """
    if path is not None:
        folder = evidence_around(path)
        if folder is not None:
            raise InvalidInput.one(path, f"lies inside the evidence in {folder}", "name a directory somewhere else")
        yield path
        return
    folder = evidence_around(DEFAULT_ROOT)
    if folder is not None:
        raise InvalidInput.one(DEFAULT_ROOT, f"would lie inside the evidence in {folder}", "name a new directory with --output, or start from another folder")
    _make_default_root()
    stem = os.path.join(DEFAULT_ROOT, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    for attempt in range(1, _MAX_SAME_SECOND):
        candidate = stem if attempt == 1 else f"{stem}-{attempt}"
        if not os.path.lexists(candidate):
            yield candidate


def evidence_around(path: str) -> str | None:
    """The evidence directory that ``path`` would lie in, ``None`` when it lies in none."""
    folder = os.path.realpath(path)
    while folder != (folder := os.path.dirname(folder)):
        if os.path.lexists(os.path.join(folder, layout.PLAN)) and any(os.path.lexists(os.path.join(folder, name)) for name in _BESIDE_PLAN):
            return folder
    return None


def _make_default_root() -> None:
    root = os.path.dirname(DEFAULT_ROOT)
    try:
        os.makedirs(DEFAULT_ROOT, mode=0o755, exist_ok=True)
        ignore = os.path.join(root, ".gitignore")
        if not os.path.lexists(ignore):
            with open(ignore, "x", encoding="ascii") as stream:
                stream.write("*\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise InvalidInput.one(DEFAULT_ROOT, f"cannot be made ({error.strerror})", "name a new directory with --output") from None


def runs() -> list[str]:
    """Evidence directories under the default place of the current folder, oldest first."""
    try:
        names = os.listdir(DEFAULT_ROOT)
    except OSError:
        return []
    found = [(match.group(1), int(match.group(2) or 1), name) for name in names if (match := _NAME.fullmatch(name))]
    paths = [os.path.join(DEFAULT_ROOT, name) for _, _, name in sorted(found)]
    return [path for path in paths if os.path.isfile(os.path.join(path, layout.PLAN))]


def resolve(text: str) -> str:
    """The directory that a command line names; ``@last`` is the newest under the default place.

    Raises ``InvalidInput`` when there is none.
    """
    if text != LAST:
        return text
    found = runs()
    if not found:
        raise InvalidInput.one(LAST, f"no run under {DEFAULT_ROOT} of this folder", "name a directory")
    return found[-1]
