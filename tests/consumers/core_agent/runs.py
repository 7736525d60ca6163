"""A finished run of the core-agent command, as its evidence tells it."""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass

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
