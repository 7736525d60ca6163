"""A skill patch: read, applied to exact bytes, and screened before anything is measured.

Owns the patch format, finding each anchor exactly once, the edit budget, protected sections and the candidate's
bytes. Screening costs no look at the held-out split. It does not scan for held-out text (`screen.py`).

Format ``agent-eval/skill-patch/1``: ``base`` {file: sha256}, ``author``, ``traces`` [{id, task}], ``rationale``,
``operations`` [{op, file, anchor, text}] with op ``replace``, ``delete``, ``insert_before``, ``insert_after``
or ``append`` (no anchor). Anchors are looked for in the base, so that the order of operations means nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.gates import inputs
from agent_eval.gates.decision import Finding, Outcome
from agent_eval.grade.fields import STRING, TEXT, Field, Form, choice
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import Problem, raise_if

PATCH_FORMAT = "agent-eval/skill-patch/1"
_TRACES = Form("a list", lambda value: isinstance(value, list))
_PATCH = {
    "format": Field(choice(PATCH_FORMAT), "names this format", required=True),
    "base": Field(inputs.NON_EMPTY_OBJECT, "maps every declared file to the digest it was written for", required=True),
    "author": Field(inputs.NAME, "names who wrote the patch", required=True),
    "traces": Field(_TRACES, "lists the training traces behind it", default=[]),
    "rationale": Field(STRING, "says why", default=""),
    "operations": Field(inputs.OBJECTS, "lists the edits", required=True),
}
_TRACE = {
    "id": Field(inputs.NAME, "names the trace", required=True),
    "task": Field(inputs.NAME, "names its task in the train split", required=True),
}
_OPERATION = {
    "op": Field(choice("replace", "delete", "insert_before", "insert_after", "append"), "says what to do", required=True),
    "file": Field(TEXT, "names the declared file", required=True),
    "anchor": Field(TEXT, "is text that stands exactly once in the base"),
    "text": Field(TEXT, "is the new text"),
}


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as it was given; ``operations`` are checked for form only."""

    base: dict[str, str]
    author: str
    traces: tuple[dict, ...]
    rationale: str
    operations: tuple[dict, ...]

    def added(self) -> str:
        """All text that the patch brings in."""
        return "\n".join(operation.get("text", "") for operation in self.operations)

    def fingerprint(self) -> str:
        """Digest of the edits alone: the same edits by another author are the same patch."""
        return sha256_bytes(strict_json.canonical(sorted(self.operations, key=strict_json.canonical)))


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    new: bytes


def read(value: Any, where: str = "patch") -> Patch:
    """The patch in a JSON value. Raises InvalidInput with every problem."""
    problems = inputs.object_problems(value, where, _PATCH)
    raise_if(problems)
    filled = inputs.filled(value, _PATCH)
    for name, digest in filled["base"].items():
        problems += inputs.DIGEST.problems(digest, f"{where}/base/{name}")
    for index, trace in enumerate(filled["traces"]):
        problems += inputs.object_problems(trace, f"{where}/traces/{index}", _TRACE)
    for index, operation in enumerate(filled["operations"]):
        problems += _operation_problems(operation, f"{where}/operations/{index}")
    raise_if(problems)
    return Patch(filled["base"], filled["author"], tuple(filled["traces"]), filled["rationale"], tuple(filled["operations"]))


def _operation_problems(operation: Any, where: str) -> list[Problem]:
    problems = inputs.object_problems(operation, where, _OPERATION)
    if problems:
        return problems
    kind = operation["op"]
    wanted = {"replace": {"anchor", "text"}, "delete": {"anchor"}, "append": {"text"}}.get(kind, {"anchor", "text"})
    given = set(operation) - {"op", "file"}
    problems += [Problem(f"{where}/{name}", "is missing", f"{kind} needs it") for name in sorted(wanted - given)]
    problems += [Problem(f"{where}/{name}", f"means nothing for {kind}") for name in sorted(given - wanted)]
    return problems


def apply(
    patch: Patch, base: Mapping[str, bytes], budget: Mapping[str, int], protected: tuple[dict, ...]
) -> tuple[dict[str, bytes], list[Finding], dict[str, int]]:
    """(candidate files, findings, what it cost). The candidate is meaningful only without findings."""
    findings = _base_findings(patch, base)
    edits: dict[str, list[_Edit]] = {}
    for index, operation in enumerate(patch.operations):
        if operation["file"] not in base:
            findings.append(_reject("undeclared_file", f"operation {index} edits a file that is not declared", operation["file"]))
            continue
        located = _locate(operation, base[operation["file"]])
        if isinstance(located, str):
            findings.append(_reject("anchor", f"operation {index}: {located}", operation["file"]))
        else:
            edits.setdefault(operation["file"], []).append(located)
    cost = _cost(patch, edits, base)
    findings += [
        _reject("over_budget", f"{cost[name]} {name.replace('_', ' ')}, at most {budget[name]} are allowed", name)
        for name in ("operations", "changed_lines", "changed_bytes")
        if cost[name] > budget[name]
    ]
    candidate = dict(base)
    for path, found in edits.items():
        ordered = sorted(found, key=lambda edit: (edit.start, edit.end))
        if any(after.start < before.end or after.start == before.start for before, after in itertools.pairwise(ordered)):
            findings.append(_reject("overlapping_edits", "two operations edit the same place", path))
        candidate[path] = _edited(base[path], ordered)
        findings += _protection_findings(path, base[path], candidate[path], ordered, protected)
    if not findings and candidate == dict(base):
        findings.append(_reject("no_change", "the patched files are byte for byte the base", ""))
    return candidate, findings, cost


