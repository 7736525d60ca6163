"""The verdict on one checker run: process facts and the owner's report, nothing between them.

Owns reading an owner report and the rule of when a check passes. What the report
says about the domain is the owner's; it is copied, never weighed.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_eval.records import strict_json
from agent_eval.records.judgment import Basis, CheckResult, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome, ReportState, StopReason

REPORT_FILE = "owner-report.json"
_OUTCOME = "trial.json#/outcome"


@dataclass(frozen=True, slots=True)
class OwnerReport:
    """A report that was read: ``passed`` decides, ``checks`` are the owner's own."""

    passed: bool
    checks: tuple[CheckResult, ...]


class ReportError(ValueError):
    """The report cannot be used; the text says why."""


def read_report(data: bytes, required_checks: tuple[str, ...] = ()) -> OwnerReport:
    """Read an owner report strictly.

    A JSON object with Boolean ``passed``; ``checks``, when there, is an array of objects with a non-empty
    ``id`` that occurs once and Boolean ``passed``; ``limits``, when there, an array of strings. With
    ``required_checks`` the ids must be exactly those. Raises :class:`ReportError`.
    """
    try:
        value = strict_json.parse_object(data)
    except strict_json.JsonError as error:
        raise ReportError(str(error)) from None
    if "passed" not in value:
        raise ReportError("no field 'passed'")
    if not isinstance(value["passed"], bool):
        raise ReportError("'passed' is not true or false")
    checks = _read_checks(value.get("checks", []))
    limits = value.get("limits", [])
    if not isinstance(limits, list) or not all(isinstance(item, str) for item in limits):
        raise ReportError("'limits' is not an array of strings")
    found = {check.id for check in checks}
    if required_checks and found != set(required_checks):
        missing = sorted(set(required_checks) - found)
        surplus = sorted(found - set(required_checks))
        parts = [f"required checks missing: {', '.join(missing)}"] if missing else []
        parts += [f"checks that the case does not name: {', '.join(surplus)}"] if surplus else []
        raise ReportError("; ".join(parts))
    return OwnerReport(value["passed"], checks)


def _read_checks(value: object) -> tuple[CheckResult, ...]:
    if not isinstance(value, list):
        raise ReportError("'checks' is not an array")
    checks: dict[str, CheckResult] = {}
    for index, item in enumerate(value):
        if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
            raise ReportError(f"/checks/{index} has no 'id'")
        if not isinstance(item.get("passed"), bool):
            raise ReportError(f"/checks/{index}/passed is not true or false")
        if not isinstance(item.get("detail", ""), str):
            raise ReportError(f"/checks/{index}/detail is not a string")
        if item["id"] in checks:
            raise ReportError(f"check id {item['id']!r} occurs twice")
        status = "pass" if item["passed"] else "fail"
        pointer = f"{REPORT_FILE}#/checks/{index}"
        checks[item["id"]] = CheckResult(item["id"], status, item.get("detail", ""), (pointer,))
    return tuple(checks.values())


def judge_check(
    outcome: Outcome,
    report: bytes | None,
    identity_changes: tuple[str, ...],
    *,
    required_checks: tuple[str, ...] = (),
    leaks_fail: bool = False,
) -> Judgment:
    """The judgment of one checker run: a pass, or a fail with every reason that holds.

    ``report`` is the bytes that were kept, ``identity_changes`` what changed between the looks before and after.
    """
    failures = process_failures(outcome)
    checks: tuple[CheckResult, ...] = ()
    attested = False
    if outcome.start_error is None:
        problem, read = _report_result(outcome, report, required_checks)
        if problem is not None:
            failures.append(problem)
        if read is not None:
            checks = read.checks
            attested = True
            if not read.passed:
                failed = [check.id for check in checks if check.status == "fail"]
                detail = f"failed checks: {', '.join(failed)}" if failed else "the owner's report says passed: false"
                failures.append(Failure("owner-failed", detail, (f"{REPORT_FILE}#/passed",)))
    if identity_changes:
        failures.append(Failure("identity-changed", "; ".join(identity_changes), ("trial.json#/identity",)))
    if leaks_fail and outcome.tree.leaked:
        failures.append(Failure("leaky", f"{outcome.tree.leaked} processes left behind", (f"{_OUTCOME}/tree",)))
    return Judgment(
        Verdict.FAIL if failures else Verdict.PASS,
        Basis.OWNER_ATTESTED if attested else Basis.RECOMPUTED,
        tuple(failures),
        checks,
    )


def process_failures(outcome: Outcome) -> list[Failure]:
    """The reasons in how a process ended: every one that holds, in a fixed order."""
    failures = []
    if outcome.start_error is not None:
        error = outcome.start_error
        failures.append(Failure("start-failed", f"{error.stage}: {error.message}", (f"{_OUTCOME}/start_error",)))
    if outcome.stop_reason is StopReason.TIMEOUT:
        failures.append(Failure("timeout", "stopped at its time limit", (f"{_OUTCOME}/stop_reason",)))
    if outcome.stop_reason is StopReason.OUTPUT_LIMIT:
        kept = outcome.stdout.kept_bytes + outcome.stderr.kept_bytes
        failures.append(Failure("output-limit", f"{kept} bytes kept, more were offered", (f"{_OUTCOME}/stop_reason",)))
    if outcome.exit_code:
        failures.append(Failure("nonzero-exit", f"exit code {outcome.exit_code}", (f"{_OUTCOME}/exit_code",)))
    if outcome.signal is not None and outcome.stop_reason is None:
        failures.append(Failure("signalled", f"signal {outcome.signal}, not sent by the harness", (f"{_OUTCOME}/signal",)))
    return failures


def _report_result(
    outcome: Outcome, report: bytes | None, required_checks: tuple[str, ...]
) -> tuple[Failure | None, OwnerReport | None]:
    if outcome.report.state is ReportState.REFUSED:
        return Failure("invalid-report", outcome.report.reason or "refused", (f"{_OUTCOME}/report",)), None
    if report is None:
        return Failure("missing-report", "the checker wrote no report", (f"{_OUTCOME}/report",)), None
    try:
        return None, read_report(report, required_checks)
    except ReportError as error:
        return Failure("invalid-report", str(error), (REPORT_FILE,)), None
