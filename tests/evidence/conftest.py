"""A small evidence directory, written by the real writer."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from agent_eval.evidence.files import Files
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.records.plan import Limits, PlannedCase, PlannedRun

EVALUATOR = {"version": "0", "source_sha256": "0" * 64, "python": "3.11", "platform": "test"}
PASS = {"verdict": "pass", "cause": None, "failures": [], "checks": [], "basis": "recomputed", "grader": {}}


@pytest.fixture
def planned() -> PlannedRun:
    cases = (PlannedCase("a", b'{"id": "a"}'), PlannedCase("b-1", b'{"id": "b-1"}\n'))
    return PlannedRun(cases, 2, Limits())


@pytest.fixture
def write_run(tmp_path: pathlib.Path, planned: PlannedRun) -> Callable[..., EvidenceWriter]:
    """Writes the planned trials, the last one left out; the caller seals."""

    def write(name: str = "run", files: Files | None = None, trials: int = 3) -> EvidenceWriter:
        writer = EvidenceWriter.create(str(tmp_path / name), files)
        writer.write_plan(make_plan("check", planned, ("check",), EVALUATOR), ((c.id, c.data) for c in planned.cases))
        todo = [(case.id, number) for case in planned.cases for number in (1, 2)]
        for case_id, number in todo[:trials]:
            folder = writer.trial(case_id, number)
            writer.journal("started", case_id=case_id, number=number, request={})
            folder.write("stdout.bin", f"{case_id} {number}".encode())
            folder.keep_content(b"content")
            writer.finish(folder, {"case_id": case_id, "number": number, "judgment": PASS})
        return writer

    return write
