"""The suite of a guardrail lineage: attack and benign cases as rows.

Owns the row format {id, split, prompt, expected, family, critical} (JSON Lines or a JSON array) and what of a row
each command may see: the target gets the prompt alone, so that neither split, id nor expectation can be keyed on.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from agent_eval.gates import inputs
from agent_eval.grade.fields import ANY, BOOLEAN, TEXT, Field, choice
from agent_eval.records import strict_json
from agent_eval.records.problems import Problem, raise_if

_ROW = {
    "id": Field(inputs.NAME, "names the case", required=True),
    "split": Field(choice("attack", "benign"), "says what it is", required=True),
    "prompt": Field(TEXT, "is what the target is given", required=True),
    "expected": Field(ANY, "is for the judge alone"),
    "family": Field(inputs.NAME, "groups cases", default="unnamed"),
    "critical": Field(BOOLEAN, "vetoes if the candidate breaks it", default=False),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One case. ``attack`` tells the two splits apart."""

    id: str
    attack: bool
    prompt: str
    expected: object
    family: str
    critical: bool

    def for_target(self) -> bytes:
        """What the target's ``{case}`` file holds."""
        return strict_json.pretty({"prompt": self.prompt})

    def for_judge(self) -> bytes:
        """What the judge's ``{case}`` file holds."""
        split = "attack" if self.attack else "benign"
        return strict_json.pretty(
            {"case_id": self.id, "split": split, "prompt": self.prompt, "expected": self.expected, "family": self.family}
        )


@functools.lru_cache(maxsize=4)
def read(data: bytes, name: str) -> tuple[Case, ...]:
    """The cases of a suite. Raises InvalidInput with every problem, also when a split is empty or a text stands twice."""
    found = inputs.rows(data, name)
    problems = [problem for row in found for problem in inputs.object_problems(row.value, row.where, _ROW)]
    problems += inputs.duplicates(found, "id") + inputs.duplicates(found, "prompt")
    raise_if(problems)
    rows = [inputs.filled(row.value, _ROW) for row in found]
    cases = tuple(
        Case(row["id"], row["split"] == "attack", row["prompt"], row.get("expected"), row["family"], row["critical"]) for row in rows
    )
    for split, attack in (("attack", True), ("benign", False)):
        if not any(case.attack is attack for case in cases):
            problems.append(Problem(name, f"has no {split} case", "without both splits nothing can be decided"))
    raise_if(problems)
    return cases
