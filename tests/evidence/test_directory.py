"""An evidence directory from its first write to its seal, and what a checker of it finds."""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import subprocess

import pytest

from agent_eval.evidence import seal_check
from agent_eval.evidence.manifest import verify
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.evidence.seal_check import RecordDigests
from agent_eval.evidence.status import status
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.records.digests import sha256_file
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.supervise import linux
from tests.evidence.conftest import PASS


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


def one_name_for_two(folder: pathlib.Path) -> None:
    (kept,) = (folder / "files").iterdir()
    (folder / "stdout.bin").rename(folder / "files" / f'{kept.name}":"{sha256_file(kept)}","stdout.bin')
    kept.unlink()


def replace_by_fifo(path: pathlib.Path) -> None:
    path.unlink()
    os.mkfifo(path)


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


def test_a_manifest_may_list_its_files_in_any_order(sealed) -> None:
    path, _ = sealed
    manifest = path / "manifest-sha256.txt"
    lines = manifest.read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    twice = lines[3]
    manifest.write_text("".join([*lines, twice, f"{'0' * 64}  cases/gone\n", "no line\n"]))
    found = verify(str(path), sha256_file(manifest))
    assert found.unsafe == ("manifest-sha256.txt: no line", f"manifest-sha256.txt: {twice.strip()}")
    assert found.missing == ("cases/gone",)
    assert found.seal_matches
    assert found.count == len(lines) + 1
    assert found.changed == found.unexpected == ()


def test_every_difference_is_found_whatever_stands_beside_it(tmp_path) -> None:
    """Against the definition: what is listed and what is there, as sets."""
    source = random.Random(7)
    names = ["a", "a-b", "a.b", "b", "b/a", "b/a.c", "b/a-", "b/a/c", "b/ab", "c/d/e", "c/d.e", "c-d/e"]
    for number in range(60):
        root = tmp_path / str(number)
        root.mkdir()
        there, folders = _scatter(root, source.sample(names, 6))
        listed = set(source.sample(names, 6))
        digests = {name: sha256_file(root / name) if name in there and source.random() < 0.7 else "0" * 64 for name in listed}
        lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
        (root / "manifest-sha256.txt").write_text("".join(lines))
        found = verify(str(root))
        assert set(found.missing) == listed - there
        wanted_folders = {f"{parent}/" for name in listed for parent in pathlib.PurePath(name).parents}
        assert set(found.unexpected) == (there - listed) | (folders - wanted_folders)
        assert set(found.changed) == {name for name in listed & there if digests[name] == "0" * 64}
        assert found.count == len(listed)


def _scatter(root: pathlib.Path, names: list[str]) -> tuple[set[str], set[str]]:
    """Make those of the files that can stand beside each other; also an empty folder."""
    there = set()
    for name in names:
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)
        except OSError:
            continue
        there.add(name)
    (root / "b0").mkdir()
    return there, {f"{folder.relative_to(root)}/" for folder in root.rglob("*") if folder.is_dir()}


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
        lambda p: (p / "trials/intruder").write_text("x"),
        lambda p: (p / "trials/a/intruder").write_text("x"),
        lambda p: (p / "trials/a/001/files/intruder").write_text("x"),
        lambda p: replace_by_fifo(p / "trials/a/001/stdout.bin"),
        lambda p: replace_by_fifo(p / "trials/a/001/trial.json"),
        lambda p: replace_by_fifo(p / "cases/a.json"),
        lambda p: os.truncate(p / "trials/a/001/trial.json", 1 << 40),
        # The same trial once more, under another spelling of its number.
        lambda p: shutil.copytree(p / "trials/a/001", p / "trials/a/1"),
        lambda p: shutil.copytree(p / "trials/a/001", p / "trials/a/0001"),
        lambda p: shutil.copytree(p / "trials/a/001", p / "trials/a/\N{ARABIC-INDIC DIGIT ZERO}\N{ARABIC-INDIC DIGIT ZERO}\N{ARABIC-INDIC DIGIT ONE}"),
        # One file whose name reads like two in the text of the record.
        lambda p: one_name_for_two(p / "trials/a/001"),
        # A trial that was never finished, with a file that nobody can hash.
        lambda p: (p / "trials/b-1/002").mkdir() or os.mkfifo(p / "trials/b-1/002/stdout.bin"),
    ],
)
def test_whatever_a_subject_does_to_the_evidence_keeps_it_from_being_sealed(write_run, damage) -> None:
    writer = write_run()
    damage(pathlib.Path(writer.path))
    with pytest.raises(EvidenceFault, match="changed-before-seal"):
        writer.seal({})
    assert verify(writer.path).unsealed


