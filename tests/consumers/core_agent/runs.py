"""A finished run of the core-agent command, as its evidence tells it."""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass

import pytest

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.regrade import evidence_of
from agent_eval.grade.void import judge_trial
from consumers.core_agent.consumer import CONSUMER

GRADER_COUNTS = pytest.StashKey[dict[str, int]]()

ROOT = pathlib.Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "consumers" / "core_agent" / "reference_agent.py"
FIXTURE = ROOT / "consumers" / "core_agent" / "reference_fixture.py"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finished run: its exit code, its summary and its folder."""

    code: int
    path: pathlib.Path
    summary: dict
    stderr: str

    def record(self, case_id: str, number: int = 1) -> dict:
        """``trial.json`` of one trial."""
        return json.loads((self.path / "trials" / case_id / f"{number:03d}" / "trial.json").read_bytes())

    def file(self, case_id: str, name: str, number: int = 1) -> bytes:
        """A file of one trial."""
        return (self.path / "trials" / case_id / f"{number:03d}" / name).read_bytes()

    def judgments(self) -> dict[str, dict]:
        """Trial name to judgment, in the order of the plan."""
        found = {}
        for path in sorted((self.path / "trials").glob("*/*/trial.json")):
            found[f"{path.parent.parent.name}/{path.parent.name}"] = json.loads(path.read_bytes())["judgment"]
        return found

    def reasons(self) -> dict[str, list[str]]:
        """For each case that did not pass its first trial: the reasons, each once, in order."""
        bad = {}
        for name, judgment in self.judgments().items():
            if judgment["verdict"] != "pass":
                words = [judgment["cause"]] if judgment["cause"] else [failure["reason"] for failure in judgment["failures"]]
                bad[name.split("@")[0]] = list(dict.fromkeys(words))
        return bad


def judged_again(path: pathlib.Path, criteria: str = "retained") -> dict[str, dict]:
    """What ``regrade`` judges of a run, without making a directory of it."""
    reader = EvidenceReader.open(str(path))
    judged = {trial.name: judge_trial(CONSUMER.judge, evidence_of(reader, trial), criteria, ()) for trial in reader.trials()}
    return without_grader({name: judgment.to_json() for name, judgment in judged.items()})


def without_grader(judgments: dict[str, dict]) -> dict[str, dict]:
    """Judgments sorted by trial, without the digest of the sources that judged."""
    return {name: {**judgment, "grader": None} for name, judgment in sorted(judgments.items())}
