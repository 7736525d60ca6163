"""Receipt assertions about commands: exit codes, order, masked failures, budgets of retries.

Owns the kinds ``command_*`` and ``commands_none_failed``. Commands are compared as words and exit
codes as integers; a command without an exit code proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from agent_eval.records.problems import Problem

from .engine import Check, Evidence, Finding, Spec, failed, missing, not_applicable, passed, register, unsupported
from .exit_masks import masks
from .fields import BOOLEAN, COUNT, INTEGER, INTEGERS, Field, Form, choice, list_of
from .matchers import COMMAND, NONZERO, Sifted, command_needs, command_test, exit_test, line_of, remembering, words_test
from .receipt_base import ReceiptKind
from .receipt_kinds_events import OrderKind, bounds_problems, count_finding
from .shell_words import read_line

PICKS = ("last", "any", "all")
_PICK = choice(*PICKS)
_EXIT_CODE = Form("an integer, or 'nonzero'", lambda value: value == NONZERO or INTEGER.accepts(value))


def ran(commands: list, sifted: Sifted, pick: str, accepts: Callable[[int], bool], wanted: str) -> Finding:
    """Decide the exit codes of the matching commands: of the last one, of any, or of all."""
    if not sifted.hits:
        return sifted.doubt() or failed("the command was not run", "/commands")
    chosen = sifted.hits[-1:] if pick == "last" else sifted.hits
    codes = [(index, commands[index].get("exitCode")) for index in chosen]
    good = [index for index, code in codes if code is not None and accepts(code)]
    silent = [index for index, code in codes if code is None]
    contrary = [index for index, code in codes if code is not None and not accepts(code)]
    if pick == "any":
        if good:
            return passed(f"exit code {wanted}", *sifted.pointers(good[:1]))
        contrary = [] if silent or sifted.doubts else contrary
    if contrary:
        code = commands[contrary[-1]]["exitCode"]
        return failed(f"exit code {code}, wanted {wanted}", *(f"/commands/{index}/exitCode" for index in contrary))
    if silent:
        return missing("the command has no exit code", *sifted.pointers(silent))
    doubt = sifted.doubt(after=chosen[-1] if pick == "last" else -1)
    return doubt or passed(f"exit code {wanted}", *sifted.pointers(chosen))


class _CommandKind(ReceiptKind):
    sections: ClassVar[tuple[str, ...]] = ("commands",)
    reads_exit_code = False

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return command_needs(spec["cmd"], exit_code=self.reads_exit_code)


_CMD = Field(COMMAND, "which commands", required=True)


@register
class CommandOk(_CommandKind):
    """The check ran and its exit code is right: by default of its last run, so that an early green does not hide a later red."""

    name = "command_ok"
    summary = "passes when the chosen runs of the command have exactly this exit code"
    reads_exit_code = True
    fields: ClassVar[Mapping[str, Field]] = {
        "cmd": _CMD,
        "pick": Field(_PICK, "which runs decide", default="last"),
        "exitCode": Field(INTEGER, "the exit code", default=0),
    }

    def decide(self, spec: Spec) -> Check:
        test, pick, code = command_test(spec["cmd"]), spec.get("pick", "last"), spec.get("exitCode", 0)
        accepts, wanted = exit_test(code), str(code)
        return lambda evidence: ran(evidence["commands"], Sifted("commands", test, evidence["commands"]), pick, accepts, wanted)


@register
class CommandExit(_CommandKind):
    """An exit code that may be a failure, such as the red test before a fix."""

    name = "command_exit"
    summary = "passes when the chosen runs end with the exit code, or one of 'in'"
    reads_exit_code = True
    fields: ClassVar[Mapping[str, Field]] = {
        "cmd": _CMD,
        "exitCode": Field(_EXIT_CODE, "the exit code; 'nonzero' is any but 0"),
        "in": Field(INTEGERS, "several exit codes"),
        "pick": Field(_PICK, "which runs decide", default="any"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        if ("exitCode" in spec) == ("in" in spec):
            return [Problem(where, "command_exit needs either exitCode or in")]
        return []

    def decide(self, spec: Spec) -> Check:
        expected = spec.get("exitCode", spec.get("in"))
        test, pick, accepts = command_test(spec["cmd"]), spec.get("pick", "any"), exit_test(expected)
        wanted = str(expected) if not isinstance(expected, list) else "one of " + ", ".join(map(str, expected))
        return lambda evidence: ran(evidence["commands"], Sifted("commands", test, evidence["commands"]), pick, accepts, wanted)


@register
class CommandAbsent(_CommandKind):
    """A command that must not run, in whatever part of a command line."""

    name = "command_absent"
    summary = "passes when the list of commands is there and none matches, substitutions and nested shells included"
    fields: ClassVar[Mapping[str, Field]] = {"cmd": _CMD}

    def decide(self, spec: Spec) -> Check:
        test = command_test(spec["cmd"], everywhere=True)
        return lambda evidence: count_finding(Sifted("commands", test, evidence["commands"]), 0, 0, "matching commands")


@register
class CommandCount(_CommandKind):
    """How often a command ran."""

    name = "command_count"
    summary = "passes when the number of matching commands is from min to max"
    fields: ClassVar[Mapping[str, Field]] = {
        "cmd": _CMD,
        "min": Field(COUNT, "how many at least", default=0),
        "max": Field(COUNT, "how many at most", default="no limit"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        return bounds_problems(spec, where)

    def decide(self, spec: Spec) -> Check:
        test, least, most = command_test(spec["cmd"]), spec.get("min", 0), spec.get("max")
        return lambda evidence: count_finding(Sifted("commands", test, evidence["commands"]), least, most, "matching commands")


@register
class CommandOrder(OrderKind):
    """One command before another; with ``exitCode`` in the matchers, red before green."""

    name = "command_order"
    summary = "passes when the first command comes before the second; not applicable when the second never runs"
    sections: ClassVar[tuple[str, ...]] = ("commands",)
    fields: ClassVar[Mapping[str, Field]] = {
        "first": Field(COMMAND, "the earlier command", required=True),
        "second": Field(COMMAND, "the later command", required=True),
        "quantifier": Field(choice("first-first", "first-last", "last-last", "all-first"), "as for event_before", default="first-first"),
        "requireSecond": Field(BOOLEAN, "whether it is a failure that the second never runs", default=False),
    }

    def steps(self, spec: Spec) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return {"cmd": spec["first"]}, {"cmd": spec["second"]}


@register
class CommandUnmasked(_CommandKind):
    """The exit code of a check is its own."""

    name = "command_unmasked"
    summary = "passes when no matching command line hides a failure (|| true, ; exit 0, a pipe without pipefail, set +e, &)"
    fields: ClassVar[Mapping[str, Field]] = {"cmd": _CMD}

    def decide(self, spec: Spec) -> Check:
        test, concerns = command_test(spec["cmd"], everywhere=True), words_test(spec["cmd"])

        masks_of = remembering(lambda line: tuple(masks(line, concerns)))

        def check(evidence: Evidence) -> Finding:
            commands = evidence["commands"]
            sifted = Sifted("commands", test, commands)
            contrary: dict[int, str] = {}
            for index in sifted.hits:
                found = masks_of(line_of(commands[index]))
                if "argv" in commands[index] and "cmd" in commands[index]:
                    found += masks_of(read_line(commands[index]["cmd"]))
                if found:
                    contrary[index] = found[0]
            if contrary:
                text = "; ".join(dict.fromkeys(contrary.values()))
                return failed(f"a failure would not show: {text}", *sifted.pointers(contrary), reason="masked_exit_code")
            unread = [index for index in sifted.hits if line_of(commands[index]).unclear]
            if unread:
                return unsupported("part of the command line cannot be read for certain", *sifted.pointers(unread), reason="unreadable_command")
            if not sifted.hits:
                return sifted.doubt() or not_applicable("the command was not run", "/commands")
            return sifted.doubt() or passed("its exit code is its own", *sifted.pointers())

        return check


@register
class CommandsNoneFailed(ReceiptKind):
    """Nothing failed, but for what may."""

    name = "commands_none_failed"
    summary = "passes when every command has exit code 0, but for those that match 'except'"
    sections: ClassVar[tuple[str, ...]] = ("commands",)
    fields: ClassVar[Mapping[str, Field]] = {"except": Field(list_of(COMMAND, empty=True), "commands that may fail", default="none")}

    def needs(self, spec: Spec) -> tuple[str, ...]:
        return ("/commands/*/cmd", "/commands/*/argv", "/commands/*/exitCode")

    def decide(self, spec: Spec) -> Check:
        tests = [command_test(matcher) for matcher in spec.get("except", ())]

        def check(evidence: Evidence) -> Finding:
            commands = evidence["commands"]
            bad = [
                index
                for index, command in enumerate(commands)
                if command.get("exitCode") != 0 and not any(test(command) is True for test in tests)
            ]
            contrary = [index for index in bad if commands[index].get("exitCode") is not None]
            if contrary:
                return failed(f"{len(contrary)} commands failed", *(f"/commands/{index}/exitCode" for index in contrary))
            if bad:
                return missing("commands without an exit code", *(f"/commands/{index}" for index in bad))
            return passed(f"{len(commands)} commands, none failed", "/commands")

        return check
