"""The worked examples under ``evals/lineages``: running their steps, and building them again.

``python3 -m tests.gates.lineage_examples GATE`` builds the ledger of one example in place from its inputs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from agent_eval.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
LINEAGES = ROOT / "evals" / "lineages"
READER = ROOT / "tests" / "programs" / "gates" / "skill_reader.py"


def run_steps(folder: Path) -> list[dict]:
    """Run the example's ``steps.json`` in ``folder``; returns what each step printed. The exit codes must be those stated."""
    printed: list[dict] = []
    place = os.getcwd()
    os.chdir(folder)
    try:
        for step in json.loads(Path("steps.json").read_text()):
            values = {"{decision}": next((p["record"]["decision_digest"] for p in reversed(printed) if "decision_digest" in p.get("record", {})), "")}
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main([*(values.get(word, word) for word in step["argv"]), "--json"])
            assert code == step["exit"], f"{step['argv']}: exit {code}, expected {step['exit']}\n{out.getvalue()}{err.getvalue()}"
            printed.append(json.loads(out.getvalue()))
    finally:
        os.chdir(place)
    return printed


def history(lineage: Path) -> list[tuple]:
    """What happened, without times, digests that depend on them, and machine facts."""
    rows = []
    for line in (lineage / "ledger.jsonl").read_text().splitlines():
        entry = json.loads(line)
        body = entry["body"]
        verdicts = body.get("verdicts", [body])
        rows.append((entry["kind"], entry["actor"], [(v.get("decision") if v is not body or "reasons" in v else None, v.get("evidence_level"), [r["code"] for r in v.get("reasons", [])], v.get("test")) for v in verdicts]))
    return rows


def copy_inputs(gate: str, target: Path) -> Path:
    """The example's inputs at their starting state, laid out as in the repository; returns the example's folder."""
    for part in (Path("evals") / "lineages" / gate, Path("tests") / "programs" / "gates"):
        shutil.copytree(ROOT / part, target / part, ignore=shutil.ignore_patterns("lineage", "__pycache__"))
    folder = target / "evals" / "lineages" / gate
    if gate == "guardrail":
        write(folder / "policy.md", (folder / "policy-0.md").read_bytes())
    if gate == "skill":
        write(target / "evals" / "agent-self-improvement" / "SKILL.md", live_bytes(gate, first=True)["SKILL.md"][0])
    return folder


def live_bytes(gate: str, *, first: bool = False) -> dict[str, tuple[bytes, int]]:
    """Bytes and modes of the live files that the shipped ledger records: at its opening, or now."""
    lineage = LINEAGES / gate / "lineage"
    states = {}
    for line in (lineage / "ledger.jsonl").read_text().splitlines():
        body = json.loads(line)["body"]
        states |= {item["path"]: item for item in body.get("live", [])}
        if not first:
            states |= {item["path"]: item["to"] for item in body.get("apply", {}).get("files", [])}
    return {path: ((lineage / "blobs" / "sha256" / state["sha256"]).read_bytes(), int(state["mode"], 8)) for path, state in states.items()}


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """A file with exactly these bytes and this mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def measure_skill(folder: Path, status: Path, number: int, candidate: Path) -> None:
    """Run the scripted reader on one proposal."""
    live = folder.parent.parent / "agent-self-improvement" / "SKILL.md"
    command = [sys.executable, str(READER), str(status), str(number), "answers.json", "select.jsonl", str(live), str(candidate), str(folder)]
    subprocess.run(command, cwd=folder, check=True, timeout=60)


if __name__ == "__main__":
    example = LINEAGES / sys.argv[1]
    shutil.rmtree(example / "lineage", ignore_errors=True)
    if sys.argv[1] == "guardrail":
        write(example / "policy.md", (example / "policy-0.md").read_bytes())
    for result in run_steps(example):
        print(result.get("action", "read"), result.get("state", ""))
