"""The contract answer of an agent: ``BINARY contract`` prints one JSON object.

Owns its fields and the one clear line that says what is wrong with an answer. It starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval import InvalidInput, Problem, strict_json

from .scenario import TOOLS

CONTRACT = "core-agent/1"
TRANSPORTS = ("binary", "fixture")
SUBJECT_KINDS = ("model", "scripted")
MAX_CONTRACT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Contract:
    """A valid answer. ``model_env`` are names of variables; ``identity_files`` absolute paths of what the agent consists of beside its program."""

    name: str
    version: str
    tools: tuple[str, ...]
    transports: tuple[str, ...]
    model_required: bool
    model_env: tuple[str, ...]
    subject_kind: str
    identity_files: tuple[str, ...]
    document: Mapping[str, object]


def read_contract(data: bytes) -> Contract:
    """Read an answer. Raises ``ValueError`` whose text says everything that is wrong with it."""
    try:
        value = strict_json.parse_object(data, max_bytes=MAX_CONTRACT_BYTES)
    except strict_json.JsonError as error:
        raise ValueError(f"is not one JSON object: {error}") from None
    model = value.get("model")
    model = model if isinstance(model, dict) else {}
    tests = {
        f"contract must be {CONTRACT!r}": value.get("contract") == CONTRACT,
        "name must be a text": _is_text(value.get("name")),
        "version must be a text": _is_text(value.get("version")),
        f"tools must be a list of {', '.join(TOOLS)}": _is_choice_list(value.get("tools"), TOOLS),
        f"transports must be a list of {', '.join(TRANSPORTS)}": _is_choice_list(value.get("transports"), TRANSPORTS),
        "model must be {required: true or false, env: [names]}": isinstance(model.get("required"), bool) and _is_names(model.get("env")),
        f"subject_kind must be one of {', '.join(SUBJECT_KINDS)}": value.get("subject_kind") in SUBJECT_KINDS,
        "identity_files must be a list of absolute paths": _is_paths(value.get("identity_files", [])),
    }
    wrong = [text for text, holds in tests.items() if not holds]
    if wrong:
        raise ValueError("; ".join(wrong))
    return Contract(
        name=value["name"],
        version=value["version"],
        tools=tuple(value["tools"]),
        transports=tuple(value["transports"]),
        model_required=model["required"],
        model_env=tuple(model["env"]),
        subject_kind=value["subject_kind"],
        identity_files=tuple(value.get("identity_files", [])),
        document=value,
    )


def model_problems(contract: Contract, passed: list[str], environment: Mapping[str, str]) -> list[Problem]:
    """What the agent's model needs and does not get. That is never an agent's failure."""
    if not contract.model_required:
        return []
    problems = []
    for name in contract.model_env:
        if name not in environment:
            problems.append(Problem(name, f"{contract.name} needs it for its model, it is not set", f"set {name} and add --pass-env {name}"))
        elif name not in passed:
            problems.append(Problem(name, f"{contract.name} needs it for its model, it is set but not passed on", f"add --pass-env {name}"))
    return problems


def refuse(program: str, what: str) -> InvalidInput:
    """The one line for an agent that cannot be used."""
    return InvalidInput.one(program, what, "an agent answers 'PROGRAM contract' with one JSON object, see consumers/core_agent/CONTRACT.md")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200


def _is_choice_list(value: object, known: tuple[str, ...]) -> bool:
    return isinstance(value, list) and bool(value) and all(item in known for item in value) and len(set(value)) == len(value)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item and "=" not in item and "\0" not in item for item in value)


def _is_paths(value: object) -> bool:
    return isinstance(value, list) and len(value) <= 200 and all(isinstance(item, str) and item.startswith("/") and "\0" not in item for item in value)
