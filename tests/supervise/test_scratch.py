"""Scratch folders: private, measured, and gone whatever a program left in them."""

from __future__ import annotations

import os
import socket
import stat

import pytest

from agent_eval.supervise.scratch import Scratch


def test_a_scratch_folder_is_new_and_private(tmp_path):
    with Scratch(str(tmp_path)) as one, Scratch(str(tmp_path)) as two:
        assert one.path != two.path
        for path in (one.path, one.subfolder("home")):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        with pytest.raises(FileExistsError):
            one.subfolder("home")
    assert list(tmp_path.iterdir()) == []


def test_it_lies_where_tmpdir_says(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Scratch() as scratch:
        assert os.path.dirname(scratch.path) == str(tmp_path)


def test_usage_counts_entries_and_bytes_but_not_our_own_folders(tmp_path):
    with Scratch(str(tmp_path)) as scratch:
        home = scratch.subfolder("home")
        assert scratch.usage() == (0, 0)
        os.mkdir(home + "/a")
        for name in ("a/b", "c"):
            with open(f"{home}/{name}", "w") as file:
                file.write("12345")
        assert scratch.usage() == (3, 10)
        removal = scratch.remove()
        assert (removal.entries, removal.size_bytes, removal.left) == (3, 10, 0)
        assert scratch.remove().entries == 0
    assert list(tmp_path.iterdir()) == []


def test_everything_hostile_goes_and_nothing_else(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    base = tmp_path / "base"
    base.mkdir()
    scratch = Scratch(str(base))
    home = scratch.subfolder("home")
    os.symlink(outside, home + "/link")
    os.symlink(outside / "kept", scratch.path + "/link")
    os.link(outside / "kept", home + "/hard")
    os.mkfifo(home + "/fifo")
    os.makedirs(home + "/locked/inner/deepest")
    os.makedirs(scratch.path + "/" + os.fsdecode(b"\xff\xfe"))
    for path in ("/locked/inner/deepest", "/locked/inner", "/locked"):
        os.chmod(home + path, 0)
    os.chmod(home, 0)
    os.chmod(scratch.path, 0)
    assert scratch.remove().left == 0
    assert list(base.iterdir()) == []
    assert (outside / "kept").read_text() == "kept"
    assert stat.S_IMODE(outside.stat().st_mode) & 0o700 == 0o700


def test_depth_costs_neither_paths_nor_descriptors(tmp_path):
    scratch = Scratch(str(tmp_path))
    folder = os.open(scratch.path, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d" * 40, dir_fd=folder)
        inner = os.open("d" * 40, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    removal = scratch.remove()
    assert (removal.entries, removal.left) == (600, 0)
    assert not os.path.exists(scratch.path)


def test_a_folder_made_away_with_is_no_error(tmp_path):
    scratch = Scratch(str(tmp_path))
    home = scratch.subfolder("home")
    os.rmdir(home)
    with open(scratch.path + "/file", "w") as file:
        file.write("x")
    assert scratch.remove().entries == 1
    gone = Scratch(str(tmp_path))
    os.rename(gone.path, tmp_path / "elsewhere")
    assert gone.remove().left == 0


def test_a_link_put_in_its_place_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    scratch = Scratch(str(tmp_path))
    os.rmdir(scratch.path)
    os.symlink(outside, scratch.path)
    assert scratch.remove().left == 1
    assert (outside / "kept").read_text() == "kept"


def test_a_socket_goes_too(tmp_path, monkeypatch):
    scratch = Scratch(str(tmp_path))
    monkeypatch.chdir(scratch.path)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door")
    assert scratch.remove().left == 0
