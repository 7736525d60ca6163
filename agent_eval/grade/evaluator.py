"""What judged: the version and the source of this code, as digests.

Owns the digest of the library together with one consumer's folder. Data files count:
a scenario is part of the criterion.
"""

from __future__ import annotations

import os
import platform

from agent_eval.evidence.layout import walk
from agent_eval.records.digests import sha256_bytes, sha256_file

VERSION = "0.1.0"
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SKIPPED_FOLDERS = ("__pycache__/",)


def source_sha256(consumer_folder: str | None) -> str:
    """Digest over path and digest of every file of ``agent_eval`` and of the consumer's folder, byte code left out."""
    lines = []
    for label, folder in (("agent_eval", _LIBRARY), ("consumer", consumer_folder)):
        if folder is None:
            continue
        for relative, entry in walk(folder):
            if relative.endswith(("/", ".pyc")) or any(part in relative for part in _SKIPPED_FOLDERS):
                continue
            if entry.is_file(follow_symlinks=False):
                lines.append(f"{sha256_file(entry.path)}  {label}/{relative}\n")
    return sha256_bytes("".join(lines).encode("utf-8", "surrogateescape"))


def evaluator_record(consumer_folder: str | None) -> dict[str, str]:
    """The plan's ``evaluator``: ``version``, ``source_sha256``, ``python``, ``platform``."""
    return {
        "version": VERSION,
        "source_sha256": source_sha256(consumer_folder),
        "python": platform.python_version(),
        "platform": f"{os.uname().sysname} {os.uname().release} {os.uname().machine}",
    }


def grader_record(consumer_name: str, evaluator: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """What a judgment says of who decided: name and source digest."""
    return (("name", f"{consumer_name}/1"), ("source_sha256", evaluator["source_sha256"]))
