"""Command lines as words, and exit codes that cannot be trusted."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from agent_eval.grade.exit_masks import masks
from agent_eval.grade.shell_words import Words, read_argv, read_line


def is_check(words: Words) -> bool:
    return words[:1] == ("pytest",) or words[:2] == ("npm", "test")


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q",
        "cd web && npm test",
        "FOO='a b' pytest",
        "timeout 60 env A=b nice -n 5 pytest -q",
        "sh -c 'npm test'",
        'bash -lc "cd x && pytest"',
        "bash <<EOF\npytest\nEOF",
        "uv run pytest -x",
        "V=$(git describe --tags) npm test",
        "pytest \\\n -q",
        "(cd x; pytest)",
        "if true; then pytest; fi",
        "/usr/bin/env pytest",
        "pytest 2>&1 >log",
        "true # comment\npytest",
        "sudo -u ci npm test",
    ],
)
def test_lines_that_run_the_check(line: str) -> None:
    assert any(map(is_check, read_line(line).counted)), read_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "echo pytest",
        "echo 'npm test'; true",
        "cat > x <<'EOF'\nnpm test\nEOF",
        "git commit -m \"fix: don't run pytest (x)\"",
        "echo $(pytest)",
        "x=`npm test`",
        "diff <(pytest) x",
        "ls # pytest",
        "grep -r 'npm test' .",
        "echo ok > pytest",
        "npm tests",
        "pytester",
    ],
)
def test_lines_that_do_not(line: str) -> None:
    assert not any(map(is_check, read_line(line).counted)), read_line(line)


@pytest.mark.parametrize("line", ["eval 'pytest'", "echo \"pytest", "$RUNNER pytest", "pytest() { true; }; pytest", "xargs pytest", "alias pytest=true"])
def test_what_cannot_be_read_for_certain_is_kept_as_unclear_words(line: str) -> None:
    read = read_line(line)
    assert any("pytest" in word for word in read.unclear)


def test_an_argument_array_is_taken_as_it_is() -> None:
    assert read_argv(("echo", "pytest; true")).every == (("echo", "pytest; true"),)
    assert read_argv(("sh", "-c", "pytest; true")).counted[-2:] == (("pytest",), ("true",))


@pytest.mark.parametrize(
    "line",
    [
        "pytest || true",
        "pytest || :",
        "pytest || echo failed",
        "pytest >/dev/null 2>&1 || :",
        "pytest; true",
        "pytest; exit 0",
        "pytest ; echo done",
        "pytest\necho done",
        "sh -c 'pytest; exit 0'",
        "bash -c 'pytest' || true",
        "set +e; pytest",
        "set +e; pytest; rc=$?; exit $rc",
        "pytest; rc=$?; cat log",
        "pytest; rc=$?; exit $other",
        "pytest | tee log",
        "pytest |& cat",
        "pytest &",
        "pytest & wait",
        "! pytest",
        "if pytest; then echo ok; fi",
        "while ! pytest; do sleep 1; done",
        "for f in a b; do pytest $f; done",
        "pytest && git push || true",
        "trap 'exit 0' EXIT; pytest",
        "npm test -- --passWithNoTests",
        "npm test --if-present",
        "bash <<EOF\npytest || true\nEOF",
        "echo $(pytest)",
        "(pytest; true)",
        "{ pytest; } 2>&1 | tee x",
        "pytest || exit 0",
        "pytest || exit 256",
        "timeout 5 pytest || true",
        # What was put aside is not what comes back.
        "pytest; rc=$?; rc=0; exit $rc",
        "pytest; rc=$?; unset rc; exit $rc",
        "pytest; rc=$?; true || exit $rc",
        "pytest; rc=$?; if false; then exit $rc; fi",
        "pytest; rc=$?; : $((rc=0)); exit $rc",
        "(pytest; rc=$?); exit $rc",
        # It may never have run.
        "true || pytest",
        ": ||\npytest",
        "true || { cd x; pytest; }",
        "true || if false; then rc=0; fi | (pytest)",
        "if false; then pytest; fi",
        "case a in b) pytest;; esac",
        "exit 0; pytest",
        "exec true; pytest",
        "set -n; pytest",
        "bash -n -c 'pytest'",
        "set -e; false && pytest; true",
        # Its failure does not end the line.
        "pytest || false; true",
        "(pytest || exit 1); true",
        "(pytest; exit $?); true",
        "pytest || exit 1 | cat",
        "pytest || exit 1 & wait",
        "pytest; exit && x=1 & exit",
        "pytest || return 1; true",
        # The setting does not hold there.
        "(set -e; pytest); true",
        "set -e; pytest && echo ok; true",
        "set -e; { pytest; echo x; } || true",
        "set -e; set +o errexit; pytest; true",
        "false && set -e; pytest; true",
        "set -o pipefail; set +o pipefail; pytest | tee x",
        "set -o pipefail; shopt -uo pipefail; pytest | tee x",
        "(set -o pipefail); pytest | tee x",
        "{ set -o pipefail; pytest; } | tee x",
        "true || set -o pipefail; pytest | tee x",
        # Nothing is checked, or it is not waited for.
        "pytest --collect-only",
        "pytest --co",
        "npm test -- --passWithNoTests=true",
        "setsid -f pytest",
        "sudo -b pytest",
    ],
)
def test_masked(line: str) -> None:
    assert masks(read_line(line), is_check)


@pytest.mark.parametrize(
    "line",
    [
        "pytest",
        "npm test 2>&1 > log",
        "cd x && pytest",
        "pytest && git push",
        "pytest; exit $?",
        "pytest; rc=$?; cat log; exit $rc",
        "pytest || exit 1",
        "pytest || false",
        "set -o pipefail; pytest | tee log",
        "set -euo pipefail\npytest | tee x\necho hi",
        "bash -e -c 'pytest; echo'",
        "bash -euo pipefail -c 'pytest | tee x'",
        "ls || true; pytest",
        "rm -f x; pytest",
        "echo '|| true'; pytest -k 'a || b'",
        "pytest # || true",
        "pytest;",
        "pytest; rc=$?; exit ${rc}",
        "cd web || exit 1; pytest",
        "make build || exit $?; pytest",
        "if ! cd web; then exit 1; fi; pytest",
        "exec 2>&1; pytest",
        "cd x && set -o pipefail && pytest | tee log",
        "cd web &&\n pytest",
        "(pytest || exit 1) || exit 1",
        "(set -o pipefail; pytest | tee x)",
        "pytest -n 4 -k help",
    ],
)
def test_not_masked(line: str) -> None:
    assert masks(read_line(line), is_check) == []


_PIECES = [*["pytest"] * 3, "true", "false", "exit", "exit 0", "exit 1", "exit $?", "exit $rc", "rc=$?", "rc=0", "set -e", "set +e", "set -o pipefail", "cat", "exec true"]
_OPERATORS = ["; ", "; ", " && ", " || ", " | ", "\n", " &&\n", " & "]


def _some_line(source: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(source.randrange(1, 5)):
        inner = _some_line(source, depth + 1) if depth < 2 and source.random() < 0.25 else None
        wrap = source.choice(["({})", "{{ {}; }}", "if true; then {}; fi", "bash -ec '{}'" if depth == 0 else "({})"])
        piece = source.choice(_PIECES) if inner is None or "'" in inner else wrap.format(inner)
        parts.append(piece + source.choice(_OPERATORS))
    return "".join(parts)[:-2] if parts[-1][-2:] in ("; ", "& ", "| ") else "".join(parts) + "true"


def test_a_shell_agrees_that_what_is_not_masked_shows_a_red_check(tmp_path: Path) -> None:
    red = tmp_path / "pytest"
    red.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    red.chmod(0o755)
    if not Path("/bin/bash").exists():
        pytest.skip("skipped: there is no /bin/bash")
    source, asked = random.Random(57), 0
    for _ in range(60_000):
        line = _some_line(source)
        read = read_line(line)
        if read.unclear or not any(map(is_check, read.counted)) or masks(read, is_check):
            continue
        asked += 1
        ended = subprocess.run(
            ["/bin/bash", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
        )
        assert ended.returncode != 0, line
        if asked == 400:
            break
    assert asked > 100


def test_no_line_breaks_the_reader_and_reading_is_quick() -> None:
    pieces = ["$(", ")", "'", '"', "`", "\\", "\n", "<<E", "E", "a", "|", "&", ";", " ", "sh -c ", "(", "for ", "done", "{", "}", ">", "<(", "é", "\0"]
    source = random.Random(7)
    began = time.process_time()
    for _ in range(5000):
        line = "".join(source.choice(pieces) for _ in range(source.randrange(40)))
        assert masks(read_line(line), is_check) is not None
    assert read_line("$(" * 3000).unclear is not None
    assert read_line("sh -c '" * 3000).unclear is not None
    assert time.process_time() - began < 20.0


@pytest.mark.parametrize(
    "line",
    ["<<a\na\n" * 100_000, "$(a)" * 100_000, "$(" * 100_000, "`" * 100_001, "'" * 100_001, "pytest;" * 100_000, "pytest && " * 100_000, "A=b " * 100_000, "sh -c 'pytest; x' ;" * 20_000],
    ids=["documents", "substitutions", "unclosed", "backquotes", "quotes", "commands", "chain", "assignments", "shells"],
)
def test_hostile_lines_cost_time_in_proportion_to_their_length(line: str) -> None:
    began = time.process_time()
    read = read_line(line)
    assert masks(read, is_check) is not None and len(read.simple) <= 256
    assert time.process_time() - began < 5.0
