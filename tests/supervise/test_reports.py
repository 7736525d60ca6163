"""Report files that are not what they should be: each is refused by what it is, and nothing hangs."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_eval.records.outcome import ReportState
from agent_eval.supervise import linux
from agent_eval.supervise.capture import FileSink
from agent_eval.supervise.report_file import ReportSpot

ROOT = Path(__file__).parents[2]


def run_kind(lab, kind, *arguments, **limits):
    return lab.run(lab.program("reports", kind, "{report}", *arguments, **limits))


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("symbolic_link", "a symbolic link"),
        ("dangling_link", "a symbolic link"),
        ("link_loop", "a symbolic link"),
        ("fifo", "a FIFO"),
        ("directory", "a directory"),
        ("unix_socket", "a socket"),
        ("hard_link", "2 links"),
    ],
)
def test_what_is_not_a_plain_file_is_refused_unread(lab, kind, word):
    run = run_kind(lab, kind)
    assert run.outcome.exit_code == 0, run.stderr
    assert run.outcome.report.state is ReportState.REFUSED
    assert word in run.outcome.report.reason
    assert run.report is None
    assert run.elapsed_s < 2.0


@pytest.mark.skipif(os.geteuid() != 0, reason="skipped: only root makes devices")
def test_a_device_is_refused(lab):
    run = run_kind(lab, "device")
    if run.outcome.exit_code != 0:
        pytest.skip("skipped: devices cannot be made here")
    assert run.outcome.report.state is ReportState.REFUSED
    assert "a character device" in run.outcome.report.reason


def test_a_plain_report_is_copied(lab):
    run = run_kind(lab, "plain", "30")
    record = run.outcome.report
    assert run.report == b"x" * 30
    assert (record.state, record.kept_bytes, record.size_bytes) == (ReportState.KEPT, 30, 30)
    assert record.sha256 == hashlib.sha256(run.report).hexdigest()


@pytest.mark.parametrize(("size", "state"), [(1000, ReportState.KEPT), (1001, ReportState.REFUSED)])
def test_the_report_gets_what_the_streams_left_of_the_cap(lab, size, state):
    run = lab.run(lab.command("sh", "-c", "head -c 24 /dev/zero; head -c $1 /dev/zero >$0", "{report}", str(size), cap=1024))
    assert run.outcome.report.state is state
    assert run.outcome.report.size_bytes == size
    assert run.outcome.report.kept_bytes == len(run.report) == 1000
    if state is ReportState.REFUSED:
        assert "1001 bytes" in run.outcome.report.reason and "1000" in run.outcome.report.reason
    assert run.outcome.stop_reason is None


def test_a_sparse_giant_is_refused_by_its_size(lab):
    run = run_kind(lab, "sparse", cap=4096)
    assert run.outcome.report.state is ReportState.REFUSED
    assert run.outcome.report.size_bytes == 10 << 30
    assert len(run.report) == 4096
    assert run.elapsed_s < 2.0


def test_no_report_and_an_empty_report_are_two_things(lab):
    assert run_kind(lab, "deleted").outcome.report.state is ReportState.MISSING
    run = run_kind(lab, "empty")
    assert run.outcome.report.state is ReportState.KEPT
    assert run.report == b""


def test_a_report_without_permission_says_its_mode(lab):
    run = run_kind(lab, "without_permission")
    assert run.outcome.report.mode == "0000"
    if os.geteuid() == 0:
        assert run.outcome.report.state is ReportState.KEPT
    else:
        assert run.outcome.report.state is ReportState.REFUSED
        assert "EACCES" in run.outcome.report.reason


def test_a_growing_report_has_stopped_growing_when_it_is_read(lab):
    run = run_kind(lab, "growing", cap=64 << 20)
    assert run.outcome.exit_code == 0
    assert run.outcome.tree.killed == 1
    assert run.outcome.report.state is ReportState.KEPT
    assert run.outcome.report.size_bytes == len(run.report)


def test_a_folder_swapped_for_a_link_does_not_lead_elsewhere(lab):
    run = run_kind(lab, "swapped_folder")
    assert run.outcome.exit_code == 0, run.stderr
    assert run.outcome.report.state is ReportState.MISSING
    assert run.report is None


def test_a_report_from_before_is_refused_before_anything_runs(lab):
    command = lab.command("touch", "{report}", "ran")
    with open(command.report_source, "w") as file:
        file.write("{}")
    run = lab.run(command)
    assert run.outcome.start_error.stage == "setup"
    assert not (lab.work / "ran").exists()
    assert run.report is None


def test_a_report_is_kept_after_a_timeout_too(lab):
    run = lab.run(lab.command("sh", "-c", "echo '{}' >$0; sleep 60", "{report}", timeout_s=0.3))
    assert run.report == b"{}\n"


def test_no_report_asked_for_is_none(lab):
    run = lab.run(lab.command("true", report_source=None, report_path=None))
    assert run.outcome.report.state is ReportState.NONE


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="skipped: needs root and unshare")
def test_a_file_mounted_over_the_report_is_refused(tmp_path):
    """In a mount namespace of its own: from the same file system, so that only the mount tells."""
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "other").write_text('{"passed": true}')
    program = (
        "import sys\n"
        "from agent_eval.supervise.report_file import ReportSpot\n"
        "from agent_eval.supervise.capture import FileSink\n"
        "spot = ReportSpot('report.json', must_be_free=False)\n"
        "record = spot.collect('copy', 1000, FileSink)\n"
        "print(record.state.value, record.reason)\n"
    )
    script = 'mount --bind other report.json || exit 77; exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable, program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    if done.returncode == 77:
        pytest.skip("skipped: mounting is not allowed here")
    assert done.stdout.startswith("refused"), done
    assert "mounted over it" in done.stdout
    assert not (tmp_path / "copy").exists()


def test_a_copy_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "report.json").write_text("{}")
    spot = ReportSpot(str(tmp_path / "report.json"), must_be_free=False)
    try:
        record = spot.collect(str(tmp_path / "nowhere" / "copy"), 1000, FileSink)
    finally:
        spot.close()
    assert "ENOENT" in record.write_error
    assert record.sha256 is None


def test_mounts_are_told_apart():
    here, proc = os.open("/", os.O_RDONLY), os.open("/proc", os.O_RDONLY)
    try:
        if linux.mount_id(here) is None:
            pytest.skip("skipped: this kernel does not tell")
        assert linux.mount_id(here) == linux.mount_id(here)
        assert linux.mount_id(here) != linux.mount_id(proc)
    finally:
        os.close(here)
        os.close(proc)


class TestMoved:
    """A plain report is moved into the evidence, as long as nobody else can still write to it."""

    def collect(self, tmp_path, mode=0o644, room=1 << 20, sinks=FileSink):
        folder = tmp_path / "scratch"
        folder.mkdir()
        spot = ReportSpot(str(folder / "r"))
        (folder / "r").write_bytes(b'{"passed": true}')
        (folder / "r").chmod(mode)
        number = (folder / "r").stat().st_ino
        try:
            return spot.collect(str(tmp_path / "kept"), room, sinks), number, folder / "r"
        finally:
            spot.close()

    def test_it_is_the_same_file_afterwards(self, tmp_path):
        record, number, source = self.collect(tmp_path)
        assert (tmp_path / "kept").stat().st_ino == number
        assert not source.exists()
        assert record.content == (tmp_path / "kept").read_bytes() == b'{"passed": true}'
        assert record.sha256 == hashlib.sha256(record.content).hexdigest()
        assert (record.state, record.mode, record.kept_bytes) == (ReportState.KEPT, "0644", 16)

    @pytest.mark.parametrize("mode", [0o666, 0o755, 0o4644, 0o444 | 0o1000], ids=oct)
    def test_a_mode_that_evidence_must_not_have_makes_it_a_copy(self, tmp_path, mode):
        record, number, source = self.collect(tmp_path, mode)
        assert (tmp_path / "kept").stat().st_ino != number
        assert (tmp_path / "kept").stat().st_mode & 0o7777 == 0o600
        assert source.exists()
        assert (record.state, record.mode) == (ReportState.KEPT, f"{mode:04o}")

    def test_a_file_that_somebody_holds_open_for_writing_is_copied(self, tmp_path):
        folder = tmp_path / "scratch"
        folder.mkdir()
        spot = ReportSpot(str(folder / "r"))
        with open(folder / "r", "wb", buffering=0) as outsider:
            outsider.write(b"12345")
            record = spot.collect(str(tmp_path / "kept"), 100, FileSink)
            outsider.write(b"more")
        spot.close()
        assert (tmp_path / "kept").read_bytes() == b"12345" == record.content
        assert record.sha256 == hashlib.sha256(b"12345").hexdigest()

    def test_a_writable_mapping_counts_as_open(self, tmp_path):
        path = tmp_path / "mapped"
        path.write_bytes(b"x" * 10)
        with open(path, "r+b") as stream:
            mapping = mmap.mmap(stream.fileno(), 10)
        fd = os.open(path, os.O_RDONLY)
        assert linux.may_be_written(fd)
        mapping.close()
        assert linux.may_be_written(fd) is not linux.IS_LINUX
        os.close(fd)

    def test_what_lies_at_the_target_already_is_not_replaced(self, tmp_path):
        (tmp_path / "kept").write_text("planted")
        record, _, _ = self.collect(tmp_path)
        assert (tmp_path / "kept").read_text() == "planted"
        assert "EEXIST" in record.write_error
        assert record.content is None

    def test_a_report_over_the_cap_is_not_moved(self, tmp_path):
        record, number, source = self.collect(tmp_path, room=10)
        assert record.state is ReportState.REFUSED
        assert (tmp_path / "kept").read_bytes() == b'{"passed":'
        assert source.stat().st_ino == number
        assert record.content is not None and len(record.content) == 10

    def test_a_sink_of_ones_own_gets_the_bytes(self, tmp_path):
        class Own(FileSink):
            pass

        record, number, source = self.collect(tmp_path, sinks=Own)
        assert source.stat().st_ino == number
        assert (tmp_path / "kept").read_bytes() == record.content
