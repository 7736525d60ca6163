"""JSON pointers, conditions and field sources: the small language of event rules.

Owns reading those three from an adapter and applying them to one event. A pointer
starts at the event (``/item/id`` or ``item/id``), at the element of a list (``@/id``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from .model import Matcher
from .shape import Section, kind_of

ABSENT = object()
_TESTS = ("in", "not", "exists", "contains", "matches")
_INDEX = re.compile("-?[0-9]{1,9}")
_FORMS = ("const", "first", "json", "not", "equals", "object")


def lookup(pointer: str, event: object, element: object = ABSENT) -> object:
    """The value at ``pointer`` or :data:`ABSENT`."""
    value = event
    path = pointer
    if path.startswith("@"):
        value, path = element, path[1:]
    for part in path.split("/"):
        if not part:
            continue
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return ABSENT
    return value


def holds(conditions: tuple[Matcher, ...], event: object, element: object = ABSENT) -> bool:
    """Whether every condition is true of the event (and element)."""
    return all(_holds(condition, lookup(condition.pointer, event, element)) for condition in conditions)


def _holds(condition: Matcher, value: object) -> bool:
    operand = condition.operand
    if condition.test == "exists":
        return (value is not ABSENT and value is not None) is operand
    if condition.test == "is":
        return same(value, operand)
    if condition.test == "in":
        return any(same(value, item) for item in operand)  # type: ignore[attr-defined]
    if condition.test == "not":
        return not same(value, operand)
    if value is ABSENT or value is None:
        return False
    text = flat_text(value)
    if condition.test == "contains":
        return str(operand) in text
    return operand.search(text) is not None  # type: ignore[attr-defined]


def same(value: object, expected: object) -> bool:
    """JSON equality: ``true`` is not ``1``, and a missing value equals nothing."""
    return type(value) is type(expected) and value == expected


def read_conditions(section: Section, field: str) -> tuple[Matcher, ...]:
    """The conjunction under ``field``: pointer to value, or pointer to one test."""
    value = section.raw(field, {})
    if not isinstance(value, dict):
        section.problem(field, f"is {kind_of(value)}", "write an object of JSON pointers and values")
        return ()
    found = []
    for pointer, wanted in value.items():
        where = f"{field}/{pointer}"
        if not isinstance(wanted, (dict, list)):
            found.append(Matcher(pointer, "is", wanted))
        elif isinstance(wanted, dict) and len(wanted) == 1 and next(iter(wanted)) in _TESTS:
            test, operand = next(iter(wanted.items()))
            found.append(Matcher(pointer, test, _operand(section, where, test, operand)))
        else:
            section.problem(where, "is no condition", "write a plain value or one of: " + ", ".join(_TESTS))
    return tuple(found)


def _operand(section: Section, where: str, test: str, operand: object) -> object:
    wanted = {"in": list, "exists": bool, "contains": str, "matches": str}.get(test)
    if wanted is not None and not isinstance(operand, wanted):
        section.problem(f"{where}/{test}", f"is {kind_of(operand)}", "see the documentation of conditions")
        return re.compile("") if test == "matches" else wanted()
    if test == "matches":
        try:
            return re.compile(str(operand))
        except re.error as error:
            section.problem(f"{where}/matches", f"is no regular expression: {error}")
            return re.compile("")
    return operand


def check_source(section: Section, field: str, source: object, *, element: bool) -> None:
    """Note what is wrong with the field source ``source``."""
    if isinstance(source, str):
        if not source.startswith(("/", "@/")):
            section.problem(field, f"is {source!r}, not a JSON pointer", "start with / (event) or @/ (element)")
        elif source.startswith("@") and not element:
            section.problem(field, "points into a list element, and the rule has no 'each'")
        return
    if not (isinstance(source, dict) and len(source) == 1 and next(iter(source)) in _FORMS):
        section.problem(field, "is no source of a value", "write a JSON pointer or one of: " + ", ".join(_FORMS))
        return
    form, inner = next(iter(source.items()))
    if form == "first":
        if not isinstance(inner, list) or not inner:
            section.problem(f"{field}/first", "is not a list of sources")
            return
        for index, item in enumerate(inner):
            check_source(section, f"{field}/first/{index}", item, element=element)
    elif form in ("json", "not"):
        check_source(section, f"{field}/{form}", inner, element=element)
    elif form == "object":
        if not isinstance(inner, dict):
            section.problem(f"{field}/object", "is not an object of sources")
            return
        for key, item in inner.items():
            check_source(section, f"{field}/object/{key}", item, element=element)
    elif form == "equals" and not (isinstance(inner, list) and len(inner) == 2 and isinstance(inner[0], str)):
        section.problem(f"{field}/equals", "is not a pointer and a value in a list")


def value_of(source: object, event: object, element: object = ABSENT) -> object:
    """What a checked source gives for this event, or :data:`ABSENT`."""
    if isinstance(source, str):
        return lookup(source, event, element)
    form, inner = next(iter(source.items()))  # type: ignore[attr-defined]
    if form == "const":
        return inner
    if form == "first":
        values = (value_of(item, event, element) for item in inner)
        # An empty text says nothing where another field says more.
        return next((value for value in values if value is not ABSENT and value not in (None, "")), ABSENT)
    if form == "object":
        values = {key: value_of(item, event, element) for key, item in inner.items()}
        return {key: item for key, item in values.items() if item is not ABSENT}
    if form == "equals":
        return same(lookup(inner[0], event, element), inner[1])
    value = value_of(inner, event, element)
    if form == "not":
        return ABSENT if value is ABSENT else not value
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        return value


def flat_text(value: object) -> str:
    """The text of a value: a string, text blocks of a list joined, ``content`` of an object, else JSON."""
    if isinstance(value, str):
        return value
    if value is None or value is ABSENT:
        return ""
    if isinstance(value, list) and all(_is_block(item) for item in value):
        texts = [item.get("text") for item in value if isinstance(item, Mapping)]
        return "".join(text for text in texts if isinstance(text, str))
    if isinstance(value, Mapping) and isinstance(value.get("content"), (str, list)):
        return flat_text(value["content"])
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _is_block(item: object) -> bool:
    return isinstance(item, Mapping) and "type" in item
