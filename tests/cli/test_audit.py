"""`run.py audit` as a user meets it: a report, a queue, and nothing changed."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.measure.retained_runs import retained_run

GUID = "26b5c67b-86ce-4b4d-8b8d-123456789abc"
QUESTIONS = [
    "Given a list of integers return the indices of the two numbers that add up to the stated target value",
    "Write a function which reverses the order of the words of a sentence while it keeps every space as it was",
    "Describe how a hash map resolves collisions and name two strategies together with what each of them costs in memory",
]


def write_rows(path: pathlib.Path, rows: list[dict]) -> pathlib.Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def items(tmp_path: pathlib.Path) -> pathlib.Path:
    return write_rows(tmp_path / "items.jsonl", [{"id": f"q{n}", "text": text, "passed": n == 0} for n, text in enumerate(QUESTIONS)])


def test_contamination_reports_queues_and_changes_nothing(run_py, items, tmp_path: pathlib.Path) -> None:
    before = items.read_bytes()
    corpus = tmp_path / "traces"
    (corpus / "deep").mkdir(parents=True)
    (corpus / "deep" / "one.txt").write_text(f"... {QUESTIONS[0].upper()}!! ...\nx canary GUID {GUID}\n")
    (corpus / "two.bin").write_bytes(b"\xff\x00 nothing here")
    done = run_py("audit", "contamination", "--items", items, "--against", "traces", "--canary", GUID, "--queue", "queue.jsonl")
    assert (done.returncode, done.stderr) == (1, "")
    assert "3 items against 2 sources, n-grams of 13 words" in done.stdout
    assert "confirmed 1, possible 0, none 2" in done.stdout
    assert f"{GUID} in traces/deep/one.txt (this suite)" in done.stdout
    assert "score, without confirmed: 0/2, 0.0 %" in done.stdout
    assert "clean minus dirty -100.0 points" in done.stdout
    queue = [json.loads(line) for line in (tmp_path / "queue.jsonl").read_text().splitlines()]
    assert [(entry["id"], entry["level"]) for entry in queue] == [(None, "confirmed"), ("q0", "confirmed")]
    assert items.read_bytes() == before
    assert "nothing was changed" in done.stdout


def test_clean_items_exit_zero(run_py, items, tmp_path: pathlib.Path) -> None:
    (tmp_path / "other.txt").write_text("something else entirely")
    done = run_py("audit", "contamination", "--items", items, "--against", "other.txt")
    assert done.returncode == 0
    assert "for a person to look at: 0" in done.stdout


def test_a_jsonl_corpus_is_one_source_a_line(run_py, items, tmp_path: pathlib.Path) -> None:
    write_rows(tmp_path / "train.jsonl", [{"text": "nothing"}, {"text": QUESTIONS[1]}])
    done = run_py("audit", "contamination", "--items", items, "--against", "train.jsonl", "--json")
    record = json.loads(done.stdout)
    assert record["sources"] == 2
    assert [(entry["id"], entry["reasons"][0]["source"]) for entry in record["queue"]] == [("q1", "train.jsonl, line 2")]


def test_split_overlap_needs_no_corpus(run_py, tmp_path: pathlib.Path) -> None:
    rows = [{"id": "a", "text": QUESTIONS[0], "split": "train"}, {"id": "b", "text": QUESTIONS[0] + ".", "split": "test"}]
    done = run_py("audit", "contamination", "--items", write_rows(tmp_path / "i.jsonl", rows))
    assert done.returncode == 1
    assert "a: confirmed; split-overlap in split test (the same text as b in test)" in done.stdout


def test_links_are_not_followed_out_of_a_corpus(run_py, items, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret.txt").write_text(QUESTIONS[0])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "corpus" / "loop").symlink_to(tmp_path / "corpus")
    (tmp_path / "corpus" / "plain.txt").write_text("nothing of it")
    done = run_py("audit", "contamination", "--items", items, "--against", "corpus", "--json")
    assert (done.returncode, json.loads(done.stdout)["sources"]) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the following arguments are required: contamination|labels|saturation"),
        (("taste",), "invalid choice: 'taste'"),
        (("contamination", "--items", "items.jsonl"), "nothing to search"),
        (("contamination", "--items", "items.jsonl", "--against", "nowhere"), "nowhere is neither a file nor a folder"),
        (("contamination", "--items", "items.jsonl", "--against", "empty"), "empty holds no regular file"),
        (("contamination", "--items", "nowhere", "--against", "."), "nowhere does not exist"),
        (("contamination", "--items", "items.jsonl", "--against", ".", "--canary", "x"), "'x' is not a GUID"),
        (("contamination", "--items", "items.jsonl", "--against", ".", "--cutoff", "2025-02-40"), "is not a date"),
        (("contamination", "--items", "items.jsonl", "--against", ".", "--ngram", "3"), "'3' is not 8 to 13"),
        (("contamination", "--items", "items.jsonl", "--against", ".", "-o", "items.jsonl"), "exists already"),
        (("labels", "--labels", "items.jsonl"), "nothing to hold the labels against"),
        (("saturation", "nowhere"), "nowhere: not an evidence directory"),
        (("saturation",), "the following arguments are required: DIR"),
        (("saturation", "outcomes.json", "--cap", "1"), "'1' is not between 0 and 1"),
        (("saturation", "outcomes.json", "./outcomes.json"), "./outcomes.json is named twice"),
        (("saturation", "outcomes.json", "--last", "0"), "not a whole number of at least 1"),
        (("saturation", "outcomes.json", "items.jsonl"), "at least one case in common"),
    ],
)
def test_wrong_options_are_one_line(run_py, items, tmp_path: pathlib.Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "outcomes.json").write_text('{"c1": true, "c2": false}')
    (tmp_path / "empty").mkdir()
    done = run_py("audit", *arguments)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_items_without_text_or_with_a_bad_date_are_refused(run_py, tmp_path: pathlib.Path) -> None:
    rows = [{"id": "a"}, {"id": "b", "text": "t", "created": "yesterday"}, {"id": "c", "text": 3}]
    done = run_py("audit", "contamination", "--items", write_rows(tmp_path / "i.jsonl", rows), "--against", ".")
    assert done.returncode == 2
    for words in ("item 'a' has no text", "created of item 'b' is not a date", "text of item 'c' is 3, which is not text"):
        assert words in done.stderr


def test_labels_queue(run_py, tmp_path: pathlib.Path) -> None:
    labels = {f"i{n}": n % 2 == 0 for n in range(10)}
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(json.dumps({**labels, "i4": False}))
    (tmp_path / "system.json").write_text(json.dumps({item: item != "i7" for item in labels}))
    (tmp_path / "p.csv").write_text("id,p\n" + "".join(f"{item},{0.9 if label else 0.1}\n" for item, label in labels.items()))
    (tmp_path / "reviewed.json").write_text(json.dumps([{"id": "i1", "wrong": False}, {"id": "i4", "wrong": True}]))
    done = run_py(
        "audit", "labels", "--labels", "labels.json", "--verdicts", "one.json", "--verdicts", "two.json",
        "--results", "system.json", "--probabilities", "p.csv", "--reviewed", "reviewed.json", "-o", "audit.json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "i4: label pass; graders-against-label (2 of 2 graders say fail: one.json, two.json)" in done.stdout
    assert "i7: label fail; every-system-fails (all 1: system.json)" in done.stdout
    assert "wrong labels in the reviewed sample: 1/2, 50.0 %" in done.stdout
    assert json.loads((tmp_path / "audit.json").read_text())["exit_code"] == 1


def test_labels_refuse_strangers_doubles_and_impossible_probabilities(run_py, tmp_path: pathlib.Path) -> None:
    (tmp_path / "labels.json").write_text('{"a": true, "b": false}')
    (tmp_path / "g.json").write_text('{"a": true, "z": false}')
    (tmp_path / "p.json").write_text('[{"id": "a", "p": 1.5}, {"id": "b", "p": true}]')
    stranger = run_py("audit", "labels", "--labels", "labels.json", "--verdicts", "g.json")
    assert (stranger.returncode, stranger.stderr) == (2, "error: g.json: 1 items without a label in labels.json: z\n")
    double = run_py("audit", "labels", "--labels", "labels.json", "--verdicts", "labels.json", "--verdicts", "labels.json")
    assert "two files are named labels.json" in double.stderr
    impossible = run_py("audit", "labels", "--labels", "labels.json", "--probabilities", "p.json")
    assert impossible.returncode == 2 and len(impossible.stderr.splitlines()) == 2


def test_saturation_of_evidence(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", {f"c{n}": ["pass" if n < 10 else "fail", "pass"] for n in range(20)})
    retained_run(tmp_path / "new", {f"c{n}": ["pass", "pass" if n < 17 else "void"] for n in range(20)})
    done = run_py("audit", "saturation", "old", "new", "--look", "1", "--json")
    record = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(one["passed"], one["total"]) for one in record["candidates"]] == [(10, 20), (17, 20)]
    assert (record["state"], record["headroom"]["cases"], record["headroom"]["wins_needed"]) == ("no-headroom", 3, 6)
    assert len(record["dead"]["all_fail"]) == 3
    text = run_py("audit", "saturation", "old", "new", "--look", "1").stdout
    assert "headroom: 3 cases that the best fails; a gate needs 6 clean wins at alpha 0.025: cannot promote" in text
    assert "the suite: add-harder-cases; at least 3 more that the best fails" in text
    majority = run_py("audit", "saturation", "old", "new", "--collapse", "majority", "--json")
    assert json.loads(majority.stdout)["candidates"][0]["passed"] == 10


def test_saturation_of_changed_evidence_is_an_evidence_fault(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "run", {"a": ["pass"]})
    (tmp_path / "run" / "summary.json").write_text("{}")
    assert run_py("audit", "saturation", "run").returncode == 3
