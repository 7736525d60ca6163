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


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("2/8", {}, Shard(2, 8)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "0"}, Shard(1, 4)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1"}, Shard(4, 4)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_STEP": "2"}, Shard(3, 3)),
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
