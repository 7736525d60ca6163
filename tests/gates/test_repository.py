"""``--git``: one commit each for promotion and rollback, of the declared files alone; a dirty path is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_eval.gates import lineage as lineages
from agent_eval.gates.audit import verify
from agent_eval.gates.skill import promotion
from agent_eval.records.problems import EvidenceFault, InvalidInput
from tests.gates.skill_world import SkillWorld
from tests.gates.stopping import StoppingFiles, killed_at
from tests.gates.unsynced import FAST

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="skipped: git is not there")
IDENTITY = ["-c", "user.name=Owner", "-c", "user.email=owner@example.org", "-c", "commit.gpgsign=false"]


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Owner")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "owner@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.fixture
def world(tmp_path: Path) -> SkillWorld:
    made = SkillWorld(tmp_path)
    git(made.skill, "init", "-q")
    (made.skill / "other.txt").write_text("tracked\n")
    git(made.skill, "add", ".")
    git(made.skill, "commit", "-q", "-m", "start")
    made.reviewed()
    return made


def test_promotion_and_rollback_make_one_commit_each(world: SkillWorld) -> None:
    original = world.live.read_bytes()
    (world.skill / "other.txt").write_text("somebody's unfinished work\n")
    (world.skill / "new.txt").write_text("staged by somebody\n")
    git(world.skill, "add", "new.txt")
    promotion.promote(world.lineage, "owner", git=True, files=FAST)
    assert git(world.skill, "show", "--name-only", "--format=%s").split("\n")[0] == "Promote proposal 1 of skill tidy-tables"
    assert git(world.skill, "show", "--name-only", "--format=").split() == ["SKILL.md"]
    promotion.rollback(world.lineage, "owner", git=True, files=FAST)
    assert git(world.skill, "show", "--name-only", "--format=").split() == ["SKILL.md"]
    assert git(world.skill, "rev-list", "--count", "HEAD").strip() == "3"
    assert world.live.read_bytes() == original
    assert git(world.skill, "status", "--porcelain").split("\n")[:2] == ["A  new.txt", " M other.txt"]
    commits = [entry.body["commit"] for entry in lineages.open_for_reading(world.lineage, "skill").of_kind("committed")]
    assert commits == git(world.skill, "log", "-2", "--reverse", "--format=%H").split()


def test_a_dirty_path_is_refused_before_anything_changes(world: SkillWorld) -> None:
    git(world.skill, "rm", "-q", "--cached", "SKILL.md")
    before = len(lineages.open_for_reading(world.lineage, "skill").entries)
    with pytest.raises(InvalidInput, match=r"SKILL\.md"):
        promotion.promote(world.lineage, "owner", git=True, files=FAST)
    assert len(lineages.open_for_reading(world.lineage, "skill").entries) == before


def test_without_a_repository_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    made = SkillWorld(tmp_path)
    made.reviewed()
    with pytest.raises(InvalidInput, match="git"):
        promotion.promote(made.lineage, "owner", git=True, files=FAST)


def test_nothing_is_committed_without_being_asked(world: SkillWorld) -> None:
    promotion.promote(world.lineage, "owner", files=FAST)
    assert git(world.skill, "rev-list", "--count", "HEAD").strip() == "1"


def test_a_commit_that_a_crash_came_between_is_made_at_the_next_start(world: SkillWorld) -> None:
    counted = StoppingFiles()
    backup = world.folder.parent / f"{world.folder.name}-copy"
    shutil.copytree(world.folder, backup, symlinks=True)
    promotion.promote(world.lineage, "owner", git=True, files=counted)
    shutil.rmtree(world.folder)
    shutil.move(str(backup), str(world.folder))
    last_append = max(index for index, name in enumerate(counted.names) if name == "append")
    assert killed_at(lambda files: promotion.promote(world.lineage, "owner", git=True, files=files), last_append, "before")
    promotion.rollback(world.lineage, "owner", restore=True, files=FAST)
    assert git(world.skill, "rev-list", "--count", "HEAD").strip() == "2"
    assert verify(world.lineage, "skill").ok


def test_a_commit_that_git_refuses_is_said_and_does_not_block_what_follows(world: SkillWorld) -> None:
    hook = world.skill / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(EvidenceFault, match=r"the files are live, and the commit was refused: .*not today"):
        promotion.promote(world.lineage, "owner", git=True, files=FAST)
    assert b"by its widest cell" in world.live.read_bytes() and verify(world.lineage, "skill").ok
    promotion.rollback(world.lineage, "owner", files=FAST)
    assert git(world.skill, "status", "--porcelain") == "" and git(world.skill, "rev-list", "--count", "HEAD").strip() == "1"
