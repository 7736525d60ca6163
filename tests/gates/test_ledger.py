"""The ledger: chain, head, blobs, lock, torn ends, free text; flip any byte and every later command refuses."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from agent_eval.gates import lineage as lineages
from agent_eval.gates.audit import verify
from agent_eval.gates.epoch import gate
from agent_eval.gates.files import Files
from agent_eval.gates.ledger import NO_DIGEST, Ledger, read_chain
from agent_eval.gates.live import LiveRoot, read_regular
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput
from tests.gates.epoch_world import EpochWorld
from tests.gates.guardrail_world import GuardrailWorld
from tests.gates.skill_world import SkillWorld
from tests.gates.unsynced import FAST

ROOT = Path(__file__).resolve().parents[2]


def new_ledger(folder: Path) -> Ledger:
    folder.mkdir()
    ledger = Ledger(str(folder), FAST)
    ledger.create()
    ledger.open()
    return ledger


def test_entries_chain_by_digest_of_canonical_json(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "l")
    for number in range(3):
        ledger.append("note", "me", {"n": number, "text": "é"})
    lines = (tmp_path / "l" / "ledger.jsonl").read_bytes().splitlines()
    prev = NO_DIGEST
    for number, line in enumerate(lines):
        value = strict_json.parse_object(line)
        digest = value.pop("digest")
        assert (value["seq"], value["prev"]) == (number, prev)
        assert digest == sha256_bytes(strict_json.canonical(value))
        assert line.isascii()
        prev = digest
    assert ledger.head == prev


def test_strings_are_written_in_nfc_and_free_text_is_data(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "l")
    text = "cafe\u0301\n{\"seq\":1}\t\x00\u2028"
    entry = ledger.append("note", "me", {"text": text, "k\u0301": [text]})
    assert entry.body["text"] == unicodedata.normalize("NFC", text)
    assert len((tmp_path / "l" / "ledger.jsonl").read_bytes().splitlines()) == 1
    assert read_chain(str(tmp_path / "l")).entries == (entry,)
    with pytest.raises(InvalidInput, match="Unicode"):
        ledger.append("note", "me", {"text": "\udc80"})


def test_a_torn_last_line_is_removed_and_said(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "l")
    ledger.append("note", "me", {})
    path = tmp_path / "l" / "ledger.jsonl"
    path.write_bytes(path.read_bytes() + b'{"actor":"x","bo')
    assert read_chain(str(tmp_path / "l")).torn_bytes == 16
    again = Ledger(str(tmp_path / "l"), FAST)
    again.open()
    assert [entry.kind for entry in again.entries] == ["note", "recovered"]
    assert again.entries[1].body == {"torn_bytes": 16}


def test_one_entry_beyond_the_head_is_a_crash_and_two_are_a_break(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "l")
    head = tmp_path / "l" / "head.json"
    first = head.read_bytes()
    ledger.append("note", "me", {})
    second = head.read_bytes()
    head.write_bytes(first)
    Ledger(str(tmp_path / "l"), FAST).open()
    assert head.read_bytes() == second
    ledger.append("note", "me", {})
    head.write_bytes(first)
    with pytest.raises(EvidenceFault, match="put back"):
        Ledger(str(tmp_path / "l"), FAST).open()


@pytest.mark.parametrize("seed", range(6))
def test_any_changed_byte_of_ledger_head_or_blob_is_found_and_refused(tmp_path: Path, seed: int) -> None:
    world = EpochWorld(tmp_path).at_checkpoint(set(range(10)), {0})
    draw = random.Random(seed)
    folder = Path(world.ledger)
    targets = [folder / "ledger.jsonl", folder / "head.json", *sorted((folder / "blobs" / "sha256").iterdir())]
    for path in targets:
        data = path.read_bytes()
        position = draw.randrange(len(data))
        path.write_bytes(data[:position] + bytes([data[position] ^ (1 << draw.randrange(8))]) + data[position + 1:])
        assert not verify(world.ledger, "epoch").ok, f"{path.name} byte {position}"
        with pytest.raises(EvidenceFault):
            gate.checkpoint(world.ledger, "pia", files=FAST)
        path.write_bytes(data)
    assert verify(world.ledger, "epoch").ok


@pytest.mark.parametrize("change", ["drop", "swap", "repeat"])
def test_lines_dropped_swapped_or_repeated(tmp_path: Path, change: str) -> None:
    world = EpochWorld(tmp_path).at_checkpoint(set(range(10)), {0})
    path = Path(world.ledger, "ledger.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {"drop": lines[:2] + lines[3:], "swap": [*lines[:2], lines[3], lines[2], *lines[4:]], "repeat": [*lines[:3], *lines[2:]]}[change]
    path.write_bytes(b"".join(changed))
    problem = str(verify(world.ledger, "epoch").problems[0])
    assert f"line {4 if change == 'repeat' else 3}" in problem


def test_blobs_are_bytes(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "l")
    for data in (b"", b"a\r\nb", b"\xff\xfe\x00", bytes(range(256))):
        assert ledger.blobs.get(ledger.blobs.put(data)) == data
    with pytest.raises(EvidenceFault, match="is missing"):
        ledger.blobs.get("0" * 64)


def test_a_lineage_is_opened_once_and_nowhere_else(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path).open()
    with pytest.raises(InvalidInput, match="is a lineage already"):
        world.open()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(InvalidInput, match="is not empty"), lineages.create(str(tmp_path / "full"), FAST):
        pass
    with pytest.raises(InvalidInput, match="is a lineage of epoch"):
        lineages.open_for_reading(world.ledger, "skill")
    with pytest.raises(InvalidInput, match="is not a lineage"):
        lineages.open_for_reading(str(tmp_path), "skill")


def test_two_writers_in_two_processes_are_in_turn(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path, budget={"evaluations": 500}).open()
    script = (
        "import sys; from agent_eval.gates.epoch import gate\n"
        "for n in range(5): gate.record(sys.argv[1], sys.argv[2] + str(n), 'pia')\n"
    )
    for name in ("a", "b"):
        for n in range(5):
            row = {"type": "utility", "candidate": name, "task": f"t{n}", "outcome": 1, "deps": {}, "artifact_sha256": "a" * 64}
            (tmp_path / f"{name}{n}").write_bytes(strict_json.canonical(row))
    writers = [subprocess.Popen([sys.executable, "-c", script, world.ledger, str(tmp_path / name)], cwd=ROOT) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(world.state().utilities) == 10 and verify(world.ledger, "epoch").ok


def test_reading_does_not_need_the_lock_and_writes_nothing(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path).at_checkpoint(set(range(10)), {0})
    before = {path: path.read_bytes() for path in Path(world.ledger).rglob("*") if path.is_file()}
    with lineages.open_for_writing(world.ledger, "epoch", FAST):
        assert gate.status(lineages.open_for_reading(world.ledger, "epoch"))["state"] == "CHECKPOINT"
        assert verify(world.ledger, "epoch").ok
    assert before == {path: path.read_bytes() for path in Path(world.ledger).rglob("*") if path.is_file()}


def test_a_lineage_and_its_files_can_move_together(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    world = GuardrailWorld(tmp_path / "one").open()
    os.rename(tmp_path / "one", tmp_path / "two")
    assert verify(str(tmp_path / "two" / "lineage"), "guardrail").ok
    assert Path(world.lineage).name == "lineage"


def test_a_declared_file_must_be_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("x")
    (tmp_path / "link").symlink_to("real")
    root = LiveRoot(str(tmp_path), ".")
    for path, message in (("link/a", "symbolic link"), ("../a", "relative path"), ("real", "not a regular file"), ("none", "cannot be read")):
        with pytest.raises(InvalidInput, match=message):
            root.read(path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read_regular(str(tmp_path / "fifo"))


def test_the_default_seam_syncs(tmp_path: Path) -> None:
    flushed = []

    class Counting(Files):
        def flush(self, descriptor: int) -> None:
            flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            super().flush(descriptor)

    (tmp_path / "l").mkdir()
    ledger = Ledger(str(tmp_path / "l"), Counting())
    ledger.create()
    flushed.clear()
    digest = ledger.blobs.put(b"x")
    ledger.append("note", "me", {"blobs": {"x": digest}})
    names = [os.path.basename(path) for path in flushed]
    assert names == [f".{digest}.new", "sha256", "ledger.jsonl", ".head.json.agent-eval-new", "l"]  # blob, its name, entry, head, its name


def test_a_skill_lineage_with_references(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path)
    (world.skill / "references").mkdir()
    (world.skill / "references" / "styles.md").write_bytes(b"old style\r\n")
    world.config["files"] = ["SKILL.md", "references/styles.md"]
    world.init()
    patch = world.patch(operations=[{"op": "replace", "file": "references/styles.md", "anchor": "old", "text": "new"}])
    patch["base"]["references/styles.md"] = sha256_bytes(b"old style\r\n")
    assert world.propose(patch).record["required"] == ["effectiveness", "activation"]


def test_an_input_that_would_not_read_back_is_refused_before_it_is_written(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "l")
    deep: object = 1
    for _ in range(62):
        deep = [deep]
    ledger.append("note", "me", {"x": deep})
    before = (tmp_path / "l" / "ledger.jsonl").read_bytes()
    with pytest.raises(InvalidInput, match="would not read back"):
        ledger.append("note", "me", {"x": [deep]})
    with pytest.raises(InvalidInput, match="how Unicode composes"):
        ledger.append("note", "me", {"e\u0301": 1, "\u00e9": 2})
    assert (tmp_path / "l" / "ledger.jsonl").read_bytes() == before
    assert ledger.append("note", "me", {}).seq == 1


def test_a_path_that_the_ledger_cannot_hold_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cafe\u0301"
    folder.mkdir()
    world = SkillWorld(folder)
    world.lineage = str(tmp_path / "lineage")
    with pytest.raises(InvalidInput, match="normal form C"):
        world.init()
