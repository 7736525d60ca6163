"""Reports of evidence that the project's own commands made: a run, its regrade and a comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.report.attestation import statement
from agent_eval.report.inspect_log import inspect_log
from agent_eval.report.junit import junit_xml
from agent_eval.report.markdown import markdown_summary
from agent_eval.report.page import report_page
from tests.report import chromium


def page(folder: Path, name: str) -> str:
    return report_page(EvidenceReader.open(str(folder / name))).decode()


def details(text: str) -> dict[str, dict]:
    blocks = re.findall(r'<script type="application/json" class="t">(.*?)</script>', text, re.DOTALL)
    return {value["name"]: value for value in map(json.loads, blocks)}


def test_a_forged_run_shows_why_it_failed(real_runs: Path) -> None:
    text = page(real_runs, "forged")
    assert "0 of 16 planned trials passed" in text
    trial = details(text)["recover@1/001"]
    reasons = {failure["reason"]: failure for failure in trial["failures"]}
    assert "change-outside-allowed" in reasons and "not-run" in reasons
    assert any("owner-report.json" in value for _, value in reasons["change-outside-allowed"]["evidence"]), "quoted from workspace-after.json"
    added = {row["path"]: row for row in trial["workspace"]["rows"] if row["kind"] == "added"}
    assert '"passed": true' in added["owner-report.json"]["new"]["head"]


def test_an_honest_run_shows_calls_witness_and_identity(real_runs: Path) -> None:
    trial = details(page(real_runs, "honest"))["recover@1/001"]
    calls = [row for row in trial["events"]["rows"] if row[1] == "tool_call"]
    assert len(calls) >= 3 and all(row[3] for row in calls)
    assert any("witness: " in label for _, _, label in trial["timeline"]["marks"])
    assert any("reference_agent.py" in row[0] and row[2] == "same" for row in trial["identity"]["rows"])


def test_a_regrade_shows_before_and_after(real_runs: Path) -> None:
    text = page(real_runs, "regraded")
    seal = EvidenceReader.open(str(real_runs / "honest")).seal
    assert "Before and after" in text and "0 changed, 0 not assessable, 16 same" in text and seal in text
    assert any(fact[0] == "Captured output" for fact in details(text)["edit@1/001"]["facts"])


def test_a_comparison_shows_each_case_of_both_sides(real_runs: Path) -> None:
    text = page(real_runs, "compared")
    assert "compare: improved" in text and text.count(">win</span>") == 8
    for name in ("forged", "honest"):
        assert EvidenceReader.open(str(real_runs / name)).seal in text


@pytest.mark.parametrize("name", ["forged", "honest", "regraded", "compared"])
def test_every_format_takes_every_directory(real_runs: Path, name: str) -> None:
    reader = EvidenceReader.open(str(real_runs / name))
    planned = reader.plan["planned"]
    assert ElementTree.fromstring(junit_xml(reader)).attrib["tests"] == str(planned)
    assert markdown_summary(reader).startswith(b"## `core-agent`")
    assert json.loads(inspect_log(reader))["results"]["total_samples"] == planned


def test_the_statement_names_the_binary_of_the_run(real_runs: Path) -> None:
    reader = EvidenceReader.open(str(real_runs / "honest"))
    value = json.loads(statement(reader))
    digest = reader.plan["subject"]["sha256"]
    assert {"sha256": digest} in [subject["digest"] for subject in value["subject"]]
    names = [subject["name"] for subject in value["subject"]]
    assert len(names) == len(set(names)) and value["predicate"]["result"] == "PASSED"


def test_the_pages_open_without_complaint(real_runs: Path, tmp_path: Path) -> None:
    path = chromium.find()
    if path is None:
        pytest.skip("skipped: no chromium on this machine (Debian: apt-get install chromium)")
    with chromium.Browser(path) as browser:
        for name in ("forged", "honest", "regraded", "compared"):
            target = tmp_path / f"{name}.html"
            target.write_text(page(real_runs, name), encoding="utf-8")
            for hash_ in ("", "#trial=repair@1/002"):
                browser.open(target.as_uri() + hash_)
                assert browser.complaints() == [] and browser.requests() == [target.as_uri()]
