"""Evidence directories of runs that never ran: made by the project's own writer and counter, fast and exact."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.measure.summary import Tally
from agent_eval.records import strict_json
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.plan import Limits, PlannedCase, PlannedRun

EVALUATOR = {"version": "0.1.0", "source_sha256": "e" * 64, "python": "3.11.7", "platform": "Linux"}


def judgment_of(state: str) -> Judgment:
    """The judgment of one word of a table: pass, fail, void or interrupted."""
    if state == "pass":
        return Judgment(Verdict.PASS, Basis.RECOMPUTED)
    if state == "fail":
        return Judgment(Verdict.FAIL, Basis.RECOMPUTED, (Failure("owner-failed"),))
    cause = "interrupted" if state == "interrupted" else "model-unreachable"
    return Judgment(Verdict.VOID, Basis.RECOMPUTED, cause=cause)


def retained_run(
    path: pathlib.Path,
    table: Mapping[str, Sequence[str]],
    *,
    sealed: bool = True,
    critical: Sequence[str] = (),
    limits: Limits | None = None,
    task_seed: int | None = 1,
    subject: dict[str, object] | None = None,
    evaluator: dict[str, str] | None = None,
    consumer: str = "check",
    contents: Mapping[str, bytes] | None = None,
) -> str:
    """Write a run whose trials ended as `table` says (`unrun` leaves no record) and return its seal.

    Every case has as many planned trials as the longest; what a shorter one lacks is unrun.
    """
    trials = max((len(states) for states in table.values()), default=1)
    data = {case: (contents or {}).get(case, strict_json.pretty({"id": case, "scope": "s"})) for case in table}
    cases = tuple(PlannedCase(case, data[case], "s", ("style",), case in critical) for case in table)
    planned = PlannedRun(cases, trials, limits or Limits(), task_seed, subject)
    plan = make_plan(consumer, planned, ("check",), evaluator or EVALUATOR)
    writer = EvidenceWriter.create(str(path))
    writer.write_plan(plan, data.items())
    tally = Tally(plan)
    for case, states in table.items():
        for number, state in enumerate(states, 1):
            if state == "unrun":
                continue
            judgment = judgment_of(state)
            folder = writer.trial(case, number)
            record = {"case_id": case, "number": number, "judgment": judgment.to_json(), "outcome": None}
            writer.finish(folder, record)
            tally.add(case, number, judgment, None)
    if sealed:
        return writer.seal(tally.summary())
    writer.close()
    return ""
