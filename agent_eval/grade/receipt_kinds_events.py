"""Receipt assertions about events: that they happened, how often, in which order.

Owns the kinds ``event_*``. Order within one list is the order of the list; between events and
commands it is that of ``seq``, and without ``seq`` it is not known (``missing``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agent_eval.records.problems import Problem

from .engine import Check, Evidence, Finding, Spec, failed, missing, not_applicable, passed, register
from .fields import BOOLEAN, COUNT, POSITIVE, Field, choice
from .matchers import EVENT, STEP, STEPS, Sifted, event_needs, event_test, step_needs, step_test
from .receipt_base import ReceiptKind

EVERY_SECOND = "every-second-has-earlier-first"
QUANTIFIERS = ("first-first", "first-last", "last-last", "all-first", EVERY_SECOND)


def bounds_problems(spec: Spec, where: str) -> list[Problem]:
    """``min`` and ``max``: at least one, and in order."""
    if "min" not in spec and "max" not in spec:
        return [Problem(where, f"{spec['kind']} needs min or max")]
    if spec.get("min", 0) > spec.get("max", spec.get("min", 0)):
        return [Problem(where, "min is above max")]
    return []


def count_finding(sifted: Sifted, least: int, most: int | None, what: str) -> Finding:
    """Decide a count from sure hits and doubts."""
    sure, possible = len(sifted.hits), len(sifted.hits) + len(sifted.doubts)
    pointers = sifted.pointers()
    wanted = f"{least} or more" if most is None else f"{least} to {most}" if least else f"at most {most}"
    if sure > (most if most is not None else sure) or possible < least:
        return failed(f"{what}: {sure}, wanted {wanted}", *pointers)
    if sure < least or (most is not None and possible > most):
        return sifted.doubt() or failed(f"{what}: {sure}, wanted {wanted}", *pointers)
    return passed(f"{what}: {sure}", *pointers)


class _EventKind(ReceiptKind):
    sections: ClassVar[tuple[str, ...]] = ("events",)

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return event_needs(spec["match"])


@register
class EventPresent(_EventKind):
    """At least ``min`` events match."""

    name = "event_present"
    summary = "passes when at least min events match"
    fields: ClassVar[Mapping[str, Field]] = {
        "match": Field(EVENT, "which events", required=True),
        "min": Field(POSITIVE, "how many at least", default=1),
    }

    def decide(self, spec: Spec) -> Check:
        test, least = event_test(spec["match"]), spec.get("min", 1)
        return lambda evidence: count_finding(Sifted("events", test, evidence["events"]), least, None, "matching events")


@register
class EventAbsent(_EventKind):
    """The list is there and holds no match."""

    name = "event_absent"
    summary = "passes when the list of events is there and none matches"
    fields: ClassVar[Mapping[str, Field]] = {"match": Field(EVENT, "which events", required=True)}

    def decide(self, spec: Spec) -> Check:
        test = event_test(spec["match"])
        return lambda evidence: count_finding(Sifted("events", test, evidence["events"]), 0, 0, "matching events")


@register
class EventCount(_EventKind):
    """The number of matches lies between ``min`` and ``max``."""

    name = "event_count"
    summary = "passes when the number of matching events is from min to max"
    fields: ClassVar[Mapping[str, Field]] = {
        "match": Field(EVENT, "which events", required=True),
        "min": Field(COUNT, "how many at least", default=0),
        "max": Field(COUNT, "how many at most", default="no limit"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        return bounds_problems(spec, where)

    def decide(self, spec: Spec) -> Check:
        test, least, most = event_test(spec["match"]), spec.get("min", 0), spec.get("max")
        return lambda evidence: count_finding(Sifted("events", test, evidence["events"]), least, most, "matching events")


class Places:
    """Where the matches of two steps lie on one line: the index within one list, or ``seq`` across two."""

    def __init__(self, first: Sifted, second: Sifted, evidence: Evidence) -> None:
        self.first, self.second = first, second
        self._evidence = evidence
        self.across = first.section != second.section

    def unknown(self) -> Finding | None:
        """``missing`` when the lists are two and an item that counts has no ``seq``."""
        if self.across:
            for sifted in (self.first, self.second):
                for index in sifted.hits:
                    if "seq" not in self._evidence[sifted.section][index]:
                        return missing("order between events and commands needs seq on both", f"/{sifted.section}/{index}")
        return None

    def place(self, sifted: Sifted, index: int) -> int:
        """The place of one hit."""
        return self._evidence[sifted.section][index]["seq"] if self.across else index


class OrderKind(ReceiptKind):
    """Two steps in order; the events kind and the commands kind differ in their matchers only."""

    def steps(self, spec: Spec) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The two step matchers."""
        return spec["first"], spec["second"]

    def sections_of(self, spec: Spec) -> tuple[str, ...]:
        return tuple(dict.fromkeys("commands" if "cmd" in step else "events" for step in self.steps(spec)))

    def needs(self, spec: Spec) -> tuple[str, ...]:
        first, second = self.steps(spec)
        extra = ("/events/*/seq", "/commands/*/seq") if len(self.sections_of(spec)) == 2 else ()
        return step_needs(first) + step_needs(second) + extra

    def decide(self, spec: Spec) -> Check:
        (name_1, test_1), (name_2, test_2) = (step_test(step) for step in self.steps(spec))
        quantifier = spec.get("quantifier", QUANTIFIERS[0])
        same_detail = bool(spec.get("sameDetail"))
        required = bool(spec.get("requireSecond"))

        def check(evidence: Evidence) -> Finding:
            first, second = Sifted(name_1, test_1, evidence[name_1]), Sifted(name_2, test_2, evidence[name_2])
            doubt = second.doubt() or first.doubt()
            if doubt is not None:
                return doubt
            if not second.hits:
                text = "the second step never happens"
                return failed(text, f"/{name_2}") if required else not_applicable(text, f"/{name_2}")
            if not first.hits:
                return failed("the second step happens and the first never does", *second.pointers(second.hits[:1]))
            places = Places(first, second, evidence)
            unknown = places.unknown()
            if unknown is not None:
                return unknown
            if same_detail:
                return _paired(places, evidence)
            return _ordered(places, quantifier)

        return check


