"""Receipt assertions about files: what was touched, what must not be, and what promoted pages need.

Owns the kinds ``files_*``, ``file_touched``, ``touched_has_event`` and ``promoted_*``. Paths arrive in normal
form; a receipt with a path that is absolute or escapes was refused before it came here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from agent_eval.records.problems import Problem

from .engine import Check, Evidence, Finding, Spec, Status, failed, missing, not_applicable, passed, register
from .fields import BOOLEAN, COUNT, GLOB, GLOBS, POSITIVE, TEXT, Field, one_or_list
from .matchers import COMMAND, EVENT, Sifted, Test, command_needs, command_test, event_needs, event_test, glob_test
from .receipt_base import ReceiptKind, shown
from .receipt_kinds_commands import ran
from .receipt_kinds_events import bounds_problems

_SECTION = "filesTouched"
MAX_NAMED = 5
_NAMED_FOLDER = re.compile(r"(?:.*/)?[^/*?\[\]]+/\*\*", re.DOTALL)


def named_paths(paths: Sequence[str]) -> str:
    listed = ", ".join(shown(path) for path in paths[:MAX_NAMED])
    return listed + (f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else "")


def pointers_of(indexes: Sequence[int], section: str = _SECTION) -> tuple[str, ...]:
    return tuple(f"/{section}/{index}" for index in indexes) or (f"/{section}",)


class _FilesKind(ReceiptKind):
    sections: ClassVar[tuple[str, ...]] = (_SECTION,)


@register
class FilesWithin(_FilesKind):
    """Nothing touched outside the task."""

    name = "files_within"
    summary = "passes when every touched file matches one of the globs"
    fields: ClassVar[Mapping[str, Field]] = {"allow": Field(GLOBS, "where files may be touched", required=True)}

    def decide(self, spec: Spec) -> Check:
        allowed = glob_test(spec["allow"])

        def check(evidence: Evidence) -> Finding:
            paths = evidence[_SECTION]
            outside = [index for index, path in enumerate(paths) if not allowed(path)]
            if outside:
                return failed(f"outside: {named_paths([paths[index] for index in outside])}", *pointers_of(outside))
            return passed(f"{len(paths)} files, all within", f"/{_SECTION}")

        return check


@register
class FilesAbsent(_FilesKind):
    """Graders, tests and locks left alone. Letters match in any case: ``Tests`` is ``tests`` on some file systems."""

    name = "files_absent"
    summary = "passes when the list of touched files is there and none matches a glob, in any case of letters"
    fields: ClassVar[Mapping[str, Field]] = {"deny": Field(GLOBS, "what must not be touched", required=True)}

    def decide(self, spec: Spec) -> Check:
        # A folder that is declared as a whole is touched like what is in it: "tests" under "tests/**".
        folders = [glob[:-3] for glob in spec["deny"] if _NAMED_FOLDER.fullmatch(glob)]
        denied = glob_test([*spec["deny"], *folders], any_case=True)

        def check(evidence: Evidence) -> Finding:
            paths = evidence[_SECTION]
            touched = [index for index, path in enumerate(paths) if denied(path)]
            if touched:
                return failed(f"touched: {named_paths([paths[index] for index in touched])}", *pointers_of(touched), reason="denied_file_touched")
            return passed("none touched", f"/{_SECTION}")

        return check


@register
class FileTouched(_FilesKind):
    """A file that the task needs touched."""

    name = "file_touched"
    summary = "passes when at least min touched files are the path or match the glob"
    fields: ClassVar[Mapping[str, Field]] = {
        "path": Field(TEXT, "one path, in normal form"),
        "glob": Field(one_or_list(GLOB), "a glob, or several"),
        "min": Field(POSITIVE, "how many different files at least", default=1),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        if ("path" in spec) == ("glob" in spec):
            return [Problem(where, "file_touched needs either path or glob")]
        return []

    def decide(self, spec: Spec) -> Check:
        matches = spec["path"].__eq__ if "path" in spec else glob_test(spec["glob"])
        least = spec.get("min", 1)

        def check(evidence: Evidence) -> Finding:
            paths = evidence[_SECTION]
            hits = [index for index, path in enumerate(paths) if matches(path)]
            count = len({paths[index] for index in hits})
            if count < least:
                return failed(f"{count} such files touched, wanted {least} or more", *pointers_of(hits))
            return passed(f"{count} such files touched", *pointers_of(hits))

        return check


@register
class FilesCount(_FilesKind):
    """A minimal change, counted over different files."""

    name = "files_count"
    summary = "passes when the number of different touched files is from min to max"
    fields: ClassVar[Mapping[str, Field]] = {
        "min": Field(COUNT, "how many at least", default=0),
        "max": Field(COUNT, "how many at most", default="no limit"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        return bounds_problems(spec, where)

    def decide(self, spec: Spec) -> Check:
        least, most = spec.get("min", 0), spec.get("max")

        def check(evidence: Evidence) -> Finding:
            count = len(set(evidence[_SECTION]))
            if count < least or (most is not None and count > most):
                return failed(f"{count} files touched", f"/{_SECTION}")
            return passed(f"{count} files touched", f"/{_SECTION}")

        return check


_REQUIRE_SOME = Field(BOOLEAN, "whether it is a failure that no page was promoted", default=False)


class _PromotedKind(ReceiptKind):
    """Promoted pages: nothing to say when there are none."""

    sections: ClassVar[tuple[str, ...]] = ("promotedPages",)

    def empty(self, spec: Spec, evidence: Evidence) -> Finding | None:
        """The finding when no page was promoted, else ``None``."""
        if evidence["promotedPages"]:
            return None
        answer = failed if spec.get("requireSome") else not_applicable
        return answer("no page was promoted", "/promotedPages")


@register
class PromotedTouched(_PromotedKind):
    """What is promoted was written."""

    name = "promoted_touched"
    summary = "passes when every promoted page is among the touched files; not applicable when none is promoted"
    sections: ClassVar[tuple[str, ...]] = ("promotedPages", _SECTION)
    fields: ClassVar[Mapping[str, Field]] = {"requireSome": _REQUIRE_SOME}

    def decide(self, spec: Spec) -> Check:
        def check(evidence: Evidence) -> Finding:
            empty = self.empty(spec, evidence)
            if empty is not None:
                return empty
            pages, touched = evidence["promotedPages"], frozenset(evidence[_SECTION])
            absent = [index for index, page in enumerate(pages) if page not in touched]
            if absent:
                return failed(f"promoted and not touched: {named_paths([pages[i] for i in absent])}", *pointers_of(absent, "promotedPages"))
            return passed("every promoted page was touched", "/promotedPages", f"/{_SECTION}")

        return check


def names_page(text: str, page: str) -> bool:
    """Whether ``text`` names ``page`` as a whole path: ``wiki/a.md`` is not named by ``wiki/a.md.bak`` or ``old-wiki/a.md``."""
    # Nearly all pairs end at the substring: an expression for each page would be compiled again and again.
    return page in text and re.search(rf"(?<![\w./-]){re.escape(page)}(?![\w/-]|\.\w)", text) is not None


_EVENT_FIELDS = {
    "type": Field(one_or_list(TEXT), "the type of the event", required=True),
    "key": Field(TEXT, "the member of the event that names the path", default="detail"),
}


def _each_has_event(spec: Spec, section: str) -> Check:
    """For each path of ``section`` an event of the type names it; one event does not serve for several unless it names them."""
    test, key = event_test({"type": spec["type"]}), spec.get("key", "detail")

    def check(evidence: Evidence) -> Finding:
        sifted = Sifted("events", test, evidence["events"])
        texts = [(index, evidence["events"][index].get(key)) for index in sifted.hits]
        exact = {text: index for index, text in reversed(texts) if isinstance(text, str)}
        found, absent = [], []
        for place, path in enumerate(evidence[section]):
            naming = exact.get(path)
            if naming is None:
                naming = next((index for index, text in texts if isinstance(text, str) and names_page(text, path)), None)
            if naming is None:
                absent.append(place)
            else:
                found.append(naming)
        silent = [index for index, text in texts if text is None]
        if absent and silent:
            return missing(f"an event lacks its {key}", *sifted.pointers(silent))
        if absent:
            paths = [evidence[section][place] for place in absent]
            return failed(f"no such event names {named_paths(paths)}", *pointers_of(absent, section))
        return passed("each has its event", *sifted.pointers(found))

    return check


def _event_needs(spec: Spec, section: str) -> tuple[str, ...]:
    return (f"/{section}", "/events/*/type", f"/events/*/{spec.get('key', 'detail')}")


@register
class PromotedHasEvent(_PromotedKind):
    """Each page has its own proof, such as ``source-verified``."""

    name = "promoted_has_event"
    summary = "passes when for each promoted page an event of the type names it; not applicable when none is promoted"
    sections: ClassVar[tuple[str, ...]] = ("promotedPages", "events")
    fields: ClassVar[Mapping[str, Field]] = {**_EVENT_FIELDS, "requireSome": _REQUIRE_SOME}

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return _event_needs(spec, "promotedPages")

    def decide(self, spec: Spec) -> Check:
        check = _each_has_event(spec, "promotedPages")
        return lambda evidence: self.empty(spec, evidence) or check(evidence)


@register
class TouchedHasEvent(_FilesKind):
    """Each touched file has its edit among the events, so that rules on the order of edits see all of them."""

    name = "touched_has_event"
    summary = "passes when for each touched file an event of the type names it; not applicable when none is touched"
    sections: ClassVar[tuple[str, ...]] = (_SECTION, "events")
    fields: ClassVar[Mapping[str, Field]] = _EVENT_FIELDS

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return _event_needs(spec, _SECTION)

    def decide(self, spec: Spec) -> Check:
        check = _each_has_event(spec, _SECTION)
        return lambda evidence: check(evidence) if evidence[_SECTION] else not_applicable("no file was touched", f"/{_SECTION}")


@register
class PromotedFollowedBy(_PromotedKind):
    """The index (or build) is made anew after the promotion."""

    name = "promoted_followed_by"
    summary = (
        "passes when the command's last run is ok and, where seq (or commandsOrdered) tells, comes after the promotion; "
        "not applicable when no page is promoted"
    )
    sections: ClassVar[tuple[str, ...]] = ("promotedPages", "commands")
    fields: ClassVar[Mapping[str, Field]] = {
        "cmd": Field(COMMAND, "the command that must follow", required=True),
        "after": Field(EVENT, "the events that are the promotion", default="events whose detail names a promoted page"),
        "commandsOrdered": Field(
            BOOLEAN, "without seq, take the declared rule that such a command is run after promotions", default=False
        ),
        "requireSome": _REQUIRE_SOME,
    }

    def needs(self, spec: Spec) -> tuple[str, ...]:
        events = event_needs(spec["after"]) if "after" in spec else ("/events/*/detail",)
        order = () if spec.get("commandsOrdered") else (*events, "/events/*/seq", "/commands/*/seq")
        return ("/promotedPages", *command_needs(spec["cmd"], exit_code=True), *order)

    def decide(self, spec: Spec) -> Check:
        test, ordered = command_test(spec["cmd"]), bool(spec.get("commandsOrdered"))
        after = event_test(spec["after"]) if "after" in spec else None

        def check(evidence: Evidence) -> Finding:
            empty = self.empty(spec, evidence)
            if empty is not None:
                return empty
            commands, events = evidence["commands"], evidence.get("events")
            sifted = Sifted("commands", test, commands)
            result = ran(commands, sifted, "last", (0).__eq__, "0")
            if result.status is not Status.PASS:
                return result
            last = sifted.hits[-1]
            if "seq" not in commands[last] or (events and "seq" not in events[0]) or events is None:
                if ordered:
                    return passed("the last run is ok (commands are ordered)", f"/commands/{last}")
                return missing("order between promotion and command needs seq", f"/commands/{last}")
            promotions = _promotions(events, evidence["promotedPages"], after)
            if not promotions:
                return missing("no event places the promotion in time", "/events")
            if commands[last]["seq"] < events[promotions[-1]]["seq"]:
                return failed("the command ran before the promotion only", f"/commands/{last}", f"/events/{promotions[-1]}")
            return passed("the command ran after the promotion", f"/commands/{last}", f"/events/{promotions[-1]}")

        return check


def _promotions(events: list, pages: list, after: Test | None) -> list[int]:
    if after is not None:
        return Sifted("events", after, events).hits
    return [
        index
        for index, event in enumerate(events)
        if isinstance(event.get("detail"), str) and any(names_page(event["detail"], page) for page in pages)
    ]
