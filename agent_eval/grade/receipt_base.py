"""What all receipt assertions share: absent sections and hidden fields are ``missing``.

Owns the base class. A receipt is judged as a mapping of its members (see
``records.receipt``), with four more keys that the harness adds and a receipt can not
have: ``hidden`` (pointers to what was left out), ``stateDiff``, ``artifactDigests``
and ``scoringSuite``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from agent_eval.records import credentials

from .engine import Check, Evidence, Finding, Kind, Spec, missing

HIDDEN = "hidden"
STATE_DIFF = "stateDiff"
ARTIFACT_DIGESTS = "artifactDigests"
SCORING_SUITE = "scoringSuite"

_MAX_SHOWN_CHARS = 120


def shown(text: str) -> str:
    """``text`` from a receipt for a message: quoted, short, and never something shaped like a credential."""
    if credentials.find(text):
        return "(not shown: shaped like a credential)"
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "...")


@lru_cache(maxsize=4096)
def tokens_of(pointer: str) -> tuple[str, ...]:
    """The reference tokens of a JSON pointer (RFC 6901)."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def overlap(hidden: tuple[str, ...], needed: tuple[str, ...]) -> bool:
    """Whether hiding ``hidden`` takes away (part of) ``needed``, whose tokens may be ``*``."""
    return all(want in ("*", have) for have, want in zip(hidden, needed, strict=False))


class ReceiptKind(Kind):
    """A kind over receipts. Subclasses give :meth:`decide` and :meth:`needs`.

    ``sections`` are members without which nothing can be decided; ``needs`` adds, as pointers with ``*``,
    which fields the specification reads, so that a redaction of one of them makes it ``missing``.
    """

    family = "receipt"
    sections: ClassVar[tuple[str, ...]] = ()

    def decide(self, spec: Spec) -> Check:
        """``spec`` as a function of a receipt that has all of ``sections``."""
        raise TypeError(f"{type(self).__name__} does not say how it decides")

    def needs(self, spec: Spec) -> tuple[str, ...]:
        """Pointers to what is read; the whole sections unless a kind knows better."""
        return tuple(f"/{section}" for section in self.sections)

    def sections_of(self, spec: Spec) -> tuple[str, ...]:
        """The sections that this specification needs."""
        return self.sections

    def prepare(self, spec: Spec) -> Check:
        """Guard :meth:`decide` against absent sections and hidden fields."""
        decide = self.decide(spec)
        sections = self.sections_of(spec)
        needed = tuple(tokens_of(pointer) for pointer in self.needs(spec))

        def check(evidence: Evidence) -> Finding:
            for pointer in evidence.get(HIDDEN, ()):
                tokens = tokens_of(pointer)
                if any(overlap(tokens, need) for need in needed):
                    return missing("what would decide was left out of the receipt", pointer)
            for section in sections:
                if section not in evidence:
                    return missing(f"the receipt has no {section}", f"/{section}")
            return decide(evidence)

        return check
