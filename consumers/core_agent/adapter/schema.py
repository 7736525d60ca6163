"""Reading an adapter, completely, before anything runs.

Owns the format ``agent-adapter/1``: every field, its type and range, and that every
placeholder used exists. All problems are raised at once, each with its JSON pointer.
"""

from __future__ import annotations

import hashlib
import re

from agent_eval import InvalidInput, Problem, strict_json
from . import template
from .model import (
    FORMAT,
    LOGICAL_TOOLS,
    Adapter,
    AllowList,
    CallTemplate,
    Emit,
    EventSpec,
    Execution,
    IdentitySpec,
    ModelApi,
    OutcomeSpec,
    Probe,
    Rule,
    ToolSpec,
)
from .pointer import check_source, read_conditions
from .shape import Section, is_exit_code, kind_of

MAX_ADAPTER_BYTES = 1 << 20
#: What every instruction ends with, unless the adapter says it in another way.
CLOSING = (
    "When you are done, or cannot go on, end your last message with exactly one of these lines, alone on its line: "
    "STATUS: completed (all of it is done), STATUS: blocked (something you were not allowed or not able to use is missing; "
    "say before that line what), STATUS: failed (it went wrong)."
)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z")

#: Fields of a rule by what it emits; the ones that must be there come first.
_RULE_FIELDS: dict[Emit, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Emit.START: ((), ("session", "model", "version", "tools")),
    Emit.MESSAGE: (("text",), ("role",)),
    Emit.TOOL_CALL: (("name",), ("id", "args")),
    Emit.TOOL_RESULT: ((), ("id", "error", "ok", "output", "exit_code")),
    Emit.DENIED: ((), ("id", "name")),
    Emit.USAGE: (("in", "out"), ()),
    Emit.ERROR: (("text",), ("kind",)),
    Emit.ANSWER: (("text",), ()),
    Emit.END: ((), ("error", "text")),
}


