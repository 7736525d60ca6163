"""What the three contracts share: a decision with reasons, and rules that give them.

Owns the four outcomes, which are never merged, and their order: a broken contract is
``invalid`` whatever the scores, evidence that cannot carry a verdict is ``abstain``, a candidate that did
not win is ``keep_incumbent``, and only the rest is ``promote``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from agent_eval import Problem, receipts

INVALID = "invalid"
ABSTAIN = "abstain"
KEEP = "keep_incumbent"
PROMOTE = "promote"
OUTCOMES = (INVALID, ABSTAIN, KEEP, PROMOTE)

Record = Mapping[str, Any]
Reasons = Iterable[tuple[str, str]]
Rule = Callable[[Record, Record], Reasons]
"""(declaration, record) -> (outcome, reason) for whatever speaks against the candidate."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An outcome with every reason of its class, and the level of evidence of a promotion."""

    outcome: str
    reasons: tuple[str, ...] = ()
    evidence_level: str | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """One section of a suite: how it is declared, and how a decision record is judged by it.

    ``form`` checks the declaration, ``rules`` judge a record, ``established`` says whether the record's evidence
    meets the declared bound (a promotion is ``directional`` otherwise).
    """

    name: str
    letter: str
    form: receipts.Form
    rules: tuple[Rule, ...]
    established: Callable[[Record, Record], bool]

    def decide(self, declaration: Record, record: Record) -> Decision:
        """Judge one record. A record without a part that a rule needs is ``invalid``, never favourable."""
        found: list[tuple[str, str]] = []
        for rule in self.rules:
            found += _answers(rule, declaration, record)
        found += _answers(self._level, declaration, record)
        for outcome in (INVALID, ABSTAIN, KEEP):
            reasons = tuple(dict.fromkeys(reason for kind, reason in found if kind == outcome))
            if reasons:
                return Decision(outcome, reasons)
        return Decision(PROMOTE, (), next(reason for kind, reason in found if kind == PROMOTE))

    def _level(self, declaration: Record, record: Record) -> Reasons:
        yield PROMOTE, "established" if self.established(declaration, record) else "directional"


def _answers(rule: Rule, declaration: Record, record: Record) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    try:
        found.extend(rule(declaration, record))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError) as error:
        found.append((INVALID, f"malformed-record:{rule.__name__.strip('_')}:{type(error).__name__}"))
    return found


def sign_test(wins: int, losses: int) -> Fraction:
    """P(X >= wins) for X ~ Bin(wins + losses, 1/2), exact; 1 when nothing is discordant."""
    total = wins + losses
    if total == 0:
        return Fraction(1)
    return Fraction(sum(math.comb(total, count) for count in range(wins, total + 1)), 2**total)


def spent_alpha(alpha: Fraction, look: int, compared: int = 1) -> Fraction:
    """What look ``look`` (from 1) may spend: alpha/(look(look+1)), shared by the candidates compared at it.

    Nothing below 1 is taken for a count: a look that was not counted must not spend more.
    """
    return alpha / (max(1, look) * (max(1, look) + 1) * max(1, compared))


def fraction_of(text: str) -> Fraction:
    """``"1/20"`` or ``"0.05"`` as a fraction."""
    return Fraction(text)


def _is_fraction(value: Any) -> bool:
    try:
        return isinstance(value, str) and 0 < Fraction(value) <= Fraction(1, 10)
    except (ValueError, ZeroDivisionError):
        return False


ALPHA = receipts.Form('a fraction from above 0 to 1/10, as text ("1/20")', _is_fraction)
TEXT = receipts.Form("a non-empty string", lambda value: isinstance(value, str) and value.strip() != "")
TEXTS = receipts.list_of(TEXT)
COUNT = receipts.Form("an integer from 0", lambda value: type(value) is int and value >= 0)
POSITIVE = receipts.Form("an integer from 1", lambda value: type(value) is int and value >= 1)
SHARE = receipts.Form("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)


NUMBER = receipts.Form("a number from 0", lambda value: type(value) in (int, float) and value >= 0)
LIST = receipts.Form("a list", lambda value: isinstance(value, list))
FLAG = receipts.Form("true or false", lambda value: isinstance(value, bool))
DIGEST = receipts.Form(
    "64 lower-case hexadecimal digits",
    lambda value: isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef"),
)


def shape(forms: Mapping[str, receipts.Form]) -> Rule:
    """A rule on the types of a record: pointer -> form. What is of another type is no evidence for anything."""

    def malformed(declared: Record, record: Record) -> Reasons:
        for pointer, form in forms.items():
            value: Any = record
            for token in pointer.split("/")[1:]:
                value = value.get(token) if isinstance(value, Mapping) else None
            if form.problems(value, pointer):
                yield INVALID, f"malformed-record:{pointer}"

    return malformed


def exactly(value: Any) -> receipts.Form:
    """The one value that the method allows: the declaration says it, so that nobody assumes another."""
    return receipts.Form(repr(value), lambda given: type(given) is type(value) and given == value)


def includes(*words: str) -> receipts.Form:
    """A list of strings that holds at least these."""

    def accepts(value: Any) -> bool | str:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return False
        absent = [word for word in words if word not in value]
        return f"{', '.join(absent)} is not in it" if absent else True

    return receipts.Form(f"a list with {', '.join(words)}", accepts)


def is_binary(value: Any) -> bool:
    """0 or 1 as integers: not true, not 1.0, not "1"."""
    return type(value) is int and value in (0, 1)


def different(first: str, second: str) -> Callable[[Any, str], list[Problem]]:
    """A rule for declarations: two members name different people (or programs)."""

    def rule(value: Any, where: str) -> list[Problem]:
        if value[first] == value[second]:
            return [Problem(f"{where}/{second}", f"is also the {first}", "they must differ")]
        return []

    return rule


NEGATIVES = receipts.Field(TEXT, "the file with declared negatives, beside the suite")