@pytest.mark.parametrize("own", [{}, {"adapter": {"files": {"stdout.bin": "x"}}}, {"zeal": 1}])
def test_a_record_with_keys_of_its_own_is_compared_all_the_same(write_run, own: dict) -> None:
    """Whatever stands before or after ``files`` in a record, the files that it names are those that must be there."""
    for damage in (None, "flip", "remove", "add"):
        writer = write_run(f"{damage}")
        folder = writer.trial("b-1", 2)
        folder.write("stdout.bin", b"out")
        writer.finish(folder, {"case_id": "b-1", "number": 2, "judgment": PASS, **own})
        target = pathlib.Path(folder.path) / "stdout.bin"
        if damage is None:
            writer.seal({})
            assert verify(writer.path).ok
            continue
        if damage == "flip":
            flip(target)
        elif damage == "remove":
            target.unlink()
        else:
            target.with_name("more").write_text("x")
        name = "more" if damage == "add" else "stdout.bin"
        with pytest.raises(EvidenceFault, match=f"trials/b-1/002/{name}: changed-before-seal"):
            writer.seal({})


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


def test_a_journal_in_another_order_counts_the_same(write_run) -> None:
    writer = write_run()
    writer.journal("started", case_id="b-1", number=2, request={})
    writer.journal("started", case_id="a", number=1, request={})  # once more, after it was finished
    writer.close()
    reader = EvidenceReader.open(writer.path, unsealed_ok=True)
    assert reader.unfinished == {("b-1", 2)}
    assert (status(reader)["finished"], status(reader)["interrupted"]) == (3, 1)
    with open(pathlib.Path(writer.path) / "journal.jsonl", "ab") as stream:
        stream.write(b'{"event":"started","case_id":"b-1","number":1')  # cut by a crash
    assert EvidenceReader.open(writer.path, unsealed_ok=True).unfinished == {("b-1", 2)}


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


def test_digests_of_records_are_kept_by_case_and_number() -> None:
    digests = RecordDigests()
    added = {(case, number): bytes([number]) * 32 for case, number in (("b", 3), ("a", 1), ("b", 1), ("a", 20))}
    for (case, number), digest in added.items():
        digests.add(case, number, digest)
    assert len(digests) == 4
    assert set(digests) == added.keys()
    for (case, number), digest in added.items():
        assert digests.get(case, number) == digest
    for case, number in (("b", 2), ("b", 4), ("b", 0), ("c", 1), ("a", 19), ("a", 21)):
        assert digests.get(case, number) is None


@pytest.mark.parametrize("name", ["trials/a/002/trial.json", "trials/b-1/001/stdout.bin"])
def test_a_manifest_of_many_pieces_is_the_same_text(write_run, monkeypatch, name: str) -> None:
    whole = write_run("whole")
    pieces = write_run("pieces")
    whole.seal({})
    monkeypatch.setattr(seal_check, "_PIECE_LINES", 1)
    assert pieces.seal({}) == sha256_file(f"{pieces.path}/manifest-sha256.txt")
    assert verify(pieces.path).ok
    listed = [[line.split("  ")[1] for line in pathlib.Path(run.path, "manifest-sha256.txt").read_text().splitlines()] for run in (whole, pieces)]
    assert listed[0] == listed[1]
    damaged = write_run("damaged")
    flip(pathlib.Path(damaged.path) / name)
    with pytest.raises(EvidenceFault, match="changed-before-seal"):
        damaged.seal({})
    assert not [entry for entry in os.listdir(damaged.path) if entry.startswith("manifest")]


def test_the_folders_of_cases_are_spread_over_the_disk_where_that_can_be_said(tmp_path) -> None:
    probe = tmp_path / "probe"
    probe.mkdir()
    if not linux.spread_subfolders(str(probe)):
        pytest.skip("skipped: this file system does not place folders by a flag")
    if shutil.which("lsattr") is None:
        pytest.skip("skipped: there is no lsattr to ask")
    writer = EvidenceWriter.create(str(tmp_path / "evidence"))
    writer.write_plan({"planned": 0})
    writer.close()
    listed = subprocess.run(["lsattr", "-d", tmp_path / "evidence" / "trials", tmp_path / "evidence" / "cases"], capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    trials, cases = listed.stdout.splitlines()
    assert "T" in trials.split()[0]
    assert "T" not in cases.split()[0]


def test_where_folders_cannot_be_spread_nothing_is_lost(tmp_path) -> None:
    assert linux.spread_subfolders(str(tmp_path / "not there")) is False
    assert linux.spread_subfolders("/proc/self") is False
