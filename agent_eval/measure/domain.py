"""What an argument of a statistical function may be, refused by one exception.

Owns: the checks of counts, levels and probabilities that every formula of this room shares.
Does not own: the formulas, nor the problems of a user's files (`agent_eval.records.problems`).

The checks are strict on purpose: `True == 1` and `5.0 == 5` in Python, and a NaN passes every `<`, so that a
wrong column or a parsed string would otherwise become a plausible number.
"""

from __future__ import annotations

import math


class OutOfDomain(ValueError):
    """An argument lies outside the domain of a formula; the message names the argument and its domain."""


def count(name: str, value: object, *, at_least: int = 0) -> int:
    """Return `value` if it is an integer (never a bool or float) of at least `at_least`, else raise OutOfDomain."""
    if type(value) is not int:
        raise OutOfDomain(f"{name} must be an integer count, not {value!r}")
    if value < at_least:
        raise OutOfDomain(f"{name} must be at least {at_least}, not {value}")
    return value


def count_of(name: str, value: object, total_name: str, total: object) -> tuple[int, int]:
    """Return `(value, total)` if 0 <= value <= total and total >= 1, both integers, else raise OutOfDomain."""
    checked_total = count(total_name, total, at_least=1)
    checked = count(name, value)
    if checked > checked_total:
        raise OutOfDomain(f"{name} must be at most {total_name} = {checked_total}, not {checked}")
    return checked, checked_total


def real(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite int or float (never a bool), else raise OutOfDomain."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OutOfDomain(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise OutOfDomain(f"{name} is too large for a double") from None
    if not math.isfinite(number):
        raise OutOfDomain(f"{name} must be finite, not {number}")
    return number


def probability(name: str, value: object) -> float:
    """Return `value` if it lies in the closed interval [0, 1], else raise OutOfDomain."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise OutOfDomain(f"{name} must lie in [0, 1], not {number}")
    return number


def level(name: str, value: object) -> float:
    """Return `value` if it lies in the open interval (0, 1): a confidence or an alpha of 0 or 1 says nothing."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise OutOfDomain(f"{name} must lie strictly between 0 and 1, not {number}")
    return number


def positive(name: str, value: object) -> float:
    """Return `value` if it is a finite number above 0, else raise OutOfDomain."""
    number = real(name, value)
    if number <= 0.0:
        raise OutOfDomain(f"{name} must be above 0, not {number}")
    return number
