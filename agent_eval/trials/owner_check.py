"""Running an owner's checker from a case: the machinery of every consumer that has a checker.

Owns one trial of a check: the look at identities before and after, the command, the
cleanup. The judgment is :func:`agent_eval.grade.checker.judge_check`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from agent_eval.evidence import layout
from agent_eval.grade.checker import judge_check
from agent_eval.grade.trial_evidence import TrialEvidence
from agent_eval.records import strict_json
from agent_eval.records.case import MAX_CASE_BYTES, CheckCase, expand, parse_case
from agent_eval.records.input_files import read_input
from agent_eval.records.judgment import Judgment
from agent_eval.records.outcome import Outcome
from agent_eval.records.plan import Limits, PlannedCase, PlannedRun
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem
from agent_eval.supervise.command import Command
from agent_eval.supervise.environment import build_environment
from agent_eval.trials.consumer import TrialContext, TrialResult
from agent_eval.trials.identity import IdentityFile, IdentityTracker, changes, command_files, departures


def read_case_file(path: str, allowed_shapes: tuple[str, ...] = ()) -> tuple[PlannedCase | None, CheckCase | None, list[Problem]]:
    """A case file as it goes into a plan, or the problems that keep it out."""
    try:
        data = read_input(path, max_bytes=MAX_CASE_BYTES, fix="give the path of a case; run.py check --init FILE writes one")
    except InvalidInput as error:
        return None, None, list(error.problems)
    case, problems = parse_case(data, path, os.path.dirname(os.path.abspath(path)), allowed_shapes)
    if case is None:
        return None, None, problems
    planned = PlannedCase(case.id, data, case.scope, case.not_scored, case.critical)
    return planned, case, []


def duplicate_ids(cases: list[PlannedCase]) -> list[Problem]:
    """A problem for every id that more than one case has."""
    count = Counter(case.id for case in cases)
    return [Problem(name, f"{number} cases have this id", "ids are unique within a run") for name, number in count.items() if number > 1]


def plan_checks(
    pairs: list[tuple[PlannedCase, CheckCase]], trials: int, limits: Limits, timeout_given: bool, notes: tuple[str, ...] = ()
) -> PlannedRun:
    """A plan of checks. The subject's digests are of the files that decide what each command does.

    A timeout given on the command line goes before that of a case. The ids must be unique: see :func:`duplicate_ids`.
    """
    checks = {planned.id: case for planned, case in pairs}
    private = OwnerChecks(checks, limits, timeout_given)
    cases = tuple(replace(planned, commands_s=private.commands_s(case)) for planned, case in pairs)
    return PlannedRun(cases, trials, limits, subject=private.subject(), notes=notes, private=private)


class OwnerChecks:
    """The cases of a run with what their trials share."""

    def __init__(self, checks: dict[str, CheckCase], limits: Limits, timeout_given: bool) -> None:
        self._checks = checks
        self._limits = limits
        self._timeout_given = timeout_given
        self._files: dict[str, list[IdentityFile]] = {}
        self._environments: dict[str, dict[str, str]] = {}

    def subject(self) -> dict[str, object]:
        """Per case: role, name and digest of what decides what the command does."""
        tracker = IdentityTracker()
        subject: dict[str, object] = {}
        for case_id, case in self._checks.items():
            entries, _ = tracker.look(self._identity_files(case, os.path.sep))
            subject[case_id] = [
                {"role": entry["role"], "name": os.path.basename(str(entry["path"])), "sha256": entry.get("sha256")} for entry in entries
            ]
        return subject

    def commands_s(self, case: CheckCase) -> float:
        """How long the command of a trial and its cleanup may take, graces included."""
        return (self._timeout_s(case) + self._limits.grace_s) * (2 if case.cleanup else 1)

    def _timeout_s(self, case: CheckCase) -> float:
        return self._limits.timeout_s if case.timeout_s is None or self._timeout_given else case.timeout_s

    def environment(self, case: CheckCase) -> dict[str, str]:
        """The case's environment; a checker keeps the user's HOME and TMPDIR."""
        known = self._environments.get(case.id)
        if known is None:
            home = os.environ.get("HOME", "/")
            known = build_environment(home=home, tmpdir=os.environ.get("TMPDIR", "/tmp"), pass_names=case.env)
            self._environments[case.id] = known
        return known

    def _identity_files(self, case: CheckCase, scratch: str) -> list[IdentityFile]:
        known = self._files.get(case.id)
        if known is not None:
            return known
        cwd = expand(case.cwd, scratch=scratch) if case.cwd else scratch
        argv = [expand(argument, scratch=scratch, report=os.devnull) for argument in case.command]
        files = command_files(argv, self.environment(case).get("PATH", os.defpath), cwd)
        named = {file.path for file in files}
        files += [IdentityFile(path, "identity_file") for path in dict.fromkeys(case.identity_files) if path not in named]
        if not any("{scratch}" in argument for argument in case.command):
            self._files[case.id] = files
        return files

    def run_trial(self, trial: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """One trial of a check: look, run, look again, clean up."""
        case = self._checks[trial.case.id]
        scratch = trial.scratch.path
        report = trial.scratch.expect(layout.OWNER_REPORT)
        cwd = expand(case.cwd, scratch=scratch) if case.cwd else scratch
        timeout_s = self._timeout_s(case)
        folder = trial.folder.path
        files = self._identity_files(case, scratch)
        before, reused = trial.identity.look(files)
        command = Command(
            argv=tuple([expand(argument, scratch=scratch, report=report) for argument in case.command]),
            cwd=cwd,
            env=self.environment(case),
            timeout_s=timeout_s,
            max_output_bytes=self._limits.max_output_bytes,
            grace_s=self._limits.grace_s,
            stdout_path=f"{folder}/{layout.STDOUT}",
            stderr_path=f"{folder}/{layout.STDERR}",
            report_source=report,
            report_path=f"{folder}/{layout.OWNER_REPORT}",
        )
        outcome = yield command
        adopt_streams(trial, outcome)
        after, reused_after = trial.identity.look(files)
        record: dict[str, object] = {}
        if case.cleanup:
            argv = tuple(expand(argument, scratch=scratch) for argument in case.cleanup)
            cleaned = yield Command(
                argv=argv, cwd=cwd, env=self.environment(case), timeout_s=timeout_s,
                max_output_bytes=self._limits.max_output_bytes, grace_s=self._limits.grace_s,
            )
            record["cleanup"] = {"argv": list(argv), "outcome": cleaned.to_json()}
        return TrialResult(outcome, {"before": before, "after": after, "reused": reused, "reused_after": reused_after}, record)


def adopt_streams(trial: TrialContext, outcome: Outcome) -> None:
    """Count the files that the supervisor wrote for a trial's main command."""
    streams = ((layout.STDOUT, outcome.stdout), (layout.STDERR, outcome.stderr))
    for name, stream in streams:
        if stream.sha256 is not None:
            trial.folder.adopt(name, stream.sha256, stream.content)
    report = outcome.report
    if report.sha256 is not None:
        trial.folder.adopt(layout.OWNER_REPORT, report.sha256, report.content)


