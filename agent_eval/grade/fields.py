"""The fields of an assertion kind: which values they take, said once for checking and for documentation.

Owns the forms that several kinds share. It does not know any kind, and it does not
read evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval.records.problems import Problem

from .globs import compile_glob
from .patterns import PatternError, compile_regex

Accepts = Callable[[Any], "bool | str"]
Inside = Callable[[Any, str], "list[Problem]"]


@dataclass(frozen=True, slots=True)
class Form:
    """A set of JSON values.

    ``name`` completes "must be ..."; ``accepts`` answers Boolean, or a reason in words; ``inside`` finds the
    problems of the parts of a value that is accepted.
    """

    name: str
    accepts: Accepts
    inside: Inside | None = None

    def problems(self, value: object, where: str) -> list[Problem]:
        """Every problem of ``value`` at the JSON path ``where``; none when it belongs to the form."""
        answer = self.accepts(value)
        if answer is not True:
            reason = f": {answer}" if isinstance(answer, str) else ""
            return [Problem(where, f"must be {self.name}{reason}")]
        return self.inside(value, where) if self.inside is not None else []


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind. ``default`` is what its absence means, in the words of the documentation."""

    form: Form
    summary: str
    required: bool = False
    default: object = None


def record_problems(fields: Mapping[str, Field], value: Mapping[str, object], where: str, owner: str) -> list[Problem]:
    """Every problem of an object whose members are ``fields``: unknown, missing, wrong. ``owner`` names it in words."""
    known = ", ".join(fields) or "none"
    problems = [
        Problem(f"{where}/{key}", f"{owner} has no field {key!r}", f"its fields are {known}") for key in value if key not in fields
    ]
    for key, field in fields.items():
        if key in value:
            problems += field.form.problems(value[key], f"{where}/{key}")
        elif field.required:
            problems.append(Problem(where, f"{owner} needs the field {key!r}", field.summary))
    return problems


def record_of(name: str, fields: Mapping[str, Field], rule: Inside | None = None) -> Form:
    """An object with these members; ``rule`` is asked when each of them is right."""

    def inside(value: Any, where: str) -> list[Problem]:
        problems = record_problems(fields, value, where, name)
        return problems or (rule(value, where) if rule is not None else [])

    return Form(name, lambda value: isinstance(value, Mapping), inside)


def is_integer(value: Any) -> bool:
    """An integer that is not a Boolean: ``true`` is 1 in Python, and never here."""
    return type(value) is int


def is_number(value: Any) -> bool:
    """A finite integer or float, not a Boolean."""
    return type(value) is int or (type(value) is float and value - value == 0.0)


def is_text(value: Any) -> bool:
    """A non-empty string."""
    return isinstance(value, str) and value != ""


def choice(*words: str) -> Form:
    """One of a closed set of words."""
    return Form("one of " + ", ".join(words), lambda value: isinstance(value, str) and value in words)


def list_of(form: Form, *, empty: bool = False) -> Form:
    """A list of values of ``form``."""

    def inside(value: Any, where: str) -> list[Problem]:
        return [problem for index, item in enumerate(value) for problem in form.problems(item, f"{where}/{index}")]

    return Form(
        f"a {'' if empty else 'non-empty '}list, each item {form.name}",
        lambda value: isinstance(value, list) and (empty or bool(value)),
        inside,
    )


def one_or_list(form: Form) -> Form:
    """A value of ``form``, or a non-empty list of them."""
    many = list_of(form)
    return Form(
        f"{form.name}, or a non-empty list of them",
        lambda value: many.accepts(value) if isinstance(value, list) else form.accepts(value),
        lambda value, where: (many if isinstance(value, list) else form).problems(value, where),
    )


def _accepts_regex(value: Any) -> bool | str:
    if not is_text(value):
        return False
    try:
        compile_regex(value)
    except PatternError as error:
        return str(error)
    return True


def _accepts_glob(value: Any) -> bool | str:
    if not is_text(value):
        return False
    try:
        compile_glob(value)
    except PatternError as error:
        return str(error)
    return True


def _accepts_pointer(value: Any) -> bool | str:
    if not isinstance(value, str) or not (value == "" or value.startswith("/")):
        return False
    bare = value.replace("~0", "").replace("~1", "")
    return True if "~" not in bare else "'~' is written ~0 and '/' inside a name ~1"


ANY = Form("any JSON value", lambda value: True)
TEXT = Form("a non-empty string", is_text)
TEXTS = list_of(TEXT)
STRING = Form("a string", lambda value: isinstance(value, str))
INTEGER = Form("an integer", is_integer)
COUNT = Form("an integer from 0", lambda value: is_integer(value) and value >= 0)
POSITIVE = Form("an integer from 1", lambda value: is_integer(value) and value >= 1)
NUMBER = Form("a finite number", is_number)
BOOLEAN = Form("true or false", lambda value: isinstance(value, bool))
INTEGERS = list_of(INTEGER)
REGEX = Form("a regular expression of the linear-time subset", _accepts_regex)
GLOB = Form("a glob for normalised relative paths", _accepts_glob)
GLOBS = list_of(GLOB)
POINTER = Form("a JSON pointer", _accepts_pointer)
