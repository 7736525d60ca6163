"""What a trial changed in its workspace: added, changed and removed files, with text differences.

Owns showing the comparison of the two retained snapshots. The comparison is that of
``supervise``; what a change means is the grader's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.records.problems import EvidenceFault
from agent_eval.report.excerpts import excerpt
from agent_eval.report.text_diff import unified
from agent_eval.report.visible_text import escape, size
from agent_eval.supervise.tree_records import Change, Entry, Snapshot, difference, display_path

if TYPE_CHECKING:
    from agent_eval.evidence.reader import RetainedTrial

BEFORE = "workspace-before.json"
AFTER = "workspace-after.json"
_DIFF_LINE_COST = 60
_MAX_PATH = 300


class Contents:
    """Finds retained content by digest: captured files first, then strings of the given JSON values.

    A scenario keeps the files that it laid out inside its case, as text; looking them up by digest needs no
    knowledge of where in the case a consumer puts them, and cannot show a wrong one.
    """

    def __init__(self, case: object) -> None:
        self._known = dict(_digests(case))

    def find(self, trial: RetainedTrial, digest: str | None) -> bytes | None:
        """The content with this SHA-256, ``None`` when it was not retained."""
        if digest is None:
            return None
        kept = trial.read(f"{layout.FILES}/{digest}")
        if kept is None and digest not in self._known:
            return dict(_digests(trial.record)).get(digest)
        return self._known.get(digest) if kept is None else kept


def _digests(value: object) -> Iterator[tuple[str, bytes]]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            data = item.encode("utf-8")
            yield hashlib.sha256(data).hexdigest(), data
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def workspace_changes(trial: RetainedTrial, contents: Contents, room: int, rows: int) -> dict[str, object] | None:
    """The changes as ``{counts, rows, total, limit}``; ``None`` when the trial has no two snapshots.

    Each row is ``{kind, path, what}`` with ``diff`` (lines of a unified difference) or ``new`` (an excerpt of an
    added file) where content was retained. Raises :class:`EvidenceFault` for a snapshot of another shape.
    """
    before, after = _snapshot(trial, BEFORE), _snapshot(trial, AFTER)
    if before is None or after is None:
        return None
    changes = difference(before, after)
    counts = {kind: sum(change.kind == kind for change in changes) for kind in ("added", "changed", "removed")}
    shown = changes[:rows]
    share = room // max(1, len(shown))
    return {
        "counts": counts,
        "total": len(changes),
        "limit": after.limit or before.limit,
        "rows": [_row(change, trial, contents, share) for change in shown],
    }


def _snapshot(trial: RetainedTrial, name: str) -> Snapshot | None:
    data = trial.read(name)
    if data is None:
        return None
    try:
        return Snapshot.from_json(strict_json.parse_object(data))
    except (KeyError, TypeError, ValueError) as error:
        raise EvidenceFault.one(f"trials/{trial.name}/{name}", f"not a snapshot of a workspace ({error})") from None


def _row(change: Change, trial: RetainedTrial, contents: Contents, room: int) -> dict[str, object]:
    row: dict[str, object] = {
        "kind": change.kind,
        "path": escape(_shortened(display_path(change.path))),
        "what": ", ".join(change.what) or _described(change.after or change.before),
    }
    old = contents.find(trial, change.before.sha256 if change.before else None)
    new = contents.find(trial, change.after.sha256 if change.after else None)
    if change.kind == "changed" and "content" in change.what:
        if old is not None and new is not None:
            row["diff"], note = unified(old, new, max(4, room // _DIFF_LINE_COST))
            row["note"] = note
        else:
            row["note"] = "content was not retained, only its digest"
    elif change.kind == "added" and new is not None:
        row["new"] = excerpt(new, room).to_json()
    return row


def _shortened(path: str) -> str:
    return path if len(path) <= _MAX_PATH else f"{path[:_MAX_PATH]} [... {len(path) - _MAX_PATH} more characters]"


def _described(entry: Entry | None) -> str:
    if entry is None:
        return ""
    if entry.type == "symlink":
        return f"symlink to {escape(_shortened(display_path(entry.target or b'')))}"
    return f"{entry.type}, {size(entry.size_bytes)}" if entry.size_bytes is not None else entry.type
