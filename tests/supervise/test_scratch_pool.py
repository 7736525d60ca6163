"""Scratch folders that are used again: never with anything of an earlier trial in them."""

from __future__ import annotations

import os
import stat

import pytest

from agent_eval.supervise.scratch_pool import ScratchPool


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ScratchPool() as pool:
        yield pool
    assert list(tmp_path.iterdir()) == []


def inode(path: str) -> int:
    return os.stat(path).st_ino


def used_again(pool: ScratchPool, spoil) -> bool:
    """Whether a folder that ``spoil`` was called with comes out of the pool a second time."""
    scratch = pool.take()
    keep = os.open(scratch.path, os.O_RDONLY)  # no new folder gets its inode meanwhile
    before = inode(scratch.path)
    spoil(scratch)
    pool.give_back(scratch)
    after = pool.take()
    os.close(keep)
    assert os.listdir(after.path) == []
    assert stat.S_IMODE(os.stat(after.path).st_mode) == 0o700
    same = inode(after.path) == before
    pool.give_back(after)
    return same


def test_an_untouched_folder_is_used_again_under_a_new_name(pool, tmp_path):
    scratch = pool.take()
    name, number = scratch.path, inode(scratch.path)
    pool.give_back(scratch)
    again = pool.take()
    assert inode(again.path) == number
    assert again.path != name
    assert os.listdir(tmp_path) == [os.path.basename(again.path)]
    pool.give_back(again)


def test_files_that_were_asked_for_are_deleted_and_do_not_hinder(pool):
    def write(scratch):
        with open(scratch.expect("owner-report.json"), "w") as stream:
            stream.write("{}")

    assert used_again(pool, write)
    assert used_again(pool, lambda scratch: scratch.expect("never-written"))


def leave(name: str):
    def spoil(scratch):
        with open(f"{scratch.path}/{name}", "w") as stream:
            stream.write("from the trial before")

    return spoil


def give_acl(scratch) -> None:
    try:
        os.setxattr(scratch.path, "user.note", b"x")
    except OSError:
        pytest.skip("skipped: no extended attributes here")


@pytest.mark.parametrize(
    "spoil",
    [
        leave("sitecustomize.py"),
        lambda scratch: scratch.subfolder("home"),
        lambda scratch: os.chmod(scratch.path, 0o777),
        lambda scratch: os.mkdir(scratch.expect("owner-report.json")),
        give_acl,
    ],
    ids=["file", "folder", "mode", "folder-as-report", "attribute"],
)
def test_a_folder_that_was_changed_is_not_used_again(pool, spoil):
    assert not used_again(pool, spoil)


def test_a_folder_with_survivors_is_not_used_again(pool):
    scratch = pool.take()
    path = scratch.path
    pool.give_back(scratch, all_ended=False)
    assert not os.path.exists(path)


def test_a_spare_folder_that_another_trial_put_something_into_is_not_handed_out(pool, tmp_path):
    first = pool.take()
    number = inode(first.path)
    keep = os.open(first.path, os.O_RDONLY)
    pool.give_back(first)
    (spare,) = tmp_path.iterdir()
    (spare / "owner-report.json").write_text('{"passed": true}')
    second = pool.take()
    os.close(keep)
    assert inode(second.path) != number
    assert os.listdir(second.path) == []
    assert [path.name for path in tmp_path.iterdir()] == [os.path.basename(second.path)]
    pool.give_back(second)


def test_a_spare_folder_replaced_by_a_link_is_not_handed_out_and_nothing_outside_is_touched(pool, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "owner-report.json").write_text("kept")
    first = pool.take()
    first.expect("owner-report.json")
    os.rmdir(first.path)
    os.symlink(outside, first.path)
    pool.give_back(first)
    assert (outside / "owner-report.json").read_text() == "kept"
    second = pool.take()
    assert not os.path.islink(second.path)
    pool.give_back(second)
    for path in tmp_path.iterdir():
        if path.is_symlink():
            path.unlink()


def test_a_spare_folder_that_was_taken_away_is_no_error(pool):
    first = pool.take()
    pool.give_back(first)
    os.rmdir(first.path)
    second = pool.take()
    assert os.listdir(second.path) == []
    pool.give_back(second)
