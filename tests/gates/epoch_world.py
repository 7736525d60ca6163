"""A small world for the epochs: two slots, an anchor, challengers with told mistakes."""

from __future__ import annotations

import json
from pathlib import Path

from agent_eval.gates.epoch import gate
from agent_eval.records.digests import sha256_bytes
from tests.gates.unsynced import FAST

NOUNS = ["letter", "ledger", "harbour", "lantern", "orchard", "compass", "anvil", "quilt", "saddle", "beacon"]


def item(number: int, **changes: object) -> dict:
    label = number % 2
    return {"id": f"item-{number:03d}", "text": f"answer {number} on the {NOUNS[number % 10]} that a person marked", "label": label, "labelled_by": "panel of three", **changes}


class EpochWorld:
    """Everything under one folder. An evaluator's mistakes are a set of item numbers."""

    def __init__(self, folder: Path, *, items: int = 40, slots: tuple[str, ...] = ("reviewer",), rule: dict | None = None, **changes: object) -> None:
        self.folder, self.ledger = folder, str(folder / "ledger")
        self.items = [item(n) for n in range(items)]
        (folder / "protocol.md").write_text("how artifacts are made\n")
        (folder / "split.json").write_text('["task-1"]\n')
        for slot in slots:
            (folder / f"{slot}-1.md").write_text(f"first rubric of {slot}\n")
        self.config = {
            "format": "agent-eval/epoch/1", "name": "demo",
            "slots": {slot: {"evaluator": {"id": slot, "revision": 1, "file": f"{slot}-1.md"}, "protocol": "protocol.md"} for slot in slots},
            "scoring_rule": "binary", "anchor": {"id": "anchor", "revision": 1, "file": "anchor.jsonl"}, "split": "split.json",
            "budget": {"evaluations": 64}, "checkpoints": [4, 8, 16, 32], "proposer": {"name": "pia"}, "acceptor": {"name": "alma"},
            "rule": rule or {}, "cannot_exercise": ["answers in other languages"], **changes,
        }

    def write(self) -> str:
        (self.folder / "anchor.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.items))
        path = self.folder / "config.json"
        path.write_text(json.dumps(self.config))
        return str(path)

    def open(self, **kwargs: object) -> EpochWorld:
        gate.open_ledger(self.ledger, self.write(), "owner", **{"files": FAST, **kwargs})
        return self

    def criterion(self, slot: str = "reviewer") -> str:
        return self.state().criteria[slot]["criterion_sha256"]

    def state(self):
        from agent_eval.gates.epoch.state import fold
        from agent_eval.gates.lineage import open_for_reading

        return fold(open_for_reading(self.ledger, "epoch").entries)

    def rows(self, name: str, rows: list[dict]) -> str:
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    def utilities(self, outcomes: dict[str, list[int]], slots: tuple[str, ...] = ("reviewer",), start: int = 0, **changes: object):
        deps = {slot: self.criterion(slot) for slot in slots}
        rows = [
            {"type": "utility", "candidate": name, "task": f"task-{start + n}", "outcome": value, "deps": deps, "artifact_sha256": "a" * 64, **changes}
            for name, values in outcomes.items() for n, value in enumerate(values)
        ]
        return gate.record(self.ledger, self.rows("utilities.jsonl", rows), "pia", files=FAST)

    def anchor_rows(self, evaluator_sha256: str, mistakes: set[int], *, missing: set[int] = frozenset(), absent: set[int] = frozenset(), repeats: int = 1) -> list[dict]:
        protocol = sha256_bytes((self.folder / "protocol.md").read_bytes())
        return [
            {"type": "anchor_outcome", "evaluator_sha256": evaluator_sha256, "item": row["id"], "repeat": repeat, "protocol_sha256": protocol,
             "outcome": None if n in missing else (1 - row["label"] if n in mistakes else row["label"])}
            for n, row in enumerate(self.items) if n not in absent for repeat in range(1, repeats + 1)
        ]

    def score(self, evaluator_sha256: str, mistakes: set[int], **kwargs: object):
        return gate.record(self.ledger, self.rows("anchor-outcomes.jsonl", self.anchor_rows(evaluator_sha256, mistakes, **kwargs)), "pia", files=FAST)

    def incumbent(self, slot: str = "reviewer") -> str:
        return self.state().criteria[slot]["evaluator_sha256"]

    def challenger(self, name: str = "reviewer", revision: int = 2, text: str | None = None, slot: str = "reviewer", **changes: object) -> dict:
        file = f"{name}-{revision}.md"
        (self.folder / file).write_text(text or f"rubric {revision} of {name}\n")
        return {
            "format": "agent-eval/challenger/1", "slot": slot, "evaluator": {"id": name, "revision": revision, "file": file}, "author": "ada",
            "origin": {"kind": "real_failure", "evidence": ["run 7, trial 3"]}, "changes": ["evaluator"], **changes,
        }

    def queue(self, challenger: dict | None = None, actor: str = "pia"):
        path = self.folder / "challenger.json"
        path.write_text(json.dumps(challenger or self.challenger()))
        return gate.queue(self.ledger, str(path), actor, files=FAST)

    def digest(self, name: str = "reviewer", revision: int = 2) -> str:
        return sha256_bytes((self.folder / f"{name}-{revision}.md").read_bytes())

    def at_checkpoint(self, incumbent: set[int], challenger: set[int], **kwargs: object) -> EpochWorld:
        """Open, four utility records, incumbent and one challenger scored, checkpoint declared."""
        self.open()
        self.utilities({"agent-a": [1, 1], "agent-b": [0, 1]})
        self.queue(kwargs.pop("queued", None))
        self.score(self.incumbent(), incumbent)
        self.score(self.digest(), challenger, **kwargs)
        gate.checkpoint(self.ledger, "pia", files=FAST)
        return self

    def decide(self, actor: str = "alma"):
        return gate.decide(self.ledger, actor, files=FAST)
