"""Rows of the table: what was found, the goal, and whether it is met. Judges and formats; measures nothing."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from rounds import Spread


class Bound(enum.Enum):
    """How a goal bounds a value."""

    AT_MOST = "<="
    AT_LEAST = ">="
    BELOW = "<"


class Verdict(enum.Enum):
    """What became of a goal; ``NO_GOAL`` is a row that is only there to compare with."""

    MET = "met"
    NOT_MET = "NOT MET"
    OPEN = "open"
    NO_GOAL = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on the median of the rounds, or with ``every_round`` on each of them."""

    bound: float
    unit: str
    kind: Bound = Bound.AT_MOST
    every_round: bool = False

    def judge(self, found: Spread) -> Verdict:
        """Met exactly at the bound too, but for ``BELOW``."""
        worst = found.low if self.kind is Bound.AT_LEAST else found.high
        value = worst if self.every_round else found.median
        met = {Bound.AT_MOST: value <= self.bound, Bound.AT_LEAST: value >= self.bound, Bound.BELOW: value < self.bound}
        return Verdict.MET if met[self.kind] else Verdict.NOT_MET

    def __str__(self) -> str:
        return f"{self.kind.value} {self.bound:g}{self.unit}" + (" in every round" if self.every_round else "")


@dataclass(frozen=True, slots=True)
class Row:
    """One line: ``who`` did ``work``; ``found`` has the unit ``unit``, ``ratio`` is to ``against`` in the same rounds.

    A goal bounds the ratio where there is one, else what was found. ``found`` is ``None`` where nothing could be measured;
    the note says why.
    """

    work: str
    who: str
    found: Spread | None
    unit: str
    ratio: Spread | None = None
    against: str = ""
    goal: Goal | None = None
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Open where there is a goal and nothing to judge it by."""
        if self.goal is None:
            return Verdict.NO_GOAL
        judged = self.ratio if self.against else self.found
        return Verdict.OPEN if judged is None else self.goal.judge(judged)


HEADINGS = ("work", "who", "found: median (least to most)", "ratio", "goal", "", "note")


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(found: Spread | None, unit: str) -> str:
    """``1.2 ms (1.1 to 1.4)``, or a dash."""
    if found is None:
        return "-"
    text = f"{number(found.median)}{unit}"
    return text if found.low == found.high else f"{text} ({number(found.low)} to {number(found.high)})"


def cells(row: Row) -> tuple[str, ...]:
    """The texts of one line, in the order of ``HEADINGS``."""
    ratio = f"{spread(row.ratio, 'x')} of {row.against}" if row.against else ""
    goal = "" if row.goal is None else str(row.goal)
    texts = (row.work, row.who, spread(row.found, row.unit), ratio, goal, row.verdict.value, row.note)
    return tuple(text.replace("|", "/").replace("\n", " ") for text in texts)


def table(rows: Sequence[Row]) -> str:
    """All rows as one Markdown table with aligned columns; a work is named once."""
    lines = [HEADINGS]
    for index, row in enumerate(rows):
        texts = cells(row)
        lines.append(("", *texts[1:]) if index and rows[index - 1].work == row.work else texts)
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS) - 1)]
    drawn = ["| " + " | ".join([*(text.ljust(width) for text, width in zip(line, widths)), line[-1]]) + " |" for line in lines]
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in [*widths, 2]) + "|")
    return "\n".join(drawn) + "\n"
