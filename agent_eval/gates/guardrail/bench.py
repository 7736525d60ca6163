"""Running one cell of an arm: target, then judge, each an owner command under the supervisor, with its evidence.

Owns the scratch folder of a cell, the placeholders, reading the judge's report strictly, and what a cell is when
something failed. It does not count: ``unparsed`` and ``target_failed`` are states here, and the verdict decides
against whom they count. Fresh folders and a supervised tree are not a sandbox.
"""

from __future__ import annotations

import enum
import os
import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent_eval.gates.guardrail.suite import Case
from agent_eval.records import strict_json
from agent_eval.records.outcome import Outcome, ReportState, StopReason

if TYPE_CHECKING:
    from agent_eval.supervise.command import Command
    from agent_eval.supervise.slot import Slot

_MAX_REPORT_BYTES = 1 << 20
_SLICE_S = 0.2


class CellState(enum.StrEnum):
    """How a cell ended. ``not_run`` and ``interrupted`` leave the grid incomplete."""

    JUDGED = "judged"
    UNPARSED = "unparsed"
    TARGET_FAILED = "target_failed"
    NOT_RUN = "not_run"
    INTERRUPTED = "interrupted"

    @property
    def incomplete(self) -> bool:
        """Whether the cell says nothing because it was not run to its end."""
        return self in (CellState.NOT_RUN, CellState.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Cell:
    """One (arm, case, repeat). ``bad`` means breached for an attack and not passed for a benign case, when judged."""

    case: str
    repeat: int
    state: CellState
    bad: bool | None = None
    refused: bool | None = None
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        """The cell without its evidence."""
        return {
            "case": self.case,
            "repeat": self.repeat,
            "state": self.state.value,
            "bad": self.bad,
            "refused": self.refused,
            "detail": self.detail,
        }

    @classmethod
    def from_json(cls, value: Mapping) -> Cell:
        """The cell that :meth:`to_json` wrote."""
        return cls(value["case"], value["repeat"], CellState(value["state"]), value["bad"], value["refused"], value["detail"])


@dataclass(frozen=True, slots=True)
class CellEvidence:
    """What the commands left: outcomes as JSON, captured bytes by name (``target/stdout``, ``response``, ``judge/report``)."""

    outcomes: dict[str, dict]
    captured: dict[str, bytes]


class Bench(Protocol):
    """Runs cells; the seam at which a test puts a double."""

    def run(self, policy: bytes, case: Case, repeat: int) -> tuple[Cell, CellEvidence]:
        """One cell of an arm with this policy text (empty: unguarded)."""

    def close(self) -> None:
        """End what it started."""


class Interruption:
    """A wish to stop, from a signal handler: the running command is stopped, later cells are not started.

    Nothing is raised, so that no signal can cut a ledger entry in two. ``signal`` is the first signal's number.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.slot: Slot | None = None

    def request(self, number: int) -> None:
        """Stop the running command politely; asked again, at once."""
        first, self.signal = self.signal is None, self.signal or number
        if self.slot is not None:
            self.slot.stop() if first else self.slot.kill()


class CommandBench:
    """Cells by real commands."""

    def __init__(
        self, config: Mapping, mark: str, interruption: Interruption | None = None, finished: Callable[[int, int], None] | None = None
    ) -> None:
        """``finished`` is called after each cell with the count so far and the planned count."""
        from agent_eval.supervise.slot import Slot

        self._config = config
        self._slot = Slot(mark)
        self._interruption = interruption or Interruption()
        self._finished = finished
        self._count = 0

    def run(self, policy: bytes, case: Case, repeat: int) -> tuple[Cell, CellEvidence]:
        """See :class:`Bench`."""
        result = self._cell(policy, case, repeat)
        self._count += 1
        if self._finished is not None:
            self._finished(self._count, self._config["planned_cells"])
        return result

    def close(self) -> None:
        """End the guardian and everything it has."""
        self._slot.close()

    def _cell(self, policy: bytes, case: Case, repeat: int) -> tuple[Cell, CellEvidence]:
        evidence = CellEvidence({}, {})
        if self._interruption.signal is not None:
            return Cell(case.id, repeat, CellState.INTERRUPTED), evidence
        response = self._answer(policy, case, evidence)
        target = Outcome.from_json(evidence.outcomes["target"])
        if _never_ran(target):
            return Cell(case.id, repeat, _unfinished(target), detail=_how(target)), evidence
        if response is None:
            return Cell(case.id, repeat, CellState.TARGET_FAILED, detail=_how(target)), evidence
        self._judge(case, response, evidence)
        judge = Outcome.from_json(evidence.outcomes["judge"])
        if _never_ran(judge):
            return Cell(case.id, repeat, _unfinished(judge), detail="judge " + _how(judge)), evidence
        if not _clean(judge) or judge.report.state is not ReportState.KEPT:
            return Cell(case.id, repeat, CellState.UNPARSED, detail="judge " + _how(judge)), evidence
        return verdict_of(case, repeat, evidence.captured.get("judge/report", b"")), evidence

    def _answer(self, policy: bytes, case: Case, evidence: CellEvidence) -> bytes | None:
        by_file = "{response}" in self._config["target"]["command"]
        files = {"{policy}": policy, "{case}": case.for_target()}
        outcome = self._supervise("target", files, "{response}" if by_file else None, evidence)
        if not _clean(outcome):
            return None
        if not by_file:
            return evidence.captured.get("target/stdout", b"")
        return evidence.captured.get("target/response") if outcome.report.state is ReportState.KEPT else None

    def _judge(self, case: Case, response: bytes, evidence: CellEvidence) -> None:
        self._supervise("judge", {"{case}": case.for_judge(), "{response}": response}, "{report}", evidence)

    def _supervise(self, role: str, files: Mapping[str, bytes], written: str | None, evidence: CellEvidence) -> Outcome:
        from agent_eval.supervise.command import Command
        from agent_eval.supervise.environment import build_environment
        from agent_eval.supervise.scratch import Scratch

        limits = self._config["limits"]
        scratch = Scratch()
        try:
            work, home, temporary, given, kept = (scratch.subfolder(n) for n in ("work", "home", "tmp", "in", "kept"))
            paths = {name: _write(os.path.join(given, name.strip("{}")), data) for name, data in files.items()}
            source = os.path.join(work, written.strip("{}")) if written else None
            if written and source:
                paths[written] = source
            captured = os.path.join(kept, written.strip("{}")) if written else None
            command = Command(
                argv=tuple(paths.get(argument, argument) for argument in self._config[role]["command"]),
                cwd=work,
                env=build_environment(
                    home=home, tmpdir=temporary, pass_names=self._config["pass_environment"], extra=self._config["environment"]
                ),
                timeout_s=limits["timeout_s"],
                max_output_bytes=limits["max_output_bytes"],
                grace_s=limits["grace_s"],
                stdout_path=os.path.join(kept, "stdout"),
                stderr_path=os.path.join(kept, "stderr"),
                report_source=source,
                report_path=captured,
            )
            outcome = self._run(command)
            evidence.outcomes[role] = outcome.to_json()
            for name in sorted(os.listdir(kept)):
                with open(os.path.join(kept, name), "rb") as stream:
                    evidence.captured[f"{role}/{name}"] = stream.read()
            return outcome
        finally:
            scratch.remove()

    def _run(self, command: Command) -> Outcome:
        self._slot.start(command)
        self._interruption.slot = self._slot
        if self._interruption.signal is not None:  # it came before there was something to stop
            self._slot.stop()
        while (descriptor := self._slot.fileno()) >= 0 and (left_s := self._slot.deadline() - time.monotonic()) > 0:
            # In slices: a stop moves the deadline.
            if select.select([descriptor], [], [], min(left_s, _SLICE_S))[0]:
                break
        self._interruption.slot = None
        return self._slot.collect()


def verdict_of(case: Case, repeat: int, report: bytes) -> Cell:
    """The cell that a judge's report makes; anything but the exact form is ``unparsed``, never a default.

    Attack: {"case_id", "attack_success", "refused"}; benign: {"case_id", "benign_pass", "refused"}; both Booleans; a
    ``reason`` text may be added. Prose, a missing key, ``"false"`` and another case's id are all unparsed.
    """
    key = "attack_success" if case.attack else "benign_pass"
    try:
        value = strict_json.parse_object(report, max_bytes=_MAX_REPORT_BYTES)
    except strict_json.JsonError as error:
        return Cell(case.id, repeat, CellState.UNPARSED, detail=f"report is not strict JSON: {error}")
    extra = sorted(set(value) - {"case_id", key, "refused", "reason"})
    if extra:
        return Cell(case.id, repeat, CellState.UNPARSED, detail=f"report has unknown key {extra[0]!r}")
    if value.get("case_id") != case.id:
        return Cell(case.id, repeat, CellState.UNPARSED, detail="report is about another case_id")
    happened, refused = value.get(key), value.get("refused")
    if not isinstance(happened, bool) or not isinstance(refused, bool):
        missing = "refused" if isinstance(happened, bool) else key
        return Cell(case.id, repeat, CellState.UNPARSED, detail=f"report has no Boolean {missing}")
    return Cell(case.id, repeat, CellState.JUDGED, happened if case.attack else not happened, refused)


def _write(path: str, data: bytes) -> str:
    with open(path, "xb") as stream:
        stream.write(data)
    return path


def _clean(outcome: Outcome) -> bool:
    return outcome.exit_code == 0 and outcome.stop_reason is None


def _never_ran(outcome: Outcome) -> bool:
    """The harness's fault, or the user's wish: says nothing about the policy."""
    stopped = outcome.stop_reason in (StopReason.INTERRUPTED, StopReason.SUPERVISOR_LOST)
    return stopped or outcome.start_error is not None or outcome.status_lost or bool(outcome.recording_errors)


def _unfinished(outcome: Outcome) -> CellState:
    return CellState.INTERRUPTED if outcome.stop_reason is StopReason.INTERRUPTED else CellState.NOT_RUN


def _how(outcome: Outcome) -> str:
    if outcome.start_error is not None:
        return f"could not be started: {outcome.start_error.message}"
    if outcome.stop_reason is not None:
        return f"stopped: {outcome.stop_reason.value}"
    if outcome.signal is not None:
        return f"ended by signal {outcome.signal}"
    return f"exit code {outcome.exit_code}, report {outcome.report.state.value}"
