"""Counts of a run from what is on disk, sealed or not.

Owns reading the journal for its counts. A trial that was started and never finished is
interrupted; one that was planned and never started is unrun.
"""

from __future__ import annotations

from agent_eval.evidence.reader import EvidenceReader, read_journal


def status(reader: EvidenceReader) -> dict[str, object]:
    """``planned``, ``finished``, ``passed``, ``failed``, ``void``, ``interrupted``, ``unrun``, ``sealed``.

    planned = passed + failed + void + interrupted + unrun, always.
    """
    summary = reader.summary if reader.sealed else None
    counts = _from_journal(reader) if summary is None else {name: summary[name] for name in _COUNTS}
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


def _from_journal(reader: EvidenceReader) -> dict[str, int]:
    counts = dict.fromkeys(_COUNTS, 0)
    open_trials: set[tuple[str, int]] = set()
    for event in read_journal(reader.path):
        trial = (event.get("case_id"), event.get("number"))
        if event.get("event") == "started":
            open_trials.add(trial)
        elif event.get("event") == "finished":
            open_trials.discard(trial)
            interrupted = event.get("cause") == "interrupted"
            counts["interrupted" if interrupted else _COLUMN[event["verdict"]]] += 1
    counts["interrupted"] += len(open_trials)
    return counts
