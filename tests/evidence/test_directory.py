"""An evidence directory from its first write to its seal, and what a checker of it finds."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from agent_eval.evidence.manifest import verify
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.status import status
from agent_eval.records.digests import sha256_file
from agent_eval.records.problems import EvidenceFault, InvalidInput


@pytest.fixture
def sealed(write_run) -> tuple[pathlib.Path, str]:
    writer = write_run()
    seal = writer.seal({"passed": 3})
    return pathlib.Path(writer.path), seal


def test_a_sealed_directory_is_self_consistent_and_matches_its_seal(sealed) -> None:
    path, seal = sealed
    found = verify(str(path), seal)
    assert found.ok
    assert found.seal == seal == sha256_file(path / "manifest-sha256.txt")
    assert found.seal_matches is True
    assert verify(str(path)).seal_matches is None
    assert verify(str(path), "0" * 64).seal_matches is False
    assert not verify(str(path), "0" * 64).ok
    assert oct(path.stat().st_mode & 0o777) == "0o700"


def test_sha256sum_checks_the_manifest(sealed) -> None:
    path, _ = sealed
    done = subprocess.run(["sha256sum", "--strict", "-c", "manifest-sha256.txt"], cwd=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.split("  ", 1)[1] for line in (path / "manifest-sha256.txt").read_text().splitlines()]
    assert names == sorted(names, key=os.fsencode)
    on_disk = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    assert set(names) == on_disk - {"manifest-sha256.txt"}


def flip(path: pathlib.Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def replace_by_link(path: pathlib.Path) -> None:
    copy = path.with_name("elsewhere")
    path.rename(copy)
    path.symlink_to(copy)


@pytest.mark.parametrize(
    ("damage", "kind", "name"),
    [
        (lambda p: flip(p / "trials/a/001/stdout.bin"), "changed", "trials/a/001/stdout.bin"),
        (lambda p: flip(p / "plan.json"), "changed", "plan.json"),
        (lambda p: flip(p / "journal.jsonl"), "changed", "journal.jsonl"),
        (lambda p: (p / "trials/a/001/stdout.bin").unlink(), "missing", "trials/a/001/stdout.bin"),
        (lambda p: (p / "extra").write_text("x"), "unexpected", "extra"),
        (lambda p: (p / "trials/a/003").mkdir(), "unexpected", "trials/a/003/"),
        (lambda p: replace_by_link(p / "summary.json"), "unsafe", "summary.json"),
        (lambda p: (p / "link").symlink_to("/etc/hostname"), "unsafe", "link"),
        (lambda p: os.mkfifo(p / "cases/pipe"), "unsafe", "cases/pipe"),
    ],
)
def test_each_kind_of_damage_is_named_by_path(sealed, damage, kind: str, name: str) -> None:
    path, seal = sealed
    damage(path)
    found = verify(str(path), seal)
    assert name in getattr(found, kind)
    assert not found.self_consistent
    with pytest.raises(EvidenceFault) as caught:
        EvidenceReader.open(str(path))
    assert name in [problem.where for problem in caught.value.problems]


@pytest.mark.parametrize(
    "line",
    ["0" * 64 + "  ../outside\n", "0" * 64 + "  /etc/hostname\n", "0" * 64 + "  a/../../b\n", "nonsense\n", "0" * 63 + "  plan.json\n"],
)
def test_a_manifest_cannot_lead_outside(sealed, line: str) -> None:
    path, seal = sealed
    with open(path / "manifest-sha256.txt", "a") as stream:
        stream.write(line)
    found = verify(str(path), seal)
    assert found.unsafe
    assert found.seal_matches is False


def test_a_linked_manifest_is_unsafe(sealed) -> None:
    path, _ = sealed
    replace_by_link(path / "manifest-sha256.txt")
    assert verify(str(path)).unsafe == ("manifest-sha256.txt",)
    with pytest.raises(EvidenceFault):
        EvidenceReader.open(str(path))


def test_a_consistent_forgery_is_found_by_the_witness_only(sealed) -> None:
    path, seal = sealed
    target = path / "trials/a/001/stdout.bin"
    before = sha256_file(target)
    flip(target)
    manifest = path / "manifest-sha256.txt"
    manifest.write_text(manifest.read_text().replace(before, sha256_file(target), 1))
    assert verify(str(path)).changed == ()
    assert verify(str(path), seal).seal_matches is False


def test_nothing_is_ever_written_into_a_directory_that_exists(write_run, tmp_path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(InvalidInput, match="exists already"):
        write_run()


def test_a_trial_folder_is_never_reused_and_a_file_is_written_once(write_run) -> None:
    writer = write_run()
    with pytest.raises(FileExistsError):
        writer.trial("a", 1)
    folder = writer.trial("b-1", 2)
    folder.write("x", b"1")
    with pytest.raises(FileExistsError):
        folder.write("x", b"2")


@pytest.mark.parametrize("name", ["plan.json", "cases/a.json", "trials/a/001/trial.json", "trials/b-1/001/stdout.bin"])
def test_what_changed_before_the_seal_keeps_it_from_being_sealed(write_run, name: str) -> None:
    writer = write_run()
    flip(pathlib.Path(writer.path) / name)
    with pytest.raises(EvidenceFault, match="changed-before-seal"):
        writer.seal({})
    found = verify(writer.path)
    assert found.unsealed
    assert not found.self_consistent
    assert not (pathlib.Path(writer.path) / "summary.json").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: (p / "trials/a/001/intruder").write_text("x"),
        lambda p: (p / "intruder").write_text("x"),
        lambda p: (p / "trials/intruder").mkdir() or (p / "trials/intruder/x").write_text("x"),
        lambda p: (p / "trials/a/001/stdout.bin").unlink(),
        lambda p: (p / "trials/a/002/trial.json").unlink(),
        lambda p: (p / "cases/a.json").unlink(),
        lambda p: replace_by_link(p / "trials/a/001/stdout.bin"),
        lambda p: os.mkfifo(p / "trials/a/001/pipe"),
        lambda p: (p / "trials/a/001/link").symlink_to("/etc/hostname"),
        lambda p: (p / "trials/a/001/new\nline").write_text("x"),
    ],
)
def test_whatever_a_subject_does_to_the_evidence_keeps_it_from_being_sealed(write_run, damage) -> None:
    writer = write_run()
    damage(pathlib.Path(writer.path))
    with pytest.raises(EvidenceFault, match="changed-before-seal"):
        writer.seal({})
    assert verify(writer.path).unsealed


def test_an_unsealed_directory_gives_its_finished_trials_only_when_asked(write_run) -> None:
    writer = write_run()
    writer.journal("started", case_id="b-1", number=2, request={})
    writer.close()
    with pytest.raises(InvalidInput, match="--unsealed"):
        EvidenceReader.open(writer.path)
    reader = EvidenceReader.open(writer.path, unsealed_ok=True)
    assert [trial.name for trial in reader.trials()] == ["a/001", "a/002", "b-1/001"]
    counts = status(reader)
    assert counts["planned"] == 4
    assert (counts["passed"], counts["interrupted"], counts["unrun"], counts["sealed"]) == (3, 1, 0, False)


def test_an_unsealed_trial_that_the_journal_does_not_vouch_for_is_refused(write_run) -> None:
    writer = write_run()
    writer.close()
    flip(pathlib.Path(writer.path) / "trials/a/002/trial.json")
    reader = EvidenceReader.open(writer.path, unsealed_ok=True)
    with pytest.raises(EvidenceFault, match=r"trials/a/002/trial\.json"):
        list(reader.trials())


FORGED = '{"event":"finished","case_id":"b-1","number":2,"sha256":"' + "0" * 64 + '","verdict":"pass","cause":null}'


@pytest.mark.parametrize(
    "line",
    [
        FORGED,
        FORGED.replace("b-1", "../.."),
        FORGED.replace('"number":2', '"number":99'),
        FORGED.replace('"number":2', '"number":true'),
        FORGED.replace('"number":2', '"number":{}'),
        FORGED.replace("b-1", "a").replace('"number":2', '"number":1'),
        FORGED.replace("0" * 64, "x"),
        '{"event":"finished"}',
        '{"event":"finished","case_id":5,"number":"a","sha256":3}',
        '{"event":"started","case_id":"a","number":{}}',
        '{"event":"nonsense"}',
        "{}",
        "[]",
        "nonsense",
    ],
)
def test_a_journal_line_that_a_run_did_not_write_counts_for_nothing(write_run, line: str) -> None:
    writer = write_run()
    writer.close()
    with open(os.path.join(writer.path, "journal.jsonl"), "a") as stream:
        stream.write(line + "\n")
    with pytest.raises(EvidenceFault):
        status(EvidenceReader.open(writer.path, unsealed_ok=True))


@pytest.mark.parametrize("damage", [lambda p: p.unlink(), lambda p: p.unlink() or os.mkfifo(p), replace_by_link])
def test_a_lost_journal_is_said(write_run, damage) -> None:
    writer = write_run()
    writer.close()
    damage(pathlib.Path(writer.path) / "journal.jsonl")
    with pytest.raises(EvidenceFault, match=r"journal\.jsonl"):
        EvidenceReader.open(writer.path, unsealed_ok=True)


def test_an_unsealed_plan_is_the_one_that_the_journal_names(write_run) -> None:
    writer = write_run()
    writer.close()
    with open(os.path.join(writer.path, "plan.json"), "a") as stream:
        stream.write(" ")
    with pytest.raises(EvidenceFault, match=r"plan\.json"):
        EvidenceReader.open(writer.path, unsealed_ok=True)


def test_a_torn_last_journal_line_is_passed_over(write_run) -> None:
    writer = write_run()
    writer.close()
    with open(os.path.join(writer.path, "journal.jsonl"), "ab") as stream:
        stream.write(b'{"event":"finished","case_')
    assert status(EvidenceReader.open(writer.path, unsealed_ok=True))["passed"] == 3


def test_a_retained_file_that_is_not_what_the_record_says_is_refused(write_run) -> None:
    writer = write_run()
    writer.close()
    trial = EvidenceReader.open(writer.path, unsealed_ok=True).trial("a", 1)
    assert trial.read("stdout.bin") == b"a 1"
    assert trial.read("nothing") is None
    flip(pathlib.Path(trial.path) / "stdout.bin")
    with pytest.raises(EvidenceFault, match=r"stdout\.bin"):
        trial.read("stdout.bin")


@pytest.mark.parametrize("content", [None, "{}", '{"format": "x/1"}', "not json"])
def test_another_directory_is_refused_by_name(tmp_path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "plan.json").write_text(content)
    with pytest.raises((InvalidInput, EvidenceFault)) as caught:
        EvidenceReader.open(str(tmp_path), unsealed_ok=True)
    assert str(tmp_path) in str(caught.value)


def test_a_newer_format_says_what_is_needed(write_run) -> None:
    writer = write_run()
    writer.close()
    plan = pathlib.Path(writer.path) / "plan.json"
    plan.write_text(plan.read_text().replace("agent-eval/evidence/1", "agent-eval/evidence/2"))
    with pytest.raises(InvalidInput, match="agent-eval/evidence/2") as caught:
        EvidenceReader.open(writer.path, unsealed_ok=True)
    assert "newer" in str(caught.value)


def test_a_missing_directory_is_refused(tmp_path) -> None:
    for action in (verify, EvidenceReader.open):
        with pytest.raises(InvalidInput, match="not an evidence directory"):
            action(str(tmp_path / "nothing"))
    with pytest.raises(InvalidInput, match="64 hexadecimal"):
        verify(str(tmp_path), "abc")
