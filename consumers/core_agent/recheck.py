"""Recheck: a retained after-state laid out again, with today's hidden checker run on it.

Owns rebuilding a workspace from evidence: the files as they were drawn, with every retained
change applied. What was not kept in full cannot be rebuilt, and then nothing is run and the
trial's record says why. The subject is never started.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping

from agent_eval import Command, Outcome, Scratch, TrialContext, TrialEvidence, TrialResult, strict_json, workspace

from .hidden_check import run_hidden_check
from .realise import Realised, Trial, lay_out, realise
from .scenario import load_scenario
from .transports import MODEL_FILE, restore
from .trial import AFTER_FILE, BEFORE_FILE, STDERR_FILE, TASK_FILE


class CannotRebuild(Exception):
    """The after-state was not retained in full; the text says what is missing."""


def recheck_trial(
    evidence: TrialEvidence, context: TrialContext, scenarios: str
) -> Generator[Command, Outcome, TrialResult]:
    """Carry the retained evidence over and run today's hidden checker, if the scenario has one."""
    record = dict(evidence.record)
    hidden_record = None
    case = strict_json.parse_object(evidence.case_bytes)
    _carry_over(evidence, context)
    outcome = Outcome.from_json(record["outcome"])
    folder = os.path.join(scenarios, case["scenario"])
    hidden = load_scenario(folder).hidden if "hidden_check" in case and os.path.isdir(folder) else None
    if hidden is not None and record["hidden_check"] is not None:
        drawing = Trial.from_json(record["revealed"])
        realised = realise(case, drawing)
        with Scratch() as private:
            root = os.path.join(private.path, "workspace")
            try:
                rebuild(evidence, realised, root)
            except CannotRebuild as reason:
                hidden_record = {"not_rebuilt": str(reason)}
            else:
                hidden_record = yield from run_hidden_check(context.folder, hidden, root, realised)
                hidden_record["after_sha256"] = record["hidden_check"]["after_sha256"]
    kept = {key: record[key] for key in ("revealed", "witness", "adapter", "model", "restriction", "denied", "prepared") if key in record}
    return TrialResult(outcome, record["identity"], {**kept, "hidden_check": hidden_record, "rechecked": True})


def _carry_over(evidence: TrialEvidence, context: TrialContext) -> None:
    transport = restore(evidence.plan["subject"]["transport"])
    for name in dict.fromkeys((TASK_FILE, BEFORE_FILE, AFTER_FILE, STDERR_FILE, transport.stdout_name, transport.stream, MODEL_FILE)):
        data = evidence.read(name)
        if data is not None:
            context.folder.write(name, data)
    after = strict_json.parse_object(evidence.read(AFTER_FILE) or b"{}")
    for digest in after.get("captured", {}).get("kept", []):
        data = evidence.read(f"files/{digest}")
        if data is not None:
            context.folder.keep_content(data)


def rebuild(evidence: TrialEvidence, realised: Realised, root: str) -> None:
    """Lay out the workspace of ``realised`` at the new folder ``root`` and apply the retained changes.

    Raises :class:`CannotRebuild` when the tree was beyond a limit or a content was not kept.
    """
    after = strict_json.parse_object(evidence.read(AFTER_FILE) or b"{}")
    if "changes" not in after or after.get("limit") is not None:
        raise CannotRebuild("the workspace was not seen to its end")
    lay_out(realised.files, root)
    changes = after["changes"]
    # Deepest first, so that a folder is empty when it goes; folders before what lies in them when things come.
    for change in reversed(changes):
        if change["kind"] == "removed" or change["what"] == ["type"]:
            _remove(os.path.join(os.fsencode(root), _entry(change).path))
    present = [change for change in changes if change["kind"] != "removed"]
    for change in present:
        _apply(change, root, evidence)
    # Modes last, innermost first: a folder that may not be written must be filled before it is closed.
    for change in reversed(present):
        entry = _entry(change)
        if entry.mode is not None and entry.type in ("file", "directory"):
            os.chmod(os.path.join(os.fsencode(root), entry.path), int(entry.mode, 8))


def _entry(change: Mapping[str, object]) -> workspace.Entry:
    return workspace.Entry.from_json(change["after"] or change["before"])


def _remove(path: bytes) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotRebuild(f"{workspace.display_path(path)}: {error.strerror}") from None


def _apply(change: Mapping[str, object], root: str, evidence: TrialEvidence) -> None:
    entry = _entry(change)
    shown = workspace.display_path(entry.path)
    if entry.error is not None or entry.type == "missing":
        raise CannotRebuild(f"{shown} could not be read")
    path = os.path.join(os.fsencode(root), entry.path)
    if entry.type == "directory":
        os.makedirs(path, exist_ok=True)
    elif entry.type == "symlink":
        if change["kind"] == "changed" and change["what"] == ["target"]:
            os.unlink(path)
        os.symlink(entry.target, path)
    elif entry.type == "file" and (change["kind"] == "added" or {"content", "type"} & set(change["what"])):
        data = evidence.read(f"files/{entry.sha256}")
        if data is None:
            raise CannotRebuild(f"the content of {shown} was not kept")
        with open(path, "wb") as stream:
            stream.write(data)
    # A FIFO, socket or device is nothing that a checker reads; leaving it out is the safe form of it.
