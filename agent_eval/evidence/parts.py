"""The parts of a merged directory: each must still be what it was when it was merged.

Owns comparing the manifest of the whole with the parts' own manifests, and these with the seals that the plan
names. It reads no other file of a part: whoever compared the whole with its manifest has compared those.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from agent_eval.evidence import layout
from agent_eval.evidence.manifest_lines import DIGEST, LINE, is_ordered
from agent_eval.records import strict_json
from agent_eval.records.digests import read_file
from agent_eval.records.problems import EvidenceFault

Line = tuple[str, str]


@dataclass(slots=True)
class PartFindings:
    """What does not hold of the parts, each by its path in the whole."""

    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)


def part_findings(root: str) -> PartFindings:
    """Compare the parts of a sealed directory with what its plan says of them; nothing to say of one that is no merge.

    A part that was unsealed has no manifest, so that only the whole's vouches for its files. Memory does not
    grow with the number of files. Raises :class:`EvidenceFault` when the plan says of its parts what no merge does.
    """
    found = PartFindings()
    seals = _part_seals(root)
    if seals is None:
        return found
    with open(os.path.join(root, layout.MANIFEST), "rb") as stream:
        inside = (line for line in _lines(stream, []) if line[0].startswith(f"{layout.PARTS}/"))
        seen = set()
        for folder, lines in itertools.groupby(inside, key=lambda line: "/".join(line[0].split("/", 2)[:2])):
            if folder not in seals:
                found.unexpected.append(folder)
                continue
            seen.add(folder)
            _compare(root, folder, seals[folder], lines, found)
    found.missing += [f"{folder}/" for folder in seals if folder not in seen]
    return found


def _compare(root: str, folder: str, seal: str | None, lines: Iterator[Line], found: PartFindings) -> None:
    """``lines`` are those of the whole's manifest about one part."""
    manifest = f"{folder}/{layout.MANIFEST}"
    path = os.path.join(root, manifest)
    if seal is None:
        found.unexpected += [name for name, _ in lines if name == manifest]
        return
    if not os.path.isfile(path) or os.path.islink(path):
        found.missing.append(manifest)
        return
    with open(path, "rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != seal:
            found.changed.append(manifest)
        stream.seek(0)
        bad: list[str] = []
        own = ((f"{folder}/{name}", digest) for name, digest in _lines(stream, bad))
        _join((line for line in lines if line[0] != manifest), own, found)
        found.unsafe += [f"{manifest}: {line}" for line in bad]


def _join(whole: Iterator[Line], part: Iterator[Line], found: PartFindings) -> None:
    """Both in the byte order of the paths."""
    here, there = next(whole, None), next(part, None)
    while here is not None or there is not None:
        if there is None or (here is not None and here[0] < there[0]):
            assert here is not None
            found.unexpected.append(here[0])
            here = next(whole, None)
        elif here is None or there[0] < here[0]:
            found.missing.append(there[0])
            there = next(part, None)
        else:
            if here[1] != there[1]:
                found.changed.append(here[0])
            here, there = next(whole, None), next(part, None)


def _lines(stream: BinaryIO, bad: list[str]) -> Iterator[Line]:
    """Path and digest of each safe line in the byte order of the paths; the other lines go to ``bad``."""
    if is_ordered(stream):
        yield from _read(stream, bad)
    else:
        yield from sorted(_read(stream, bad))


def _read(stream: BinaryIO, bad: list[str]) -> Iterator[Line]:
    for raw in stream:
        line = raw.decode("utf-8", "backslashreplace")
        match = LINE.fullmatch(line)
        if match is None or not layout.is_safe_path(match.group(2)):
            bad.append(line.strip()[:200])
        else:
            yield match.group(2), match.group(1)


def _part_seals(root: str) -> dict[str, str | None] | None:
    """The seal of each part by its folder, ``None`` for a part that was unsealed; ``None`` for what is no merge."""
    try:
        plan: Any = strict_json.parse_object(read_file(os.path.join(root, layout.PLAN), max_bytes=layout.MAX_RECORD_BYTES))
    except (OSError, ValueError):
        return None  # whoever reads the plan says what is wrong with it
    if plan.get("kind") != "merge":
        return None
    parts = plan.get("parts")
    if not isinstance(parts, list) or not all(is_part(part, index) for index, part in enumerate(parts, 1)):
        raise EvidenceFault.one(layout.PLAN, "does not say what its parts are")
    return {part["folder"]: part["seal"] for part in parts}


def is_part(part: Any, index: int) -> bool:
    """Whether a plan's entry about its part ``index`` (from 1) has the form that a merge writes."""
    if not isinstance(part, dict) or part.get("folder") != layout.part_folder(index) or "seal" not in part:
        return False
    return part["seal"] is None or (isinstance(part["seal"], str) and DIGEST.fullmatch(part["seal"]) is not None)
