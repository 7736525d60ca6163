"""The worked examples: each shipped lineage holds, every decision in it follows again, and its steps give the same history."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent_eval.gates import lineage as lineages
from agent_eval.gates.audit import verify
from agent_eval.gates.skill import promotion
from tests.gates import lineage_examples as examples

GATES = ("skill", "guardrail", "epoch")
MACHINE_PATHS = (b"/" + b"work/", b"/" + b"root/", b"/" + b"home/")


def shipped(gate: str, target: Path) -> Path:
    """A copy of the repository's part with the live files as the ledger left them (a checkout may give other modes)."""
    for part in (Path("evals") / "lineages" / gate, Path("tests") / "programs" / "gates"):
        shutil.copytree(examples.ROOT / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
    folder = target / "evals" / "lineages" / gate
    place = target / "evals" / "agent-self-improvement" if gate == "skill" else folder
    for path, (data, mode) in examples.live_bytes(gate).items():
        examples.write(place / path, data, mode)
    return folder


@pytest.mark.parametrize("gate", GATES)
def test_the_shipped_lineage_holds_and_its_decisions_follow_again(tmp_path: Path, gate: str) -> None:
    found = verify(str(shipped(gate, tmp_path) / "lineage"), gate)
    assert found.ok, [str(problem) for problem in found.problems]
    assert found.decisions >= 2 and found.notes == ()


@pytest.mark.parametrize("gate", GATES)
def test_the_steps_give_the_same_history(tmp_path: Path, gate: str) -> None:
    folder = examples.copy_inputs(gate, tmp_path)
    examples.run_steps(folder)
    assert examples.history(folder / "lineage") == examples.history(examples.LINEAGES / gate / "lineage")


@pytest.mark.parametrize("gate", GATES)
def test_a_shipped_lineage_names_no_path_of_the_machine_that_made_it(gate: str) -> None:
    for path in sorted((examples.LINEAGES / gate).rglob("*")):
        if path.is_file():
            assert not any(name in path.read_bytes() for name in MACHINE_PATHS), path


def test_the_skill_records_are_what_the_scripted_reader_measures(tmp_path: Path) -> None:
    folder = examples.copy_inputs("skill", tmp_path)
    steps = json.loads((folder / "steps.json").read_text())
    (folder / "steps.json").write_text(json.dumps([step for step in steps if "init" in step["argv"] or "propose" in step["argv"]]))
    records = {path.name: path.read_bytes() for path in folder.glob("*-[12].json") if not path.name.startswith("patch")}
    examples.run_steps(folder)
    lineage = lineages.open_for_reading(str(folder / "lineage"), "skill")
    (folder / "status.json").write_text(json.dumps(promotion.status(lineage)))
    for number, proposed in enumerate(lineage.of_kind("proposed"), 1):
        (folder / "candidate.md").write_bytes(lineage.blob(proposed, "candidate:SKILL.md"))
        examples.measure_skill(folder, folder / "status.json", number, folder / "candidate.md")
    assert len(records) == 4
    for name, data in records.items():
        assert json.loads((folder / name).read_bytes()) == json.loads(data), name


def test_what_the_gate_promoted_is_in_the_skill_of_this_project() -> None:
    patch = json.loads((examples.LINEAGES / "skill" / "patch-2.json").read_bytes())
    live = (examples.ROOT / "evals" / "agent-self-improvement" / "SKILL.md").read_bytes()
    assert all(operation["text"].encode() in live for operation in patch["operations"])
