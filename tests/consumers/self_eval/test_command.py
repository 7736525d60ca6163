"""``self-eval`` as a person meets it: modes, refusals, trees, regrade, evidence."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import time

import pytest

from agent_eval.grade import receipts
from agent_eval.records.receipt import read_receipt

from tests.consumers.self_eval.world import EVALS, EXAMPLES, SCORER, SUITE, SUITE_BYTES, changed, example, one_case

PASSING = EXAMPLES / "passing-wiki-promotion.json"


def record_of(folder: pathlib.Path) -> dict:
    return json.loads(next((folder / "trials").rglob("trial.json")).read_bytes())


def test_without_options_the_suite_is_validated(run_py) -> None:
    done = run_py("self-eval")
    assert done.returncode == 0 and SUITE.sha256 in done.stdout and "cannot exercise" in done.stdout
    value = json.loads(run_py("self-eval", "--json").stdout)
    assert (value["sha256"], value["valid"], len(value["cases"])) == (SUITE.sha256, True, len(SUITE.cases))


def test_an_invalid_suite_names_every_problem(run_py, tmp_path) -> None:
    suite = json.loads(SUITE_BYTES)
    suite["cases"][0]["assert"] = {"kind": "nope"}
    suite["cases"][1]["severity"] = "high"
    del suite["cannotExercise"]
    suite["cases"][2]["grader"] = "final-message"
    (tmp_path / "s.json").write_text(json.dumps(suite))
    for extra in ((), ("--test",), ("--receipt", PASSING)):
        done = run_py("self-eval", "--suite", tmp_path / "s.json", *extra)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        for place in ("#/cases/0/assert/kind", "#/cases/1/severity", "cannotExercise", "#/cases/2/grader"):
            assert place in done.stderr


def test_the_proof_holds(run_py) -> None:
    done = run_py("self-eval", "--test")
    assert done.returncode == 0 and done.stdout.splitlines()[-1].endswith("as declared")
    assert json.loads(run_py("self-eval", "--test", "--json").stdout)["held"] is True


def test_the_kinds_are_listed_with_their_fields(run_py) -> None:
    text = run_py("self-eval", "--kinds").stdout
    rows = {row["kind"]: row for row in json.loads(run_py("self-eval", "--kinds", "--json").stdout)}
    assert set(rows) == {kind.name for kind in receipts.kinds()}
    for name, row in rows.items():
        assert f"\n{name}: " in "\n" + text and all(f"    {field} (" in text for field in row["fields"])
    assert rows["command_ok"]["fields"]["pick"]["default"] == "last"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--git", "."], "--git: needs --base"),
        (["--base", "HEAD"], "--base: needs --git"),
        (["--receipt", PASSING, "--before", "."], "--before: needs --after"),
        (["--receipt", PASSING, "--git", ".", "--base", "HEAD", "--before", ".", "--after", "."], "compare one way"),
        (["--artifact-root", "."], "needs a receipt"),
        (["--test", "--kinds"], "one at a time"),
        (["--test", "--receipt", PASSING], "one at a time"),
        (["--receipt", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--receipt", "/dev/null"], "not a regular file"),
        (["--receipt", PASSING, "--trials", "2"], "--trials"),
        (["--receipt", PASSING, "--git", "/nowhere", "--base", "HEAD"], "is not a git repository"),
        (["--receipt", PASSING, "--before", "/nowhere", "--after", "."], "is not a folder"),
        (["--receipt", PASSING, "--artifact-root", "/nowhere"], "is not a folder"),
        (["--suite", "nowhere.json"], "cannot be read"),
        (["--regrade", "nowhere"], "nowhere"),
    ],
)
def test_refusals(options: list, says: str, run_py, tmp_path) -> None:
    done = run_py("self-eval", *options)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr, done
    assert not (tmp_path / "target").exists()


def test_one_invalid_receipt_and_nothing_is_scored(run_py, tmp_path) -> None:
    done = run_py("self-eval", "--receipt", PASSING, EXAMPLES / "path-escape.json", EXAMPLES / "type-confusion.json")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 6 and not (tmp_path / "target").exists()


def test_a_folder_stands_for_its_receipts(run_py, tmp_path) -> None:
    (tmp_path / "many").mkdir()
    for name in ("passing-receipt", "passing-no-promotion", "budget-blown"):
        (tmp_path / "many" / f"{name}.json").write_bytes((EXAMPLES / f"{name}.json").read_bytes())
    done = run_py("self-eval", "--receipt", "many", "-o", "out")
    assert done.returncode == 1 and "passed 2/3" in done.stdout
    (tmp_path / "empty").mkdir()
    assert run_py("self-eval", "--receipt", "empty").returncode == 2


def test_a_score_is_evidence_like_any_other(run_py, tmp_path) -> None:
    done = run_py("self-eval", "--receipt", PASSING, EXAMPLES / "hides-evidence.json", "-o", "out")
    assert done.returncode == 1
    out = tmp_path / "out"
    assert (out / "cases" / "run-0401.json").read_bytes() == PASSING.read_bytes()
    plan = json.loads((out / "plan.json").read_bytes())
    assert plan["subject"]["suite"]["sha256"] == hashlib.sha256(plan["subject"]["suite"]["text"].encode()).hexdigest() == SUITE.sha256
    judgment = json.loads((out / "trials/run-0407/001/trial.json").read_bytes())["judgment"]
    assert judgment["grader"]["suite_sha256"] == SUITE.sha256 and len(judgment["grader"]["source_sha256"]) == 64
    assert judgment["counts"]["missing"] > 10 and judgment["basis"] == "recomputed"
    assert all(pointer == "" or pointer.startswith("/") for check in judgment["checks"] for pointer in check["evidence"])
    assert run_py("verify", "out").returncode == 0
    shown = run_py("show", "out", "run-0407/001").stdout
    assert "evidence_hidden" in shown and "unbacked_claim" in shown and "/notes/0" in shown
    with open(out / "cases" / "run-0401.json", "ab") as stream:
        stream.write(b" ")
    assert run_py("self-eval", "--regrade", "out").returncode == 3


def test_regrading_twice_gives_the_judgments_of_the_run_byte_for_byte(run_py, tmp_path) -> None:
    run_py("self-eval", "--receipt", PASSING, EXAMPLES / "reward-hack-masked-exit.json", EXAMPLES / "passing-no-promotion.json", "-o", "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert run_py("self-eval", "--regrade", "out", "-o", "one").returncode == 1
    assert run_py("regrade", "out", "-o", "two").returncode == 1
    for path in (tmp_path / "out" / "trials").rglob("trial.json"):
        name = path.relative_to(tmp_path / "out")
        live, one, two = (json.loads((tmp_path / folder / name).read_bytes())["judgment"] for folder in ("out", "one", "two"))
        assert live == one and (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), two
    assert {path: path.read_bytes() for path in before} == before
    assert json.loads((tmp_path / "one" / "changes.json").read_bytes())["same"] == 3


def test_regrade_uses_the_retained_suite_or_todays(run_py, tmp_path) -> None:
    suite = json.loads(SUITE_BYTES)
    suite["revision"] = 7
    suite["cases"] = [one_case({"kind": "files_count", "max": 1})]
    (tmp_path / "s.json").write_text(json.dumps(suite))
    assert run_py("self-eval", "--suite", "s.json", "--receipt", PASSING, "-o", "out").returncode == 1
    (tmp_path / "s.json").unlink()
    assert run_py("regrade", "out", "-o", "same").returncode == 1
    assert run_py("regrade", "out", "--criteria", "current", "-o", "today").returncode == 0
    assert record_of(tmp_path / "today")["judgment"]["grader"]["suite_sha256"] == SUITE.sha256
    suite["suiteId"] = "another"
    (tmp_path / "s.json").write_text(json.dumps(suite))
    run_py("self-eval", "--suite", "s.json", "--receipt", PASSING, "-o", "other")
    assert run_py("regrade", "other", "--criteria", "current", "-o", "none").returncode == 4
    assert record_of(tmp_path / "none")["judgment"]["cause"] == "not-assessable"


def test_run_ids_that_are_no_file_names(run_py, tmp_path) -> None:
    names = ["../../etc", "a/b c", "RUN", "run", "é", "x" * 150, ".hidden", "-o"]
    for index, name in enumerate(names):
        (tmp_path / f"{index}.json").write_text(json.dumps({**example("passing-wiki-promotion"), "runId": name}))
    done = run_py("self-eval", "-q", "--receipt", *(f"{index}.json" for index in range(len(names))), "-o", "out")
    assert done.returncode == 0 and f"passed {len(names)}/{len(names)}" in done.stdout
    assert run_py("verify", "out").returncode == 0
    assert len({path.name.lower() for path in (tmp_path / "out" / "cases").iterdir()}) == len(names)


def git(repository: pathlib.Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", *identity, *arguments], cwd=repository, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository in which the work of the example run has been done."""
    root = tmp_path / "repo"
    (root / "wiki" / "tools").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "wiki" / "index.md").write_text("index\n")
    (root / "tests" / "test_a.py").write_text("assert True\n")
    (root / ".gitignore").write_text("*.log\n")
    (root / "link").symlink_to("wiki")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    (root / "wiki" / "tools" / "backoff.md").write_text("page\n")
    (root / "wiki" / "index.md").write_text("index\npage\n")
    return root