def _ordered(places: Places, quantifier: str) -> Finding:
    first, second = places.first, places.second
    firsts = [(places.place(first, index), index) for index in first.hits]
    seconds = [(places.place(second, index), index) for index in second.hits]
    left = max(firsts) if quantifier in ("all-first", "last-last") else min(firsts)
    right = max(seconds) if quantifier in ("first-last", "last-last") else min(seconds)
    pointers = (*first.pointers([left[1]]), *second.pointers([right[1]]))
    if left[0] < right[0]:
        return passed("in order", *pointers)
    return failed("the second step comes before the first", pointers[1], pointers[0])


def _paired(places: Places, evidence: Evidence) -> Finding:
    """Each second step has an earlier first step with the same detail."""
    earliest: dict[object, int] = {}
    for index in places.first.hits:
        item = evidence[places.first.section][index]
        earliest.setdefault(item.get("detail"), places.place(places.first, index))
    contrary = []
    for index in places.second.hits:
        detail = evidence[places.second.section][index].get("detail")
        if detail is None:
            return missing("an event has no detail to pair by", *places.second.pointers([index]))
        if earliest.get(detail, places.place(places.second, index)) >= places.place(places.second, index):
            contrary.append(index)
    if contrary:
        return failed("a second step has no earlier first step of the same detail", *places.second.pointers(contrary))
    return passed("each second step has its earlier first step", *places.second.pointers())


