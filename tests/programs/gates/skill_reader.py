"""A scripted reader that measures a skill's text: does what is exposed say what a task needs?

It is no model: it passes a task when the exposed bytes hold every needed phrase of `answers.json`, and a task without
needed phrases always. It writes the two records that a body edit needs. Usage:

    python3 skill_reader.py STATUS.json PROPOSAL ANSWERS.json SPLIT.jsonl INCUMBENT.md CANDIDATE.md OUT_FOLDER
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

UNRELATED = b"# Lay out tables\n\nAlign the columns and put numbers to the right.\n"


def body_of(document: bytes) -> bytes:
    """What follows the front matter."""
    return document.split(b"\n---\n", 1)[1] if document.startswith(b"---\n") else document


def passes(exposed: bytes, needed: list[str]) -> bool:
    """Whether every phrase stands in the text, whatever the line breaks."""
    plain = " ".join(exposed.decode("utf-8").split())
    return all(phrase in plain for phrase in needed)


def record(kind: str, status: dict, proposal: dict, tasks: list[dict], answers: dict, texts: dict[str, bytes | None]) -> dict:
    """One measurement record over the tasks."""
    exposed = {
        "incumbent": proposal["base_exposure"][kind], "candidate": proposal["candidate_exposure"][kind], "control": None,
        "negative": hashlib.sha256(UNRELATED).hexdigest(),
    }
    arms = {}
    for name, text in texts.items():
        cells = []
        for task in tasks:
            cell = {"task": task["id"], "repeat": 1, "outcome": "pass" if passes(text or b"", answers.get(task["id"], [])) else "fail"}
            if kind == "activation":
                cell["activated"] = task["skill"] == status["skill"]
            cells.append(cell)
        arms[name] = {
            "run_id": f"{kind}-{proposal['proposal']}-{name}", "exposed_sha256": exposed[name], "conditions": status["conditions"], "cells": cells,
        }
    return {
        "format": "agent-eval/skill-measurement/1", "measurement": kind, "split": "select", "split_sha256": status["splits"]["select"]["sha256"],
        "candidate_sha256": proposal["candidate_exposure"]["activation"], "arms": arms,
    }


def main(arguments: list[str]) -> None:
    """Write both records of a proposal."""
    status_path, number, answers_path, split_path, incumbent, candidate, out = arguments
    status, answers = json.loads(Path(status_path).read_bytes()), json.loads(Path(answers_path).read_bytes())
    proposal = next(row for row in status["proposals"] if row["proposal"] == int(number))
    tasks = [json.loads(line) for line in Path(split_path).read_text(encoding="utf-8").splitlines()]
    before, after = body_of(Path(incumbent).read_bytes()), body_of(Path(candidate).read_bytes())
    arms = {"incumbent": before, "candidate": after}
    for kind, texts in (("effectiveness", {**arms, "control": None, "negative": UNRELATED}), ("activation", arms)):
        value = record(kind, status, proposal, tasks, answers, texts)
        Path(out, f"{kind}-{number}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
