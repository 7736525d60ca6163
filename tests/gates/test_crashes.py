"""SIGKILL at every write of init, promote, restore, rollback and transition: the next start is consistent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_eval.gates.audit import verify
from agent_eval.gates.epoch import gate as epoch
from agent_eval.gates.files import Files
from agent_eval.gates.guardrail import gate as guardrail
from agent_eval.gates.skill import gate as skill
from agent_eval.gates.skill import promotion
from tests.gates.epoch_world import EpochWorld
from tests.gates.guardrail_world import POLICY, Behaviour, GuardrailWorld
from tests.gates.skill_world import SkillWorld
from tests.gates.stopping import FailingFiles, StoppingFiles, killed_at
from tests.gates.unsynced import FAST


def every_crash(folder: Path, work: Callable[[Files], object], after: Callable[[str], None]) -> int:
    """Kill ``work`` at each of its writes on the same starting point; ``after`` checks and may mend. Returns the writes.

    After one write is before the next, so that "after" is tried for the last alone.
    """
    backup = folder.parent / f"{folder.name}-backup"
    shutil.copytree(folder, backup, symlinks=True)
    counted = StoppingFiles()
    work(counted)
    for index in range(counted.count):
        name = counted.names[index]
        for place in ("before", *(["within"] if name.startswith(("create", "append")) else []), *(["after"] if index == counted.count - 1 else [])):
            shutil.rmtree(folder)
            shutil.copytree(backup, folder, symlinks=True)
            assert killed_at(work, index, place)
            after(f"{place} {index} {name}")
    return counted.count


def test_promote_of_a_skill(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    world = SkillWorld(tmp_path / "w")
    before = world.live.read_bytes()
    world.reviewed()
    candidate = before.replace(b"Align the columns.", b"Align every column by its widest cell.")

    def after(where: str) -> None:
        assert world.live.read_bytes() in (before, candidate), where
        result = promotion.promote(world.lineage, "owner", files=FAST)
        if result.decision is None:
            assert result.state == "promoted", where
        else:  # the crash came after the announcement: the next start has finished it
            assert result.decision.codes == ("wrong_state",), where
        assert world.live.read_bytes() == candidate, where
        assert verify(world.lineage, "skill").ok, where

    assert every_crash(tmp_path / "w", lambda files: promotion.promote(world.lineage, "owner", files=files), after) >= 11


def test_rollback_of_a_skill(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    world = SkillWorld(tmp_path / "w")
    before = world.live.read_bytes()
    world.reviewed()
    promotion.promote(world.lineage, "owner", files=FAST)
    promoted = world.live.read_bytes()

    def after(where: str) -> None:
        assert world.live.read_bytes() in (before, promoted), where
        promotion.rollback(world.lineage, "owner", restore=True, files=FAST)  # any writing command finishes what was announced
        assert world.live.read_bytes() in (before, promoted), where
        assert verify(world.lineage, "skill").ok, where

    assert every_crash(tmp_path / "w", lambda files: promotion.rollback(world.lineage, "owner", files=files), after) >= 11


def test_restore_of_an_overwritten_policy(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    world = GuardrailWorld(tmp_path / "w").open()
    world.policy.write_bytes(b"by hand")
    kept = Path(world.lineage, "blobs", "sha256")

    def after(where: str) -> None:
        guardrail.rollback(world.lineage, "owner", restore=True, files=FAST)
        assert world.policy.read_bytes() == POLICY.encode(), where
        assert any(path.read_bytes() == b"by hand" for path in kept.iterdir()), where
        assert verify(world.lineage, "guardrail").ok, where

    assert every_crash(tmp_path / "w", lambda files: guardrail.rollback(world.lineage, "owner", restore=True, files=files), after) >= 11


@pytest.mark.parametrize("better", [True, False])
def test_a_candidate_accepted_or_restored(tmp_path: Path, better: bool) -> None:
    (tmp_path / "w").mkdir()
    world = GuardrailWorld(tmp_path / "w", attacks=8, benigns=20, rule={"floor_margin": 0.3}).open()
    candidate = b"Stop harm.\r\n"
    behaviour = Behaviour(set(world.attacks[: 1 if better else 8]))

    def after(where: str) -> None:
        assert world.policy.read_bytes() in (POLICY.encode(), candidate), where
        result = world.candidate(b"Stop other harm.\n", Behaviour(set(world.attacks)))
        assert result.state == "rejected", where
        entries = verify(world.lineage, "guardrail")
        assert entries.ok, where
        assert world.policy.read_bytes() in (POLICY.encode(), candidate) if better else world.policy.read_bytes() == POLICY.encode(), where

    writes = every_crash(tmp_path / "w", lambda files: world.candidate(candidate, behaviour, files=files), after)
    assert writes >= 30


def test_a_full_disk_at_any_write_of_a_candidate(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    world = GuardrailWorld(tmp_path / "w", attacks=8, benigns=20, rule={"floor_margin": 0.3}).open()
    shutil.copytree(tmp_path / "w", tmp_path / "backup")
    behaviour = Behaviour(set(world.attacks[:1]))
    for index in range(200):
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(tmp_path / "backup", tmp_path / "w")
        failing = FailingFiles(index)
        try:
            world.candidate(b"Stop harm.\n", behaviour, files=failing)
        except OSError:
            pass
        if failing.count <= index:
            break
        assert world.policy.read_bytes() in (POLICY.encode(), b"Stop harm.\n"), index
        world.candidate(b"Stop other harm.\n", Behaviour(set(world.attacks)))
        found = verify(world.lineage, "guardrail")
        assert found.ok, (index, [str(problem) for problem in found.problems])
    assert 20 < index < 199


def test_a_transition(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    world = EpochWorld(tmp_path / "w").at_checkpoint(set(range(10)), {0})

    def after(where: str) -> None:
        result = epoch.decide(world.ledger, "alma", files=FAST)
        state = world.state()
        if result.decision.codes == ("no_checkpoint",):  # the decision was written: it was finished just now
            assert state.epoch == 2, where
        assert (state.epoch, len(state.criteria), state.criteria["reviewer"]["revision"], len(state.tombstoned)) == (2, 1, 2, 4), where
        assert verify(world.ledger, "epoch").ok, where

    assert every_crash(tmp_path / "w", lambda files: epoch.decide(world.ledger, "alma", files=files), after) >= 24


@pytest.mark.parametrize("contract", ["skill", "guardrail", "epoch"])
def test_an_opening(tmp_path: Path, contract: str) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    world = {"skill": SkillWorld, "guardrail": GuardrailWorld, "epoch": EpochWorld}[contract](folder)
    path = world.write()
    target = world.ledger if contract == "epoch" else world.lineage
    opening = {"skill": skill.init, "guardrail": guardrail.init, "epoch": epoch.open_ledger}[contract]

    def after(where: str) -> None:
        if not opened(target):
            opening(target, path, "owner", files=FAST)  # the same command completes it
        if contract == "epoch":
            world.queue()
        assert verify(target, contract).ok, where

    assert every_crash(folder, lambda files: opening(target, path, "owner", files=files), after) >= 10


def opened(target: str) -> bool:
    """Whether the opening entry is there (a crash after it leaves a lineage that is open)."""
    ledger = Path(target, "ledger.jsonl")
    return ledger.is_file() and b"\n" in ledger.read_bytes()
