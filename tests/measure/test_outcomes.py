"""Counts per case of an evidence directory, sealed or not."""

from __future__ import annotations

import json
import pathlib

import pytest

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.measure.comparison import CaseCounts
from agent_eval.measure.outcomes import case_counts
from agent_eval.records.problems import EvidenceFault
from tests.measure.retained_runs import retained_run

TABLE = {"b": ["pass", "fail", "void"], "a": ["interrupted", "unrun", "unrun"], "c": ["pass"]}
EXPECTED = {
    "b": CaseCounts(passed=1, failed=1, void=1),
    "a": CaseCounts(interrupted=1, unrun=2),
    "c": CaseCounts(passed=1, unrun=2),
}


def test_sealed_and_unsealed_directories_count_the_same(tmp_path: pathlib.Path) -> None:
    retained_run(tmp_path / "sealed", TABLE)
    retained_run(tmp_path / "open", TABLE, sealed=False)
    for name in ("sealed", "open"):
        counts = case_counts(EvidenceReader.open(str(tmp_path / name), unsealed_ok=True))
        assert counts == EXPECTED
        assert list(counts) == ["b", "a", "c"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cases: cases.pop("a"),
        lambda cases: cases["a"].pop("void"),
        lambda cases: cases["a"].update(passed=9),
        lambda cases: cases["a"].update(passed=-1),
        lambda cases: cases["a"].update(passed=True),
    ],
)
def test_a_summary_that_does_not_add_up_is_a_fault(tmp_path: pathlib.Path, spoil) -> None:
    retained_run(tmp_path / "run", TABLE)
    path = tmp_path / "run" / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    spoil(summary["cases"])
    path.write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(EvidenceFault):
        case_counts(EvidenceReader.open(str(tmp_path / "run"), check=False))
