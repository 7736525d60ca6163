"""`run.py compare` as a user meets it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from agent_eval.evidence.manifest import verify
from agent_eval.records.plan import Limits
from tests.measure.retained_runs import EVALUATOR, retained_run

BETTER = {f"c{i}": ["pass", "pass"] for i in range(8)}
WORSE = {f"c{i}": ["pass", "pass"] if i == 7 else ["pass", "fail"] for i in range(8)}
MODEL = {"subject_kind": "model", "model": "m-1"}


@pytest.fixture
def sides(tmp_path: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """An incumbent that is worse on seven of eight cases, and the better candidate."""
    retained_run(tmp_path / "old", WORSE)
    retained_run(tmp_path / "new", BETTER)
    return tmp_path / "old", tmp_path / "new"


def last_lines(text: str, number: int = 4) -> list[str]:
    return text.strip().splitlines()[-number:]


def test_improved(run_py, sides, tmp_path: pathlib.Path) -> None:
    done = run_py("compare", *sides, "-o", "out")
    assert (done.returncode, done.stderr) == (0, "")
    verdict, evidence, seal, code = last_lines(done.stdout)
    assert verdict == "verdict:  improved: 7 wins, 0 regressions of 8 cases, exact one-sided p 0.00781 <= 0.05"
    assert evidence == f"evidence: {tmp_path / 'out'}"
    assert code == "exit:     0 (the candidate improved)"
    found = verify(str(tmp_path / "out"), seal.split()[1])
    assert found.ok and found.seal_matches
    record = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert record["verdict_line"] in verdict
    assert record["wins"] == [f"c{i}" for i in range(7)]


def test_regressed_names_every_regression_and_lists_them_first(run_py, sides) -> None:
    done = run_py("compare", sides[1], sides[0], "-o", "out")
    assert done.returncode == 1
    names = ", ".join(f"c{i}" for i in range(7))
    assert f"regressed on {names}" in last_lines(done.stdout)[0]
    lines = done.stdout.splitlines()
    places = [lines.index(line) for line in ("regressions: 7", "wins: 0", "cases: 8 in both")]
    aggregate = next(i for i, line in enumerate(lines) if line.startswith("aggregate"))
    assert places == sorted(places) and places[-1] < aggregate
    assert "  c0  incumbent 2/2 passed; candidate 1/2 passed (1 failed)" in lines


def test_inconclusive_says_what_would_decide(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", {f"c{i}": ["fail"] for i in range(6)})
    retained_run(tmp_path / "new", {f"c{i}": ["pass" if i < 3 else "fail"] for i in range(6)})
    done = run_py("compare", "old", "new")
    assert done.returncode == 4
    assert "2 more clean wins would decide, and this suite has 3 cases that both fail" in done.stdout
    done = run_py("compare", "old", "new", "--look", "5")
    assert done.returncode == 4
    assert "7 more clean wins would decide, and this suite cannot give them: it has 3 cases" in done.stdout


def test_counts_come_first_with_both_denominators_and_both_reliabilities(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", {"a": ["pass", "fail"], "b": ["pass", "void"]})
    retained_run(tmp_path / "new", {"a": ["pass", "pass"], "b": ["pass", "pass"]})
    done = run_py("compare", "old", "new")
    assert "incumbent: cases 1/2, 50.0 %, 95 % CI 1.3-98.7" in done.stdout
    assert "trials 2/4 planned, 2/3 judged; 1 failed, 1 void, 0 interrupted, 0 unrun" in done.stdout
    assert "pass@1 0.750, pass^1 0.750" in done.stdout
    assert "with a void or missing trial: 1: b (against the candidate)" in done.stdout


def test_doubts_are_kept_apart_and_count_against_the_candidate(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", {"a": ["pass"], "b": ["void"], "gone": ["pass"]})
    retained_run(tmp_path / "new", {"a": ["void"], "b": ["pass"], "added": ["fail"]})
    done = run_py("compare", "old", "new", "--allow-different", "scenarios", "--json")
    record = json.loads(done.stdout)
    assert record["pairs"] == {
        "cases": 4, "matched": 2, "only_in_incumbent": ["gone"], "only_in_candidate": ["added"],
        "not_wholly_judged": ["a", "b", "gone", "added"],
    }  # fmt: skip
    assert record["regressions"] == ["a", "gone", "added"]
    assert record["table"]["both_pass"] == 1
    assert "not alike: scenarios (only in the incumbent: gone; only in the candidate: added)" in record["verdict_line"]


def test_a_critical_regression_forbids_improved(run_py, tmp_path: pathlib.Path) -> None:
    better = {f"c{i}": ["pass"] for i in range(12)} | {"last": ["fail"]}
    retained_run(tmp_path / "old", {case: ["fail"] for case in better} | {"last": ["pass"]}, critical=("last",))
    retained_run(tmp_path / "new", better, critical=("last",))
    done = run_py("compare", "old", "new")
    assert done.returncode == 4
    assert "regressed on last (critical); a regression on a case marked critical" not in done.stdout
    assert "regressed on last (critical); a regression on a critical case forbids improved" in done.stdout
    retained_run(tmp_path / "old2", {case: ["fail"] for case in better} | {"last": ["pass"]})
    retained_run(tmp_path / "new2", better)
    assert run_py("compare", "old2", "new2").returncode == 0
    assert run_py("compare", "old2", "new2", "--critical", "last").returncode == 4


@pytest.mark.parametrize(
    ("term", "options"),
    [
        ("seed", {"task_seed": 2}),
        ("evaluator", {"evaluator": {**EVALUATOR, "source_sha256": "f" * 64}}),
        ("limits", {"limits": Limits(timeout_s=5.0)}),
        ("scenarios", {"contents": {"c0": b'{"id": "c0", "scope": "other"}\n'}}),
        ("model", {"subject": {"subject_kind": "model", "model": "m-2"}}),
    ],
)
def test_what_is_not_alike_is_refused_until_it_is_allowed(run_py, tmp_path: pathlib.Path, term: str, options: dict) -> None:
    retained_run(tmp_path / "old", WORSE, subject=MODEL)
    retained_run(tmp_path / "new", BETTER, **{"subject": MODEL, **options})
    refused = run_py("compare", "old", "new", "-o", "out")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: {term} differs: ")
    assert f"--allow-different {term}" in refused.stderr
    assert not (tmp_path / "out").exists()
    other = "limits" if term == "seed" else "seed"
    assert run_py("compare", "old", "new", "--allow-different", other).returncode == 2
    allowed = run_py("compare", "old", "new", "--allow-different", term)
    assert allowed.returncode == 0
    assert f"not alike: {term} (" in last_lines(allowed.stdout)[0]


def test_the_model_is_named_or_said_to_be_unknown(run_py, tmp_path: pathlib.Path) -> None:
    for name, subject in (("a", MODEL), ("b", MODEL), ("c", {"subject_kind": "model"}), ("d", {"subject_kind": "model"})):
        retained_run(tmp_path / name, BETTER, subject=subject)
    assert "\nmodel: m-1\n" in run_py("compare", "a", "b").stdout
    assert "model: recorded on neither side" in run_py("compare", "c", "d").stdout
    assert run_py("compare", "a", "c").returncode == 2
    assert "models: incumbent m-1, candidate not recorded" in run_py("compare", "a", "c", "--allow-different", "model").stdout


def test_every_refusal_is_said_at_once(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", WORSE, task_seed=1)
    retained_run(tmp_path / "new", BETTER, task_seed=2, limits=Limits(timeout_s=5.0))
    done = run_py("compare", "old", "new", "--critical", "nobody")
    assert done.returncode == 2
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["seed differs", "limits differs", "--critical"]


def test_a_script_is_never_compared_with_a_model(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", WORSE, subject=MODEL)
    retained_run(tmp_path / "new", BETTER, subject={"subject_kind": "scripted"})
    allow = [word for term in ("seed", "evaluator", "scenarios", "limits", "model") for word in ("--allow-different", term)]
    done = run_py("compare", "old", "new", *allow)
    assert done.returncode == 2
    assert "a script is never compared with a model" in done.stderr


def test_changed_evidence_is_not_compared(run_py, sides, tmp_path: pathlib.Path) -> None:
    victim = sides[1] / "trials" / "c0" / "001" / "trial.json"
    victim.write_bytes(victim.read_bytes().replace(b"pass", b"PASS"))
    done = run_py("compare", *sides, "-o", "out")
    assert done.returncode == 3
    assert done.stderr == "error: trials/c0/001/trial.json: changed\n"
    assert not (tmp_path / "out").exists()


def test_an_unsealed_directory_needs_to_be_asked_for(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", WORSE)
    retained_run(tmp_path / "new", {**BETTER, "c7": ["pass", "unrun"]}, sealed=False)
    assert run_py("compare", "old", "new").returncode == 2
    done = run_py("compare", "old", "new", "--unsealed", "-o", "out", "--json")
    record = json.loads(done.stdout)
    assert record["candidate"]["seal"] is None
    assert record["regressions"] == ["c7"]
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["source_sealed"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--alpha", "0"), "'0' is not above 0 and at most 0.5"),
        (("--alpha", "0.6"), "not above 0 and at most 0.5"),
        (("--alpha", "nan"), "not above 0 and at most 0.5"),
        (("--alpha", "x"), "not above 0 and at most 0.5"),
        (("--look", "0"), "not a whole number of at least 1"),
        (("--look", "1.5"), "not a whole number of at least 1"),
        (("--collapse", "best"), "invalid choice: 'best'"),
        (("--allow-different", "everything"), "invalid choice: 'everything'"),
        (("-o", "old"), "exists already"),
    ],
)
def test_wrong_options_are_one_line_and_write_nothing(run_py, sides, tmp_path: pathlib.Path, arguments, words: str) -> None:
    done = run_py("compare", "old", "new", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_what_is_no_run_is_refused(run_py, sides, tmp_path: pathlib.Path) -> None:
    assert run_py("compare", *sides, "-o", "out").returncode == 0
    done = run_py("compare", "out", sides[0])
    assert done.returncode == 2
    assert "holds a compare, not trials" in done.stderr
    assert "not an evidence directory" in run_py("compare", sides[0], "nowhere").stderr


def test_majority_and_all_pass_differ(run_py, tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "old", {f"c{i}": ["fail", "fail", "pass"] for i in range(6)})
    retained_run(tmp_path / "new", {f"c{i}": ["fail", "pass", "pass"] for i in range(6)})
    assert run_py("compare", "old", "new").returncode == 4
    assert run_py("compare", "old", "new", "--collapse", "majority").returncode == 0


def test_json_and_the_directory_agree_and_comparing_twice_gives_the_same_bytes(run_py, sides, tmp_path: pathlib.Path) -> None:
    done = run_py("compare", *sides, "--json", "-o", "one")
    printed = json.loads(done.stdout)
    kept = json.loads((tmp_path / "one" / "comparison.json").read_text())
    assert {key: printed[key] for key in kept} == kept
    assert printed["path"] == str(tmp_path / "one")
    summary = json.loads((tmp_path / "one" / "summary.json").read_text())
    assert (summary["exit_code"], summary["verdict"]) == (done.returncode, kept["verdict"])
    run_py("compare", *sides, "-o", "two")
    assert (tmp_path / "two" / "comparison.json").read_bytes() == (tmp_path / "one" / "comparison.json").read_bytes()


def test_the_comparison_directory_is_evidence_like_any_other(run_py, sides, tmp_path: pathlib.Path) -> None:
    run_py("compare", *sides, "-o", "out")
    assert run_py("verify", "out").returncode == 0
    assert "(compare): planned 0" in run_py("status", "out").stdout
    assert run_py("report", "out", "-o", "page.html").returncode == 0
    checked = subprocess.run(["sha256sum", "-c", "manifest-sha256.txt"], cwd=tmp_path / "out", capture_output=True)
    assert checked.returncode == 0
    assert run_py("regrade", "out").returncode == 2


def test_real_runs_compare(run_py, write_case, tmp_path: pathlib.Path) -> None:
    checker = tmp_path / "checker.py"
    checker.write_text(
        "import json, pathlib, sys\n"
        "state = json.loads(pathlib.Path(sys.argv[1]).read_text())\n"
        "pathlib.Path(sys.argv[4]).write_text(json.dumps({'passed': sys.argv[2] in state}))\n"
    )
    cases = [f"c{i}" for i in range(5)]
    files = [
        write_case(id=case, command=[sys.executable, str(checker), str(tmp_path / "state.json"), case, "--report", "{report}"])
        for case in cases
    ]
    options = [word for file in files for word in ("--case", file)]
    for name, state in (("old", []), ("new", cases)):
        (tmp_path / "state.json").write_text(json.dumps(state))
        run_py("check", *options, "-o", name, "-q")
    # Whoever edits the library while its tests run has two evaluators; that is not what this test is about.
    done = run_py("compare", "old", "new", "--allow-different", "evaluator")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "improved: 5 wins" in done.stdout
