"""An evidence-preserving trial harness: the names that a consumer may use.

Each is imported when it is first used, so that the command line starts fast.
"""

from __future__ import annotations

import importlib

_PUBLIC = {
    # what goes wrong, said to a person
    "InvalidInput": "agent_eval.records.problems",
    "EvidenceFault": "agent_eval.records.problems",
    "Problem": "agent_eval.records.problems",
    "read_input": "agent_eval.records.input_files",
    # what is planned and what is judged
    "Limits": "agent_eval.records.plan",
    "PlannedCase": "agent_eval.records.plan",
    "PlannedRun": "agent_eval.records.plan",
    "limits_from": "agent_eval.records.plan",
    "Outcome": "agent_eval.records.outcome",
    "Basis": "agent_eval.records.judgment",
    "CheckResult": "agent_eval.records.judgment",
    "Failure": "agent_eval.records.judgment",
    "Judgment": "agent_eval.records.judgment",
    "Verdict": "agent_eval.records.judgment",
    "TrialEvidence": "agent_eval.grade.trial_evidence",
    "RetainedTrial": "agent_eval.evidence.reader",
    "EvidenceReader": "agent_eval.evidence.reader",
    "ReportState": "agent_eval.records.outcome",
    "StopReason": "agent_eval.records.outcome",
    # what runs
    "Command": "agent_eval.supervise.command",
    "Scratch": "agent_eval.supervise.scratch",
    "Slot": "agent_eval.supervise.slot",
    "build_environment": "agent_eval.supervise.environment",
    "Consumer": "agent_eval.trials.consumer",
    "Services": "agent_eval.trials.consumer",
    "TrialContext": "agent_eval.trials.consumer",
    "TrialResult": "agent_eval.trials.consumer",
    "TrialFolder": "agent_eval.evidence.writer",
}
"""Public name -> module. Rooms with many names are public as modules below."""

_ROOMS = {
    "credentials": "agent_eval.records.credentials",
    "clock": "agent_eval.records.clock",
    "digests": "agent_eval.records.digests",
    "identity": "agent_eval.trials.identity",
    "location": "agent_eval.evidence.location",
    "process_verdict": "agent_eval.grade.checker",
    "receipt": "agent_eval.records.receipt",
    "receipts": "agent_eval.grade.receipts",
    "relative_paths": "agent_eval.records.paths",
    "scenario_kinds": "agent_eval.grade.scenario_kinds_engine",
    "workspace": "agent_eval.supervise.workspace",
    "case": "agent_eval.records.case",
    "owner_check": "agent_eval.trials.owner_check",
    "plan": "agent_eval.records.plan",
    "strict_json": "agent_eval.records.strict_json",
}

__all__ = [*_PUBLIC, *_ROOMS]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        value: object = importlib.import_module(_ROOMS[name])
    elif name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # asked for once: consumers name these in every trial
    return value
