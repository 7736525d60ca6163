"""The recording that a run replays: model records of an earlier evidence directory.

Owns finding a trial's record there and laying it out for the boundary, and the drawings of
the recorded trials: an answer is only right again for the same nonces.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from agent_eval import EvidenceReader, InvalidInput, PlannedCase, Problem, RetainedTrial, location

from .model_boundary.record import BODIES_NAME, INDEX_NAME
from .model_boundary.replay import META_NAME
from .realise import Trial
from .transports import Task


class ReplaySource:
    """A retained run with an adapter."""

    def __init__(self, path: str) -> None:
        self._reader = EvidenceReader.open(location.resolve(path))
        self._trials: dict[str, RetainedTrial] = {
            f"{trial.case_id}/{trial.number:03d}": trial for trial in self._reader.trials() if trial.read(INDEX_NAME) is not None
        }
        if not self._trials:
            raise InvalidInput.one("--replay", f"{path} has no model record", "give the evidence directory of a run with --adapter")

    @property
    def scripted(self) -> bool:
        """Whether a scripted model answered when it was recorded."""
        return self._reader.plan["subject"].get("subject_kind") == "scripted"

    def materialise(self, task: Task, folder: str, origin: str) -> str | None:
        """Lay the trial's recording out in a new folder below ``folder``; ``None`` when there is none."""
        trial = self._trials.get(task.trial)
        if trial is None:
            return None
        target = os.path.join(folder, "replay")
        os.makedirs(os.path.join(target, BODIES_NAME), mode=0o700)
        index = trial.read(INDEX_NAME) or b""
        _write(os.path.join(target, INDEX_NAME), index)
        for line in index.splitlines():
            response = json.loads(line).get("response")
            if isinstance(response, dict):
                path = os.path.join(target, BODIES_NAME, str(response["sha256"]))
                if not os.path.exists(path):
                    _write(path, trial.read(f"files/{response['sha256']}") or b"")
        about = trial.record["adapter"]
        pairs = [[about["workspace"], task.workspace], [about["home"], task.home], [about["tmpdir"], task.tmpdir]]
        if about["origin"]:
            pairs.append([about["origin"], origin])
        _write(os.path.join(target, META_NAME), json.dumps({"replace": pairs}).encode())
        return target

    def drawings(self) -> Mapping[str, Trial]:
        """The drawing of every recorded trial, by ``CASE/NNN``."""
        return {name: Trial.from_json(trial.record["revealed"]) for name, trial in self._trials.items() if "revealed" in trial.record}

    def case_problems(self, cases: tuple[PlannedCase, ...]) -> list[Problem]:
        """Cases of this run that are not those of the recording."""
        problems = []
        known = {name.rpartition("/")[0] for name in self._trials}
        for case in cases:
            if case.id not in known:
                problems.append(Problem("--replay", f"the recording has no trial of {case.id}", "choose its cases with --case"))
            elif self._reader.case_bytes(case.id) != case.data:
                problems.append(Problem("--replay", f"the recording is of another {case.id}", "give the --seed and --variants of the recorded run"))
        return problems


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