def judge(evidence: TrialEvidence) -> Judgment:
    """The judgment of a check from its retained evidence. Raises ``EvidenceFault`` when the case cannot be read."""
    try:
        required, leaks_fail, fixed = _judging_fields(evidence.case_bytes)
    except strict_json.JsonError as error:
        raise EvidenceFault.one(layout.case_file(evidence.case_id), str(error)) from None
    outcome = evidence.outcome
    if outcome is None:
        raise EvidenceFault.one(f"{evidence.case_id}/{evidence.number:03d}", "is no trial of a checker: it has no outcome")
    identity = evidence.record["identity"]
    planned: Any = (evidence.plan.get("subject") or {}).get(evidence.case_id, ()) if fixed else ()
    return judge_check(
        outcome,
        evidence.read(layout.OWNER_REPORT),
        departures(planned, identity["before"]) or changes(identity["before"], identity["after"]),
        required_checks=required,
        leaks_fail=leaks_fail,
    )


@lru_cache(maxsize=16)  # trials of one case come one after another
def _judging_fields(case_bytes: bytes) -> tuple[tuple[str, ...], bool, bool]:
    """What of a case decides a judgment: the required checks, whether leaks fail, and whether its files lie at fixed places.

    The paths in it need not exist any more.
    """
    case: dict[str, Any] = strict_json.parse_object(case_bytes)
    fixed = not any("{scratch}" in argument for argument in case.get("command", ()))
    return tuple(case.get("required_checks", ())), case.get("leaks") == "fail", fixed
