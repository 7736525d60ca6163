"""Counts of a run from what is on disk, sealed or not.

Owns the counts of an unsealed directory, from the records that its journal vouches for. A trial that was started and never finished is
interrupted; one that was planned and never started is unrun.
"""

from __future__ import annotations

from agent_eval.evidence import layout
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records.problems import EvidenceFault


def status(reader: EvidenceReader) -> dict[str, object]:
    """``planned``, ``finished``, ``passed``, ``failed``, ``void``, ``interrupted``, ``unrun``, ``sealed``.

    planned = passed + failed + void + interrupted + unrun, always.
    """
    summary = reader.summary if reader.sealed else None
    counts = _from_journal(reader) if summary is None else _from_summary(summary)
    done = counts["passed"] + counts["failed"] + counts["void"]
    planned = reader.plan["planned"]
    return {
        "planned": planned,
        "finished": done,
        **counts,
        "unrun": planned - done - counts["interrupted"],
        "sealed": reader.sealed,
        "seal": reader.seal,
        "run_id": reader.plan["run_id"],
        "consumer": reader.plan["consumer"],
        "kind": reader.plan.get("kind", "run"),
    }


_COUNTS = ("passed", "failed", "void", "interrupted")
_COLUMN = {"pass": "passed", "fail": "failed", "void": "void"}


def _from_summary(summary: dict) -> dict[str, int]:
    if not all(type(summary.get(name)) is int for name in _COUNTS):
        raise EvidenceFault.one(layout.SUMMARY, "does not count what a run counts")
    return {name: summary[name] for name in _COUNTS}


def _from_journal(reader: EvidenceReader) -> dict[str, int]:
    """Each planned trial once: by its record when the journal vouches for it, else interrupted when it was started."""
    counts = dict.fromkeys(_COUNTS, 0)
    counts["interrupted"] = len(reader.unfinished)
    for trial in reader.trials():
        judgment = trial.record.get("judgment")
        if not isinstance(judgment, dict) or judgment.get("verdict") not in _COLUMN:
            raise EvidenceFault.one(f"trials/{trial.name}", "not the record of a judged trial")
        interrupted = judgment.get("cause") == "interrupted"
        counts["interrupted" if interrupted else _COLUMN[judgment["verdict"]]] += 1
    return counts
