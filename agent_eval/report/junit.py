"""JUnit XML: one testcase per planned trial, for the viewers of CI systems.

Owns the mapping (fail is ``failure``, void and interrupted are ``error``, never started is ``skipped``) and
keeping the text legal in XML 1.0 and bounded. The structure is that of the schema that Jenkins
publishes for its xUnit plugin (``junit-10.xsd``), a suite per case, with the attributes that the Ant-derived
schema requires besides (hostname, timestamp without a zone, id, package).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from agent_eval.evidence import layout
from agent_eval.report.excerpts import excerpt
from agent_eval.report.parts_text import part_text, redraw_text
from agent_eval.report.records_view import RunRecords, TrialLine, read_run, retained
from agent_eval.report.visible_text import count, escape

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader

OUTPUT_BUDGET_BYTES = 4_000_000
MAX_STREAM_BYTES = 16_000
_MIN_STREAM_BYTES = 200
_MAX_MESSAGE = 500
_STREAMS = ((layout.STDOUT, "system-out"), (layout.STDERR, "system-err"))


def junit_xml(reader: EvidenceReader, summary: Mapping | None = None) -> bytes:
    """The document, UTF-8 with a declaration. ``summary`` stands in for that of an unsealed directory.

    Raises :class:`EvidenceFault` for a record or file that is not what the directory says.
    """
    run = read_run(reader, summary)
    share = OUTPUT_BUDGET_BYTES // max(1, 2 * len(run.lines))
    budget = min(MAX_STREAM_BYTES, max(_MIN_STREAM_BYTES, share))
    by_case: dict[str, list[TrialLine]] = {}
    for line in run.lines:
        by_case.setdefault(line.case_id, []).append(line)
    root = ElementTree.Element("testsuites", {"name": escape(str(run.plan.get("consumer"))), **_totals(run.lines)})
    if by_case:
        root.text = "\n"
    opening, _, closing = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True).partition(b"\n</")
    written = [opening]
    for index, (case_id, lines) in enumerate(by_case.items()):
        # One suite at a time: the tree of a hundred thousand trials takes ten times the room of its text.
        suite = _suite(reader, run, index, case_id, lines, budget)
        ElementTree.indent(suite, " ", 1)
        written.append(b"\n " + ElementTree.tostring(suite, encoding="utf-8").rstrip())
    if by_case:
        written.append(b"\n</" + closing)
    return b"".join([*written, b"\n"])


def _totals(lines: tuple[TrialLine, ...] | list[TrialLine]) -> dict[str, str]:
    return {
        "tests": str(len(lines)),
        "failures": str(sum(line.verdict == "fail" for line in lines)),
        "errors": str(sum(line.verdict in ("void", "interrupted") for line in lines)),
        "time": f"{sum(line.wall_s or 0.0 for line in lines):.3f}",
    }


def _suite(
    reader: EvidenceReader, run: RunRecords, index: int, case_id: str, lines: list[TrialLine], budget: int
) -> ElementTree.Element:
    consumer = escape(str(run.plan.get("consumer")))
    attributes = {
        "name": f"{consumer}.{escape(case_id)}",
        "package": consumer,
        "id": str(index),
        "hostname": "localhost",
        "timestamp": escape(str(run.plan.get("created_at"))[:19]),
        "skipped": str(sum(line.verdict == "unrun" for line in lines)),
        **_totals(lines),
    }
    suite = ElementTree.Element("testsuite", attributes)
    properties = ElementTree.SubElement(suite, "properties")
    facts = (("scope", run.scope_of(case_id)), ("evidence", run.path), ("seal", run.seal or "unsealed"), ("part", part_text(run.plan)), ("reruns", redraw_text(run.summary)))
    for name, value in facts:
        if value or name == "scope":
            ElementTree.SubElement(properties, "property", name=name, value=escape(value))
    for line in lines:
        suite.append(_testcase(reader, consumer, line, budget))
    return suite


def _testcase(reader: EvidenceReader, consumer: str, line: TrialLine, budget: int) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=f"{consumer}.{escape(line.case_id)}", name=escape(line.name), time=f"{line.wall_s or 0.0:.3f}"
    )
    if line.verdict == "unrun":
        ElementTree.SubElement(case, "skipped", message="planned and never started")
        return case
    if line.verdict != "pass":
        kind = "failure" if line.verdict == "fail" else "error"
        reasons = ", ".join(line.reasons)
        verdict = ElementTree.SubElement(case, kind, type=_bounded(line.reasons[0]), message=_bounded(reasons))
        details = [f"{reason}: {detail}" if detail else reason for reason, detail in line.details[:20]]
        verdict.text = "\n".join(_bounded(detail) for detail in details)
    if line.recorded:
        trial = retained(reader, line)
        for name, element in _STREAMS:
            data = trial.read(name)
            if data:
                ElementTree.SubElement(case, element).text = _output(data, f"{trial.path}/{name}", budget)
    return case


def _output(data: bytes, path: str, budget: int) -> str:
    shown = excerpt(data, budget)
    note = "" if shown.form == "text" else f"[not text, shown in hex; the bytes are in {escape(path)}]\n"
    if not shown.omitted_bytes:
        return note + shown.head
    cut = f"\n[... {count(shown.omitted_bytes, 'byte')} of {shown.total_bytes} left out; all are in {escape(path)}]\n"
    return note + shown.head + cut + shown.tail


def _bounded(text: str) -> str:
    return escape(text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]} [...]")
