"""Shapes of plain JSON values: for records that come from another machine and may hold anything.

Owns saying in words where a value is not of its shape. It does not read JSON text and knows no record;
where a person wrote the value and every problem counts, ``records.case`` and ``grade.fields`` are the ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Shape = Callable[[object, str], None]
"""Raises :class:`ShapeError` when the value, at the place that the text names, is of another shape."""

_SHOWN_CHARS = 60


class ShapeError(ValueError):
    """A value of another shape; the text says where, what is there and what should be."""


def _refuse(value: object, where: str, wanted: str) -> None:
    raise ShapeError(f"{where} is {ascii(value)[:_SHOWN_CHARS]}, not {wanted}")


def whole(least: int = 0, most: int | None = None) -> Shape:
    """An integer from ``least`` to ``most``; a Boolean is none."""
    wanted = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"

    def check(value: object, where: str) -> None:
        if type(value) is not int or value < least or (most is not None and value > most):
            _refuse(value, where, wanted)

    return check


def number(least: float, most: float) -> Shape:
    """A number from ``least`` to ``most``; a Boolean is none. Sums of some of them must stay finite too, so there is a ``most``."""

    def check(value: object, where: str) -> None:
        if type(value) not in (int, float) or not least <= value <= most:  # type: ignore[operator]
            _refuse(value, where, f"a number from {least:g} to {most:g}")

    return check


def text(pattern: str | None = None) -> Shape:
    """A string; one that ``pattern`` matches whole."""
    compiled = None if pattern is None else re.compile(pattern)

    def check(value: object, where: str) -> None:
        if type(value) is not str:
            _refuse(value, where, "a string")
        elif compiled is not None and compiled.fullmatch(value) is None:
            _refuse(value, where, f"of the form {compiled.pattern}")

    return check


def flag(value: object, where: str) -> None:
    """True or false."""
    if type(value) is not bool:
        _refuse(value, where, "true or false")


def one_of(*values: str | None) -> Shape:
    """One of a closed set."""

    def check(value: object, where: str) -> None:
        if not (value is None or type(value) is str) or value not in values:
            _refuse(value, where, f"one of {', '.join(map(str, values))}")

    return check


def optional(shape: Shape) -> Shape:
    """``null``, or a value of ``shape``."""

    def check(value: object, where: str) -> None:
        if value is not None:
            shape(value, where)

    return check


def array(shape: Shape) -> Shape:
    """An array of values of ``shape``."""

    def check(value: object, where: str) -> None:
        if type(value) is not list:
            _refuse(value, where, "an array")
            return
        for index, item in enumerate(value):
            shape(item, f"{where}[{index}]")

    return check


def mapping(keys: Shape, values: Shape) -> Shape:
    """An object with any members; ``keys`` is the shape of their names."""

    def check(value: object, where: str) -> None:
        if type(value) is not dict:
            _refuse(value, where, "an object")
            return
        for key, item in value.items():
            keys(key, f"a name in {where}")
            values(item, f"{where}[{ascii(key)[:_SHOWN_CHARS]}]")

    return check


def anything(value: object, where: str) -> None:
    """Any value."""


def record(required: dict[str, Shape], others: dict[str, Shape] | None = None) -> Shape:
    """An object with all members of ``required``, perhaps some of ``others``, and no more."""
    known = {**required, **(others or {})}

    def check(value: object, where: str) -> None:
        if type(value) is not dict:
            _refuse(value, where, "an object")
            return
        for name in required:
            if name not in value:
                raise ShapeError(f"{where} has no {name}")
        for name, item in value.items():
            if name not in known:
                raise ShapeError(f"{where} has a member {ascii(name)[:_SHOWN_CHARS]} that it may not have")
            known[name](item, f"{where}.{name}")

    return check
