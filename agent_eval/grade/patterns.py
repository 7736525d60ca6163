r"""Regular expressions and globs that run in linear time: a documented subset, matched without backtracking.

Owns the syntax and its translation into the steps that ``automaton`` runs. Python's ``re``
backtracks: ``(a+)+$`` on thirty letters takes minutes, and a time limit would make a result
depend on the machine. Nothing is captured, replaced or located.

The subset, with the meaning it has in ``re`` for ``str``:

* characters; ``.`` (any but newline); ``[abc]``, ``[^a-z]``; ``\d \w \s \D \W \S``;
  ``\t \n \r \f \v \0``, ``\xHH``, ``\uHHHH``, and ``\`` before punctuation;
* ``a|b``, ``(...)`` and ``(?:...)`` (nothing is captured); ``* + ?``, ``{m}``, ``{m,}``, ``{m,n}``;
* ``^`` and ``$`` (start and end of the *text*, never of a line; ``$`` is not "before a last newline");
  ``\b`` and ``\B``; ``(?i)`` at the start, for any case.

Refused, by name: back references, look-around, named and conditional groups, other flags, lazy
and possessive quantifiers, ``\A \Z \p``; a pattern of more than 512 characters, or one whose
counted repetitions unfold to more than 1,000 steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from .automaton import Automaton, is_word

MAX_PATTERN_CHARS = 512
MAX_STEPS = 1000
_MAX_COUNT = 255
_MAX_GROUPS = 32

Test = Callable[[str], bool]


class PatternError(ValueError):
    """A pattern outside the subset; the message says what and at which character."""


_CLASSES: dict[str, Test] = {"d": str.isdecimal, "w": is_word, "s": str.isspace}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_HEX_DIGITS = {"x": 2, "u": 4}


def _negated(test: Test) -> Test:
    return lambda char: not test(char)


def _any_of(tests: list[Test]) -> Test:
    return lambda char: any(test(char) for test in tests)


def _in_range(low: str, high: str) -> Test:
    return lambda char: low <= char <= high


def _not_newline(char: str) -> bool:
    return char != "\n"


def _in_any_case(test: Test) -> Test:
    return lambda char: test(char) or test(char.lower()) or test(char.upper())


class _Program:
    """Steps of the automaton: ``("char", test, next)``, ``("split", targets)``, ``("assert", letter, next)``, ``("match",)``."""

    def __init__(self) -> None:
        self.steps: list[tuple] = []

    def add(self, *step: object) -> int:
        if len(self.steps) >= MAX_STEPS:
            raise PatternError(f"it unfolds to more than {MAX_STEPS} steps; use smaller counts")
        self.steps.append(step)
        return len(self.steps) - 1


# A parsed piece: given the program and the step that follows, add the piece and return its first step.
_Piece = Callable[[_Program, int], int]


def _char(test: Test) -> _Piece:
    return lambda program, after: program.add("char", test, after)


def _assertion(letter: str) -> _Piece:
    return lambda program, after: program.add("assert", letter, after)


def _sequence(pieces: list[_Piece]) -> _Piece:
    def build(program: _Program, after: int) -> int:
        for piece in reversed(pieces):
            after = piece(program, after)
        return after

    return build


def _alternatives(pieces: list[_Piece]) -> _Piece:
    if len(pieces) == 1:
        return pieces[0]
    return lambda program, after: program.add("split", tuple(piece(program, after) for piece in pieces))


def _repeat(piece: _Piece, least: int, most: int | None) -> _Piece:
    def build(program: _Program, after: int) -> int:
        copies = least
        if most is None:
            loop = program.add("split", ())
            entry = piece(program, loop)
            program.steps[loop] = ("split", (entry, after))
            # The body of the loop is also the last obligatory copy: nested "+" must not double the program.
            after, copies = (entry, least - 1) if least else (loop, 0)
        else:
            end = after
            for _ in range(most - least):
                after = program.add("split", (piece(program, after), end))
        for _ in range(copies):
            after = piece(program, after)
        return after

    return build


class _Parser:
    """Recursive descent over the subset. ``at`` is the character that is looked at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.any_case = text.startswith("(?i)")
        self.at = 4 if self.any_case else 0
        self.groups = 0

    def parse(self) -> _Piece:
        piece = self._alternation()
        if self.at < len(self.text):
            raise self._error("')' closes nothing")
        return piece

    def _error(self, what: str) -> PatternError:
        return PatternError(f"{what}, at character {self.at + 1}")

    def _peek(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def _take(self) -> str:
        if self.at >= len(self.text):
            raise self._error("the pattern ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def _alternation(self) -> _Piece:
        branches = [self._branch()]
        while self._peek("|"):
            self.at += 1
            branches.append(self._branch())
        return _alternatives(branches)

    def _branch(self) -> _Piece:
        pieces: list[_Piece] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            pieces.append(self._quantified())
        return _sequence(pieces)

    def _quantified(self) -> _Piece:
        if self.text[self.at] in "*+?{":
            raise self._error(f"{self.text[self.at]!r} repeats nothing (write \\{self.text[self.at]} for the character)")
        assertion = self.text[self.at] in "^$" or self._peek("\\b") or self._peek("\\B")
        piece = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return piece
        if assertion:
            raise self._error("an anchor cannot be repeated")
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise self._error("lazy, possessive and double quantifiers are not in the subset")
        return _repeat(piece, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self.text[self.at : self.at + 1]
        if char in simple:
            self.at += 1
            return simple[char]
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : max(end, self.at)].partition(",")
        parts = [part for part in (low, high) if part]
        if end < 0 or not low or not all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in parts):
            raise self._error("'{' must be {m}, {m,} or {m,n} (write \\{ for the character)")
        least = int(low)
        most = int(high) if high else None if comma else least
        if least > _MAX_COUNT or (most is not None and not least <= most <= _MAX_COUNT):
            raise self._error(f"counts must satisfy m <= n <= {_MAX_COUNT}")
        self.at = end + 1
        return least, most

    def _atom(self) -> _Piece:
        char = self._take()
        if char == "(":
            return self._group()
        if char in "^$":
            return _assertion(char)
        if char == "\\" and self.text[self.at : self.at + 1] in ("b", "B"):
            return _assertion(self._take())
        if char == "[":
            return self._char(self._class())
        if char == ".":
            return self._char(_not_newline)
        if char == "\\":
            test, literal = self._escape()
            return self._char(test if literal is None else literal.__eq__)
        return self._char(char.__eq__)

    def _char(self, test: Test) -> _Piece:
        return _char(_in_any_case(test) if self.any_case else test)

    def _group(self) -> _Piece:
        if self._peek("?") and not self._peek("?:"):
            raise self._error("look-around, named groups and flags other than a leading (?i) are not in the subset")
        self.at += 2 if self._peek("?:") else 0
        self.groups += 1
        if self.groups > _MAX_GROUPS:
            raise self._error(f"more than {_MAX_GROUPS} groups")
        piece = self._alternation()
        if not self._peek(")"):
            raise self._error("a group is not closed")
        self.at += 1
        return piece

    def _escape(self) -> tuple[Test, str | None]:
        """The test of an escape, and its character when it stands for exactly one."""
        char = self._take()
        if char.lower() in _CLASSES:
            test = _CLASSES[char.lower()]
            return (test if char.islower() else _negated(test)), None
        if char in _CONTROL:
            literal = _CONTROL[char]
        elif char in _HEX_DIGITS:
            digits = self.text[self.at : self.at + _HEX_DIGITS[char]]
            if len(digits) != _HEX_DIGITS[char] or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise self._error(f"\\{char} needs {_HEX_DIGITS[char]} hexadecimal digits")
            self.at += len(digits)
            literal = chr(int(digits, 16))
        elif char.isascii() and not char.isalnum():
            literal = char
        elif char.isdecimal():
            raise self._error("back references are not in the subset")
        else:
            raise self._error(f"the escape \\{char} is not in the subset")
        return literal.__eq__, literal

    def _class(self) -> Test:
        negated = self._peek("^")
        self.at += 1 if negated else 0
        tests: list[Test] = []
        first = True
        while first or not self._peek("]"):
            first = False
            test, low = self._class_item()
            if low is not None and self._peek("-") and not self._peek("-]"):
                self.at += 1
                _, high = self._class_item()
                if high is None or high < low:
                    raise self._error("a range in [] must go from a character to a later one")
                test = _in_range(low, high)
            tests.append(test)
        self.at += 1
        union = _any_of(tests)
        if not negated:
            return union
        return _negated(_in_any_case(union) if self.any_case else union)

    def _class_item(self) -> tuple[Test, str | None]:
        char = self._take()
        if char == "\\":
            return self._escape()
        return char.__eq__, char


class Pattern:
    """A compiled pattern. Matching takes time proportional to the length of the text."""

    __slots__ = ("text", "_whole", "_part")

    def __init__(self, text: str, piece: _Piece) -> None:
        program = _Program()
        first = piece(program, program.add("match"))
        self.text = text
        self._whole = Automaton(program.steps, first, floating=False)
        self._part = Automaton(program.steps, first, floating=True)

    def fullmatch(self, text: str) -> bool:
        """Whether all of ``text`` matches."""
        return self._whole.matches(text)

    def search(self, text: str) -> bool:
        """Whether some part of ``text``, possibly empty, matches."""
        return self._part.matches(text)


def translate(regex: str, text: str) -> Pattern:
    """``regex`` compiled under the name ``text``, without the limit on its length: for globs, which are bounded themselves."""
    return Pattern(text, _Parser(regex).parse())


@lru_cache(maxsize=512)
def compile_regex(text: str) -> Pattern:
    """Compile a regular expression of the subset; raises :class:`PatternError`."""
    if len(text) > MAX_PATTERN_CHARS:
        raise PatternError(f"{len(text)} characters long, at most {MAX_PATTERN_CHARS} are allowed")
    return translate(text, text)