@register
class EventBefore(OrderKind):
    """One step before another."""

    name = "event_before"
    summary = "passes when the first step comes before the second; not applicable when the second never happens"
    fields: ClassVar[Mapping[str, Field]] = {
        "first": Field(STEP, "the earlier step", required=True),
        "second": Field(STEP, "the later step", required=True),
        "quantifier": Field(
            choice(*QUANTIFIERS),
            "first-first: the first of each; first-last: the first before the last second; last-last: the last of each; all-first: "
            "all firsts before any second; every-second-has-earlier-first: as first-first, and by detail with sameDetail",
            default="first-first",
        ),
        "sameDetail": Field(BOOLEAN, "each second step needs its own earlier first step of the same detail (both are events)", default=False),
        "requireSecond": Field(BOOLEAN, "whether it is a failure that the second step never happens", default=False),
    }

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return super().needs(spec) + (("/events/*/detail",) if spec.get("sameDetail") else ())

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        if not spec.get("sameDetail"):
            return []
        problems = []
        if any("cmd" in step for step in self.steps(spec)):
            problems.append(Problem(f"{where}/sameDetail", "commands have no detail"))
        if spec.get("quantifier", EVERY_SECOND) != EVERY_SECOND:
            problems.append(Problem(f"{where}/quantifier", f"sameDetail goes with {EVERY_SECOND}"))
        return problems


@register
class EventAdjacent(OrderKind):
    """The second step soon after the first."""

    name = "event_adjacent"
    summary = "passes when each second step has a first step at most within places before it"
    fields: ClassVar[Mapping[str, Field]] = {
        "first": Field(STEP, "the earlier step", required=True),
        "second": Field(STEP, "the later step", required=True),
        "within": Field(POSITIVE, "the greatest gap; 1 is directly before", required=True),
    }

    def decide(self, spec: Spec) -> Check:
        (name_1, test_1), (name_2, test_2) = (step_test(step) for step in self.steps(spec))
        within = spec["within"]

        def check(evidence: Evidence) -> Finding:
            first, second = Sifted(name_1, test_1, evidence[name_1]), Sifted(name_2, test_2, evidence[name_2])
            doubt = second.doubt() or first.doubt()
            if doubt is not None:
                return doubt
            if not second.hits:
                return not_applicable("the second step never happens", f"/{name_2}")
            places = Places(first, second, evidence)
            unknown = places.unknown()
            if unknown is not None:
                return unknown
            firsts = [places.place(first, index) for index in first.hits]
            far = [
                index
                for index in second.hits
                if not any(0 < places.place(second, index) - place <= within for place in firsts)
            ]
            if far:
                return failed(f"no first step within {within} before it", *second.pointers(far))
            return passed("each second step follows closely", *second.pointers())

        return check


@register
class EventSequence(ReceiptKind):
    """Several steps in order."""

    name = "event_sequence"
    summary = "passes when the events hold the steps in order (subsequence) or are exactly them (exact)"
    sections: ClassVar[tuple[str, ...]] = ("events",)
    fields: ClassVar[Mapping[str, Field]] = {
        "matches": Field(STEPS, "the steps, all of them events", required=True),
        "mode": Field(choice("subsequence", "exact"), "whether other events may stand between", default="subsequence"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        return [
            Problem(f"{where}/matches/{index}/cmd", "a sequence is of events", "use command_order or event_before")
            for index, step in enumerate(spec["matches"])
            if "cmd" in step
        ]

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pointer for step in spec["matches"] for pointer in event_needs(step)))

    def decide(self, spec: Spec) -> Check:
        tests = [event_test(step) for step in spec["matches"]]
        exact = spec.get("mode") == "exact"

        def check(evidence: Evidence) -> Finding:
            events = evidence["events"]
            doubt = next(filter(None, (Sifted("events", test, events).doubt() for test in tests)), None)
            if doubt is not None:
                return doubt
            if exact:
                wrong = [index for index, (test, event) in enumerate(zip(tests, events, strict=False)) if not test(event)]
                if wrong or len(tests) != len(events):
                    place = wrong[0] if wrong else min(len(tests), len(events))
                    return failed(f"step {place + 1} of {len(tests)} is not what happened", f"/events/{place}" if place < len(events) else "/events")
                return passed("exactly the steps", "/events")
            found: list[int] = []
            for index, event in enumerate(events):
                if len(found) < len(tests) and tests[len(found)](event):
                    found.append(index)
            pointers = tuple(f"/events/{index}" for index in found) or ("/events",)
            if len(found) < len(tests):
                return failed(f"step {len(found) + 1} of {len(tests)} does not follow", *pointers)
            return passed("the steps are in order", *pointers)

        return check
