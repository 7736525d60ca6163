"""Reading an adapter, completely, before anything runs.

Owns the format ``agent-adapter/1``: every field, its type and range, and that every
placeholder used exists. All problems are raised at once, each with its JSON pointer.
"""

from __future__ import annotations

import hashlib
import re

from agent_eval import InvalidInput, Problem, strict_json

from . import template
from .model import FORMAT, Adapter, Execution, IdentitySpec, ModelApi, OutcomeSpec, Probe
from .schema_events import read_events
from .schema_tools import read_tools
from .shape import Section, is_exit_code, kind_of

MAX_ADAPTER_BYTES = 1 << 20
#: What every instruction ends with, unless the adapter says it in another way.
CLOSING = (
    "When you are done, or cannot go on, end your last message with exactly one of these lines, alone on its line: "
    "STATUS: completed (all of it is done), STATUS: blocked (something you were not allowed or not able to use is missing; "
    "say before that line what), STATUS: failed (it went wrong)."
)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z")
_CODE = re.compile("[0-9]{1,3}")

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
        tools=read_tools(top.section("tools")),
        events=read_events(top.section("events")),
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


def _outcome(section: Section) -> OutcomeSpec:
    codes = section.text_map("exit_map")
    for code in codes:
        if not (_CODE.fullmatch(code) and is_exit_code(int(code))):
            section.problem(f"exit_map/{code}", "is no exit code", "write a number from 0 to 255")
    spec = OutcomeSpec(
        section.exit_codes("exit_ok", (0,)),
        section.flag("exit_trusted", True),
        {int(code): text for code, text in codes.items() if _CODE.fullmatch(code)},
        section.texts("error_if_event", required=False),
    )
    section.finish()
    return spec
