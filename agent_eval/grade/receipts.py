"""Receipt assertions as one thing: the engine with every receipt kind registered.

Owns nothing but that: importing this module makes the kinds known, so that a process that
judges scenarios does not load them.
"""

from __future__ import annotations

from agent_eval.records.problems import Problem

from . import (
    engine,
    receipt_kinds_claims,
    receipt_kinds_commands,
    receipt_kinds_events,
    receipt_kinds_files,
    receipt_kinds_record,
    receipt_kinds_state,
)
from .engine import Check, Finding, Kind, Spec, Status
from .fields import Field, Form, choice, list_of, record_of
from .receipt_base import ARTIFACT_DIGESTS, HIDDEN, SCORING_SUITE, STATE_DIFF

FAMILY = "receipt"
KIND_MODULES = (receipt_kinds_events, receipt_kinds_commands, receipt_kinds_files, receipt_kinds_record, receipt_kinds_state, receipt_kinds_claims)

__all__ = [
    "ARTIFACT_DIGESTS",
    "FAMILY",
    "HIDDEN",
    "KIND_MODULES",
    "SCORING_SUITE",
    "STATE_DIFF",
    "Check",
    "Field",
    "Finding",
    "Form",
    "Kind",
    "Status",
    "choice",
    "kinds",
    "list_of",
    "prepare",
    "record_of",
    "validate",
]


def validate(spec: object, where: str) -> list[Problem]:
    """Every problem of an assertion over receipts; ``where`` is the JSON path that messages start with."""
    return engine.validate(spec, where, family=FAMILY)


def prepare(spec: Spec) -> Check:
    """A validated assertion as a function of the evidence, for scoring many receipts with one suite."""
    return engine.prepare(spec)


def kinds() -> list[Kind]:
    """Every kind that a suite may use, with the combinators."""
    return engine.kinds(FAMILY)
