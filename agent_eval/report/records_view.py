"""What reports show of an evidence directory, as plain values that need no further reading.

Owns the one pass over the trials' records that every format shares: the counts, a short
line per trial (planned and never started ones included), and where the directory came from. It reads
no captured output (``trial_page`` does) and judges nothing. A directory made by somebody
else is only as well-formed as they made it: a record of another shape is an
:class:`EvidenceFault` that names it, never a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_eval.grade.retained import without_record
from agent_eval.records.plan import planned_numbers
from agent_eval.records.problems import EvidenceFault, Problem

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader, RetainedTrial
    from agent_eval.records.judgment import Judgment

COUNTS = ("planned", "passed", "failed", "void", "interrupted", "unrun")
VERDICTS = ("pass", "fail", "void", "interrupted", "unrun")


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One planned trial in short. ``verdict`` is one of :data:`VERDICTS`.

    ``details`` holds (reason, detail) pairs, a void's cause first. ``wall_s`` and ``output_bytes`` (kept bytes
    of stdout, stderr and report together) are ``None`` where nothing ran. ``leaked`` and ``unreaped`` count processes.
    ``recorded`` is false for a trial without ``trial.json``: never started, or its record could not be written.
    """

    case_id: str
    number: int
    verdict: str
    details: tuple[tuple[str, str], ...] = ()
    basis: str = ""
    wall_s: float | None = None
    output_bytes: int | None = None
    max_rss_bytes: int | None = None
    stop_reason: str | None = None
    leaked: int = 0
    unreaped: int = 0
    identity_changed: bool = False
    recorded: bool = True

    @property
    def name(self) -> str:
        """``case/NNN``, as ``show`` takes it."""
        return f"{self.case_id}/{self.number:03d}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason words, each once."""
        return tuple(dict.fromkeys(reason for reason, _ in self.details))


@dataclass(frozen=True, slots=True)
class RunRecords:
    """Everything short about a run. ``summary`` has the counts of :data:`COUNTS` as integers, ``scopes`` what each case covers."""

    path: str
    seal: str | None
    plan: Mapping
    summary: Mapping
    lines: tuple[TrialLine, ...]
    scopes: Mapping[str, str]

    @property
    def kind(self) -> str:
        """What made the directory: ``run``, ``regrade``, ``recheck``, ``merge`` ..."""
        return str(self.plan.get("kind") or "run")

    @property
    def limits(self) -> Mapping:
        """The plan's limits; empty when it has none."""
        return mapping(self.plan.get("limits"))

    @property
    def cases(self) -> list[tuple[str, Mapping]]:
        """Each case that has planned trials here with its counts in the summary, in the order of the plan."""
        counted = mapping(self.summary.get("cases"))
        here = dict.fromkeys(line.case_id for line in self.lines)
        return [(case_id, mapping(counted.get(case_id))) for case_id in here]

    def scope_of(self, case_id: str) -> str:
        """The scope of a case in the owner's words; empty when none was given."""
        return self.scopes.get(case_id, "")


def read_run(reader: EvidenceReader, summary: Mapping | None = None) -> RunRecords:
    """The records of a run in plan order. ``summary`` stands in for that of an unsealed directory.

    Raises :class:`EvidenceFault` for a summary or a trial record of another shape, and for a summary that disagrees with the records.
    """
    found = reader.summary if summary is None else summary
    if found is None:
        raise EvidenceFault.one("summary.json", "missing")
    for name in COUNTS:
        if type(found.get(name)) is not int:
            raise EvidenceFault.one("summary.json", f"{name} is not a count")
    lost = without_record(reader)
    lines = []
    for case in reader.plan["cases"]:
        for number in planned_numbers(reader.plan, case["id"]):
            trial = reader.trial(case["id"], number)
            lines.append(_line_without(case["id"], number, lost) if trial is None else trial_line(trial))
    _require_agreement(found, lines)
    scopes = {case["id"]: str(case.get("scope") or "") for case in reader.plan["cases"]}
    return RunRecords(reader.path, reader.seal, reader.plan, found, tuple(lines), scopes)