def scored(run_py, tmp_path: pathlib.Path, *options: object) -> tuple[str, list[str], dict]:
    out = tmp_path / f"out-{time.monotonic_ns()}"
    run_py("self-eval", "-q", "--receipt", PASSING, *options, "-o", out)
    judgment = record_of(out)["judgment"]
    observed = json.loads(next(out.rglob("observed.json")).read_bytes())
    return judgment["verdict"], [failure["reason"] for failure in judgment["failures"]], observed["stateDiff"]


def test_the_real_difference_of_a_repository(run_py, tmp_path, repository) -> None:
    verdict, reasons, difference = scored(run_py, tmp_path, "--git", repository, "--base", "HEAD")
    assert (verdict, reasons) == ("pass", [])
    assert difference == {"added": ["wiki/tools/backoff.md"], "removed": [], "changed": ["wiki/index.md"]}
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "work")
    assert scored(run_py, tmp_path, "--git", repository, "--base", "HEAD~1")[0] == "pass"
    assert scored(run_py, tmp_path, "--git", repository, "--base", "HEAD")[1] == ["claimed_change"]


def hide_by_index(root: pathlib.Path) -> None:
    git(root, "update-index", "--assume-unchanged", "tests/test_a.py")
    (root / "tests" / "test_a.py").write_text("assert 1\n")


