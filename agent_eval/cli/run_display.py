"""Running planned trials in front of a person: progress, results, closing lines."""

from __future__ import annotations

import argparse
import json
import sys
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_eval.measure.summary import Tally, verdict_word
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.judgment import Judgment, Verdict
from agent_eval.records.plan import PlannedRun
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.report.terminal import Progress, TrialRow, closing_lines, escape, summary_table
from agent_eval.report.visible_text import fit
from agent_eval.trials.consumer import Consumer
from agent_eval.trials.recording import FinishedTrial
from agent_eval.trials.run import RunOptions, RunResult
from agent_eval.trials.run import run as run_trials

_MAX_SHOWN = 3
_SHOWN_CELLS = 200


def run_and_print(consumer: Consumer, planned: PlannedRun, options: RunOptions, args: argparse.Namespace) -> int:
    """Run the trials, show progress, print the result; returns the exit code."""
    for note in planned.notes:
        print(escape(note), file=sys.stderr)
    display = Display(args, planned_of(planned, options.plan_facts or {}))
    result = run_trials(consumer, planned, options, display, Tally)
    display.close()
    return finish(result, args, display.failed)


def planned_of(planned: PlannedRun, plan_facts: Mapping[str, Any]) -> int:
    """How many trials a run with these further keys of its plan sets out to do."""
    chosen = plan_facts.get("chosen")
    return planned.planned if chosen is None else sum(len(numbers) for numbers in chosen.values())


class Display:
    """Shows a run's progress on stderr."""

    def __init__(self, args: argparse.Namespace, planned: int) -> None:
        self._progress = Progress(sys.stderr, planned, args.color, args.quiet)
        self.failed: list[tuple[str, Judgment]] = []
        """The first of the plan's trials that did not pass: those that are printed at the end."""
        self._places: list[tuple[int, int]] = []
        self._position: dict[str, int] = {}
        live = not args.quiet and sys.stderr.isatty()
        self.tick: Callable[[], None] | None = self._progress.tick if live else None

    def begun(self, path: str, plan: dict) -> None:
        """The plan is on disk."""
        self._position = {case["id"]: position for position, case in enumerate(plan["cases"])}

    def started(self, case_id: str, number: int) -> None:
        """A trial starts."""
        self._progress.started(case_id, number)

    def finished(self, trial: FinishedTrial) -> None:
        """A trial is recorded."""
        judgment = trial.judgment
        if judgment.verdict is not Verdict.PASS:
            self._keep_first(trial)
        reasons = judgment.reasons if judgment.cause is None else tuple(dict.fromkeys((judgment.cause, *judgment.reasons)))
        wall_s = None if trial.outcome is None else trial.outcome.wall_s
        if trial.kept_scratch is not None:
            print(f"{trial.case_id}/{trial.number:03d}: kept {trial.kept_scratch}", file=sys.stderr)
        self._progress.finished(trial.case_id, trial.number, judgment.verdict.value, reasons, wall_s)

    def _keep_first(self, trial: FinishedTrial) -> None:
        """Which ones are shown must not depend on what finished first, and a run may have a hundred thousand."""
        place = self._position[trial.case_id], trial.number
        index = bisect(self._places, place)
        if index < _MAX_SHOWN:
            self._places.insert(index, place)
            self.failed.insert(index, (f"{trial.case_id}/{trial.number:03d}", trial.judgment))
            del self._places[_MAX_SHOWN:], self.failed[_MAX_SHOWN:]

    def close(self) -> None:
        """Take the live line away."""
        self._progress.close()


def finish(result: RunResult, args: argparse.Namespace, failed: Sequence[tuple[str, Judgment]] = ()) -> int:
    """Print the results of a run; returns its exit code."""
    summary = result.summary
    code = ExitCode(summary["exit_code"])
    interrupted = summary["interrupted_by_signal"] is not None
    for fault in result.faults:
        print(f"error: {escape(str(fault))}", file=sys.stderr)
    verdict = summary["verdict"]
    if result.seal is None and not interrupted:
        code, verdict = ExitCode.EVIDENCE, verdict_word(ExitCode.EVIDENCE)
    if args.json:
        for line in written_formats(result, args):
            print(line, file=sys.stderr)
        print(json.dumps({**summary, "verdict": verdict, "exit_code": int(code), "path": result.path, "seal": result.seal}, sort_keys=True))
        return code
    rows = (TrialRow(case_id, 0, "", (), case["wall_s"]) for case_id, case in summary["cases"].items())
    print(summary_table(result.plan, summary, rows))
    print()
    for line in (*where_to_look(result.path, failed), *written_formats(result, args)):
        print(line)
    print(closing_lines(verdict, result.path, result.seal, code))
    return code


def where_to_look(path: str, failed: Sequence[tuple[str, Judgment]]) -> list[str]:
    """The first reasons of the first trials that did not pass, and the command that says the rest."""
    lines = []
    for name, judgment in failed:
        first = judgment.failures[0]
        lines.append(fit(escape(f"{name}: {first.reason}: {first.detail}"), _SHOWN_CELLS))
    if failed:
        lines.append(f"more: run.py show {escape(path)} {escape(failed[0][0])}")
        lines.append("")
    return lines


def written_formats(result: RunResult, args: argparse.Namespace) -> list[str]:
    """Write the CI formats that were asked for; a line for each. A failure is said, and the run's exit code stands."""
    junit, markdown = getattr(args, "junit", None), getattr(args, "markdown", None)
    if not junit and not markdown:
        return []
    from agent_eval.cli.report import write_after_run

    try:
        return list(write_after_run(result.path, junit, markdown))
    except (InvalidInput, EvidenceFault) as error:
        for problem in error.problems:
            print(f"error: {escape(str(problem))}", file=sys.stderr)
        return []
