"""The bounded walk of a folder that somebody else worked in."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from agent_eval.records import strict_json
from agent_eval.supervise.workspace import Snapshot, capture, difference, snapshot


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _changes(before: Snapshot, after: Snapshot) -> dict[bytes, tuple[str, tuple[str, ...]]]:
    return {change.path: (change.kind, change.what) for change in difference(before, after)}


def _make_tree(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "one.txt").write_bytes(b"one\n")
    (root / "a" / "b" / "two.bin").write_bytes(b"\x00\xff")
    (root / "top").write_bytes(b"")


def test_entries_are_sorted_and_survive_json(tmp_path: Path) -> None:
    _make_tree(tmp_path)
    taken = snapshot(str(tmp_path))
    assert [entry.path for entry in taken.entries] == [b".", b"a", b"a/b", b"a/b/two.bin", b"a/one.txt", b"top"]
    assert taken.by_path()[b"a/one.txt"].sha256 == _digest(b"one\n")
    assert taken.hashed_bytes == 6
    again = Snapshot.from_json(strict_json.parse_object(strict_json.pretty(taken.to_json())))
    assert again == taken
    assert difference(taken, again) == ()


def test_every_kind_of_change_is_named(tmp_path: Path) -> None:
    _make_tree(tmp_path)
    for name in ("content", "mode", "gone", "retype"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "link").symlink_to("top")
    before = snapshot(str(tmp_path))
    (tmp_path / "content").write_bytes(b"CONTENT")
    (tmp_path / "mode").chmod(0o600)
    (tmp_path / "gone").unlink()
    (tmp_path / "retype").unlink()
    (tmp_path / "retype").mkdir()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.link(tmp_path / "top", tmp_path / "hard")
    os.mkfifo(tmp_path / "fifo")
    assert _changes(before, snapshot(str(tmp_path))) == {
        b"content": ("changed", ("content",)),
        b"fifo": ("added", ()),
        b"gone": ("removed", ()),
        b"hard": ("added", ()),
        b"link": ("changed", ("target",)),
        b"mode": ("changed", ("mode",)),
        b"retype": ("changed", ("type",)),
        b"top": ("changed", ("links",)),
    }


def test_times_and_inodes_are_no_change(tmp_path: Path) -> None:
    _make_tree(tmp_path)
    before = snapshot(str(tmp_path))
    (tmp_path / "new").write_bytes(b"one\n")
    (tmp_path / "new").chmod((tmp_path / "a" / "one.txt").stat().st_mode & 0o7777)
    os.replace(tmp_path / "new", tmp_path / "a" / "one.txt")
    os.utime(tmp_path / "top", (1, 1))
    assert difference(before, snapshot(str(tmp_path))) == ()


def test_special_files_are_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    server = socket.socket(socket.AF_UNIX)
    here = os.open(tmp_path, os.O_RDONLY)
    try:
        server.bind(f"/proc/self/fd/{here}/socket")
        kinds = {entry.path: entry.type for entry in snapshot(str(tmp_path)).entries}
    finally:
        os.close(here)
        server.close()
    assert kinds == {b".": "directory", b"fifo": "fifo", b"socket": "socket"}


def test_links_out_of_the_tree_are_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (root / "loop").symlink_to("loop")
    entries = snapshot(str(root)).by_path()
    assert set(entries) == {b".", b"folder", b"file", b"loop"}
    assert all(entries[name].sha256 is None for name in (b"folder", b"file", b"loop"))
    assert entries[b"loop"].target == b"loop"


def test_names_that_are_not_utf8_are_written_in_hex(tmp_path: Path) -> None:
    raw = os.fsencode(str(tmp_path)) + b"/\xff\nname"
    with open(raw, "wb") as file:
        file.write(b"x")
    os.symlink(b"\xfe", os.fsencode(str(tmp_path)) + b"/link")
    taken = snapshot(str(tmp_path))
    written = [entry.to_json() for entry in taken.entries]
    assert written[2]["path_hex"] == b"\xff\nname".hex() and "path" not in written[2]
    assert written[1]["target_hex"] == "fe"
    assert Snapshot.from_json(strict_json.parse_object(strict_json.canonical(taken.to_json()))) == taken


@pytest.mark.skipif(os.geteuid() == 0, reason="skipped: root reads everything")
def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "inside").write_bytes(b"x")
    (tmp_path / "dark").write_bytes(b"x")
    before = snapshot(str(tmp_path))
    (tmp_path / "closed").chmod(0)
    (tmp_path / "dark").chmod(0)
    try:
        after = snapshot(str(tmp_path))
        kept = capture(str(tmp_path), difference(before, after), lambda digest, data: None)
    finally:
        (tmp_path / "closed").chmod(0o700)
    entries = after.by_path()
    assert entries[b"closed"].error == entries[b"dark"].error == "EACCES"
    assert _changes(before, after)[b"closed/inside"] == ("removed", ())
    assert [(item.path, item.why) for item in kept.omitted] == [(b"dark", "EACCES")]


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"max_entries": 5}, "entries"),
        ({"max_entries": 6}, None),
        ({"max_depth": 1}, "depth"),
        ({"max_depth": 2}, None),
        ({"max_hashed_bytes": 5}, "hashed-bytes"),
        ({"max_hashed_bytes": 6}, None),
    ],
)
def test_limits_are_exact(tmp_path: Path, limits: dict[str, int], limit: str | None) -> None:
    _make_tree(tmp_path)
    assert snapshot(str(tmp_path), **limits).limit == limit


def test_a_sparse_giant_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "giant", "wb") as file:
        file.truncate(10 << 30)
    assert snapshot(str(tmp_path)).limit == "hashed-bytes"


def test_a_very_deep_tree_ends_at_the_limit(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    try:
        taken = snapshot(str(tmp_path))
    finally:
        # A tree deeper than the recursion limit would bring down pytest's own clean-up (cpython 89727).
        for _ in range(200):
            above = os.open("..", os.O_RDONLY, dir_fd=here)
            os.rmdir("d", dir_fd=above)
            os.close(here)
            here = above
        os.close(here)
    assert taken.limit == "depth"
    assert len(taken.entries) == 65


@pytest.mark.parametrize("kind", ["missing", "symlink", "file"])
def test_a_root_that_is_no_folder_any_more(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    if kind == "symlink":
        root.symlink_to("/etc")
    elif kind == "file":
        root.write_bytes(b"")
    (entry,) = snapshot(str(root)).entries
    assert (entry.path, entry.type) == (b".", kind)
    assert entry.error is not None


def test_capture_keeps_each_content_once_and_says_what_it_left_out(tmp_path: Path) -> None:
    before = snapshot(str(tmp_path))
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"12345")
    (tmp_path / "c").write_bytes(b"123456")
    (tmp_path / "d").write_bytes(b"xyz")
    (tmp_path / "e").write_bytes(b"1")
    (tmp_path / "link").symlink_to("a")
    store: dict[str, bytes] = {}
    kept = capture(
        str(tmp_path), difference(before, snapshot(str(tmp_path))), store.__setitem__, max_file_bytes=5, max_bytes=7
    )
    assert store == {_digest(b"12345"): b"12345", _digest(b"1"): b"1"}
    assert kept.kept_bytes == 6
    assert [(item.path, item.why) for item in kept.omitted] == [(b"c", "over-file-limit"), (b"d", "over-total-limit")]


def test_capture_refuses_what_changed_since_the_snapshot(tmp_path: Path) -> None:
    before = snapshot(str(tmp_path))
    for name in ("grown", "swapped", "gone", "folder"):
        (tmp_path / name).write_bytes(b"123" + name.encode())
    (tmp_path / "outside").mkdir()
    changes = difference(before, snapshot(str(tmp_path)))
    (tmp_path / "grown").write_bytes(b"1" * 100)
    (tmp_path / "swapped").unlink()
    (tmp_path / "swapped").symlink_to("/etc/passwd")
    (tmp_path / "gone").unlink()
    (tmp_path / "folder").unlink()
    os.mkfifo(tmp_path / "folder")
    kept = capture(str(tmp_path), changes, lambda digest, data: pytest.fail("nothing should be kept"))
    assert [(item.path, item.why) for item in kept.omitted] == [
        (b"folder", "changed-since-snapshot"),
        (b"gone", "vanished"),
        (b"grown", "changed-since-snapshot"),
        (b"swapped", "ELOOP"),
    ]


def test_a_tree_that_changes_underneath_never_breaks_the_walk(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            (root / "x").mkdir(exist_ok=True)
            (root / "x" / "file").write_bytes(b"data")
            (root / "x" / "file").unlink()
            (root / "x").rmdir()
            (root / "x").symlink_to(tmp_path / "outside")
            (root / "x").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        taken = [snapshot(str(root)) for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert not any(entry.path.endswith(b"secret") for each in taken for entry in each.entries)
