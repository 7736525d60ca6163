"""Names in an evidence directory, format ``agent-eval/evidence/1``, and which names are safe.

The one place that spells a file name of the format.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

FORMAT = "agent-eval/evidence/1"
_FORMAT_PATTERN = re.compile(r"agent-eval/evidence/([1-9][0-9]{0,3})")
FORMAT_VERSION = 1

PLAN = "plan.json"
PLAN_DRAFT = "plan.json.draft"
CASES = "cases"
JOURNAL = "journal.jsonl"
TRIALS = "trials"
TRIAL_RECORD = "trial.json"
STDOUT = "stdout.bin"
STDERR = "stderr.bin"
OWNER_REPORT = "owner-report.json"
FILES = "files"
PARTS = "parts"
SUMMARY = "summary.json"
CHANGES = "changes.json"
MANIFEST = "manifest-sha256.txt"
MANIFEST_DRAFT = "manifest-sha256.txt.draft"

MAX_RECORD_BYTES = 64 << 20
"""No JSON record of the format is larger; more is refused before it is read."""

SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
SAFE_ID_RULE = "1 to 100 of letters, digits and . _ @ + -, starting with a letter or digit"
_SAFE_PART = r"(?!\.\.?(?:/|\Z))[A-Za-z0-9._@+-]+"  # neither . nor ..
_SAFE_PATH = re.compile(f"{_SAFE_PART}(?:/{_SAFE_PART})*")
_TRIAL_NAME = re.compile(r"(.+)/([0-9]{1,4})")


def is_safe_id(text: object) -> bool:
    """Whether ``text`` may name a case: it becomes a file name that ``sha256sum -c`` can read."""
    return isinstance(text, str) and SAFE_ID.fullmatch(text) is not None


def is_safe_path(path: str) -> bool:
    """Whether a relative path of a manifest stays inside the directory."""
    return _SAFE_PATH.fullmatch(path) is not None


def trial_folder(case_id: str, number: int) -> str:
    """Relative path of a trial's folder; trials are numbered from 1."""
    return f"{TRIALS}/{case_id}/{number:03d}"


def parse_trial_name(text: str) -> tuple[str, int] | None:
    """Case and number of ``case/NNN`` as a person writes it, ``None`` when it names no trial."""
    match = _TRIAL_NAME.fullmatch(text)
    return (match.group(1), int(match.group(2))) if match else None


def part_folder(index: int) -> str:
    """Relative path of a part of a merged directory; parts are numbered from 1."""
    return f"{PARTS}/{index}"


def case_file(case_id: str) -> str:
    """Relative path of a case as it was given."""
    return f"{CASES}/{case_id}.json"


def format_version(value: object) -> int | None:
    """The version in a plan's ``format``, ``None`` when it is not this family of formats."""
    match = _FORMAT_PATTERN.fullmatch(value) if isinstance(value, str) else None
    return int(match.group(1)) if match else None


def listing(folder: str, prefix: str = "") -> list[tuple[str, os.DirEntry[str]]]:
    """What one folder holds as (``prefix`` + name, entry), directories as ``name/``, in the byte order of the names.

    Links are not followed. Raises ``OSError`` when it cannot be read.
    """
    with os.scandir(folder) as scan:
        entries = [(f"{prefix}{e.name}/" if e.is_dir(follow_symlinks=False) else prefix + e.name, e) for e in scan]
    # No two names are alike, so a plain sort never compares entries; of ASCII names it is the order of the bytes.
    plain = all([name.isascii() for name, _ in entries])
    entries.sort(key=None if plain else lambda pair: os.fsencode(pair[0]))
    return entries


def walk(root: str, prefix: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry below ``root`` as (``prefix`` + relative path, entry), in the byte order of the paths.

    Links are not followed. A directory comes as ``name/`` before what it holds, which
    makes the order that of the full paths. Raises ``OSError`` when a folder cannot be read.
    """
    pending = [iter(listing(root, prefix))]
    while pending:
        for relative, entry in pending[-1]:
            yield relative, entry
            if relative.endswith("/"):
                pending.append(iter(listing(entry.path, relative)))
                break
        else:
            pending.pop()
