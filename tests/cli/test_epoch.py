"""``epoch`` on the command line: from open to close, exit codes and messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_eval.cli.main import main
from tests.gates.epoch_world import EpochWorld


@pytest.fixture
def world(tmp_path: Path) -> EpochWorld:
    return EpochWorld(tmp_path)


def test_an_epoch_from_open_to_close(world: EpochWorld, capsys: pytest.CaptureFixture[str]) -> None:
    def epoch(*arguments: str) -> tuple[int, dict]:
        code = main(["epoch", world.ledger, *arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    assert epoch("open", "--config", world.write(), "--actor", "owner")[0] == 0
    rows = [
        {"type": "utility", "candidate": name, "task": f"t{n}", "outcome": value, "deps": {"reviewer": world.criterion()}, "artifact_sha256": "a" * 64}
        for name, values in {"agent-a": (1, 0), "agent-b": (1, 1)}.items() for n, value in enumerate(values)
    ]
    assert epoch("checkpoint", "--actor", "pia")[0] == 2
    assert epoch("record", "--input", world.rows("u.jsonl", rows), "--actor", "pia")[1]["record"]["next_checkpoint"] == 4
    (world.folder / "c.json").write_text(json.dumps(world.challenger()))
    assert epoch("queue", "--challenger", str(world.folder / "c.json"), "--actor", "pia")[0] == 0
    for digest, mistakes in ((world.incumbent(), set(range(10))), (world.digest(), {0})):
        assert epoch("record", "--input", world.rows("a.jsonl", world.anchor_rows(digest, mistakes)), "--actor", "pia")[0] == 0
    assert epoch("rank")[1]["ranked"][0]["candidate"] == "agent-b"
    assert epoch("checkpoint", "--actor", "pia")[1]["state"] == "CHECKPOINT"
    assert epoch("decide", "--actor", "pia")[0] == 2
    code, decided = epoch("decide", "--actor", "alma")
    assert (code, decided["record"]["epoch"], decided["decision"]["evidence_level"]) == (0, 2, "established")
    assert epoch("rank")[1]["unscored"] == ["agent-a", "agent-b"]
    assert epoch("rank", "--epoch", "1")[1]["ranked"][0]["epoch_local"] is True
    assert epoch("verify")[1]["ok"] is True
    assert epoch("close", "--actor", "owner")[0] == 0
    assert main(["epoch", world.ledger, "status"]) == 0
    out = capsys.readouterr().out
    assert "state: CLOSED" in out and "tombstoned: 4" in out and "cannot exercise: answers in other languages" in out


@pytest.mark.parametrize(
    ("incumbent", "challenger", "absent", "code", "reason"),
    [(set(range(10)), {0}, set(), 0, "established"), ({0}, {1}, set(), 1, "tie"), ({0}, set(), set(), 1, "not_established"), (set(range(10)), {0}, {39}, 4, "challenger_unscored")],
)
def test_exit_codes_of_decide(world: EpochWorld, capsys: pytest.CaptureFixture[str], incumbent: set, challenger: set, absent: set, code: int, reason: str) -> None:
    world.at_checkpoint(incumbent, challenger, absent=absent)
    assert main(["epoch", world.ledger, "decide", "--actor", "alma"]) == code
    out = capsys.readouterr().out
    assert f"reason: {reason}" in out and out.rstrip().split("\n")[-1].startswith(f"exit: {code} ")


def test_a_decision_without_challengers_keeps(world: EpochWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.open().utilities({"agent-a": [1, 1, 1, 1]})
    assert main(["epoch", world.ledger, "checkpoint", "--actor", "pia"]) == 0
    assert main(["epoch", world.ledger, "decide", "--actor", "alma"]) == 1
    assert "no_challenger" in capsys.readouterr().out


def test_every_problem_at_once(world: EpochWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.config |= {"checkpoints": [8, 4], "scoring_rule": "likert", "budget": {"evaluations": True}, "extra": 1}
    assert main(["epoch", world.ledger, "open", "--config", world.write(), "--actor", "o"]) == 2
    assert capsys.readouterr().err.count("error: ") == 4
    assert not Path(world.ledger).exists()
