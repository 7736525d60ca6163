"""Matchers: which events, commands and artifacts of a receipt an assertion is about.

Owns the JSON forms of matchers and their compiled tests. A test answers ``True``, ``False``
or, when the item does not carry what would decide, the status that follows: an event
without the detail that is asked for is ``missing``, a command line that cannot be read is
``unsupported``. Hidden evidence is thereby neither a match nor the absence of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from agent_eval.records.paths import PathError, normal_path
from agent_eval.records.problems import Problem

from .engine import Finding, Spec, Status, missing, unsupported
from .fields import BOOLEAN, GLOB, INTEGER, REGEX, STRING, TEXT, TEXTS, Field, Form, choice, list_of, one_or_list, record_of
from .globs import any_glob
from .patterns import Pattern, compile_regex
from .shell_words import CommandLine, Words, read_argv, read_line

Answer = bool | Status
Test = Callable[[Mapping[str, Any]], Answer]
NONZERO = "nonzero"
_MAX_REMEMBERED = 4096  # command lines per matcher: runs repeat theirs


def _needs_one(value: Any, where: str) -> list[Problem]:
    if value.keys() - {"search"}:
        return []
    return [Problem(where, "an empty matcher matches everything", "say what it is about")]


EVENT = record_of(
    "an event matcher",
    {
        "type": Field(one_or_list(TEXT), "the event's type, or one of several"),
        "detail": Field(STRING, "the event's detail, exactly"),
        "detailRegex": Field(REGEX, "all of the detail matches (a part, with search)"),
        "search": Field(BOOLEAN, "whether detailRegex may match a part", default=False),
        "glob": Field(one_or_list(GLOB), "the detail is a path that the glob (one of the globs) matches"),
    },
    _needs_one,
)

_EXIT = Form(
    "an integer, a non-empty list of integers, or 'nonzero'",
    lambda value: value == NONZERO or one_or_list(INTEGER).accepts(value) is True,
    lambda value, where: [] if value == NONZERO else one_or_list(INTEGER).problems(value, where),
)
_COMMAND_FIELDS = {
    "argv0": Field(one_or_list(TEXT), "the program; a name without '/' also matches it with a folder"),
    "argv": Field(TEXTS, "all words, exactly"),
    "argvPrefix": Field(TEXTS, "the first words; the program as for argv0"),
    "argvContains": Field(TEXTS, "words that occur, in any place after the program"),
    "exitCode": Field(_EXIT, "the recorded exit code: an integer, one of a list, or 'nonzero'"),
}


def _command_problems(value: Any, where: str) -> list[Problem]:
    if isinstance(value, str):
        line = read_line(value)
        good = len(line.simple) == 1 and not line.unclear and not line.nested and not line.substituted
        return [] if good else [Problem(where, "must be one simple command", "use an object for anything else")]
    if "anyOf" in value:
        others = sorted(value.keys() - {"anyOf", "exitCode"})
        problems = [Problem(f"{where}/{key}", "stands beside anyOf", "put it inside") for key in others]
        problems += list_of(COMMAND).problems(value["anyOf"], f"{where}/anyOf")
        return problems + (_EXIT.problems(value["exitCode"], f"{where}/exitCode") if "exitCode" in value else [])
    return record_of("a command matcher", _COMMAND_FIELDS, _needs_words).problems(value, where)


def _needs_words(value: Any, where: str) -> list[Problem]:
    return [] if value.keys() - {"exitCode"} else [Problem(where, "names no word of a command", "give argv0, argv, argvPrefix or argvContains")]


COMMAND = Form(
    "a command matcher: an object with argv0, argv, argvPrefix, argvContains, exitCode or anyOf, or all words as one string",
    lambda value: isinstance(value, Mapping) or (isinstance(value, str) and value != ""),
    _command_problems,
)


def _step_problems(value: Any, where: str) -> list[Problem]:
    if "cmd" not in value:
        return EVENT.problems(value, where)
    problems = [Problem(f"{where}/{key}", "stands beside cmd") for key in value if key != "cmd"]
    return problems + COMMAND.problems(value["cmd"], f"{where}/cmd")


STEP = Form('an event matcher, or {"cmd": command matcher}', lambda value: isinstance(value, Mapping), _step_problems)
STEPS = list_of(STEP)
ARTIFACT_KIND = choice("command", "event", "artifact")


def text_test(spec: Spec, regex: str, search: bool) -> Callable[[str], bool]:
    """The test of ``spec[regex]``: the whole text, or a part."""
    pattern: Pattern = compile_regex(spec[regex])
    return pattern.search if search else pattern.fullmatch


def glob_test(value: Any, *, any_case: bool = False) -> Callable[[str], bool]:
    """A test of normalised paths against one glob or several."""
    return any_glob((value,) if isinstance(value, str) else tuple(value), any_case=any_case)


def _path_test(globs: Any) -> Callable[[str], bool]:
    matches = glob_test(globs)

    def test(detail: str) -> bool:
        try:
            return matches(normal_path(detail))
        except PathError:
            return False

    return test


def event_test(matcher: Mapping[str, Any]) -> Test:
    """Compile an event matcher."""
    types = matcher.get("type")
    wanted = None if types is None else frozenset((types,) if isinstance(types, str) else types)
    tests: list[Callable[[str], bool]] = []
    if "detail" in matcher:
        tests.append(matcher["detail"].__eq__)
    if "detailRegex" in matcher:
        tests.append(text_test(matcher, "detailRegex", bool(matcher.get("search"))))
    if "glob" in matcher:
        tests.append(_path_test(matcher["glob"]))

    def test(event: Mapping[str, Any]) -> Answer:
        if wanted is not None and event.get("type") not in wanted:
            return False
        if not tests:
            return True
        detail = event.get("detail")
        if detail is None:
            return Status.MISSING
        return all(each(detail) for each in tests)

    return test


def event_needs(matcher: Mapping[str, Any]) -> tuple[str, ...]:
    """Pointers (``*`` for any index) to what an event matcher reads."""
    return ("/events/*/type",) + (("/events/*/detail",) if matcher.keys() - {"type", "search"} else ())


def line_of(command: Mapping[str, Any]) -> CommandLine:
    """The command as words: ``argv`` when it is there, else ``cmd``."""
    argv = command.get("argv")
    return read_argv(tuple(argv)) if argv is not None else read_line(command.get("cmd", ""))


def words_test(matcher: Any) -> Callable[[Words], bool]:
    """Compile the words of a command matcher; ``exitCode`` is not looked at."""
    if isinstance(matcher, str):
        exact = read_line(matcher).simple[0].forms[0]
        return exact.__eq__
    if "anyOf" in matcher:
        tests = [words_test(part) for part in matcher["anyOf"]]
        return lambda words: any(test(words) for test in tests)
    programs = matcher.get("argv0")
    names = None if programs is None else frozenset((programs,) if isinstance(programs, str) else programs)
    exact_words = tuple(matcher["argv"]) if "argv" in matcher else None
    prefix = tuple(matcher.get("argvPrefix", ()))
    contained = frozenset(matcher.get("argvContains", ()))

    def test(words: Words) -> bool:
        if not words or (exact_words is not None and words != exact_words):
            return False
        if names is not None and not (words[0] in names or words[0].rpartition("/")[2] in names):
            return False
        if prefix and not (words[0] == prefix[0] or words[0].rpartition("/")[2] == prefix[0]):
            return False
        return words[1 : len(prefix)] == prefix[1:] and (not contained or contained.issubset(words[1:]))

    return test


def _unclear_test(matcher: Any) -> Callable[[frozenset[str]], bool]:
    """Whether the words of a line that cannot be read could be such a command."""
    if isinstance(matcher, str):
        return frozenset(read_line(matcher).simple[0].forms[0]).issubset
    if "anyOf" in matcher:
        tests = [_unclear_test(part) for part in matcher["anyOf"]]
        return lambda words: any(test(words) for test in tests)
    programs = matcher.get("argv0", ())
    names = frozenset((programs,) if isinstance(programs, str) else programs)
    needed = frozenset((*matcher.get("argv", ()), *matcher.get("argvPrefix", ()), *matcher.get("argvContains", ())))

    def test(words: frozenset[str]) -> bool:
        bare = words | {word.rpartition("/")[2] for word in words}
        return needed <= bare and (not names or bool(names & bare))

    return test


def exit_test(value: Any) -> Callable[[int], bool]:
    """Compile an expected exit code: an integer, a list, or ``nonzero``."""
    if value == NONZERO:
        return lambda code: code != 0
    codes = frozenset((value,) if isinstance(value, int) else value)
    return codes.__contains__


_T = TypeVar("_T")


def remembering(function: Callable[[CommandLine], _T]) -> Callable[[CommandLine], _T]:
    """``function`` with its answers for short command lines remembered."""
    remembered = lru_cache(maxsize=_MAX_REMEMBERED)(function)
    return lambda line: remembered(line) if line.short else function(line)


def command_test(matcher: Any, *, everywhere: bool = False) -> Test:
    """Compile a command matcher, with its ``exitCode`` when it has one.

    ``everywhere`` also looks at ``cmd`` beside ``argv`` and at commands whose output is substituted: for
    rules that something must *not* run.
    """
    words, could_be = words_test(matcher), _unclear_test(matcher)
    has_exit = isinstance(matcher, Mapping) and "exitCode" in matcher
    exits = exit_test(matcher["exitCode"]) if has_exit else None

    def answer(line: CommandLine) -> Answer:
        if any(map(words, line.every if everywhere else line.counted)):
            return True
        return Status.UNSUPPORTED if line.unclear and could_be(line.unclear) else False

    match_line = remembering(answer)

    def test(command: Mapping[str, Any]) -> Answer:
        found = match_line(line_of(command))
        if everywhere and found is not True and "argv" in command and "cmd" in command:
            found = match_line(read_line(command["cmd"])) or found
        if exits is None or found is False:
            return found
        code = command.get("exitCode")
        if code is None:
            return Status.MISSING
        return found if exits(code) else False

    return test


def command_needs(matcher: Any, *, exit_code: bool = False) -> tuple[str, ...]:
    """Pointers (``*`` for any index) to what a command matcher reads."""
    with_exit = exit_code or (isinstance(matcher, Mapping) and "exitCode" in matcher)
    return ("/commands/*/cmd", "/commands/*/argv") + (("/commands/*/exitCode",) if with_exit else ())


def step_test(matcher: Mapping[str, Any]) -> tuple[str, Test]:
    """Compile a step: the section that it reads, and the test."""
    if "cmd" in matcher:
        return "commands", command_test(matcher["cmd"])
    return "events", event_test(matcher)


def step_needs(matcher: Mapping[str, Any]) -> tuple[str, ...]:
    """Pointers to what a step matcher reads."""
    return command_needs(matcher["cmd"]) if "cmd" in matcher else event_needs(matcher)


class Sifted:
    """Which items of a list match: ``hits`` surely, ``doubts`` perhaps (index and status)."""

    __slots__ = ("section", "hits", "doubts")

    def __init__(self, section: str, test: Test, items: Sequence[Mapping[str, Any]]) -> None:
        self.section = section
        self.hits: list[int] = []
        self.doubts: list[tuple[int, Status]] = []
        for index, item in enumerate(items):
            answer = test(item)
            if answer is True:
                self.hits.append(index)
            elif answer is not False:
                self.doubts.append((index, answer))

    def pointers(self, indexes: Iterable[int] | None = None) -> tuple[str, ...]:
        """JSON pointers to the hits (or to ``indexes``); to the list when there are none."""
        chosen = self.hits if indexes is None else list(indexes)
        return tuple(f"/{self.section}/{index}" for index in chosen) or (f"/{self.section}",)

    def doubt(self, after: int = -1) -> Finding | None:
        """The finding that follows from the first undecided item behind ``after``; ``None`` when all is decided."""
        for index, status in self.doubts:
            if index > after:
                pointer = f"/{self.section}/{index}"
                if status is Status.MISSING:
                    return missing("an item that could decide lacks the field that is asked for", pointer)
                return unsupported("a command line that could decide cannot be read for certain", pointer, reason="unreadable_command")
        return None
