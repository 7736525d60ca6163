"""The three contracts on improvement that a suite declares, and how decision records are judged by them.

Owns the table. A contract here judges small declared records, so that a suite can prove that its rules
reject what they must; the gates that act on real files and runs are the library's.
"""

from __future__ import annotations

from .decision import Contract
from .evolution import EVOLUTION
from .guardrail import GUARDRAIL
from .skill import SKILL

CONTRACTS: dict[str, Contract] = {contract.name: contract for contract in (EVOLUTION, SKILL, GUARDRAIL)}
