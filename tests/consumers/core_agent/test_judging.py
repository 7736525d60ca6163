"""Judging from retained evidence: other criteria, and evidence that cannot answer."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import pytest

from agent_eval import EvidenceFault, TrialEvidence
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.regrade import evidence_of
from consumers.core_agent.catalog import FOLDER
from consumers.core_agent.judging import judge
from consumers.core_agent.scenario import load_scenario
from tests.consumers.core_agent.runs import REFERENCE, Evidence


@pytest.fixture
def evidence(run_agent: Callable[..., Evidence]) -> TrialEvidence:
    """A passing trial of ``repair``."""
    run = run_agent(REFERENCE, "--case", "repair")
    reader = EvidenceReader.open(str(run.path))
    (trial,) = reader.trials()
    return evidence_of(reader, trial)


def outcome(evidence: TrialEvidence, criteria: str = "retained", case: dict | None = None) -> tuple[str, str]:
    """Verdict and the words of a void or the reasons of a fail."""
    judgment = judge(evidence, criteria, lambda *_: case)
    words = "; ".join(f"{failure.reason}: {failure.detail}" for failure in judgment.failures)
    return judgment.verdict.value, words


def todays_case() -> dict:
    return load_scenario(f"{FOLDER}/repair").case(1, 1)


def test_current_criteria_that_are_the_same(evidence: TrialEvidence) -> None:
    assert outcome(evidence) == ("pass", "")
    assert outcome(evidence, "current", todays_case()) == ("pass", "")


def test_current_criteria_that_changed_decide(evidence: TrialEvidence) -> None:
    case = todays_case()
    case["expect"].append({"id": "said", "assert": {"kind": "answer_field", "field": "cause", "equals": "x"}})
    assert outcome(evidence, "current", case)[0] == "fail"
    assert outcome(evidence, "retained", case)[0] == "pass"


@pytest.mark.parametrize("key", ["instruction", "grants", "files", "max_steps", "secrets"])
def test_another_task_cannot_be_judged_on_this_evidence(evidence: TrialEvidence, key: str) -> None:
    case = {**todays_case(), key: ["another"]}
    verdict, words = outcome(evidence, "current", case)
    assert verdict == "void" and "not-assessable" in words and key in words


def test_a_scenario_that_is_gone(evidence: TrialEvidence) -> None:
    verdict, words = outcome(evidence, "current", None)
    assert verdict == "void" and "no scenario 'repair'" in words


def test_another_hidden_checker_cannot_take_over_the_old_report(evidence: TrialEvidence) -> None:
    case = todays_case()
    case["hidden_check"]["program_sha256"] = "0" * 64
    verdict, words = outcome(evidence, "current", case)
    assert verdict == "void" and "hidden checker" in words


def changed(evidence: TrialEvidence, record: dict | None = None, files: dict[str, bytes | None] | None = None) -> TrialEvidence:
    files = files or {}
    return dataclasses.replace(
        evidence,
        record=record or evidence.record,
        known_outcome=None,
        read=lambda name: files[name] if name in files else evidence.read(name),
    )


@pytest.mark.parametrize("name", ["checks/program.py", "checks/probe.py", "checks/inputs.json", "checks/spec.json", "workspace-before.json"])
def test_evidence_that_is_missing_is_not_assessable(evidence: TrialEvidence, name: str) -> None:
    assert outcome(changed(evidence, files={name: None}))[0] == "void"


def test_a_report_that_is_none_fails(evidence: TrialEvidence) -> None:
    for report in (None, b"", b'{"passed": "yes"}', b'{"passed": true, "passed": true}', b'{"passed": false, "checks": []}'):
        verdict, words = outcome(changed(evidence, files={"checks/report.json": report}))
        assert verdict == "fail" and words.startswith("hidden-check-failed"), report


def test_an_after_state_that_is_not_the_one_that_was_checked(evidence: TrialEvidence) -> None:
    other = evidence.read("workspace-after.json") + b" "
    assert outcome(changed(evidence, files={"workspace-after.json": other}))[0] == "void"


def test_seeds_that_draw_another_workspace(evidence: TrialEvidence) -> None:
    record = copy.deepcopy(evidence.record)
    record["revealed"]["scenario_seed"] = "00" * 32
    verdict, words = outcome(changed(evidence, record))
    assert verdict == "void" and "is not what the subject found" in words


def test_what_could_not_be_started(evidence: TrialEvidence) -> None:
    record = copy.deepcopy(evidence.record)
    record["outcome"] |= {"exit_code": None, "start_error": {"stage": "exec", "message": "gone", "errno": 2}}
    assert outcome(changed(evidence, record)) == ("fail", "start-failed: exec: gone")


@pytest.mark.parametrize("key", ["revealed", "identity", "witness", "hidden_check"])
def test_a_record_that_is_none_of_ours(evidence: TrialEvidence, key: str) -> None:
    record = {name: value for name, value in evidence.record.items() if name != key}
    with pytest.raises(EvidenceFault, match="is no trial of an agent"):
        outcome(changed(evidence, record))


def test_a_scenario_that_could_not_be_drawn_is_nobodys_failure(evidence: TrialEvidence) -> None:
    verdict, words = outcome(changed(evidence, {"not_drawn": "rows: no more different values", "outcome": None}))
    assert (verdict, words) == ("void", "scenario-broken: rows: no more different values")