def hide_by_exclude(root: pathlib.Path) -> None:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("tests/conftest.py\n")
    (root / "tests" / "conftest.py").write_text("x\n")


def hide_by_gitignore(root: pathlib.Path) -> None:
    (root / "tests" / ".gitignore").write_text("*\n")
    (root / "tests" / "conftest.py").write_text("x\n")


def remove(root: pathlib.Path) -> None:
    (root / "tests" / "test_a.py").unlink()


def change_mode(root: pathlib.Path) -> None:
    (root / "tests" / "test_a.py").chmod(0o755)


def change_link(root: pathlib.Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("tests")


def hide_by_filter(root: pathlib.Path) -> None:
    git(root, "config", "filter.hide.clean", "touch ran-a-filter; echo assert True")
    git(root, "config", "core.fsmonitor", "touch ran-a-monitor; false")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("tests/* filter=hide\n")
    (root / "tests" / "test_a.py").write_text("assert 1\n")


@pytest.mark.parametrize("hide", [hide_by_index, hide_by_exclude, hide_by_gitignore, hide_by_filter, remove, change_mode, change_link])
def test_a_change_cannot_be_hidden_from_the_comparison(hide, run_py, tmp_path, repository) -> None:
    hide(repository)
    verdict, reasons, _ = scored(run_py, tmp_path, "--git", repository, "--base", "HEAD")
    assert (verdict, reasons) == ("fail", ["hidden_change"])
    assert not list(tmp_path.rglob("ran-a-*"))


def test_what_the_base_ignores_is_no_change(run_py, tmp_path, repository) -> None:
    (repository / "tests" / "run.log").write_text("x\n")
    assert scored(run_py, tmp_path, "--git", repository, "--base", "HEAD")[0] == "pass"
    done = run_py("self-eval", "--receipt", PASSING, "--git", repository, "--base", "nowhere")
    assert done.returncode == 2 and "--base: nowhere is not a revision" in done.stderr
    done = run_py("self-eval", "--receipt", PASSING, "--git", repository / "wiki", "--base", "HEAD")
    assert done.returncode == 2 and "not its root" in done.stderr
    done = run_py("self-eval", "--receipt", PASSING, "--git", repository, "--base", "--output=x")
    assert done.returncode == 2 and not list(tmp_path.rglob("x"))


def test_two_trees(run_py, tmp_path, repository) -> None:
    import shutil

    before = tmp_path / "before"
    shutil.copytree(repository, before, symlinks=True, ignore=shutil.ignore_patterns(".git", "backoff.md"))
    (before / "wiki" / "index.md").write_text("index\n")
    assert scored(run_py, tmp_path, "--before", before, "--after", repository)[0] == "pass"
    os.mkfifo(repository / "tests" / "pipe")
    assert scored(run_py, tmp_path, "--before", before, "--after", repository)[1] == ["hidden_change"]
    two = run_py("self-eval", "--receipt", PASSING, EXAMPLES / "passing-receipt.json", "--before", before, "--after", repository)
    assert two.returncode == 2 and "one receipt at a time" in two.stderr


def test_trees_are_compared_even_when_the_suite_does_not_ask(run_py, tmp_path, repository) -> None:
    suite = json.loads(SUITE_BYTES)
    suite["cases"] = [one_case({"kind": "not_interrupted"})]
    (tmp_path / "s.json").write_text(json.dumps(suite))
    (repository / "tests" / "new.py").write_text("x\n")
    assert scored(run_py, tmp_path, "--suite", "s.json", "--git", repository, "--base", "HEAD")[1] == ["hidden_change"]


def test_a_replacement_of_the_base_hides_nothing(run_py, tmp_path, repository) -> None:
    base = git(repository, "rev-parse", "HEAD")
    (repository / "tests" / "conftest.py").write_text("x\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "hidden")
    git(repository, "replace", base, "HEAD")
    assert scored(run_py, tmp_path, "--git", repository, "--base", base)[1] == ["hidden_change"]


def test_a_tree_object_that_was_written_over_is_refused(run_py, tmp_path, repository) -> None:
    base, before = git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD:tests")
    (repository / "tests" / "conftest.py").write_text("x\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "hidden")
    after = git(repository, "rev-parse", "HEAD:tests")
    loose = [repository / ".git" / "objects" / name[:2] / name[2:] for name in (before, after)]
    loose[0].chmod(0o644)
    loose[0].write_bytes(loose[1].read_bytes())
    done = run_py("self-eval", "--receipt", PASSING, "--git", repository, "--base", base)
    assert done.returncode == 2 and "does not have the digest that names it" in done.stderr


def test_nothing_needs_the_repository_or_git_to_regrade(run_py, tmp_path, repository) -> None:
    import shutil

    (repository / "tests" / "new.py").write_text("x\n")
    run_py("self-eval", "-q", "--receipt", PASSING, "--git", repository, "--base", "HEAD", "-o", "out")
    shutil.rmtree(repository)
    done = run_py("self-eval", "--regrade", "out", "-o", "again", env={"PATH": "/nowhere"})
    assert done.returncode == 1 and record_of(tmp_path / "again")["judgment"]["failures"][0]["reason"] == "hidden_change"


def test_scoring_is_quick() -> None:
    # 10,000 receipts in 10 s on one core, evidence included, leave about 400 us for reading and judging one; twice that is allowed
    # here, because other tests run beside this one.
    data = json.dumps(example("passing-receipt")).encode()
    for item in (read_receipt(data, "r"),):
        SCORER.judge(item.sections, item.hidden, {})
    began = time.process_time()
    for index in range(500):
        item = read_receipt(data.replace(b"run-0400", b"run-%04d" % index), "r")
        assert SCORER.judge(item.sections, item.hidden, {}).verdict == "pass"
    assert (time.process_time() - began) / 500 < 0.0008


def test_the_data_holds_no_code() -> None:
    assert {path.suffix for path in EVALS.rglob("*") if path.is_file()} <= {".json", ".md", ".jsonl", ""} | {".txt"}
    assert changed({}) == example("passing-receipt")