def _line_without(case_id: str, number: int, lost: Mapping[tuple[str, int], Judgment]) -> TrialLine:
    """A trial that has no record: one of those that were started, or unrun."""
    judgment = lost.get((case_id, number))
    if judgment is None:
        return TrialLine(case_id, number, "unrun", recorded=False)
    details = tuple((failure.reason, failure.detail) for failure in judgment.failures)
    verdict = "interrupted" if judgment.cause == "interrupted" else judgment.verdict.value
    return TrialLine(case_id, number, verdict, details, recorded=False)


def _require_agreement(summary: Mapping, lines: list[TrialLine]) -> None:
    """A summary that counts something else than the records show is not shown as the truth."""
    counted = [sum(line.verdict == verdict for line in lines) for verdict in VERDICTS]
    problems = [
        Problem("summary.json", f"{name} is {summary[name]}, the trials' records say {shown}")
        for name, shown in zip(COUNTS, (len(lines), *counted), strict=True)
        if summary[name] != shown
    ]
    if problems:
        raise EvidenceFault(problems)


def retained(reader: EvidenceReader, line: TrialLine) -> RetainedTrial:
    """The trial behind a line whose ``recorded`` is true. Raises :class:`EvidenceFault` when it is gone meanwhile."""
    trial = reader.trial(line.case_id, line.number)
    if trial is None:
        raise EvidenceFault.one(f"trials/{line.name}/trial.json", "vanished while it was read")
    return trial


def trial_line(trial: RetainedTrial) -> TrialLine:
    """One finished trial in short. Raises :class:`EvidenceFault` when its judgment is not of this format."""
    record = trial.record
    judgment = mapping(record.get("judgment"))
    verdict, cause = judgment.get("verdict"), judgment.get("cause")
    if verdict not in ("pass", "fail", "void"):
        raise EvidenceFault.one(f"trials/{trial.name}/trial.json", "holds no verdict")
    outcome = mapping(record.get("outcome"))
    tree = mapping(outcome.get("tree"))
    failures = [mapping(failure) for failure in sequence(judgment.get("failures"))]
    details = [(str(failure.get("reason")), str(failure.get("detail") or "")) for failure in failures]
    if cause and cause not in (reason for reason, _ in details):
        details.insert(0, (str(cause), ""))
    kept = [number(mapping(outcome.get(name)).get("kept_bytes")) for name in ("stdout", "stderr", "report")]
    rss = number(outcome.get("max_rss_bytes"))
    return TrialLine(
        trial.case_id,
        trial.number,
        # The same few words in every record: one object each, for runs of a hundred thousand trials.
        sys.intern("interrupted" if verdict == "void" and cause == "interrupted" else verdict),
        tuple(details),
        sys.intern(str(judgment.get("basis") or "")),
        number(outcome.get("wall_s")),
        int(sum(part or 0 for part in kept)) if outcome else None,
        None if rss is None else int(rss),
        str(outcome["stop_reason"]) if outcome.get("stop_reason") else None,
        int(number(tree.get("leaked")) or 0),
        len(sequence(tree.get("unreaped"))),
        identity_changed(mapping(record.get("identity"))),
    )


def identity_changed(identity: Mapping) -> bool:
    """Whether the identity after the trial is known and differs from that before it."""
    before, after = identity.get("before"), identity.get("after")
    return bool(after) and bool(before) and before != after


def mapping(value: object) -> Mapping:
    """``value`` when it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> list:
    """``value`` when it is an array, else an empty one."""
    return list(value) if isinstance(value, (list, tuple)) else []


def number(value: object) -> float | None:
    """``value`` when it is a number, else ``None``."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def digits(text: object) -> int | None:
    """``text`` as a whole number when it is one to nine ASCII digits, else ``None``: what somebody else wrote may be of any script and length."""
    short = isinstance(text, str) and len(text) <= 9 and text.isascii() and text.isdecimal()
    return int(text) if short else None  # type: ignore[call-overload]


def largest_k(*by_k: Mapping) -> int:
    """The largest k for which pass@k or pass^k of a case is defined, 0 when nothing was judged."""
    return max((k for table in by_k for key in table if (k := digits(key)) is not None), default=0)
