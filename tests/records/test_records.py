"""Typed records: they read back as they were written, and refuse to contradict themselves."""

from __future__ import annotations

import marshal
import os
from dataclasses import replace

import pytest

from agent_eval.records import plan as plans
from agent_eval.records.clock import rfc3339
from agent_eval.records.digests import open_file, read_file, sha256_bytes, sha256_file
from agent_eval.records.judgment import Basis, CheckResult, Failure, Judgment, Verdict
from agent_eval.records.outcome import (
    Outcome,
    ReportRecord,
    ReportState,
    StartError,
    StopReason,
    StopStep,
    StreamRecord,
    Tree,
    Unreaped,
)
from agent_eval.records.problems import InvalidInput, Problem


def test_outcome_reads_back() -> None:
    outcome = Outcome(
        tree=Tree("subreaper", 2, 1, 3, (Unreaped(7, "x", "pipe_read"),)),
        started_at=rfc3339(0),
        wall_s=0.25,
        signal=9,
        stop_reason=StopReason.TIMEOUT,
        stop_steps=(StopStep("SIGTERM", 0.2), StopStep("SIGKILL", 0.25)),
        stdout=StreamRecord(3, 2, True, "0" * 64),
        report=ReportRecord(ReportState.REFUSED, "a FIFO", 0, 5, "0600"),
        start_error=StartError("exec", "no such file", 2),
    )
    assert Outcome.from_json(outcome.to_json()) == outcome
    assert Outcome.from_wire(marshal.loads(marshal.dumps(outcome.to_wire())), outcome.started_at) == outcome


def test_content_crosses_to_another_process_and_is_no_part_of_the_record() -> None:
    bare = Outcome(Tree("group"), rfc3339(0), 0.1, exit_code=0, stdout=StreamRecord(2, 2, False, "0" * 64))
    outcome = replace(bare, stdout=replace(bare.stdout, content=b"ok"))
    assert Outcome.from_wire(outcome.to_wire(), outcome.started_at).stdout.content == b"ok"
    assert outcome.to_json() == bare.to_json()
    with pytest.raises(TypeError):
        Outcome.from_json({**bare.to_json(), "stdout": {**bare.to_json()["stdout"], "content": "ok"}})
    with pytest.raises(TypeError):
        Outcome.from_json({**bare.to_json(), "report": {**bare.to_json()["report"], "content": "ok"}})


def test_judgment_reads_back_and_is_consistent() -> None:
    judgment = Judgment(
        Verdict.FAIL,
        Basis.RECOMPUTED,
        (Failure("timeout", "x", ("trial.json#/outcome",)), Failure("timeout"), Failure("nonzero-exit")),
        (CheckResult("a", "pass"),),
        grader=(("name", "check/1"), ("source_sha256", "0" * 64)),
    )
    assert Judgment.from_json(judgment.to_json()) == judgment
    assert judgment.reasons == ("timeout", "nonzero-exit")
    with pytest.raises(ValueError):
        Judgment(Verdict.FAIL, Basis.RECOMPUTED)
    with pytest.raises(ValueError):
        Judgment(Verdict.PASS, Basis.RECOMPUTED, (Failure("x"),))
    with pytest.raises(ValueError):
        Judgment(Verdict.VOID, Basis.RECOMPUTED)
    with pytest.raises(ValueError):
        Judgment(Verdict.PASS, Basis.RECOMPUTED, cause="x")


def test_times_are_rfc_3339() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"
    assert rfc3339(951782400.9996) == "2000-02-29T00:00:00.999Z"
    assert rfc3339(-0.5) == "1969-12-31T23:59:59.500Z"


@pytest.mark.parametrize("size", [0, 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 3 << 18])
def test_file_digests(tmp_path, size: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a" * size)
    assert sha256_file(path) == sha256_bytes(b"a" * size)
    assert read_file(path) == b"a" * size
    assert read_file(path, max_bytes=size) == b"a" * size


def test_a_file_whose_size_is_not_known_before_is_read_to_its_end() -> None:
    """Files of /proc are regular and say that they hold nothing."""
    with open("/proc/version", "rb") as stream:
        content = stream.read()
    assert content
    assert read_file("/proc/version") == content
    assert sha256_file("/proc/version") == sha256_bytes(content)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(ValueError, match="at most 10 are read"):
        read_file(path, max_bytes=10)


def test_a_digest_is_of_a_plain_file_only(tmp_path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    os.mkfifo(tmp_path / "fifo")
    for read in (sha256_file, read_file, open_file):
        with pytest.raises(OSError):
            read(tmp_path / "link")
        for name in ("fifo", "."):
            with pytest.raises(ValueError):
                read(tmp_path / name)


def test_problems_say_what_where_and_what_to_do() -> None:
    error = InvalidInput([Problem("a", "b", "c"), Problem("", "d")])
    assert str(error) == "a: b; c\nd"
    with pytest.raises(ValueError):
        InvalidInput([])


@pytest.mark.parametrize(
    ("limits", "trials", "named"),
    [
        (plans.Limits(timeout_s=0.009), 1, "--timeout"),
        (plans.Limits(timeout_s=600.1), 1, "--timeout"),
        (plans.Limits(max_output_bytes=1023), 1, "--max-output-bytes"),
        (plans.Limits(max_output_bytes=64 * 1024 * 1024 + 1), 1, "--max-output-bytes"),
        (plans.Limits(grace_s=-1), 1, "--grace"),
        (plans.Limits(), 0, "--trials"),
        (plans.Limits(), 21, "--trials"),
    ],
)
def test_limits_out_of_range_name_the_range(limits: plans.Limits, trials: int, named: str) -> None:
    problems = plans.limit_problems(limits, trials, plans.MAX_CHECKER_TIMEOUT_S)
    assert [problem.where for problem in problems] == [named]
    assert "give" in problems[0].fix


def test_limits_at_the_edges_are_accepted() -> None:
    for limits in (plans.Limits(0.01, 1024, 0), plans.Limits(600, 64 << 20, 60)):
        for trials in (1, 20):
            assert plans.limit_problems(limits, trials, plans.MAX_CHECKER_TIMEOUT_S) == []


def a_plan(**changes: object) -> dict:
    base = {
        "consumer": "check",
        "cases": [{"id": "a", "sha256": "0" * 64}],
        "trials": 2,
        "task_seed": 1,
        "limits": {"timeout_s": 1.0},
        "subject": {"a": 1},
        "evaluator": {"version": "1", "source_sha256": "1" * 64, "python": "3.11.7", "platform": "x"},
        "run_id": "r",
        "argv": ["check"],
        "created_at": "now",
    }
    return {**base, **changes}


def test_the_plan_digest_covers_what_decides_and_nothing_else() -> None:
    digest = plans.plan_sha256(a_plan())
    for same in ({"run_id": "s"}, {"argv": []}, {"created_at": "then"}):
        assert plans.plan_sha256(a_plan(**same)) == digest
    for other in ({"trials": 3}, {"task_seed": 2}, {"limits": {}}, {"subject": {}}, {"cases": []}):
        assert plans.plan_sha256(a_plan(**other)) != digest
    evaluator = a_plan()["evaluator"]
    assert plans.plan_sha256(a_plan(evaluator={**evaluator, "source_sha256": "2" * 64})) != digest
    assert plans.plan_sha256(a_plan(evaluator={**evaluator, "python": "3.13.0"})) == digest
