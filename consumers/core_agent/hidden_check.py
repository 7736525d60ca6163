"""A hidden checker on an after-state, when the subject's processes are gone.

Owns its two stages, each a supervised command in its own new private folder. The *probe* runs
what the subject left, so everything in its process may be the subject's: it is told the
inputs and nothing that would be worth forging. When its whole tree is gone, the *program*
compares what the probe printed with what it should be; it never runs anything of the
subject's, and neither its source nor the expected values existed on disk here before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Protocol

from agent_eval import Command, Outcome, ReportState, Scratch, StopReason, build_environment, digests, process_verdict, strict_json

from .realise import Realised
from .scenario import HiddenCheck

REPORT = "checks/report.json"
PROGRAM = "checks/program.py"
PROBE = "checks/probe.py"
PROBE_OUTPUT = "checks/probe-output.bin"
INPUTS = "checks/inputs.json"
SPEC = "checks/spec.json"
MAX_CHECK_OUTPUT_BYTES = 1 << 20

# -I: no PYTHON* variables, no current folder and no user packages on the path; -S: no site packages, no .pth
# files; -B: nothing is written beside the sources. What a subject leaves in a workspace is never imported by name.
_INTERPRETER = (sys.executable, "-I", "-S", "-B")


class EvidenceFolder(Protocol):
    """Where a trial's files go: ``TrialContext.folder``."""

    path: str

    def write(self, name: str, data: bytes) -> str:
        """Write one new file; returns its digest."""

    def adopt(self, name: str, sha256: str, content: bytes | None = None) -> None:
        """Count a file that the supervisor wrote."""


def run_hidden_check(
    folder: EvidenceFolder, hidden: HiddenCheck, workspace: str, realised: Realised
) -> Generator[Command, Outcome, dict[str, object]]:
    """Run both stages and keep sources, data, output and report below ``checks/`` of ``folder``.

    Returns the record for ``trial.json``: digests, and the outcome of each stage. An interrupt ends it early, without a report.
    """
    inputs, spec = strict_json.pretty(realised.hidden_inputs), strict_json.pretty(realised.hidden_spec)
    record: dict[str, object] = {"inputs_sha256": folder.write(INPUTS, inputs), "probe_sha256": None}
    output = b""
    if hidden.probe is not None:
        record["probe_sha256"] = folder.write(PROBE, hidden.probe)
        with _private_folder() as private:
            path = os.path.join(folder.path, PROBE_OUTPUT)
            files = {"probe.py": hidden.probe, "inputs.json": inputs}
            arguments = (workspace, os.path.join(private.path, "inputs.json"))
            outcome = yield _stage(private, files, "probe.py", arguments, hidden.timeout_s, stdout_path=path)
        record["probe_outcome"] = outcome.to_json()
        if outcome.stdout.sha256 is not None and outcome.stdout.write_error is None:
            folder.adopt(PROBE_OUTPUT, outcome.stdout.sha256, outcome.stdout.content)
            with open(path, "rb") as stream:
                output = stream.read()
        if outcome.stop_reason is StopReason.INTERRUPTED:
            return record
    # Only now: the probe could have read the evidence.
    record["program_sha256"] = folder.write(PROGRAM, hidden.program)
    record["spec_sha256"] = folder.write(SPEC, spec)
    with _private_folder() as private:
        files = {"program.py": hidden.program, "spec.json": spec, "output": output}
        report = os.path.join(private.subfolder("report"), "report.json")
        arguments = (workspace, os.path.join(private.path, "spec.json"), os.path.join(private.path, "output"), report)
        outcome = yield _stage(
            private,
            files,
            "program.py",
            arguments,
            hidden.timeout_s,
            report_source=report,
            report_path=os.path.join(folder.path, REPORT),
        )
    record["program_outcome"] = outcome.to_json()
    if outcome.report.state is ReportState.KEPT and outcome.report.write_error is None:
        folder.adopt(REPORT, outcome.report.sha256, outcome.report.content)
    return record


def _private_folder() -> Scratch:
    try:
        return Scratch()
    except OSError:
        # A subject that removed the folder for temporary files must not escape its check by that.
        return Scratch("/tmp")


def _stage(
    private: Scratch, files: Mapping[str, bytes], program: str, arguments: tuple[str, ...], timeout_s: float, **paths: str
) -> Command:
    for name, data in files.items():
        with open(os.path.join(private.path, name), "xb") as stream:
            stream.write(data)
    home = private.subfolder("home")
    return Command(
        argv=(*_INTERPRETER, os.path.join(private.path, program), *arguments),
        cwd=home,
        env=build_environment(home=home, tmpdir=home),
        timeout_s=timeout_s,
        max_output_bytes=MAX_CHECK_OUTPUT_BYTES,
        **paths,
    )


def digests_hold(record: Mapping[str, object], case: Mapping[str, object], read: Callable[[str], bytes | None]) -> bool:
    """Whether the retained check is the one that ``case`` names, on retained sources and data that are still those."""
    wanted = case["hidden_check"]
    if any(record.get(key) != wanted[key] for key in ("program_sha256", "probe_sha256")):
        return False
    kept = {PROGRAM: "program_sha256", INPUTS: "inputs_sha256", SPEC: "spec_sha256"}
    if wanted["probe_sha256"] is not None:
        kept[PROBE] = "probe_sha256"
    return all((data := read(name)) is not None and digests.sha256_bytes(data) == record[key] for name, key in kept.items())


def report_of(data: bytes | None) -> dict[str, object] | None:
    """A retained report as the section ``hidden`` of the evidence, ``None`` when there is no valid one."""
    if data is None:
        return None
    try:
        report = process_verdict.read_report(data)
    except process_verdict.ReportError:
        return None
    checks = [{"id": check.id, "passed": check.status == "pass", "detail": check.detail} for check in report.checks]
    return {"passed": report.passed, "checks": checks}
