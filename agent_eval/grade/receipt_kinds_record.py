"""Receipt assertions about the record itself: its shape, budgets, binding and secrets.

Owns ``field_shape``, ``unique``, ``budget``, ``suite_binding``, ``no_secret`` and ``not_interrupted``,
and how a pointer with ``*`` finds values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from agent_eval.records import credentials, strict_json
from agent_eval.records.problems import Problem

from .engine import Check, Evidence, Finding, Spec, failed, missing, not_applicable, passed, register, unsupported
from .fields import ANY, COUNT, NUMBER, POINTER, REGEX, TEXT, Field, choice, list_of
from .patterns import compile_regex
from .receipt_base import ARTIFACT_DIGESTS, HIDDEN, SCORING_SUITE, STATE_DIFF, ReceiptKind, tokens_of

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _escaped(token: object) -> str:
    return str(token).replace("~", "~0").replace("/", "~1")


def values_at(evidence: Evidence, pointer: str) -> Iterator[tuple[str, object]]:
    """The values that a pointer leads to; ``*`` is every item of a list."""
    tokens = tokens_of(pointer)
    if len(tokens) == 1:
        return iter([(pointer, evidence[tokens[0]])] if tokens[0] in evidence else [])
    found: list[tuple[str, object]] = [("", evidence)]
    for token in tokens:
        following: list[tuple[str, object]] = []
        for place, value in found:
            if isinstance(value, list):
                indexes = range(len(value)) if token == "*" else [int(token)] if token.isdecimal() and int(token) < len(value) else []
                following += [(f"{place}/{index}", value[index]) for index in indexes]
            elif isinstance(value, Mapping) and token in value:
                following.append((f"{place}/{_escaped(token)}", value[token]))
        found = following
    return iter(found)


class _PointerKind(ReceiptKind):
    """Kinds about the place that ``path`` (or another field) points to."""

    pointer_field = "path"

    def sections_of(self, spec: Spec) -> tuple[str, ...]:
        return tokens_of(spec[self.pointer_field])[:1]

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return (spec[self.pointer_field],)


@register
class FieldShape(_PointerKind):
    """The JSON shape of one place, or of every item of a list."""

    name = "field_shape"
    summary = "passes when every value at the pointer (* is every item of a list) has the shape"
    fields: ClassVar[Mapping[str, Field]] = {
        "path": Field(POINTER, "where", required=True),
        "type": Field(choice(*_TYPES), "the JSON type; true is not an integer"),
        "minLen": Field(COUNT, "the least length of a string, list or object"),
        "enum": Field(list_of(ANY), "the values that are allowed"),
        "pattern": Field(REGEX, "all of the string matches"),
    }

    def needs(self, spec: Spec) -> tuple[str, ...]:
        # Type and length do not depend on what is inside: "-" is the item that no list has (RFC 6901), so only
        # a redaction of the place itself, or of what holds it, counts.
        inside = "" if "enum" in spec else "/-"
        return (spec["path"] + inside,)

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        if spec.keys() - {"kind", "path"}:
            return []
        return [Problem(where, "field_shape says nothing about the shape", "give type, minLen, enum or pattern")]

    def decide(self, spec: Spec) -> Check:
        allowed = [strict_json.canonical(value) for value in spec["enum"]] if "enum" in spec else None
        pattern = compile_regex(spec["pattern"]) if "pattern" in spec else None
        types, least = _TYPES.get(spec.get("type", "")), spec.get("minLen")

        def contrary(value: Any) -> str:
            is_boolean = isinstance(value, bool)
            if types is not None and (not isinstance(value, types) or (is_boolean and bool not in types)):
                return f"not of type {spec['type']}"
            if least is not None and (not isinstance(value, (str, list, dict)) or len(value) < least):
                return f"shorter than {least}"
            if allowed is not None and strict_json.canonical(value) not in allowed:
                return "not one of the allowed values"
            if pattern is not None and not (isinstance(value, str) and pattern.fullmatch(value)):
                return "does not match the pattern"
            return ""

        path = spec["path"]

        def check(evidence: Evidence) -> Finding:
            values = list(values_at(evidence, path))
            if not values:
                if "*" in tokens_of(spec["path"]):
                    return not_applicable("no item to look at", "/" + tokens_of(spec["path"])[0])
                return missing("there is nothing at this place", spec["path"])
            wrong = [(place, contrary(value)) for place, value in values]
            wrong = [(place, text) for place, text in wrong if text]
            if wrong:
                return failed(wrong[0][1], *(place for place, _ in wrong))
            return passed("of this shape", *(place for place, _ in values[:5]))

        return check


@register
class Unique(_PointerKind):
    """No value twice."""

    name = "unique"
    summary = "passes when the items of the list at the pointer (or all values that * finds) are different"
    fields: ClassVar[Mapping[str, Field]] = {"path": Field(POINTER, "a list, or a pointer with *", required=True)}

    def decide(self, spec: Spec) -> Check:
        path = spec["path"] if "*" in tokens_of(spec["path"]) else f"{spec['path']}/*"
        base = spec["path"].partition("/*")[0]

        def check(evidence: Evidence) -> Finding:
            holder = [value for _, value in values_at(evidence, base)]
            if not holder:
                return missing("there is nothing at this place", base)
            if not isinstance(holder[0], list):
                return failed("not a list", base)
            seen: dict[bytes, str] = {}
            for place, value in values_at(evidence, path):
                other = seen.setdefault(strict_json.canonical(value), place)
                if other != place:
                    return failed("the same value twice", other, place)
            return passed(f"{len(seen)} different values", base)

        return check


@register
class Budget(ReceiptKind):
    """What the run cost, as far as the receipt says it."""

    name = "budget"
    summary = "passes when cost has the metric and it is at most max (at least min)"
    sections: ClassVar[tuple[str, ...]] = ("cost",)
    fields: ClassVar[Mapping[str, Field]] = {
        "metric": Field(TEXT, "tokens, usd, seconds, toolCalls or another member of cost", required=True),
        "max": Field(NUMBER, "the greatest value"),
        "min": Field(NUMBER, "the least value"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        return bounds_needed(spec, where)

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return (f"/cost/{_escaped(spec['metric'])}",)

    def decide(self, spec: Spec) -> Check:
        metric, least, most = spec["metric"], spec.get("min"), spec.get("max")
        pointer = f"/cost/{_escaped(metric)}"

        def check(evidence: Evidence) -> Finding:
            value = evidence["cost"].get(metric)
            if value is None:
                return missing(f"cost has no {metric}", pointer)
            if most is not None and value > most:
                return failed(f"{metric} {value}, at most {most}", pointer, reason="over_budget")
            if least is not None and value < least:
                return failed(f"{metric} {value}, at least {least}", pointer)
            return passed(f"{metric} {value}", pointer)

        return check


def bounds_needed(spec: Spec, where: str) -> list[Problem]:
    """``min`` or ``max``, in order."""
    if "min" not in spec and "max" not in spec:
        return [Problem(where, f"{spec['kind']} needs max or min")]
    if "min" in spec and "max" in spec and spec["min"] > spec["max"]:
        return [Problem(where, "min is above max")]
    return []


@register
class SuiteBinding(ReceiptKind):
    """The receipt was written for the suite that scores it."""

    name = "suite_binding"
    summary = "passes when the receipt's suite digest is that of the scoring suite"
    sections: ClassVar[tuple[str, ...]] = ("suite",)
    fields: ClassVar[Mapping[str, Field]] = {}

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return ("/suite/digest",)

    def decide(self, spec: Spec) -> Check:
        def check(evidence: Evidence) -> Finding:
            suite, scoring = evidence["suite"], evidence.get(SCORING_SUITE)
            if scoring is None:
                return unsupported("the scoring suite is not known", "/suite")
            for key in ("id", "revision"):
                if key in suite and suite[key] != scoring[key]:
                    text = f"bound to another {key} than {scoring[key]}"
                    return failed(text, f"/suite/{key}", reason="stale_binding")
            if "digest" not in suite:
                return missing("the receipt does not say the digest of its suite", "/suite/digest")
            if suite["digest"].removeprefix("sha256:") != scoring["sha256"]:
                return failed("bound to other bytes of the suite", "/suite/digest", reason="stale_binding")
            return passed("bound to this suite", "/suite/digest")

        return check


def _strings(value: Any) -> list[str]:
    """Every string in ``value``, member names included."""
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            found += item
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return found


def _placed_strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """The same with the pointer to each."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{place}/{_escaped(key)}", key
            yield from _placed_strings(item, f"{place}/{_escaped(key)}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _placed_strings(item, f"{place}/{index}")


_HARNESS_KEYS = frozenset((ARTIFACT_DIGESTS, SCORING_SUITE, HIDDEN, STATE_DIFF))


@register
class NoSecret(ReceiptKind):
    """Nothing shaped like a credential. The finding says where, never what."""

    name = "no_secret"
    summary = "passes when no string of the receipt is shaped like a credential or matches a pattern"
    fields: ClassVar[Mapping[str, Field]] = {
        "patterns": Field(list_of(REGEX), "further patterns; some part of a string matches", default="the table of credential shapes"),
    }

    def decide(self, spec: Spec) -> Check:
        patterns = [compile_regex(text) for text in spec.get("patterns", ())]

        def suspicious(text: str) -> bool:
            return bool(credentials.find(text)) or any(pattern.search(text) for pattern in patterns)

        def check(evidence: Evidence) -> Finding:
            receipt = {section: value for section, value in evidence.items() if section not in _HARNESS_KEYS}
            texts = _strings(receipt)
            # One scan of everything decides nearly always; only a sighting is worth the pointers.
            if credentials.find("\n".join(texts)) or (patterns and any(map(suspicious, texts))):
                places = [place for place, text in _placed_strings(receipt, "") if suspicious(text)]
                if places:
                    return failed("shaped like a secret", *dict.fromkeys(places), reason="secret_in_receipt")
            return passed("no string is shaped like a secret", "")

        return check


@register
class NotInterrupted(ReceiptKind):
    """The run came to its end."""

    name = "not_interrupted"
    summary = "passes when interrupted is absent or false"
    fields: ClassVar[Mapping[str, Field]] = {}

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return ("/interrupted",)

    def decide(self, spec: Spec) -> Check:
        def check(evidence: Evidence) -> Finding:
            if evidence.get("interrupted") is True:
                return failed("the run was interrupted", "/interrupted", reason="interrupted")
            return passed("not interrupted", "/interrupted")

        return check
