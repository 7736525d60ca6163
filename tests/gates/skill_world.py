"""A small world for the skill gate: a skill, its splits, a configuration, and records made to measure."""

from __future__ import annotations

import json
from pathlib import Path

from agent_eval.gates.skill import document, gate, promotion
from agent_eval.gates.skill.config import split_digest, tasks
from agent_eval.records.digests import sha256_bytes
from tests.gates.unsynced import FAST

SKILL = """---
name: tidy-tables
description: Formats tables. Use for markdown tables.
---
# Tidy tables

Align the columns.

<!-- safety -->
Never drop a row.
<!-- /safety -->

Put numbers to the right.
"""
CONDITIONS = {
    "evaluator": {"id": "table-checker", "sha256": "e" * 64}, "model": {"name": "m-1", "temperature": 0},
    "harness": {"sha256": "a" * 64}, "seeds": [1, 2], "budget": {"timeout_s": 60},
}
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge", "marsh", "north", "ocean", "plain", "quarry", "ridge", "shore", "tundra"]


def text_of(split: str, number: int) -> str:
    """A task text that shares no run of words with another."""
    one, other = WORDS[number % 20], WORDS[(number * 7 + len(split)) % 20]
    return f"{split} request {number}: please lay out the {one} and {other} figures of {split} sheet {number} neatly"


def task(split: str, number: int, skill: str = "tidy-tables", critical: bool = False) -> dict:
    return {"id": f"{split}-{number:02d}", "text": text_of(split, number), "skill": skill, "critical": critical}


class SkillWorld:
    """Everything under one folder; ``arms`` of a record are tables {task: passed}."""

    def __init__(self, folder: Path, *, own: int = 10, other: int = 4, repeats: int = 1, **changes: object) -> None:
        self.folder, self.repeats = folder, repeats
        self.skill = folder / "skill"
        self.skill.mkdir()
        self.live = self.skill / "SKILL.md"
        self.live.write_bytes(SKILL.replace("\n", "\r\n").encode())
        self.lineage = str(folder / "lineage")
        self.rows = {
            "train": [task("train", n) for n in range(3)],
            "select": [task("select", n) for n in range(own)] + [task("select", 50 + n, "none" if n % 2 else "write-prose") for n in range(other)],
            "test": [task("test", n) for n in range(6)],
        }
        self.config = {
            "format": "agent-eval/skill-lineage/1", "skill": "tidy-tables", "root": "skill", "files": ["SKILL.md"],
            "protected": [{"file": "SKILL.md", "from": "<!-- safety -->", "to": "<!-- /safety -->"}],
            "patch_budget": {"operations": 3, "changed_lines": 8, "changed_bytes": 400}, "frozen": CONDITIONS,
            "splits": {name: f"{name}.jsonl" for name in self.rows}, "plan": {"repeats": repeats},
            "rule": {"min_tasks": 6}, "canaries": ["zebra-canary-9"], "cannot_exercise": ["tables over 100 columns"], **changes,
        }
        self.runs = 0

    def write(self) -> str:
        for name, rows in self.rows.items():
            (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        path = self.folder / "config.json"
        path.write_text(json.dumps(self.config))
        return str(path)

    def init(self, **kwargs: object):
        return gate.init(self.lineage, self.write(), "owner", **{"files": FAST, **kwargs})

    def patch(self, **changes: object) -> dict:
        return {
            "format": "agent-eval/skill-patch/1", "base": {"SKILL.md": sha256_bytes(self.live.read_bytes())}, "author": "ada",
            "traces": [{"id": "run-1", "task": "train-00"}], "rationale": "columns drifted",
            "operations": [{"op": "replace", "file": "SKILL.md", "anchor": "Align the columns.", "text": "Align every column by its widest cell."}],
            **changes,
        }

    def propose(self, patch: dict | None = None, actor: str = "pia", **kwargs: object):
        return gate.propose(self.lineage, self.save("patch.json", patch or self.patch()), actor, **{"files": FAST, **kwargs})

    def save(self, name: str, value: object) -> str:
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)

    def record(self, kind: str, exposures: dict, candidate: dict, incumbent: dict, *, split: str = "select", **arms: dict) -> dict:
        """A complete record; a table lists the tasks that fail (all others pass)."""
        rows = self.rows[split]
        before, after = exposures["base_exposure"], exposures["candidate_exposure"]
        tables = {"incumbent": (before[kind], incumbent), "candidate": (after[kind], candidate)}
        if kind == "effectiveness":
            tables["control"] = (None, arms.get("control", incumbent))
            tables["negative"] = ("f" * 64, arms.get("negative", arms.get("control", incumbent)))
        return {
            "format": "agent-eval/skill-measurement/1", "measurement": kind, "split": split,
            "split_sha256": split_digest(tasks("".join(json.dumps(r) + "\n" for r in rows).encode(), "x")),
            "candidate_sha256": after["activation"],
            "arms": {name: self._arm(kind, rows, exposed, failing) for name, (exposed, failing) in tables.items()},
        }

    def _arm(self, kind: str, rows: list[dict], exposed: str | None, failing: dict) -> dict:
        self.runs += 1
        cells = []
        for row in rows:
            for repeat in range(1, self.repeats + 1):
                failed = row["id"] in failing
                cell: dict = {"task": row["id"], "repeat": repeat}
                if kind == "routing":
                    cell |= {"order_seed": repeat, "status": "ok", "chosen": "wrong-skill" if failed else row["skill"]}
                else:
                    cell["outcome"] = "fail" if failed else "pass"
                    if kind == "activation":
                        cell["activated"] = row["skill"] == "tidy-tables"
                cells.append(cell)
        return {"run_id": f"run-{self.runs}", "exposed_sha256": exposed, "conditions": CONDITIONS, "cells": cells}

    def measure(self, record: dict, **kwargs: object):
        return gate.measure(self.lineage, self.save("record.json", record), "pia", **{"files": FAST, **kwargs})

    def accepted(self, fixed: int = 8, **kwargs: object):
        """A lineage with one candidate that fixes ``fixed`` tasks; returns the decision's result."""
        self.init()
        proposed = self.propose(**kwargs).record
        failing = {f"select-{n:02d}" for n in range(fixed)}
        self.measure(self.record("effectiveness", proposed, set(), failing))
        self.measure(self.record("activation", proposed, set(), failing))
        return gate.decide(self.lineage, "acceptor", files=FAST)

    def reviewed(self, **kwargs: object):
        decided = self.accepted(**kwargs)
        return promotion.review(self.lineage, decided.record["decision_digest"], "rita", approve=True, files=FAST)


def exposures(base: bytes, candidate: bytes) -> dict:
    return {
        "base_exposure": document.exposure({"SKILL.md": base}, "SKILL.md").to_json(),
        "candidate_exposure": document.exposure({"SKILL.md": candidate}, "SKILL.md").to_json(),
    }
