"""What the checker found: one ledger of checks, and the comparison that fills one.

Owns the shape of a check in the owner report (`id`, `passed`, `detail`, `worst`) and the catalogue of check ids.
A check that a design makes void is never in `checks`: it is in `not_applicable`, with the reason, and one that
could not be looked at because something before it is broken is in `not_evaluated`, which never goes with a pass.
Does not know any relation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

CATALOGUE: tuple[str, ...] = (
    # integrity
    "manifest", "roles", "paths", "file-set", "file-digests", "documents", "tables", "attachments",
    # pairing
    "samples", "genes", "model-matrix", "contrast", "parameters",
    # arithmetic
    "library-sizes", "size-factors", "normalized-counts", "base-mean", "missing-values",
    "wald-stat", "p-value",
    "filter-theta-grid", "filter-rejections", "filter-theta", "filter-threshold", "filter-set", "padj",
    "cooks-cutoff", "cooks-distance", "cooks-rule",
    "dispersion-trend", "dispersion-trend-fit", "dispersion-prior", "dispersion-outlier", "dispersion-final",
    "dispersion-map",
    "contrast-coefficient", "lfc-se", "glm-score", "direction", "shrunken", "summary", "top-genes",
)

# Alternatives to `wald-stat` and `p-value`: reported only by an analysis that they are about.
ALTERNATIVES: tuple[str, ...] = ("threshold-stat", "threshold-p-value", "lrt-p-value")

_MAX_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Place:
    """Which file, gene, sample, column or line to open; what was found there and what was expected."""

    file: str
    found: object = None
    expected: object = None
    gene: str | None = None
    sample: str | None = None
    column: str | None = None
    line: int | None = None
    what: str = ""

    def text(self) -> str:
        parts = [self.file] if self.file else []
        parts += [f"{name} {value}" for name, value in (
            ("line", self.line), ("gene", self.gene), ("sample", self.sample), ("column", self.column),
        ) if value is not None]
        said = ", ".join(parts)
        if self.what:
            said = f"{said}: {self.what}" if said else self.what
        if self.found is not None or self.expected is not None:
            said += f"{': ' if not self.what else '; '}found {_show(self.found)}, expected {_show(self.expected)}"
        return said

    def to_json(self) -> dict[str, object]:
        names = ("file", "line", "gene", "sample", "column", "what", "found", "expected")
        plain = {name: _plain(getattr(self, name)) for name in names}
        return {name: value for name, value in plain.items() if value not in (None, "")}


def _show(value: object) -> str:
    if isinstance(value, float):
        return "NA" if math.isnan(value) else format(value, ".15g")
    return "nothing" if value is None else str(value)


def _plain(value: object) -> object:
    """JSON has no NaN or Inf: NA and the infinities are said as text. A lone surrogate of a hostile file is spelled out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return "NA" if math.isnan(value) else str(value)
    return value


@dataclass(slots=True)
class Comparison:
    """One relation over many values: how many were compared, how many are off, and the worst of them.

    `tolerance` is the largest deviation that passes, in the unit that `measure` names; 0 means exact.
    """

    id: str
    relation: str
    tolerance: float = 0.0
    measure: str = "relative deviation"
    compared: int = 0
    off: int = 0
    largest: float = 0.0
    worst: Place | None = None
    examples: list[Place] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def wrong(self, place: Place, deviation: float = math.inf) -> None:
        """One value that is off; the largest deviation becomes the worst."""
        self.off += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(place)
        if self.off == 1 or deviation > self.largest:
            self.largest, self.worst = deviation, place

    def require(self, holds: bool, place: Place) -> bool:
        """An exact statement."""
        self.compared += 1
        if not holds:
            self.wrong(place)
        return holds

    def number(self, found: float, expected: float, place: Place) -> bool:
        """Compare one number relatively; `place` says where it stands."""
        self.compared += 1
        deviation = relative_deviation(found, expected)
        if deviation <= self.tolerance:
            if not self.off and deviation >= self.largest:
                self.largest, self.worst = deviation, place
            return True
        self.wrong(place, deviation)
        return False

    def column(self, found: Sequence[float], expected: Iterable[float], genes: Sequence[str],
               file: str, column: str | None = None, sample: str | None = None) -> set[int]:
        """Compare a column of one value per gene; NA on either side is left to `missing-values`. Returns the rows off."""
        tolerance, largest, largest_row, compared = self.tolerance, -1.0, -1, 0
        off: dict[int, float] = {}
        for row, (have, want) in enumerate(zip(found, expected)):
            if have == want:
                compared += 1
                continue
            if have != have or want != want:
                continue
            compared += 1
            scale = abs(want) if abs(want) > abs(have) else abs(have)
            deviation = abs(have - want) / scale
            if deviation > tolerance:
                off[row] = want
            elif deviation > largest:
                largest, largest_row = deviation, row
        self.compared += compared
        for row, want in off.items():
            self.wrong(Place(file, found[row], want, gene=genes[row], column=column, sample=sample),
                       relative_deviation(found[row], want))
        if not self.off and largest > self.largest:
            self.largest = largest
            self.worst = Place(file, found[largest_row], None, gene=genes[largest_row], column=column, sample=sample)
        return set(off)

    def to_json(self) -> dict[str, object]:
        passed = self.off == 0
        record: dict[str, object] = {
            "id": self.id, "passed": passed, "detail": _plain(self._detail()), "relation": self.relation,
            "compared": self.compared, "off": self.off, "tolerance": self.tolerance,
        }
        if self.worst is not None:
            record["worst"] = self.worst.to_json()
            record["worst_deviation"] = _plain(self.largest)
        if not passed:
            record["examples"] = [place.to_json() for place in self.examples]
        if self.notes:
            record["notes"] = list(self.notes)
        return record

    def _detail(self) -> str:
        allowed = f"tolerance {self.tolerance:g}" if self.tolerance else "exact"
        if self.off:
            # one thing compared may have several faults, as a table with two genes missing
            count = f"{self.off} of {self.compared} wrong" if self.off <= self.compared else f"{self.off} faults in {self.compared} compared"
            said = f"{count} ({self.relation}; {allowed})"
            if self.worst is not None:
                said += f"; worst: {self.worst.text()}"
                if math.isfinite(self.largest) and self.tolerance:
                    said += f", {self.measure} {self.largest:.3g}"
        else:
            said = f"{self.compared} compared ({self.relation}; {allowed})"
            if self.worst is not None and self.tolerance:
                where = f" at {self.worst.gene}" if self.worst.gene else ""
                said += f"; largest {self.measure} {self.largest:.3g}{where}"
        return "; ".join([said, *self.notes])