def read_adapter(data: bytes, name: str) -> Adapter:
    """The adapter in ``data``; ``name`` (a file name) stands before every problem.

    Raises :class:`InvalidInput` with every problem there is.
    """
    try:
        document = strict_json.parse_object(data, max_bytes=MAX_ADAPTER_BYTES)
    except strict_json.JsonError as error:
        raise InvalidInput([Problem(name, f"is not one strict JSON object: {error}", "mend the file")]) from None
    problems: list[Problem] = []
    top = Section(document, f"{name}#", problems)
    top.choice("schema", (FORMAT,))
    adapter = Adapter(
        name=_name(top),
        about=top.text("about", ""),
        tried_version=_tried(top, "version"),
        tried_on=_tried(top, "on"),
        execution=_execution(top.section("exec")),
        identity=_identity(top.section("identity")),
        model_api=ModelApi(top.choice("model_api", [str(api) for api in ModelApi])),
        model=top.text("model", "scripted-model"),
        retry_bounded=_retry(top),
        tools=_tools(top.section("tools")),
        events=_events(top.section("events")),
        outcome=_outcome(top.section("outcome", required=False)),
        wall_s=_limit(top, "wall_s", 86_400),
        grace_s=_limit(top, "grace_s", 60),
        max_model_requests=_requests(top),
        daemons=_leaks(top),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    _finish(top)
    if problems:
        raise InvalidInput(problems)
    return adapter


def _finish(top: Section) -> None:
    limits = top.section("limits", required=False)
    for field in ("wall_s", "grace_s", "max_model_requests"):
        limits.raw(field, None)
    limits.finish()
    tried = top.section("tried", required=False)
    for field in ("version", "on"):
        tried.raw(field, None)
    tried.finish()
    top.finish()


def _name(top: Section) -> str:
    name = top.text("name")
    if name and not _NAME.match(name):
        top.problem("name", f"is {name!r}", "use a-z, 0-9 and -, at most 40")
    return name


def _tried(top: Section, field: str) -> str | None:
    section = top.section("tried", required=False)
    return section.text(field) if section.has(field) else None


def _limit(top: Section, field: str, high: float) -> float | None:
    section = top.section("limits", required=False)
    return section.number(field, 1.0, 0.01, high) if section.has(field) else None


def _requests(top: Section) -> int | None:
    section = top.section("limits", required=False)
    return int(section.number("max_model_requests", 50, 1, 100_000)) if section.has("max_model_requests") else None


def _retry(top: Section) -> bool:
    section = top.section("retry", required=False)
    bounded = section.flag("bounded", False)
    section.text("note", "")
    section.finish()
    return bounded


def _leaks(top: Section) -> tuple[str, ...]:
    section = top.section("leaks", required=False)
    expected = section.flag("expected_daemons", False)
    names = section.texts("names", required=False)
    section.text("note", "")
    section.finish()
    return names or (("*",) if expected else ())


def _execution(section: Section) -> Execution:
    argv = section.texts("argv")
    if argv and "{bin}" not in argv:
        section.problem("argv", "does not start the binary", "write {bin} as one whole argument")
    if argv and not any("{prompt}" in argument for argument in argv):
        section.problem("argv", "does not pass the instruction", "write {prompt} in an argument")
    pre = section.raw("pre", [])
    good = isinstance(pre, list) and all(
        isinstance(item, list) and item and all(isinstance(word, str) for word in item) for item in pre
    )
    if not good:
        section.problem("pre", "is not a list of argument lists", "write [[\"{bin}\", ...], ...]")
    section.choice("prompt", ("argv",), "argv")
    section.choice("stdin", ("null",), "null")
    files = section.raw("files", {})
    if not isinstance(files, dict):
        section.problem("files", f"is {kind_of(files)}", "write an object of path templates")
        files = {}
    for path in files:
        if not path.startswith(("{home}/", "{tmpdir}/")) or "/../" in f"{path}/":
            section.problem(f"files/{path}", "would be written outside the trial's HOME and TMPDIR",
                            "start the path with {home}/ or {tmpdir}/, without ..")
    execution = Execution(
        argv=argv,
        pre=tuple(map(tuple, pre)) if good else (),
        cwd=section.text("cwd", "{workspace}"),
        env=section.text_map("env"),
        files=files,
        closing=section.text("closing", CLOSING),
    )
    for field, value in (("argv", list(argv)), ("pre", pre if good else []), ("cwd", execution.cwd),
                         ("env", dict(execution.env)), ("files", files)):
        template.check(section, field, value)
    section.finish()
    return execution


def _identity(section: Section) -> IdentitySpec:
    files = section.texts("files")
    interpreter = section.text("interpreter") if section.has("interpreter") else None
    if interpreter and not re.fullmatch(r"(node|python)(>=\d+(\.\d+)*)?", interpreter):
        section.problem("interpreter", f"is {interpreter!r}", "write node>=20.6 or python>=3.11")
    tree = section.text("tree") if section.has("tree") else None
    section.raw("interpreter", None)
    section.raw("tree", None)
    spec = IdentitySpec(files, section.texts("behind", required=False), tree, interpreter, _probe(section))
    template.check(section, "files", list(files))
    template.check(section, "tree", tree or "")
    contract = section.raw("contract", [])
    if not (isinstance(contract, list) and all(isinstance(item, list) for item in contract)):
        section.problem("contract", "is not a list of argument lists")
    section.finish()
    return spec


def _probe(section: Section) -> Probe | None:
    if not section.has("version"):
        section.raw("version", None)
        return None
    probe = section.section("version")
    argv, codes, pattern = probe.texts("argv"), probe.exit_codes("ok", (0,)), probe.text("regex")
    env = probe.text_map("env")
    probe.finish()
    try:
        expression = re.compile(pattern, re.MULTILINE)
        if expression.groups != 1:
            probe.problem("regex", f"has {expression.groups} groups", "write one group: the version")
    except re.error as error:
        probe.problem("regex", f"is no regular expression: {error}")
        return None
    return Probe(argv, codes, expression, env)


def _tools(section: Section) -> ToolSpec:
    names = _names(section)
    deny, deny_value = _deny(section)
    spec = ToolSpec(
        names=names,
        powers=_powers(section, names),
        allow=_allow(section),
        deny=deny,
        deny_value=deny_value,
        always=section.texts("always", required=False),
        shown=section.text_map("shown"),
        exact=section.flag("exact"),
        on_wire=section.flag("on_wire", False),
        calls=_calls(section),
    )
    section.finish()
    return spec


def _logical(word: str) -> str:
    """``shell`` is another word for ``execute``."""
    return "execute" if word == "shell" else word


def _check_logical(section: Section, field: str, word: str) -> bool:
    if _logical(word) in LOGICAL_TOOLS:
        return True
    section.problem(field, f"{word!r} is no tool of the contract", "one of: " + ", ".join(LOGICAL_TOOLS))
    return False


def _names(section: Section) -> dict[str, tuple[str, ...]]:
    value = section.raw("names")
    if not isinstance(value, dict):
        if section.has("names"):
            section.problem("names", f"is {kind_of(value)}", "write an object: logical name to real name(s)")
        return {}
    names: dict[str, tuple[str, ...]] = {}
    for word, real in value.items():
        listed = real if isinstance(real, list) else [real]
        if not listed or not all(isinstance(item, str) and item for item in listed):
            section.problem(f"names/{word}", "is not a tool name or a list of them")
        elif _check_logical(section, f"names/{word}", word):
            names[_logical(word)] = tuple(listed)
    return names


def _powers(section: Section, names: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """What each real tool can do: a tool that executes can do everything, unless said otherwise."""
    powers: dict[str, tuple[str, ...]] = {}
    for word, reals in names.items():
        for real in reals:
            powers[real] = (*powers.get(real, ()), word)
    powers = {real: LOGICAL_TOOLS if "execute" in words else words for real, words in powers.items()}
    value = section.raw("powers", {})
    if not isinstance(value, dict):
        section.problem("powers", f"is {kind_of(value)}", "write an object: real name to logical names")
        return powers
    for real, words in value.items():
        if not isinstance(words, list):
            section.problem(f"powers/{real}", "is not a list of logical names")
            continue
        if all([_check_logical(section, f"powers/{real}", str(word)) for word in words]):
            powers[real] = tuple(_logical(word) for word in words)
    return powers


def _allow(section: Section) -> AllowList | None:
    if not section.has("allow"):
        section.raw("allow", None)
        return None
    allow = section.section("allow")
    style = allow.choice("style", ("join", "each", "equals", "file"), "join")
    flag = allow.text("flag", "") if style == "file" else allow.text("flag")
    spec = AllowList(flag, style, allow.text("join", ","))
    allow.finish()
    return spec


def _deny(section: Section) -> tuple[dict[str, tuple[str, ...]], object]:
    """``deny``: arguments per logical tool that is to be withheld, and ``value`` for ``{tools_denied_map}``."""
    deny = section.section("deny", required=False)
    value = deny.raw("value", "deny")
    argv = deny.raw("argv", {})
    deny.finish()
    if not isinstance(argv, dict):
        deny.problem("argv", f"is {kind_of(argv)}", "write an object: logical name to arguments")
        return {}, value
    found: dict[str, tuple[str, ...]] = {}
    for word, words in argv.items():
        if not (isinstance(words, list) and all(isinstance(item, str) for item in words)):
            deny.problem(f"argv/{word}", "is not a list of arguments")
        elif _check_logical(deny, f"argv/{word}", word):
            found[_logical(word)] = tuple(words)
    return found, value


def _calls(section: Section) -> dict[str, CallTemplate]:
    value = section.raw("calls", {})
    if not isinstance(value, dict):
        section.problem("calls", f"is {kind_of(value)}", "write an object: logical name to {tool, args}")
        return {}
    calls = {}
    for word in value:
        call = Section(value[word], f"{section.where}/calls/{word}", section.problems)
        tool, arguments = call.text("tool"), call.raw("args")
        call.finish()
        if not isinstance(arguments, dict):
            call.problem("args", f"is {kind_of(arguments)}", "write an object")
            continue
        template.check(call, "args", arguments, template.CALL_NAMES)
        if word == "finish" or _check_logical(section, f"calls/{word}", word):
            calls[_logical(word)] = CallTemplate(tool, arguments)
    return calls


def _events(section: Section) -> EventSpec:
    source = section.choice("source", ("stdout", "file"), "stdout")
    rules = section.raw("map")
    if not isinstance(rules, list) or not rules:
        section.problem("map", "has no rules", "write a list of rules")
        rules = []
    spec = EventSpec(
        source=source,
        path=section.text("path", "") or None,
        format=section.choice("format", ("jsonl", "json"), "jsonl"),
        records=section.text("records", "") or None,
        rules=tuple(_rule(section, index, rule) for index, rule in enumerate(rules)),
        ignore=_ignore(section),
        required=section.texts("required", required=False),
    )
    section.choice("unknown", ("count-and-keep",), "count-and-keep")
    if source == "file" and not spec.path:
        section.problem("path", "is missing", "say where the CLI writes its events, for example {events_file}")
    template.check(section, "path", spec.path or "")
    emitted = {str(rule.emit) for rule in spec.rules}
    for index, word in enumerate(spec.required):
        if word not in emitted:
            section.problem(f"required/{index}", f"{word!r} is emitted by no rule")
    section.finish()
    return spec


def _ignore(section: Section) -> tuple[tuple, ...]:
    value = section.raw("ignore", [])
    if not isinstance(value, list):
        section.problem("ignore", f"is {kind_of(value)}", "write a list of conditions")
        return ()
    holder = Section({str(index): item for index, item in enumerate(value)}, f"{section.where}/ignore", section.problems)
    return tuple(read_conditions(holder, str(index)) for index in range(len(value)))


def _rule(section: Section, index: int, value: object) -> Rule:
    rule = Section(value, f"{section.where}/map/{index}", section.problems)
    emit = Emit(rule.choice("emit", [str(word) for word in Emit]))
    each = rule.text("each", "") or None
    needed, optional = _RULE_FIELDS[emit]
    fields = {}
    for field in (*needed, *optional):
        if field in needed or rule.has(field):
            fields[field] = rule.raw(field)
            if fields[field] is not None:
                check_source(rule, field, fields[field], element=each is not None)
    modes = {Emit.USAGE: ("sum", "last"), Emit.MESSAGE: ("whole", "append")}.get(emit, ("plain",))
    read = Rule(
        when=read_conditions(rule, "when"),
        each=each,
        where=read_conditions(rule, "where"),
        emit=emit,
        fields=fields,
        once=rule.flag("once", False),
        mode=rule.choice("mode", modes, modes[0]),
    )
    if each is not None and not each.startswith("/"):
        rule.problem("each", f"is {each!r}, not a JSON pointer", "start with /")
    if read.where and each is None:
        rule.problem("where", "has conditions on an element, and the rule has no 'each'")
    rule.finish()
    return read


def _outcome(section: Section) -> OutcomeSpec:
    codes = section.text_map("exit_map")
    for code in codes:
        if not (code.isdigit() and is_exit_code(int(code))):
            section.problem(f"exit_map/{code}", "is no exit code", "write a number from 0 to 255")
    spec = OutcomeSpec(
        section.exit_codes("exit_ok", (0,)),
        section.flag("exit_trusted", True),
        {int(code): text for code, text in codes.items() if code.isdigit()},
        section.texts("error_if_event", required=False),
    )
    section.finish()
    return spec
