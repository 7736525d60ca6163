"""Arms on the identical grid, interleaved case by case, and their evidence in the ledger.

Owns the order of cells, keeping every captured byte as a blob, and the record of an arm. It does not judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from agent_eval.gates.guardrail.bench import Bench, Cell, CellEvidence
from agent_eval.gates.guardrail.config import resolved
from agent_eval.gates.guardrail.suite import Case
from agent_eval.gates.ledger import Entry
from agent_eval.gates.lineage import Lineage
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes


@dataclass(slots=True)
class ArmRun:
    """One arm as it was run, in order."""

    policy_sha256: str
    cells: list[Cell] = field(default_factory=list)
    evidence: list[CellEvidence] = field(default_factory=list)


def run_arms(
    lineage: Lineage, policies: Mapping[str, bytes], cases: Sequence[Case], bench: Callable[[Mapping, str], Bench]
) -> dict[str, ArmRun]:
    """Every arm on every (case, repeat), the arms side by side, so that a drifting service meets all of them alike."""
    runs = {name: ArmRun(sha256_bytes(policy)) for name, policy in policies.items()}
    planned = lineage.config["repeats"] * len(cases) * len(policies)
    commands = resolved(lineage.config, lineage.opened.body["frozen_files"], lineage.directory)
    station = bench({**commands, "planned_cells": planned}, f"{lineage.opened.body['lineage']}-{len(lineage.entries)}")
    try:
        for repeat in range(1, lineage.config["repeats"] + 1):
            for case in cases:
                for name, policy in policies.items():
                    cell, evidence = station.run(policy, case, repeat)
                    runs[name].cells.append(cell)
                    runs[name].evidence.append(evidence)
    finally:
        station.close()
    return runs


def record_arm(lineage: Lineage, name: str, run: ArmRun, of: str) -> Entry:
    """Keep the arm: raw bytes as blobs, cells with outcomes and pointers to them as one blob, and the list of both."""
    cells, kept = [], set()
    for cell, evidence in zip(run.cells, run.evidence):
        captured = {}
        for part, data in sorted(evidence.captured.items()):
            captured[part] = lineage.ledger.blobs.put(data, sync_name=False)
            kept.add(captured[part])
        cells.append({**cell.to_json(), "outcomes": evidence.outcomes, "captured": captured})
    blobs = {
        "cells": lineage.ledger.blobs.put(strict_json.canonical(cells)),
        "captured": lineage.ledger.blobs.put(strict_json.canonical(sorted(kept))),
    }
    lineage.ledger.blobs.sync_names()
    body = {
        "arm": name,
        "of": of,
        "policy_sha256": run.policy_sha256,
        "manifest_sha256": lineage.opened.body["manifest_sha256"],
        "cells": len(cells),
        "blobs": blobs,
        "blob_lists": ["captured"],
    }
    return lineage.ledger.append("arm_recorded", "agent-eval", body)


def read_cells(lineage: Lineage, entry: Entry) -> list[Cell]:
    """The cells of a recorded arm."""
    return [Cell.from_json(value) for value in cast("list", strict_json.parse(lineage.blob(entry, "cells")))]
