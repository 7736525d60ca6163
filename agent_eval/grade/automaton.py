"""A lazily built automaton: runs the steps of a compiled pattern over a text in linear time.

Owns matching only; ``patterns`` owns the syntax. States are built when met (Thompson 1968; Cox,
"Regular Expression Matching Can Be Simple And Fast", 2007) and their number is bounded: when there
are too many they are forgotten, which costs time per character in the size of the program
and never in the length of the text.
"""

from __future__ import annotations

_MAX_STATES = 512


def is_word(char: str) -> bool:
    r"""What ``\w`` takes: letters and digits of any script, and the underscore."""
    return char.isalnum() or char == "_"


class _State:
    """One state of the lazy automaton: steps that wait, what came before, and where each character leads."""

    __slots__ = ("accepting", "before", "moves", "waiting")

    def __init__(self, waiting: frozenset[int], before: str) -> None:
        self.waiting = waiting
        self.before = before  # "start", "word" or "other": what ^ and \b need to know
        self.moves: dict[str, _State | None] = {}
        self.accepting: bool | None = None  # whether the text may end here; worked out when first asked


class Automaton:
    """Runs one program; ``floating`` starts anew at every character (search)."""

    def __init__(self, steps: list[tuple], first: int, *, floating: bool) -> None:
        self._steps = steps
        self._first = first
        self._floating = floating
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._start = _State(frozenset((first,)), "start")

    def matches(self, text: str) -> bool:
        """Whether the program accepts all of ``text`` (or, floating, a part of it)."""
        state = self._start
        for char in text:
            try:
                following = state.moves[char]
            except KeyError:
                following = self._move(state, char)
            if following is None:
                # Nothing waits any more: found when floating, hopeless when not.
                return self._floating
            state = following
        if state.accepting is None:
            state.accepting = any(self._steps[step][0] == "match" for step in self._closure(state, ""))
        return state.accepting

    def _move(self, state: _State, char: str) -> _State | None:
        closure = self._closure(state, char)
        steps = self._steps
        if self._floating and any(steps[step][0] == "match" for step in closure):
            following = None
        else:
            waiting = {steps[step][2] for step in closure if steps[step][0] == "char" and steps[step][1](char)}
            if self._floating:
                waiting.add(self._first)
            following = self._state(frozenset(waiting), "word" if is_word(char) else "other") if waiting else None
        if len(state.moves) < _MAX_STATES:
            state.moves[char] = following
        return following

    def _state(self, waiting: frozenset[int], before: str) -> _State:
        key = (waiting, before)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MAX_STATES:
                # Bounded memory: forget everything and build again what is met again.
                self._states.clear()
                self._start = _State(self._start.waiting, "start")
            state = self._states[key] = _State(waiting, before)
        return state

    def _closure(self, state: _State, char: str) -> set[int]:
        """Every step reachable without taking a character, between what came before and ``char`` ("" at the end)."""
        steps = self._steps
        seen: set[int] = set()
        stack = list(state.waiting)
        while stack:
            index = stack.pop()
            if index in seen:
                continue
            seen.add(index)
            step = steps[index]
            if step[0] == "split":
                stack.extend(step[1])
            elif step[0] == "assert" and _holds(step[1], state.before, char):
                stack.append(step[2])
        return seen


def _holds(letter: str, before: str, char: str) -> bool:
    if letter == "^":
        return before == "start"
    if letter == "$":
        return char == ""
    boundary = (before == "word") != (char != "" and is_word(char))
    return boundary if letter == "b" else not boundary
