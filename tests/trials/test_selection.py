"""Shards: deterministic, balanced, disjoint and complete; and where a job array says which one this is."""

from __future__ import annotations

import pytest

from agent_eval.records.plan import Limits, PlannedCase, PlannedRun
from agent_eval.records.problems import InvalidInput
from agent_eval.trials.selection import Shard, parse_shard, shard_of


@pytest.mark.parametrize(("cases", "trials", "count"), [(1, 1, 1), (1, 20, 3), (8, 1, 3), (7, 5, 4), (3, 2, 10), (50, 20, 16), (3, 5, 8)])
def test_shards_are_disjoint_complete_and_balanced(cases: int, trials: int, count: int) -> None:
    planned = PlannedRun(tuple(PlannedCase(f"c{i}", b"") for i in range(cases)), trials, Limits())
    parts = [shard_of(planned, Shard(index, count)) for index in range(1, count + 1)]
    pairs = [(case, number) for part in parts for case, numbers in part.items() for number in numbers]
    assert len(pairs) == len(set(pairs)) == cases * trials
    for case in planned.cases:
        shares = [len(part.get(case.id, ())) for part in parts]
        assert max(shares) - min(shares) <= 1
    sizes = [sum(map(len, part.values())) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert parts == [shard_of(planned, Shard(index, count)) for index in range(1, count + 1)]


def slurm(array: str, task: int, **changes: object) -> dict[str, str]:
    """What Slurm puts into the environment of a task of ``--array=...``; ``changes`` to it by the end of the name."""
    tasks: list[int] = []
    step = 1
    for piece in array.split(","):
        ends, _, by = piece.partition(":")
        low, _, high = ends.partition("-")
        step = int(by or 1)
        tasks += range(int(low), int(high or low) + 1, step)
    facts = {"id": task, "min": min(tasks), "max": max(tasks), "step": step, "count": len(tasks)} | changes
    return {f"SLURM_ARRAY_TASK_{name.upper()}": str(value) for name, value in facts.items() if value is not None}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("2/8", {}, Shard(2, 8)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "0"}, Shard(1, 4)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1"}, Shard(4, 4)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_STEP": "2"}, Shard(3, 3)),
        ("auto", slurm("2-8:3", 2), Shard(1, 3)),
        ("auto", slurm("2-8:3", 8), Shard(3, 3)),
        ("auto/3", slurm("2-8:3", 5), Shard(2, 3)),
        ("auto", slurm("4", 4), Shard(1, 1)),
        ("auto/4", {"JOB_COMPLETION_INDEX": "3"}, Shard(4, 4)),
        ("auto/5", {"AWS_BATCH_JOB_ARRAY_INDEX": "0"}, Shard(1, 5)),
    ],
)
def test_which_shard_this_is(text: str, environment: dict[str, str], expected: Shard) -> None:
    assert parse_shard(text, environment) == expected


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("0/3", {}),
        ("4/3", {}),
        ("1/0", {}),
        ("1/10001", {}),
        ("x", {}),
        ("1", {}),
        ("-1/3", {}),
        ("auto", {}),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}),
        ("auto/3", {"JOB_COMPLETION_INDEX": "3"}),
        ("auto/3", {"JOB_COMPLETION_INDEX": "x"}),
        ("auto/3", {"JOB_COMPLETION_INDEX": "0", "SLURM_ARRAY_TASK_ID": "0"}),
        ("auto", {"SLURM_ARRAY_TASK_ID": "1"}),
        ("auto", {"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_STEP": "1"}),
        ("auto/8", {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "1"}),
    ],
)
def test_what_is_no_shard_is_refused(text: str, environment: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="--shard"):
        parse_shard(text, environment)


@pytest.mark.parametrize("step", [1, 5])
@pytest.mark.parametrize("array", ["1,3,7", "1,3,5", "3,6,7", "0,1,9", "5,6,7,9", "0-3,8", "1-9:2,10"])
def test_a_slurm_list_without_a_regular_step_is_refused_for_every_task(array: str, step: int) -> None:
    for text in ("auto", f"auto/{slurm(array, 0)['SLURM_ARRAY_TASK_COUNT']}"):
        for task in range(11):
            with pytest.raises(InvalidInput, match="evenly spaced"):
                parse_shard(text, slurm(array, task, step=step))


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (slurm("1-7:2", 2), "lies on no step"),
        (slurm("1-7:2", 6), "lies on no step"),
        (slurm("1-7:2", 2, max=None), "lies on no step"),
        (slurm("1-7:2", 0), "below SLURM_ARRAY_TASK_MIN"),
        (slurm("1-7:2", 9), "part 5 of 4 does not exist"),
        (slurm("3-6", 2), "below SLURM_ARRAY_TASK_MIN"),
        (slurm("3-6", 4, step=0), "SLURM_ARRAY_TASK_STEP is '0'"),
        (slurm("3-6", 4, count=None, max=7), "evenly spaced"),
    ],
)
def test_a_task_that_is_on_no_step_of_its_array_is_refused(environment: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_shard("auto/4", environment)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 11, "\u0661", "\u00b2", "1.0", "+1", "1_0", " 1", "x" * 5000, ""])
@pytest.mark.parametrize("name", ["JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_STEP"])
def test_what_is_no_number_is_one_short_line(name: str, text: str) -> None:
    environment = {**(slurm("0-2", 1) if name.startswith("SLURM") else {}), name: text}
    with pytest.raises(InvalidInput, match="--shard") as caught:
        parse_shard("auto/3", environment)
    (problem,) = caught.value.problems
    assert name in str(problem) and len(str(problem)) < 250


@pytest.mark.parametrize("text", ["9" * 5000 + "/3", "1/" + "9" * 5000, "auto/" + "9" * 5000, "\u0661/\u0663"])
def test_what_is_no_shard_is_one_short_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="--shard") as caught:
        parse_shard(text, {"JOB_COMPLETION_INDEX": "0"})
    (problem,) = caught.value.problems
    assert len(str(problem)) < 250
