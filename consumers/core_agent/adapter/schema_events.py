"""Reading the ``events`` of an adapter: where they are, and the rules that map them.

Owns the fields of a rule by what it emits. The language of conditions and sources is
``pointer``'s. Problems go into the section's list; nothing here raises.
"""

from __future__ import annotations

from . import template
from .model import Emit, EventSpec, Matcher, Rule
from .pointer import check_source, read_conditions
from .shape import Section, kind_of

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


def read_events(section: Section) -> EventSpec:
    """Where the CLI's events are, and the rules that map them."""
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


def _ignore(section: Section) -> tuple[tuple[Matcher, ...], ...]:
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
