"""The linear-time patterns: the same answers as ``re`` on the subset, refusals by name, and no blow-up."""

from __future__ import annotations

import random
import re
import time

import pytest

from agent_eval.grade.globs import any_glob, compile_glob
from agent_eval.grade.patterns import MAX_PATTERN_CHARS, PatternError, compile_regex

ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "1", "-", r"\s", " ", r"\.", "[a-c1]", "é", r"[^\w]", r"[\d-]", r"\x61", r"\u00e9", "[]a]"]


def random_pattern(source: random.Random, depth: int) -> str:
    draw = source.random()
    if depth == 0 or draw < 0.35:
        return source.choice(ATOMS)
    if draw < 0.55:
        return random_pattern(source, depth - 1) + random_pattern(source, depth - 1)
    if draw < 0.7:
        return f"(?:{random_pattern(source, depth - 1)}|{random_pattern(source, depth - 1)})"
    if draw < 0.9:
        return f"({random_pattern(source, depth - 1)}){source.choice(['*', '+', '?', '{2}', '{1,3}', '{0,2}', '{2,}', '{0,}'])}"
    return source.choice(["^", "$", r"\b"]) + random_pattern(source, depth - 1)


def test_answers_are_those_of_re() -> None:
    source = random.Random(20261130)
    compared = 0
    for _ in range(2000):
        pattern = random_pattern(source, 4)
        if source.random() < 0.2:
            pattern = "(?i)" + pattern
        ours = compile_regex(pattern)
        # "$" is the end of the text here, and "before a last newline" there.
        theirs = re.compile(pattern.replace("$", r"\Z"))
        for _ in range(6):
            text = "".join(source.choice("abcAB1- \n.éÉ]") for _ in range(source.randrange(9)))
            assert ours.fullmatch(text) == bool(theirs.fullmatch(text)), (pattern, text)
            assert ours.search(text) == bool(theirs.search(text)), (pattern, text)
            compared += 1
    assert compared == 12_000


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)+$", "(a*)*b", "((a+)+)+b", "(.*)*x", "(a|b)*a(a|b){200}c"])
def test_catastrophic_patterns_take_linear_time(pattern: str) -> None:
    compiled = compile_regex(pattern)
    compiled.search("a" * 1000)
    began = time.process_time()
    assert compiled.search("a" * 100_000 + "!") is False
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(a", "not closed"),
        ("a)", "closes nothing"),
        ("[a", "too early"),
        ("a**", "double quantifiers"),
        ("a*?", "lazy"),
        ("a++", "possessive"),
        (r"(a)\1", "back references"),
        ("(?=a)", "look-around"),
        ("(?P<n>a)", "named groups"),
        ("(?s)a", "flags"),
        ("{2}", "repeats nothing"),
        ("*a", "repeats nothing"),
        ("a{3,2}", "m <= n"),
        ("a{999}", "m <= n"),
        ("a{x}", "{m}"),
        ("a{1", "{m}"),
        ("a{,3}", "{m}"),
        ("((a{200}){200})", "1000 steps"),
        ("\\", "too early"),
        (r"\p", "not in the subset"),
        (r"\Z", "not in the subset"),
        ("[z-a]", "range"),
        (r"[\d-z]", ""),
        (r"\x1", "hexadecimal"),
        ("^*", "anchor"),
        (r"\b+", "anchor"),
        ("x" * (MAX_PATTERN_CHARS + 1), "at most 512"),
        ("(" * 40 + ")" * 40, "groups"),
    ],
)
def test_refusals_say_what(pattern: str, says: str) -> None:
    if not says:
        assert compile_regex(pattern).fullmatch("-")
        return
    with pytest.raises(PatternError, match=re.escape(says)):
        compile_regex(pattern)


def test_nested_repetition_does_not_double_the_program() -> None:
    assert compile_regex("(" * 20 + "a+" + ")+" * 20).fullmatch("aaa")


def test_memory_stays_bounded_when_there_are_many_states() -> None:
    compiled = compile_regex("(a|b)*a(a|b){14}")
    source = random.Random(1)
    text = "".join(source.choice("ab") for _ in range(20_000))
    assert compiled.fullmatch(text) == (text[-15] == "a")
    assert len(compiled._whole._states) <= 512


@pytest.mark.parametrize(
    ("glob", "takes", "leaves"),
    [
        ("wiki/**", ["wiki/a", "wiki/a/b", "wiki/.hidden"], ["wiki", "xwiki/a", "wikis/a"]),
        ("**/conftest.py", ["conftest.py", "a/b/conftest.py"], ["xconftest.py", "conftest.pyc"]),
        ("a/**/b", ["a/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("*.lock", ["a.lock", ".lock"], ["x/a.lock"]),
        ("**", ["a", "a/b"], []),
        ("t[!a]st?.py", ["test1.py"], ["tast1.py", "test.py", "test/1.py"]),
        ("[]]x", ["]x"], ["x"]),
        ("[a-c].x", ["b.x"], ["d.x"]),
        ("a+b(c).txt", ["a+b(c).txt"], ["aab(c).txt"]),
        ("ü/*", ["ü/x"], ["u/x"]),
    ],
)
def test_globs(glob: str, takes: list[str], leaves: list[str]) -> None:
    compiled = compile_glob(glob)
    assert [path for path in takes + leaves if compiled.fullmatch(path)] == takes


@pytest.mark.parametrize("glob", ["/abs/*", "a\\b", "a//b", "../x", "a/./b", "a**", "a/**b/c", "[ab", "x/" * 200 + "y", "a/"])
def test_globs_that_can_never_match_are_refused(glob: str) -> None:
    with pytest.raises(PatternError):
        compile_glob(glob)


def test_several_globs_at_once_answer_like_each() -> None:
    globs = ("tests/**", "**/test_*.py", "*.lock")
    together = any_glob(globs)
    for path in ("tests/a", "a/test_b.py", "x.lock", "a/x.lock", "test_b.py", "atests/x"):
        assert together(path) == any(compile_glob(glob).fullmatch(path) for glob in globs)
    many = tuple(f"folder-{index:03d}/with/a/long/name/**/*.txt" for index in range(60))
    assert any_glob(many)("folder-059/with/a/long/name/deep/x.txt")
    assert not any_glob(many)("folder-060/with/a/long/name/x.txt")
    assert any_glob(("tests/**",), any_case=True)("Tests/X.py")
