"""The suite: what an agent's receipts are judged against.

Owns reading and validating ``suite.json``, every problem at once, and the typed result. The rules of
its three sections on improvement are in ``contracts``; what single assertions mean is the library's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval import InvalidInput, Problem, digests, read_input, receipts, strict_json

from . import grader_choice
from .contracts import CONTRACTS

SCHEMA = "trial-suite/1"
MAX_SUITE_BYTES = 1 << 20
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEFAULT_SUITE = os.path.join(_ROOT, "evals", "agent-self-improvement", "suite.json")

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TEXT = receipts.Form("a non-empty string", lambda value: isinstance(value, str) and value.strip() != "")
_ID = receipts.Form("1 to 64 of letters, digits and . _ -", lambda value: isinstance(value, str) and _SAFE_ID.fullmatch(value) is not None)
_REVISION = receipts.Form("an integer from 1", lambda value: type(value) is int and value >= 1)
_BOOLEAN = receipts.Form("true or false", lambda value: isinstance(value, bool))
_GRADER = receipts.Form(
    "a grader, or a list of graders of which the first decides",
    lambda value: _TEXT.accepts(value) is True or (isinstance(value, list) and bool(value) and all(_TEXT.accepts(item) is True for item in value)),
)
_ASSERTION = receipts.Form("an assertion", lambda value: isinstance(value, Mapping), receipts.validate)
_ORIGIN = receipts.record_of(
    "an origin",
    {
        "kind": receipts.Field(receipts.choice("real-failure", "saturation", "negative-fixture", "policy"), "where the case comes from", required=True),
        "ref": receipts.Field(_TEXT, "the run, fixture or document"),
    },
)
_CASE_FIELDS: dict[str, receipts.Field] = {
    "id": receipts.Field(_ID, "the name of the case", required=True),
    "object": receipts.Field(receipts.choice(*grader_choice.OBJECTS), "what is graded", required=True),
    "grader": receipts.Field(_GRADER, "who grades it", required=True),
    "severity": receipts.Field(receipts.choice("required", "advisory"), "whether it decides the verdict", required=True),
    "why": receipts.Field(_TEXT, "the reason for the case, in a sentence", required=True),
    "origin": receipts.Field(_ORIGIN, "what the case goes back to", required=True),
    "assert": receipts.Field(_ASSERTION, "the assertion", required=True),
    "status": receipts.Field(receipts.choice("active", "queued"), "a queued case is stored and never scored in this epoch", default="active"),
    "critical": receipts.Field(_BOOLEAN, "whether its failure is shown first", default=False),
    **grader_choice.CASE_FIELDS,
}
_CASE = receipts.record_of("a case", _CASE_FIELDS, grader_choice.problems)
_PROOF = receipts.record_of(
    "receiptContract",
    {
        "examples": receipts.Field(_TEXT, "the folder with what each example receipt comes to, beside the suite", required=True),
        "negatives": receipts.Field(receipts.list_of(_TEXT), "the files with declared negatives, beside the suite", required=True),
    },
)
_SUITE_FIELDS: dict[str, receipts.Field] = {
    "schema": receipts.Field(receipts.choice(SCHEMA), "the version of this shape", required=True),
    "suiteId": receipts.Field(_ID, "the name of the suite", required=True),
    "revision": receipts.Field(_REVISION, "counts up with every change", required=True),
    "status": receipts.Field(receipts.choice("active", "queued", "retired"), "only an active suite scores", required=True),
    "description": receipts.Field(_TEXT, "what the suite is for"),
    "cannotExercise": receipts.Field(receipts.list_of(_TEXT), "what no receipt can show", required=True),
    "cases": receipts.Field(receipts.list_of(_CASE), "the cases", required=True),
    "receiptContract": receipts.Field(_PROOF, "where the proof of the cases is"),
    **{name: receipts.Field(contract.form, f"the rules of {name}") for name, contract in CONTRACTS.items()},
}
_SUITE = receipts.record_of("a suite", _SUITE_FIELDS)


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a suite, validated."""

    id: str
    kind: str
    required: bool
    critical: bool
    why: str
    assertion: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Suite:
    """A valid suite. ``cases`` are the active ones, in order; ``queued`` the names of those that wait."""

    id: str
    revision: int
    sha256: str
    text: str
    cases: tuple[Case, ...]
    queued: tuple[str, ...]
    cannot_exercise: tuple[str, ...]
    contracts: dict[str, Mapping[str, Any]]
    receipt_contract: Mapping[str, Any] | None
    warnings: tuple[str, ...]


def read_suite(data: bytes, where: str) -> Suite:
    """Validate a suite; raises ``InvalidInput`` with every problem, each ``where#pointer``."""
    try:
        value = strict_json.parse_object(data, max_bytes=MAX_SUITE_BYTES)
    except strict_json.JsonError as error:
        raise InvalidInput.one(where, f"not a suite: {error}") from None
    problems = _SUITE.problems(value, f"{where}#")
    cases = [case for case in value.get("cases", ()) if isinstance(case, dict)] if isinstance(value.get("cases"), list) else []
    problems += _between(cases, f"{where}#/cases")
    if value.get("status") in ("queued", "retired"):
        problems.append(Problem(f"{where}#/status", f"a {value['status']} suite does not score", "activate it by a transition"))
    if problems:
        raise InvalidInput(problems)
    active = tuple(_case(case) for case in cases if case.get("status", "active") == "active")
    return Suite(
        value["suiteId"],
        value["revision"],
        digests.sha256_bytes(data),
        data.decode("utf-8"),
        active,
        tuple(case["id"] for case in cases if case.get("status") == "queued"),
        tuple(value["cannotExercise"]),
        {name: value[name] for name in CONTRACTS if name in value},
        value.get("receiptContract"),
        tuple(_warnings(cases)),
    )


def load_suite(path: str) -> Suite:
    """Read the suite file at ``path``; raises ``InvalidInput``."""
    return read_suite(read_input(path, max_bytes=MAX_SUITE_BYTES, fix="name a suite (JSON)"), path)


def _case(case: Mapping[str, Any]) -> Case:
    required = case["severity"] == "required"
    return Case(case["id"], case["assert"]["kind"], required, case.get("critical", False), case["why"], case["assert"])


def _between(cases: list[dict], where: str) -> list[Problem]:
    """Rules over all cases: ids once, and at least one active required case, because a suite that requires nothing passes everything."""
    problems = []
    seen: dict[object, int] = {}
    for index, case in enumerate(cases):
        name = case.get("id")
        if isinstance(name, str) and seen.setdefault(name.lower(), index) != index:
            problems.append(Problem(f"{where}/{index}/id", f"{name!r} is the id of case {seen[name.lower()]} too", "ids are unique"))
    decides = [case for case in cases if case.get("severity") == "required" and case.get("status", "active") == "active"]
    if cases and not decides:
        problems.append(Problem(where, "no active case is required: every receipt would pass", "make at least one case required"))
    return problems


def _warnings(cases: list[dict]) -> list[str]:
    """What is allowed and unwise."""
    return [
        f"case {case['id']}: a note is the only evidence; make it advisory or join it with a record"
        for case in cases
        if case["severity"] == "required" and set(grader_choice.kinds_of(case["assert"])) <= {"note_present", "all_of", "any_of"}
    ]