def _base_findings(patch: Patch, base: Mapping[str, bytes]) -> list[Finding]:
    findings = []
    for path, data in base.items():
        if patch.base.get(path) != sha256_bytes(data):
            detail = "the patch was written for other bytes than the incumbent's"
            findings.append(Finding(Outcome.INVALID, "stale_base", detail, (path,)))
    for path in sorted(patch.base.keys() - base.keys()):
        findings.append(_reject("undeclared_file", "the base names a file that is not declared", path))
    return findings


def _locate(operation: dict, data: bytes) -> _Edit | str:
    new = operation.get("text", "").encode("utf-8")
    if operation["op"] == "append":
        return _Edit(len(data), len(data), new)
    anchor = operation["anchor"].encode("utf-8")
    start = data.find(anchor)
    if start < 0:
        return "its anchor is not in the base"
    if data.find(anchor, start + 1) >= 0:
        return "its anchor stands more than once in the base"
    end = start + len(anchor)
    if operation["op"] == "insert_before":
        return _Edit(start, start, new)
    if operation["op"] == "insert_after":
        return _Edit(end, end, new)
    return _Edit(start, end, new)


def _edited(data: bytes, ordered: list[_Edit]) -> bytes:
    parts, position = [], 0
    for edit in ordered:
        parts += [data[position : edit.start], edit.new]
        position = max(position, edit.end)
    return b"".join([*parts, data[position:]])


def _cost(patch: Patch, edits: Mapping[str, list[_Edit]], base: Mapping[str, bytes]) -> dict[str, int]:
    lines = changed = 0
    for path, located in edits.items():
        for edit in located:
            removed, added = _trimmed(base[path][edit.start : edit.end], edit.new)
            changed += len(removed) + len(added)
            lines += _lines(removed) + _lines(added)
    return {"operations": len(patch.operations), "changed_lines": lines, "changed_bytes": changed}


def _trimmed(removed: bytes, added: bytes) -> tuple[bytes, bytes]:
    """Without what both begin and end with: a long anchor that stays is no change."""
    shorter, front = min(len(removed), len(added)), 0
    while front < shorter and removed[front] == added[front]:
        front += 1
    back = 0
    while back < shorter - front and removed[-1 - back] == added[-1 - back]:
        back += 1
    return removed[front : len(removed) - back], added[front : len(added) - back]


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n")) if data else 0


def _protection_findings(path: str, before: bytes, after: bytes, edits: list[_Edit], protected: tuple[dict, ...]) -> list[Finding]:
    findings = []
    for section in protected:
        if section["file"] != path:
            continue
        start, end = section_span(before, section)
        if any((edit.start < end and edit.end > start) or start < edit.start < end for edit in edits):
            findings.append(_reject("protected_section", f"an operation edits the section from {section['from']!r}", path))
            continue
        markers = (section["from"].encode(), section["to"].encode())
        if any(marker in edit.new for marker in markers for edit in edits) or any(after.count(m) != 1 for m in markers):
            findings.append(_reject("smuggled_marker", f"the patch brings in a marker of the section from {section['from']!r}", path))
            continue
        moved, _ = section_span(after, section)
        # Blanks put before a heading make it code; other text before it on its line makes it part of that.
        same_line = before[:start].rpartition(b"\n")[2] == after[:moved].rpartition(b"\n")[2]
        if not same_line or _enclosure(before[:start]) != _enclosure(after[:moved]):
            detail = f"a code fence, comment or indentation before the section from {section['from']!r} would disarm it"
            findings.append(_reject("smuggled_fence", detail, path))
    return findings


def section_span(data: bytes, section: Mapping[str, str]) -> tuple[int, int]:
    """Start and end of a protected section, markers included. Raises ``ValueError`` when it is not there once."""
    first, last = section["from"].encode(), section["to"].encode()
    if data.count(first) != 1 or data.count(last) != 1:
        raise ValueError("each marker must stand exactly once")
    start, end = data.index(first), data.index(last) + len(last)
    if end < start + len(first):
        raise ValueError("the end marker stands before the start marker")
    return start, end


def _enclosure(before: bytes) -> tuple[int, int, bool]:
    """Whether what follows ``before`` lies in a code fence or a comment."""
    lines = [line.lstrip() for line in before.split(b"\n")]
    backticks = sum(line.startswith(b"```") for line in lines) % 2
    tildes = sum(line.startswith(b"~~~") for line in lines) % 2
    return backticks, tildes, before.rfind(b"<!--") > before.rfind(b"-->")


def _reject(code: str, detail: str, item: str) -> Finding:
    return Finding(Outcome.KEEP, code, detail, (item,) if item else ())
