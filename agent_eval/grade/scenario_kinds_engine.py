"""The assertion engine with every kind of family ``scenario`` registered.

Owns nothing but that: importing this module is what makes the kinds known, so that a
process that only scores receipts does not load them.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_eval.records.problems import Problem

from . import engine, scenario_kinds, scenario_kinds_canary, scenario_kinds_conduct
from .engine import Finding, Status

KIND_MODULES = (scenario_kinds, scenario_kinds_canary, scenario_kinds_conduct)

__all__ = ["KIND_MODULES", "Finding", "Status", "evaluate", "validate"]


def validate(spec: object, where: str) -> list[Problem]:
    """Every problem of an assertion over scenario evidence; ``where`` is the JSON path that messages start with."""
    return engine.validate(spec, where, family=scenario_kinds.FAMILY)


def evaluate(spec: Mapping[str, object], evidence: Mapping[str, object]) -> Finding:
    """Decide one validated assertion. An absent section is ``missing``, never empty."""
    return engine.evaluate(spec, evidence)
