"""The fields of an assertion kind: which values they take, said once for checking and for documentation.

Owns the forms that several kinds share. It does not know any kind, and it does not
read evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_eval.records.problems import Problem

from .globs import compile_glob
from .patterns import PatternError, compile_regex

Accepts = Callable[[object], "bool | str"]


@dataclass(frozen=True, slots=True)
class Form:
    """A set of JSON values. ``name`` completes "must be ..."; ``accepts`` answers Boolean, or a reason in words."""

    name: str
    accepts: Accepts

    def problems(self, value: object, where: str) -> list[Problem]:
        """Nothing when ``value`` belongs to the form, else the one problem."""
        answer = self.accepts(value)
        if answer is True:
            return []
        reason = f": {answer}" if isinstance(answer, str) else ""
        return [Problem(where, f"must be {self.name}{reason}")]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind. ``default`` is what its absence means, in the words of the documentation."""

    form: Form
    summary: str
    required: bool = False
    default: object = None


def is_integer(value: object) -> bool:
    """An integer that is not a Boolean: ``true`` is 1 in Python, and never here."""
    return type(value) is int


def is_number(value: object) -> bool:
    """A finite integer or float, not a Boolean."""
    return type(value) is int or (type(value) is float and value - value == 0.0)


def is_text(value: object) -> bool:
    """A non-empty string."""
    return isinstance(value, str) and value != ""


def choice(*words: str) -> Form:
    """One of a closed set of words."""
    return Form("one of " + ", ".join(words), lambda value: isinstance(value, str) and value in words)


def list_of(form: Form, *, empty: bool = False) -> Form:
    """A list of values of ``form``."""

    def accepts(value: object) -> bool | str:
        if not isinstance(value, list) or not (value or empty):
            return False
        for index, item in enumerate(value):
            answer = form.accepts(item)
            if answer is not True:
                return f"item {index} is not {form.name}" + (f" ({answer})" if isinstance(answer, str) else "")
        return True

    return Form(f"a {'' if empty else 'non-empty '}list, each item {form.name}", accepts)


def one_or_list(form: Form) -> Form:
    """A value of ``form`` or a non-empty list of them."""
    many = list_of(form)
    return Form(f"{form.name}, or {many.name}", lambda value: (many if isinstance(value, list) else form).accepts(value))


def _accepts_regex(value: object) -> bool | str:
    if not is_text(value):
        return False
    try:
        compile_regex(value)
    except PatternError as error:
        return str(error)
    return True


def _accepts_glob(value: object) -> bool | str:
    if not is_text(value):
        return False
    try:
        compile_glob(value)
    except PatternError as error:
        return str(error)
    return True


def _accepts_pointer(value: object) -> bool | str:
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
