"""Which directories belong to one plan, and which of them counts for each of its trials.

Owns the rules of a merge: shards may not overlap, and a rerun counts only beside the directory that it reran, for
trials that were unrun or interrupted there. It writes nothing and judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_eval.evidence.plan_check import RERUN_CHOICES, require_digest
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.retained import Retained, Stage
from agent_eval.records.plan import planned_numbers
from agent_eval.records.problems import EvidenceFault, Problem, raise_if

Trial = tuple[str, int]
_MAX_SHOWN = 50
_CHOICE = {"failed": "of the trials that failed", "trial": "of one trial"}


@dataclass(frozen=True, slots=True)
class Merged:
    """The parts of one plan, checked. ``source`` says for each trial which part counts.

    ``rerun_after_interrupt`` is how many times a trial was done again that had been interrupted, ``rerun_after_unrun``
    how many trials were done by a rerun that had never been started.
    """

    parts: tuple[Retained, ...]
    source: dict[Trial, int]
    rerun_after_interrupt: int
    rerun_after_unrun: int


def check_parts(readers: list[EvidenceReader], *, partial: bool) -> Merged:
    """Refuse parts of other plans, overlaps and gaps; every problem at once. The order of the parts does not matter.

    Raises ``InvalidInput``, and ``EvidenceFault`` for a plan or a record that does not hold.
    """
    _require_digests(readers)
    raise_if(_strangers(readers))
    sources = _reran(readers)
    counting = _Counting([Retained(reader) for reader in readers], sources)
    for index in _in_order(readers, sources):
        counting.add(index)
    problems = counting.problems
    first = readers[0].plan
    absent = [(case["id"], n) for case in first["cases"] for n in range(1, first["trials"] + 1) if (case["id"], n) not in counting.source]
    if absent and not partial:
        names = ", ".join(f"{case_id}/{number:03d}" for case_id, number in absent[:5])
        problems.append(Problem("merge", f"{len(absent)} planned trials are in no part ({names} ...)", "add the missing shards, or --partial to count them as unrun"))
    raise_if(problems[:_MAX_SHOWN])
    return Merged(tuple(counting.parts), counting.source, counting.after[Stage.INTERRUPTED], counting.after[Stage.UNRUN])


def _require_digests(readers: list[EvidenceReader]) -> None:
    faults: list[Problem] = []
    for reader in readers:
        try:
            require_digest(reader.plan, reader.path)
        except EvidenceFault as fault:
            faults += fault.problems
    if faults:
        raise EvidenceFault(faults)


def _strangers(readers: list[EvidenceReader]) -> list[Problem]:
    """What can be no part whatever its trials are."""
    first = readers[0]
    problems = []
    runs: dict[str, str] = {}
    for reader in readers:
        plan = reader.plan
        kind = plan.get("kind", "run")
        if plan["plan_sha256"] != first.plan["plan_sha256"]:
            what = f"these differ: {', '.join(_differences(first.plan, plan))}"
            problems.append(Problem(reader.path, f"belongs to another plan than {first.path}", what))
        if kind not in ("run", "rerun"):
            problems.append(Problem(reader.path, f"is a {kind}", "merge shards and reruns"))
        if kind == "rerun" and plan.get("rerun", RERUN_CHOICES[0]) != RERUN_CHOICES[0]:
            problems.append(Problem(reader.path, f"is a rerun for debugging ({_CHOICE[plan['rerun']]})", "it is never counted: leave it out"))
        if plan["run_id"] in runs:
            problems.append(Problem(reader.path, f"is the same run as {runs[plan['run_id']]}", "give each directory once"))
        runs[plan["run_id"]] = reader.path
    return problems


def _differences(plan: dict, other: dict) -> list[str]:
    names = [name for name in ("consumer", "cases", "trials", "task_seed", "limits", "subject") if plan[name] != other[name]]
    sources = [value["evaluator"]["source_sha256"] for value in (plan, other)]
    if sources[0] != sources[1]:
        names.append("evaluator (the sources of this project)")
    return names or ["plan_sha256"]


def _reran(readers: list[EvidenceReader]) -> dict[int, int]:
    """For each rerun the part that it reran, by their places in the list. Raises ``InvalidInput`` when that is not there."""
    by_run = {reader.plan["run_id"]: index for index, reader in enumerate(readers)}
    found, problems = {}, []
    for index, reader in enumerate(readers):
        if reader.plan.get("kind") != "rerun":
            continue
        link = reader.plan["source"]
        source = by_run.get(link["run_id"])
        if source is None:
            # Without it nobody sees what had failed there, and an interrupted trial would be no rerun.
            problems.append(Problem(reader.path, f"reran the run {link['run_id']}, which is not given", "give the directory that it reran too"))
        elif readers[source].seal != link["seal"]:
            seals = [seal or "no seal" for seal in (link["seal"], readers[source].seal)]
            problems.append(Problem(reader.path, f"reran {readers[source].path} when it had {seals[0]}; now it has {seals[1]}", "give the directory as it was rerun"))
        else:
            found[index] = source
    raise_if(problems)
    return found


def _in_order(readers: list[EvidenceReader], sources: dict[int, int]) -> list[int]:
    """Runs first, then each rerun after what it reran. Raises ``InvalidInput`` for reruns of each other."""
    placed = [index for index in range(len(readers)) if index not in sources]
    waiting = set(sources)
    while ready := sorted(index for index in waiting if sources[index] not in waiting):
        placed += ready
        waiting.difference_update(ready)
    raise_if([Problem(readers[index].path, "reran a directory that in turn reran it", "these are no reruns") for index in sorted(waiting)])
    return placed


class _Counting:
    """Which part counts for each trial: the last one that started it, else the first that planned it."""

    def __init__(self, parts: list[Retained], sources: dict[int, int]) -> None:
        self.parts = parts
        self.source: dict[Trial, int] = {}
        self.problems: list[Problem] = []
        self.after = {Stage.INTERRUPTED: 0, Stage.UNRUN: 0}
        self._sources = sources
        self._holder: dict[Trial, int] = {}

    def add(self, index: int) -> None:
        """Take the trials of one part; those of what it reran were taken before."""
        plan = self.parts[index].reader.plan
        for case in plan["cases"]:
            for number in planned_numbers(plan, case["id"]):
                trial = (case["id"], number)
                problem = self._overlap(index, trial)
                if problem is None:
                    self._take(index, trial)
                else:
                    self.problems.append(problem)

    def _overlap(self, index: int, trial: Trial) -> Problem | None:
        """Why this part may not hold the trial, ``None`` when it may."""
        name = f"{trial[0]}/{trial[1]:03d}"
        path = self.parts[index].reader.path
        holder, reran = self._holder.get(trial), self._sources.get(index)
        if holder != reran:
            if holder is None:
                return Problem(path, f"{name} was not planned by what it reran", "that is no rerun")
            fix = "give each shard once" if reran is None else "give one chain of reruns, each of the one before"
            return Problem(path, f"{name} is in {self.parts[holder].reader.path} too", fix)
        if reran is not None and self.parts[reran].stage(*trial) is Stage.ENDED:
            return Problem(path, f"{name} had ended in {self.parts[reran].reader.path}", "only unrun and interrupted trials are done again")
        return None

    def _take(self, index: int, trial: Trial) -> None:
        earlier = self.source.get(trial)
        self._holder[trial] = index
        if earlier is None:
            self.source[trial] = index
        elif self.parts[index].stage(*trial) is not Stage.UNRUN:
            self.after[self.parts[earlier].stage(*trial)] += 1
            self.source[trial] = index