def relative_deviation(found: float, expected: float) -> float:
    """abs(found - expected) over the larger of the two; infinite where either is not a finite number."""
    if found == expected:
        return 0.0
    if not (math.isfinite(found) and math.isfinite(expected)):
        return math.inf
    return abs(found - expected) / max(abs(found), abs(expected))


class Ledger:
    """All findings of one run, in the order of the catalogue."""

    def __init__(self) -> None:
        self._checks: dict[str, Comparison] = {}
        self._void: dict[str, str] = {}
        self._blocked: dict[str, str] = {}
        self.limits: list[str] = []
        self.accepted: list[str] = []

    def add(self, comparison: Comparison) -> Comparison:
        self._checks[comparison.id] = comparison
        return comparison

    def not_applicable(self, check_id: str, reason: str) -> None:
        self._void[check_id] = reason

    def not_evaluated(self, check_ids: Iterable[str], reason: str) -> None:
        for check_id in check_ids:
            if check_id not in self._checks and check_id not in self._void:
                self._blocked.setdefault(check_id, reason)

    def accept(self, what: str) -> None:
        """A deviation of form that is accepted and said (CRLF, BOM, quoted names ...)."""
        if what not in self.accepted:
            self.accepted.append(what)

    def last(self) -> Comparison:
        """The check that was begun last."""
        return next(reversed(self._checks.values()))

    def open_ids(self) -> list[str]:
        """Catalogue entries that nothing was said about yet."""
        return [name for name in CATALOGUE
                if name not in self._checks and name not in self._void and name not in self._blocked]

    def settle(self) -> None:
        """A check that compared nothing has shown nothing: it is not evaluated, and never counted as passed."""
        for name in [name for name, check in self._checks.items() if not check.compared and not check.off]:
            del self._checks[name]
            self.not_evaluated([name], "there was nothing to compare")

    def to_json(self) -> dict[str, object]:
        """The report without its frame. Passed: something was checked, nothing failed, nothing was left open."""
        self.settle()
        order = {name: at for at, name in enumerate(CATALOGUE + ALTERNATIVES)}
        checks = [self._checks[name].to_json() for name in sorted(self._checks, key=order.__getitem__)]
        failed = sum(not check["passed"] for check in checks)
        return {
            "passed": bool(checks) and not failed and not self._blocked and not self.open_ids(),
            "checks": checks,
            "not_applicable": [{"id": name, "reason": self._void[name]} for name in sorted(self._void, key=order.__getitem__)],
            "not_evaluated": [{"id": name, "reason": self._blocked[name]}
                              for name in sorted(self._blocked, key=order.__getitem__)],
            "accepted_forms": list(self.accepted),
            "limits": list(self.limits),
            "counts": {"checks": len(checks), "passed": len(checks) - failed, "failed": failed,
                       "not_applicable": len(self._void), "not_evaluated": len(self._blocked)},
        }
