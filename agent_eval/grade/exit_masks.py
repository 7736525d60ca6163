"""Whether a command line's exit code still tells that one of its commands failed.

Owns the rules for masked exit codes, the most common way in which a run reports a
green check that was red: ``pytest || true``, ``npm test; exit 0``, ``make test | tee log``.
It follows the structure of the line and is strict where it cannot follow: a check
whose failure might not show is masked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .shell_words import CommandLine, Simple, Words

# Options with which a runner of checks succeeds although nothing was checked, or although something failed.
_MASKING_OPTIONS = frozenset(
    ("--passWithNoTests", "--pass-with-no-tests", "--if-present", "--exit-zero", "--no-error-on-unmatched-pattern")
    + ("--help", "--version", "--collect-only", "--dry-run", "--listTests", "--no-run", "--notest")
    + ("--ignore-errors", "--just-print", "--recon", "--touch", "--question", "--suppress-no-test-exit-code")
)
# The short ones mean different things to different programs.
_MASKING_SHORT = {
    "pytest": frozenset(("-h", "-V", "--co", "--fixtures", "--markers", "--cache-show", "--setup-plan")),
    "go": frozenset(("-n", "-c", "-list")),
    "jest": frozenset(("-h", "--showConfig")),
    "tox": frozenset(("-h", "-l", "-a", "-n", "--listenvs")),
    "nox": frozenset(("-h", "-l", "--list")),
}
_MAKE = re.compile(r"-[A-Za-z]*[intq][A-Za-z]*")
_LISTS = ("&&", "||", "|", "|&")
_SHORT = {"errexit": "e", "noexec": "n"}
_DETACHING = {"setsid": frozenset(("-f", "--fork")), "sudo": frozenset(("-b", "--background"))}
Concerns = Callable[[Words], bool]


@dataclass(frozen=True, slots=True)
class _Line:
    """A command line with what every check on it asks for, worked out once.

    ``settings`` are what each command switches, ``first`` where each group begins, ``own`` which of them
    are part of no pipeline that goes on and of no list in the background, and ``ender`` is the place of the first command after
    which the line may be over.
    """

    line: CommandLine
    commands: tuple[Simple, ...]
    settings: tuple[frozenset[str], ...]
    first: dict[int, int]
    own: list[bool]
    ender: int
    trapped: bool


def _line(line: CommandLine) -> _Line:
    commands = line.simple
    first: dict[int, int] = {}
    for at, command in enumerate(commands):
        for group in reversed(command.groups):
            if group in first:
                break
            first[group] = at
    ender = next((at for at, command in enumerate(commands) if _may_end(command)), len(commands))
    trapped = any(_words(command)[:1] == ("trap",) and "exit" in " ".join(_words(command)) for command in commands)
    own, joined = [True] * len(commands), ";"
    for at in range(len(commands) - 2, -1, -1):
        after = commands[at + 1].joined
        joined = joined if after in _LISTS else after
        own[at] = joined != "&" and after not in ("|", "|&")
    return _Line(line, commands, tuple(_settings(command) for command in commands), first, own, ender, trapped)


def masks(line: CommandLine, concerns: Concerns) -> list[str]:
    """Ways in which ``line`` hides a failure of a command that ``concerns`` accepts; empty when there is none."""
    found = list(_option_masks(line, concerns))
    read = _line(line)
    for index, command in enumerate(line.simple):
        if not found and _concerned(command, line, concerns):
            found += _after(read, index)
    for nested in line.nested:
        found += masks(nested, concerns)
    for substituted in line.substituted:
        if any(concerns(form) for form in substituted.every):
            found.append("a substitution loses its exit code")
    return list(dict.fromkeys(found))


def _concerned(command: Simple, line: CommandLine, concerns: Concerns) -> bool:
    if any(concerns(form) for form in command.forms):
        return True
    # A shell that runs the check is the check, as far as the outer line goes.
    name = command.forms[-1][0].rpartition("/")[2]
    return name.endswith("sh") and any(concerns(form) for nested in line.nested for form in nested.counted)


def _option_masks(line: CommandLine, concerns: Concerns) -> list[str]:
    found = []
    for form in line.counted:
        if concerns(form):
            found += [f"{word} succeeds without a test" for word in form[1:] if _masking_option(_program(form), word)]
            found += [f"{form[0]} {word} does not wait for it" for word in form[1:] if word in _DETACHING.get(_program(form), ())]
    for command in line.simple:
        detached = _DETACHING.get(_program(command.forms[0]), frozenset()) & frozenset(command.forms[0][1:])
        if detached and any(concerns(form) for form in command.forms):
            found.append(f"{min(detached)} does not wait for it")
    return found


def _program(form: Words) -> str:
    name = form[0].rpartition("/")[2]
    return form[2] if name.startswith("python") and form[1:2] == ("-m",) and len(form) > 2 else name


def _masking_option(program: str, word: str) -> bool:
    if word.partition("=")[0] in _MASKING_OPTIONS or word in _MASKING_SHORT.get(program, ()):
        return True
    return program in ("make", "gmake") and _MAKE.fullmatch(word) is not None


def _after(read: _Line, index: int) -> list[str]:
    check, found = read.commands[index], _may_not_run(read, index)
    if check.condition:
        found.append("its exit code is only a condition, or it may not run (if, while, case or !)")
    if read.line.ends_in_background:
        found.append("it runs in the background (&)")
    taken_back = frozenset[str]().union(*read.settings[:index])
    if "+e" in taken_back:
        found.append("set +e goes on after a failure")
    if read.trapped:
        found.append("a trap may replace the exit code")
    holding = _settings_for(read, index)
    pipefail = holding.get("-pipefail") if "+pipefail" not in taken_back else None
    # Shells do not stop inside a group or a list whose end is another command.
    stops = "-e" in holding and "+e" not in taken_back and not check.groups and _start_of_pipeline(read, index).joined != "&&"
    return found + _following(read, index, pipefail=pipefail, stops=stops)


def _may_not_run(read: _Line, index: int) -> list[str]:
    """Why the exit code may be that of a line in which the check never ran."""
    starts = (index, *(read.first.get(group, index) for group in read.commands[index].groups))
    if any(_start_of_pipeline(read, at).joined == "||" for at in starts):
        return ["it runs only when the command before it fails (||)"]
    if read.ender < index:
        return ["the line may end before it (exit or exec)"]
    return ["commands are read and not run (set -n)"] if any("-n" in made for made in read.settings[:index]) else []


def _may_end(command: Simple) -> bool:
    """Whether the line may end here with an exit code that need not be a failure."""
    if _words(command)[:1] == ("exit",):
        return not _certain_failure(_words(command), "" if command.joined == "||" else "$")
    return command.forms[0][0] == "exec" and len(command.forms[0]) > 1


def _start_of_pipeline(read: _Line, index: int) -> Simple:
    while read.commands[index].joined in ("|", "|&"):
        own, before = read.commands[index].groups, read.commands[index - 1].groups
        # What pipes into it may be a group: then the pipeline begins where that group does.
        other = next((group for group in before if group not in own), None)
        index = index - 1 if other is None else read.first[other]
    return read.commands[index]


def _settings_for(read: _Line, index: int) -> dict[str, tuple[int, ...]]:
    """The settings that certainly hold at a command, each with the groups in which it was made.

    They are made in the command's shell, by a command that certainly ran.
    """
    commands, settings = read.commands, read.settings
    found: dict[str, tuple[int, ...]] = {}
    chained = True
    for at in range(index - 1, -1, -1):
        command, chained = commands[at], chained and commands[at + 1].joined in ("&&", "|", "|&")
        if not settings[at]:
            continue
        certain = command.joined in ("", ";") or (command.joined == "&&" and chained)
        inside = command.groups == commands[index].groups[: len(command.groups)]
        if certain and inside and not command.condition and read.own[at]:
            found |= dict.fromkeys(settings[at], command.groups)
    return found


def _following(read: _Line, index: int, *, pipefail: tuple[int, ...] | None, stops: bool) -> list[str]:
    """What comes after a failed command: the first thing that turns its failure into a success.

    ``pipefail`` are the groups in which it is set: a pipe outside of them does not know of it.
    """
    commands, substituted = read.commands[index:], read.line.substituted
    kept = ""  # "$rc", when the exit code was put aside
    in_list = fails = False  # in_list: behind "&&" the shell goes on although "set -e" holds
    for at, command in enumerate(commands[1:], 1):
        words = _words(command)
        fails = _certain_failure(words, kept) and not command.condition and command.joined not in ("|", "|&")
        alone = not command.groups and read.own[index + at]
        if command.joined in ("|", "|&"):
            if pipefail is None or command.groups[: len(pipefail)] != pipefail:
                return ["a pipe without pipefail keeps only the last exit code"]
        elif command.joined == "&":
            return ["it runs in the background (&)"]
        elif command.joined == "&&":
            in_list = True
        elif command.joined == "||" and not fails:
            return ["|| replaces a failure by another exit code"]
        elif command.joined != "||" and stops and not in_list and not kept:
            return []
        elif fails:
            if kept and command.joined == "||":  # it may be skipped: what failed was put aside, and something else came before
                return ["a later command replaces its exit code"]
            if alone and words[0] == "exit":
                return []
            in_list = False
        elif not kept and _keeps(words, substituted) and alone and not commands[0].groups:
            kept = "$" + words[0][:-3]
        elif not kept or _changes(kept[1:], command.forms[0]):
            return ["a later command replaces its exit code"]
    return ["a later command replaces its exit code"] if kept and not fails else []


def _keeps(words: Words, substituted: Iterable[CommandLine]) -> bool:
    """Whether the command puts the exit code aside, in a variable that no substitution changes."""
    if len(words) != 1 or not words[0].endswith("=$?"):
        return False
    return not any(_changes(words[0][:-3], form) for line in substituted for form in line.every)


def _changes(name: str, words: Iterable[str]) -> bool:
    return any(word == name or word.startswith((f"{name}=", f"{name}+=")) for word in words)


def _words(command: Simple) -> Words:
    return command.forms[-1]


def _certain_failure(words: Words, kept: str) -> bool:
    """``false``, ``exit 1``, ``exit $?``, ``exit $rc``: what cannot succeed after a failure (put aside as ``kept``)."""
    if words[:1] == ("false",):
        return True
    if words[:1] in (("exit",), ("return",)):
        if len(words) > 1 and words[1].isascii() and words[1].isdecimal():
            return int(words[1]) % 256 != 0
        if kept:
            return words[1:] in ((kept,), ("${" + kept[1:] + "}",))
        return len(words) == 1 or words[1] == "$?"
    return False


def _settings(command: Simple) -> frozenset[str]:
    """What a ``set`` (or ``shopt -o``) command switches: ``-e``, ``+e``, ``-n``, ``-pipefail``, ``+pipefail``."""
    words = _words(command)
    if words[:1] == ("shopt",):
        off = any(word[:1] == "-" and "u" in word for word in words[1:])
        return frozenset("+" + _SHORT.get(word, word) for word in words[1:] if word[:1] != "-") if off else frozenset()
    if words[:1] != ("set",):
        return frozenset()
    found = set()
    for index, word in enumerate(words[1:], 1):
        if word[:1] in ("-", "+") and not word.startswith("--"):
            found |= {word[0] + letter for letter in word[1:]}
            if word.endswith("o"):
                found |= {word[0] + _SHORT.get(name, name) for name in words[index + 1 : index + 2]}
    return frozenset(found)
