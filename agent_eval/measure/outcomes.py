"""How the planned trials of an evidence directory ended, as counts per case.

Owns: the way from a checked directory to the counts that `comparison` and `saturation` work on.
Does not own: opening and verifying the directory (`agent_eval.evidence`).
"""

from __future__ import annotations

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.retained import without_record
from agent_eval.measure.comparison import CaseCounts
from agent_eval.measure.domain import OutOfDomain
from agent_eval.records.plan import planned_numbers
from agent_eval.records.problems import EvidenceFault

_COLUMN = {"pass": "passed", "fail": "failed", "void": "void"}


def case_counts(reader: EvidenceReader) -> dict[str, CaseCounts]:
    """Counts of every planned case, in the order of the plan; they add up to the planned trials of the case.

    A case of which a shard or a rerun plans no trial is not in it.

    A sealed directory's summary is what its manifest vouches for, and is enough. Of an unsealed one the finished
    trials count, those started and never finished are interrupted, and the rest is unrun. Raises EvidenceFault when the records do not add up.
    """
    planned = {case["id"]: len(planned_numbers(reader.plan, case["id"])) for case in reader.plan["cases"]}
    planned = {case_id: trials for case_id, trials in planned.items() if trials}
    if reader.sealed:
        found = (reader.summary or {}).get("cases")
        if not isinstance(found, dict):
            raise EvidenceFault.one("summary.json", "has no counts per case")
        return {case_id: _summed(case_id, found.get(case_id), trials) for case_id, trials in planned.items()}
    counted: dict[str, dict[str, int]] = {case_id: {} for case_id in planned}
    for trial in reader.trials():
        judgment = trial.record.get("judgment") or {}
        column = "interrupted" if judgment.get("cause") == "interrupted" else _COLUMN.get(str(judgment.get("verdict")))
        if column is None:
            raise EvidenceFault.one(f"trials/{trial.name}/trial.json", "has no verdict")
        counted[trial.case_id][column] = counted[trial.case_id].get(column, 0) + 1
    for case_id, _ in without_record(reader):
        counted[case_id]["interrupted"] = counted[case_id].get("interrupted", 0) + 1
    return {case_id: CaseCounts(**columns, unrun=planned[case_id] - sum(columns.values())) for case_id, columns in counted.items()}


def _summed(case_id: str, found: object, trials: int) -> CaseCounts:
    where = f"summary.json, case {case_id}"
    if not isinstance(found, dict):
        raise EvidenceFault.one(where, "is not counted")
    try:
        counts = CaseCounts(*(found.get(name) for name in CaseCounts.__slots__))  # type: ignore[arg-type]
    except OutOfDomain as error:
        raise EvidenceFault.one(where, str(error)) from None
    if counts.planned != trials:
        raise EvidenceFault.one(where, f"counts {counts.planned} trials where the plan has {trials}")
    return counts
