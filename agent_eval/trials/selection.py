"""Which trials of a plan one run does: a shard of it, or what an earlier run left.

Owns choosing by case and number. A chosen part keeps the whole plan's digest, so that
parts of one plan can be told from parts of another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval.records.plan import PlannedRun
from agent_eval.records.problems import InvalidInput

MAX_SHARDS = 10_000
_SHARD = re.compile(r"([0-9]{1,5})/([0-9]{1,5})")
_AUTO = re.compile(r"auto(?:/([0-9]{1,5}))?")
_MAX_DIGITS = 10
_NUMBER = re.compile(rf"[0-9]{{1,{_MAX_DIGITS}}}")
_MAX_SHOWN = 40
_SLURM = "SLURM_ARRAY_TASK_"

Chosen = dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` of ``count``, from 1."""

    index: int
    count: int

    def to_json(self) -> dict[str, int]:
        """The shard as plain JSON values."""
        return {"index": self.index, "count": self.count}


def parse_shard(text: str, environment: Mapping[str, str]) -> Shard:
    """``K/N``, or ``auto`` (``auto/N``) from the environment of a job array.

    ``auto`` reads SLURM_ARRAY_TASK_ID with _MIN, _STEP and _COUNT, JOB_COMPLETION_INDEX (Kubernetes) or
    AWS_BATCH_JOB_ARRAY_INDEX; the two last say no count, so they need ``auto/N``. Raises ``InvalidInput``, also for every
    task of a Slurm array whose indexes are not evenly spaced: it does not tell which position an index has.
    """
    match = _SHARD.fullmatch(text)
    if match is not None:
        return _checked(int(match.group(1)), int(match.group(2)), text)
    match = _AUTO.fullmatch(text)
    if match is None:
        raise InvalidInput.one("--shard", f"{_short(text)} is not K/N, auto or auto/N", "give for example 2/8")
    given = int(match.group(1)) if match.group(1) else None
    return _from_environment(given, environment, text)


def _from_environment(given: int | None, environment: Mapping[str, str], text: str) -> Shard:
    names = (f"{_SLURM}ID", "JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX")
    present = [name for name in names if environment.get(name)]
    if len(present) != 1:
        found = ", ".join(present) or "none"
        raise InvalidInput.one("--shard", f"auto needs exactly one of {', '.join(names)}; found {found}", "give K/N")
    name = present[0]
    index, count = (_from_slurm(given, environment, text) if name.startswith(_SLURM) else (_number(environment, name), given))
    if count is None:
        raise InvalidInput.one("--shard", f"{name} does not say how many there are", "give auto/N")
    return _checked(index + 1, count, text)


def _from_slurm(given: int | None, environment: Mapping[str, str], text: str) -> tuple[int, int | None]:
    """Position in the array from 0, and how many tasks it has, ``None`` when nobody says so."""
    task, count = _number(environment, f"{_SLURM}ID"), given
    first, step = _number(environment, f"{_SLURM}MIN", 0), _number(environment, f"{_SLURM}STEP", 1)
    tasks, last = (_number(environment, _SLURM + name) if _SLURM + name in environment else None for name in ("COUNT", "MAX"))
    if count is not None and tasks is not None and count != tasks:
        # A part of an array submitted again counts from its own first index: which part of N this was is not known.
        raise InvalidInput.one("--shard", f"{text}: the array has {tasks} tasks, not {count}", "submit the whole array, or give K/N")
    count = tasks if count is None else count
    if step < 1:
        raise InvalidInput.one("--shard", f"{_SLURM}STEP is '0', not a step", "give K/N")
    if last is not None and count is not None and last != first + (count - 1) * step:
        found = f"{count} tasks from {first} to {last} in steps of {step}"
        raise InvalidInput.one("--shard", f"{text}: the array is not evenly spaced ({found})", "submit it as FIRST-LAST:STEP, or give K/N")
    if task < first:
        raise InvalidInput.one("--shard", f"{_SLURM}ID is {task}, below {_SLURM}MIN of {first}", "give K/N")
    if (task - first) % step:
        raise InvalidInput.one("--shard", f"{_SLURM}ID {task} lies on no step of {step} from {first}", "give K/N")
    return (task - first) // step, count


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    if text is None or _NUMBER.fullmatch(text) is None:
        shown = "not set" if text is None else f"{_short(text)}, not a number of at most {_MAX_DIGITS} digits"
        raise InvalidInput.one("--shard", f"{name} is {shown}", "give K/N")
    return int(text)


def _short(text: str) -> str:
    return repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r} and {len(text) - _MAX_SHOWN} more characters"


def _checked(index: int, count: int, text: str) -> Shard:
    if not 1 <= count <= MAX_SHARDS or not 1 <= index <= count:
        raise InvalidInput.one("--shard", f"{text}: part {index} of {count} does not exist", f"give K/N with 1 <= K <= N <= {MAX_SHARDS}")
    return Shard(index, count)


def shard_of(planned: PlannedRun, shard: Shard) -> Chosen:
    """The trials of one shard: those of every case dealt out in turn, each case starting where the one before it ended.

    No two shards differ by more than one trial, in all or of any case.
    """
    chosen: Chosen = {}
    for position, case in enumerate(planned.cases):
        numbers = [n for n in range(1, planned.trials + 1) if (position * planned.trials + n - 1) % shard.count == shard.index - 1]
        if numbers:
            chosen[case.id] = numbers
    return chosen

