"""Whether a command line's exit code still tells that one of its commands failed.

Owns the rules for masked exit codes, the most common way in which a run reports a
green check that was red: ``pytest || true``, ``npm test; exit 0``, ``make test | tee log``.
It follows the structure of the line and is strict where it cannot follow: a check
whose failure might not show is masked.
"""

from __future__ import annotations

from collections.abc import Callable

from .shell_words import CommandLine, Simple, Words

# Options that make a test runner succeed when it should not.
_MASKING_OPTIONS = frozenset(("--passWithNoTests", "--if-present", "--exit-zero", "--no-error-on-unmatched-pattern", "--pass-with-no-tests"))
Concerns = Callable[[Words], bool]


def masks(line: CommandLine, concerns: Concerns) -> list[str]:
    """Every way in which ``line`` hides a failure of a command that ``concerns`` accepts; empty when there is none."""
    found = list(_option_masks(line, concerns))
    commands = line.simple
    for index, command in enumerate(commands):
        if _concerned(command, line, concerns, index):
            found += _after(commands, index, line)
    for nested in line.nested:
        found += masks(nested, concerns)
    for substituted in line.substituted:
        if any(concerns(form) for form in substituted.every):
            found.append("a substitution loses its exit code")
    return list(dict.fromkeys(found))


def _concerned(command: Simple, line: CommandLine, concerns: Concerns, index: int) -> bool:
    if any(concerns(form) for form in command.forms):
        return True
    # A shell that runs the check is the check, as far as the outer line goes.
    name = command.forms[-1][0].rpartition("/")[2]
    return name.endswith("sh") and any(concerns(form) for nested in line.nested for form in nested.counted)


def _option_masks(line: CommandLine, concerns: Concerns) -> list[str]:
    found = []
    for form in line.counted:
        if concerns(form):
            found += [f"{word} succeeds without a test" for word in form if word in _MASKING_OPTIONS]
    return found


def _after(commands: tuple[Simple, ...], index: int, line: CommandLine) -> list[str]:
    found = []
    if commands[index].condition:
        found.append("its exit code is only a condition (if, while or !)")
    if line.ends_in_background:
        found.append("it runs in the background (&)")
    settings = [_settings(command) for command in commands[:index]]
    if any("+e" in setting for setting in settings):
        found.append("set +e goes on after a failure")
    if any(_words(command)[:1] == ("trap",) and "exit" in " ".join(_words(command)) for command in commands):
        found.append("a trap may replace the exit code")
    pipefail = any("pipefail" in setting for setting in settings)
    stops = any("-e" in setting for setting in settings) and not any("+e" in setting for setting in settings)
    return found + _following(commands[index + 1 :], pipefail, stops)


def _following(rest: tuple[Simple, ...], pipefail: bool, stops: bool) -> list[str]:
    """What comes after a failed command: the first thing that turns its failure into a success."""
    kept = ""  # "$rc", when the exit code was put aside
    for command in rest:
        words = _words(command)
        if command.joined in ("|", "|&"):
            if not pipefail:
                return ["a pipe without pipefail keeps only the last exit code"]
        elif command.joined == "||":
            return [] if _certain_failure(words, kept) else ["|| replaces a failure by another exit code"]
        elif command.joined == "&":
            return ["it runs in the background (&)"]
        elif command.joined != "&&":
            if stops or _certain_failure(words, kept):
                return []
            if not kept and len(words) == 1 and words[0].endswith("=$?"):
                kept = "$" + words[0][:-3]
            elif not kept:
                return ["a later command replaces its exit code"]
    return ["a later command replaces its exit code"] if kept else []


def _words(command: Simple) -> Words:
    return command.forms[-1]


def _certain_failure(words: Words, kept: str) -> bool:
    """``false``, ``exit 1``, ``exit $?``, ``exit $rc``: what cannot succeed after a failure."""
    if words[:1] == ("false",):
        return True
    if words[:1] in (("exit",), ("return",)):
        if kept:
            return words[1:] == (kept,)
        return len(words) == 1 or words[1] == "$?" or (words[1].isdecimal() and int(words[1]) % 256 != 0)
    return False


def _settings(command: Simple) -> frozenset[str]:
    """What a ``set`` command switches: ``-e``, ``+e``, ``pipefail``."""
    words = _words(command)
    if words[:1] != ("set",):
        return frozenset()
    found = set()
    for index, word in enumerate(words[1:], 1):
        if word[:1] in ("-", "+") and not word.startswith("--"):
            found |= {word[0] + letter for letter in word[1:]}
            if word.endswith("o") and word[0] == "-" and words[index + 1 : index + 2] == ("pipefail",):
                found.add("pipefail")
    return frozenset(found)
