"""What a report says, for the tests to ask."""

from __future__ import annotations

import json
from pathlib import Path

from consumers.r_artifacts.verify import build_report, verify


def report_of(folder: Path) -> dict:
    """The report as it would be written: through JSON, so that nothing in it is not JSON."""
    return json.loads(json.dumps(build_report(str(folder), verify(str(folder))), allow_nan=False))


def failed(report: dict) -> set[str]:
    return {check["id"] for check in report["checks"] if not check["passed"]}


def words(report: dict) -> str:
    """Everything that failed checks say, the examples included."""
    return " ".join(f"{check['detail']} {check.get('examples', '')}" for check in report["checks"] if not check["passed"])


def void(report: dict) -> dict[str, str]:
    return {one["id"]: one["reason"] for one in report["not_applicable"]}
