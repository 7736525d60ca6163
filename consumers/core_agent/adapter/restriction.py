"""Grants: which real tools they mean, how they are enforced, and what was enforced.

Owns the way from logical grants to arguments, and back from the tools that were on the
wire to what the agent could effectively do. It decides nothing about the task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from .model import LOGICAL_TOOLS, Adapter


class Enforcement(StrEnum):
    """How sure it is that what was not granted could not be used."""

    ENFORCED = "enforced"
    REQUESTED = "requested"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Grants:
    """A task's grants in the words of one CLI.

    ``real`` are the tools to offer, ``denied`` the named ones to keep back, ``withheld`` the
    logical tools that the task does not grant and ``arguments`` what enforces it.
    """

    logical: tuple[str, ...]
    withheld: tuple[str, ...]
    real: tuple[str, ...]
    denied: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restriction:
    """What is recorded of one trial's restriction.

    ``effective`` are the logical tools that the agent could use as far as is known,
    ``not_withheld`` those of them that the task had not granted.
    """

    enforcement: Enforcement
    effective: tuple[str, ...]
    not_withheld: tuple[str, ...]
    offered: tuple[str, ...] | None
    detail: str

    def to_json(self) -> dict[str, object]:
        """For ``trial.json``."""
        return {
            "enforcement": str(self.enforcement), "effective": list(self.effective),
            "not_withheld": list(self.not_withheld), "offered": None if self.offered is None else list(self.offered),
            "detail": self.detail,
        }


def grants_for(adapter: Adapter, granted: Collection[str]) -> Grants:
    """What the grants mean for this CLI."""
    tools = adapter.tools
    logical = tuple(word for word in LOGICAL_TOOLS if word in granted)
    withheld = tuple(word for word in LOGICAL_TOOLS if word not in granted)
    real = _unique(name for word in logical for name in tools.names.get(word, ()))
    named = _unique(name for word in LOGICAL_TOOLS for name in tools.names.get(word, ()))
    denied = tuple(name for name in named if name not in real)
    arguments: list[str] = []
    if tools.allow is not None and real:
        flag, style = tools.allow.flag, tools.allow.style
        if style == "join":
            arguments = [flag, tools.allow.join.join(real)]
        elif style == "each":
            arguments = [word for name in real for word in (flag, name)]
        elif style == "equals":
            arguments = [f"{flag}={name}" for name in real]
    for word in withheld:
        arguments += tools.deny.get(word, ())
    return Grants(logical, withheld, real, denied, tuple(arguments))


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def powers_of(adapter: Adapter, real: Iterable[str]) -> tuple[str, ...]:
    """What can be done with these real tools, in the contract's order."""
    found = {word for name in real for word in adapter.tools.powers.get(name, ())}
    return tuple(word for word in LOGICAL_TOOLS if word in found)


def judge_restriction(
    adapter: Adapter, grants: Grants, offered: tuple[str, ...] | None, control: dict[str, object] | None
) -> Restriction:
    """What was enforced.

    ``offered`` are the tools that were on the wire (all requests of the trial together,
    ``None`` when there was no request); ``control`` is the record of a control trial that
    asked for a tool which was not granted. A withheld power is what counts: ``bash`` that was
    granted can write, so ``write`` is then not withheld, and a task cannot expect it.
    """
    granted_powers = set(powers_of(adapter, grants.real)) if grants.real else set()
    visible = grants.real if offered is None else offered
    effective = powers_of(adapter, visible)
    # What a granted tool brings along is the tool's doing; execute is the one that brings everything.
    beyond = tuple(
        word for word in effective
        if word in grants.withheld and not ("execute" in grants.logical and word in granted_powers)
    )
    if not grants.withheld:
        return Restriction(Enforcement.ENFORCED, effective, (), offered, "every tool is granted")
    if control is not None and beyond:
        if control.get("denied") is True and control.get("effect") is False:
            return Restriction(Enforcement.ENFORCED, tuple(w for w in effective if w not in beyond), (), offered,
                               "offered to the model, and a control trial that asked for it was denied")
        return Restriction(Enforcement.UNAVAILABLE, effective, beyond, offered, "a control trial that asked for it was not denied")
    if beyond:
        if not adapter.tools.exact or offered is not None:
            return Restriction(Enforcement.UNAVAILABLE, effective, beyond, offered, "was on the wire although it was not granted")
        return Restriction(Enforcement.REQUESTED, effective, beyond, offered, "the tool was asked not to offer it")
    if offered is None:
        word = Enforcement.REQUESTED if adapter.tools.exact else Enforcement.UNAVAILABLE
        return Restriction(word, effective, (), None, "no model request shows which tools were offered")
    return Restriction(Enforcement.ENFORCED, effective, (), offered, "was not on the wire")
