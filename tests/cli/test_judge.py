"""`run.py judge` as a user meets it."""

from __future__ import annotations

import json
import pathlib

import pytest


def write_rows(path: pathlib.Path, rows: list[dict]) -> pathlib.Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path, pathlib.Path]:
    """Forty labelled items (20 and 20), a judge that errs on three, and fifty fresh verdicts."""
    labels = [{"id": f"i{n}", "label": "pass" if n < 20 else "fail"} for n in range(40)]
    wrong = {3, 25, 30}
    verdicts = [{"id": f"i{n}", "verdict": (n < 20) != (n in wrong)} for n in range(40)]
    fresh = [{"id": f"u{n}", "verdict": int(n < 30)} for n in range(50)]
    return (
        write_rows(tmp_path / "labels.jsonl", labels),
        write_rows(tmp_path / "verdicts.jsonl", verdicts),
        write_rows(tmp_path / "fresh.jsonl", fresh),
    )


def test_rates_apart_table_and_disagreements(run_py, files) -> None:
    labels, verdicts, fresh = files
    done = run_py("judge", "--labels", labels, "--verdicts", verdicts, "--unlabelled", fresh)
    assert (done.returncode, done.stderr) == (0, "")
    assert "TPR (passes that the judge passes)  19/20, 95.0 %, 95 % CI 75.1-99.9" in done.stdout
    assert "TNR (fails that the judge fails)    18/20, 90.0 %, 95 % CI 68.3-98.8" in done.stdout
    assert "kappa 0.850" in done.stdout
    assert "  label: fail              2            18          0" in done.stdout
    assert "disagreements: 3\n  i3  label pass, judge fail\n  i25  label fail, judge pass\n" in done.stdout
    assert "unlabelled items: the judge passes 30/50\n  true pass rate, corrected for the judge: 58.8 %" in done.stdout
    assert "fewer than 30 items of a class" in done.stdout


def test_json_carries_the_digests_of_what_was_validated(run_py, files, tmp_path: pathlib.Path) -> None:
    labels, verdicts, _ = files
    done = run_py("judge", "--labels", labels, "--verdicts", verdicts, "--json", "-o", "out.json")
    record = json.loads(done.stdout)
    assert record == json.loads((tmp_path / "out.json").read_text())
    assert len(record["labels_sha256"]) == len(record["verdicts_sha256"]) == 64
    assert len(record["by_item"]) == 40 and record["prevalence"] is None
    again = run_py("judge", "--labels", labels, "--verdicts", verdicts, "-o", "out.json")
    assert again.returncode == 2 and "exists already" in again.stderr


def test_required_lower_bounds_decide_the_exit_code(run_py, files) -> None:
    labels, verdicts, _ = files
    met = run_py("judge", "--labels", labels, "--verdicts", verdicts, "--min-tpr", "0.75", "--min-tnr", "0.68")
    assert met.returncode == 0
    missed = run_py("judge", "--labels", labels, "--verdicts", verdicts, "--min-tpr", "0.75", "--min-tnr", "0.9")
    assert missed.returncode == 1
    assert "lower bound of TNR at least 0.9, is 0.683: not met" in missed.stdout


def test_refusals_are_one_line_each_and_exit_two(run_py, files, tmp_path: pathlib.Path) -> None:
    labels, _, _ = files
    one_class = write_rows(tmp_path / "one.jsonl", [{"id": "i1", "label": 1}, {"id": "i2", "label": 1}])
    of_two = write_rows(tmp_path / "two.jsonl", [{"id": "i1", "verdict": 1}, {"id": "i2", "verdict": 0.5}])
    done = run_py("judge", "--labels", one_class, "--verdicts", of_two)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: two.jsonl, line 2: verdict of item 'i2' is 0.5, which is not binary; "
        'give true or false, 1 or 0, "pass" or "fail", or "unparsed" for an answer that could not be read\n'
    )
    write_rows(tmp_path / "two.jsonl", [{"id": "i1", "verdict": 1}, {"id": "i2", "verdict": 0}])
    assert "one class only" in run_py("judge", "--labels", one_class, "--verdicts", of_two).stderr
    assert "i39" in run_py("judge", "--labels", labels, "--verdicts", of_two).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the following arguments are required: --labels, --verdicts"),
        (("--labels", "nowhere", "--verdicts", "verdicts.jsonl"), "--labels: nowhere does not exist"),
        (("--labels", ".", "--verdicts", "verdicts.jsonl"), "--labels: . is not a regular file"),
        (("--labels", "labels.jsonl", "--verdicts", "verdicts.jsonl", "--min-tpr", "2"), "'2' is not between 0 and 1"),
        (("--labels", "labels.jsonl", "--verdicts", "verdicts.jsonl", "--min-tnr", "nan"), "'nan' is not between 0 and 1"),
        (("--labels", "labels.jsonl", "--verdicts", "verdicts.jsonl", "--split", "train"), "invalid choice: 'train'"),
        (("--labels", "labels.jsonl", "--verdicts", "verdicts.jsonl", "--split", "dev"), "no item of labels.jsonl is in dev"),
    ],
)
def test_wrong_options(run_py, files, arguments: tuple[str, ...], words: str) -> None:
    done = run_py("judge", *arguments)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_a_look_at_the_test_split_is_said(run_py, tmp_path: pathlib.Path) -> None:
    labels = write_rows(tmp_path / "l.jsonl", [{"id": f"i{n}", "label": n % 2, "split": "test" if n > 1 else "train"} for n in range(6)])
    verdicts = write_rows(tmp_path / "v.jsonl", [{"id": f"i{n}", "verdict": n % 2} for n in range(6)])
    done = run_py("judge", "--labels", labels, "--verdicts", verdicts)
    assert "4 labelled items of split test: 2 pass, 2 fail" in done.stdout
    assert "the test split was consulted" in done.stdout


def test_both_files_missing_are_said_at_once(run_py) -> None:
    done = run_py("judge", "--labels", "a", "--verdicts", "b", "--unlabelled", "c")
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["--labels", "--verdicts", "--unlabelled"]


def test_control_characters_in_ids_stay_inert(run_py, tmp_path: pathlib.Path) -> None:
    rows = [{"id": "\x1b[31mred", "label": 1}, {"id": "b", "label": 0}]
    labels = write_rows(tmp_path / "l.jsonl", rows)
    verdicts = write_rows(tmp_path / "v.jsonl", [{"id": "\x1b[31mred", "verdict": 0}, {"id": "b", "verdict": 0}])
    done = run_py("judge", "--labels", labels, "--verdicts", verdicts)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout and "\\x1b[31mred  label pass, judge fail" in done.stdout


def test_labels_are_not_their_own_verdicts(run_py, files, tmp_path: pathlib.Path) -> None:
    labels, _, _ = files
    refused = run_py("judge", "--labels", labels, "--verdicts", labels)
    assert refused.returncode == 2 and "is the file of labels" in refused.stderr
    # One file may hold both.
    both = write_rows(tmp_path / "both.jsonl", [{"id": f"i{n}", "label": n % 2, "verdict": n % 2} for n in range(8)])
    assert run_py("judge", "--labels", both, "--verdicts", both).returncode == 0
