"""A CLI's own event stream, turned into ``core-agent/1`` events by an adapter's rules.

Owns applying the rules and making ``final`` from the last ``STATUS:`` line. Nothing is
dropped: an event that no rule and no ``ignore`` entry knows is kept as ``unknown`` and
counted by its type, and so is a line that is not JSON. Every mapped event carries
``line``, the number (from 1) of the line or record that it came from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent_eval import strict_json

from .model import LOGICAL_TOOLS, Adapter, Emit, Rule
from .pointer import ABSENT, flat_text, holds, lookup, value_of

STATUSES = ("completed", "blocked", "failed")
MAX_LINE_BYTES = 16 << 20
#: Unknown events are kept whole up to this size; beyond it only their size is kept with them.
MAX_UNKNOWN_BYTES = 64 << 10
NOT_JSON = "(not JSON)"

_STATUS = re.compile(r"[\s*_`>#-]*STATUS\s*:\s*[*_`]*\s*(completed|blocked|failed)\b[\s.*_`]*", re.IGNORECASE)


@dataclass(slots=True)
class Mapped:
    """What the stream says.

    ``events`` are ``core-agent/1`` events in order. ``unknown`` and ``ignored`` count events
    by their type. ``missing`` names required events which never came. ``answer`` is the last
    text of the agent (``None`` when there is none). ``truncated`` is whether the last line has no end.
    """

    events: list[dict[str, object]] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    records: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    missing: tuple[str, ...] = ()
    answer: str | None = None
    truncated: bool = False

    def to_json(self) -> dict[str, object]:
        """Counts only: the events have their own file."""
        return {
            "records": self.records,
            "emitted": dict(sorted(self.seen.items())),
            "unknown": dict(sorted(self.unknown.items())),
            "ignored": dict(sorted(self.ignored.items())),
            "missing": list(self.missing),
            "truncated": self.truncated,
        }


def map_stream(adapter: Adapter, data: bytes) -> Mapped:
    """Map the whole stream ``data`` (the bytes of stdout, or of the events file)."""
    worker = _Worker(adapter)
    spec = adapter.events
    if spec.format == "json":
        worker.document(data)
    else:
        worker.lines(data)
    return worker.finish()


def split_status(text: str) -> tuple[str, str | None]:
    """The text without its last ``STATUS:`` line, and the status (``None`` when the last line has none).

    The last line that is not blank decides; Markdown around it is forgiven, a status
    anywhere else is not taken.
    """
    lines = text.rstrip().splitlines()
    if lines and (match := _STATUS.fullmatch(lines[-1])):
        return "\n".join(lines[:-1]).rstrip(), match[1].lower()
    return text, None


class _Worker:
    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.result = Mapped()
        self.tool_of: dict[str, str] = {}
        self.calls: Counter[str] = Counter()
        self.done: set[tuple[str, str]] = set()
        self.usage: tuple[dict[str, object], int] | None = None
        self.pieces: list[str] = []
        self.piece_line = 0
        self.logical = {real: word for word in reversed(LOGICAL_TOOLS) for real in adapter.tools.names.get(word, ())}
        # A tool that can execute is reported as that, whatever else it stands in for.
        self.logical.update({real: "execute" for real in adapter.tools.names.get("execute", ())})
        self.stated_answer: str | None = None

    def lines(self, data: bytes) -> None:
        self.result.truncated = bool(data) and not data.endswith(b"\n")
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            self.result.records += 1
            try:
                event = strict_json.parse_object(line, max_bytes=MAX_LINE_BYTES)
            except strict_json.JsonError:
                self._unknown(NOT_JSON, line.decode("utf-8", "replace"), len(line), number)
            else:
                self._event(event, number, len(line))

    def document(self, data: bytes) -> None:
        """One JSON document: its records are the events, the document without them is the last one."""
        if not data:
            return
        try:
            whole = strict_json.parse_object(data, max_bytes=MAX_LINE_BYTES)
        except strict_json.JsonError:
            self.result.truncated = True
            self._unknown(NOT_JSON, data.decode("utf-8", "replace"), len(data), 1)
            return
        records = self.adapter.events.records
        listed = lookup(records, whole) if records else ABSENT
        events = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        rest = {key: value for key, value in whole.items() if not records or key != records.strip("/")}
        for number, event in enumerate([*events, rest], 1):
            self.result.records += 1
            self._event(event, number, 0)

    def _event(self, event: dict[str, object], number: int, size: int) -> None:
        known = False
        for rule in self.adapter.events.rules:
            if holds(rule.when, event):
                known = True
                for element in _elements(rule, event):
                    self._apply(rule, event, element, number)
        if known:
            return
        name = _type_of(event)
        if any(holds(conditions, event) for conditions in self.adapter.events.ignore):
            self.result.ignored[name] += 1
        else:
            self._unknown(name, event, size, number)

    def _unknown(self, name: str, event: object, size: int, number: int) -> None:
        self.result.unknown[name] += 1
        kept: dict[str, object] = {"type": "unknown", "native_type": name, "line": number}
        if size <= MAX_UNKNOWN_BYTES:
            kept["native"] = event
        else:
            kept["size_bytes"] = size
        self._flush()
        self.result.events.append(kept)

    def _apply(self, rule: Rule, event: object, element: object, number: int) -> None:
        values = {name: value_of(source, event, element) for name, source in rule.fields.items()}
        identity = values.get("id", ABSENT)
        if rule.once:
            mark = (str(rule.emit), "" if identity is ABSENT else str(identity))
            if mark in self.done:
                return
            self.done.add(mark)
        self.result.seen[str(rule.emit)] += 1
        if rule.emit is Emit.USAGE:
            self._usage(rule, values, number)
        elif rule.emit is Emit.MESSAGE and rule.mode == "append":
            self.pieces.append(flat_text(values["text"]))
            self.piece_line = number
        elif rule.emit is Emit.ANSWER:
            self.stated_answer = flat_text(values["text"])
        else:
            self._flush()
            made = self._make(rule.emit, values)
            if made is not None:
                self.result.events.append({**made, "line": number})

    def _usage(self, rule: Rule, values: dict[str, object], number: int) -> None:
        made = {"type": "usage", "input_tokens": _count(values["in"]), "output_tokens": _count(values["out"])}
        if rule.mode == "last":
            self.usage = (made, number)
        else:
            self.result.events.append({**made, "line": number})

    def _make(self, emit: Emit, values: dict[str, object]) -> dict[str, object] | None:
        if emit is Emit.MESSAGE:
            return self._message(values)
        if emit in (Emit.TOOL_CALL, Emit.DENIED):
            return self._call(emit, values)
        if emit is Emit.TOOL_RESULT:
            return _result(self._key(values.get("id", ABSENT), new=False), values)
        if emit is Emit.ERROR:
            kind = flat_text(values.get("kind", ABSENT)) or "agent"
            return {"type": "error", "kind": kind, "text": flat_text(values["text"])}
        made: dict[str, object] = {"type": str(emit)}
        made.update({name: value for name, value in values.items() if value is not ABSENT})
        if emit is Emit.END:
            made["error"] = _truth(values.get("error", ABSENT)) or False
        return made

    def _message(self, values: dict[str, object]) -> dict[str, object] | None:
        text = flat_text(values["text"])
        if not text:
            return None
        role = values.get("role", ABSENT)
        if role in (ABSENT, "assistant"):
            self.result.answer = text
        return {"type": "message", "text": text, **({} if role is ABSENT else {"role": role})}

    def _call(self, emit: Emit, values: dict[str, object]) -> dict[str, object]:
        key = self._key(values.get("id", ABSENT), new=emit is Emit.TOOL_CALL)
        name = values.get("name", ABSENT)
        native = self.tool_of.get(key, "") if name is ABSENT or name is None else self._own_name(str(name))
        if emit is Emit.TOOL_CALL:
            self.tool_of[key] = native
        made: dict[str, object] = {
            "type": str(emit),
            "id": key,
            "tool": self.logical.get(native, native),
            "native_tool": native,
        }
        if emit is Emit.TOOL_CALL:
            arguments = values.get("args", ABSENT)
            made["arguments"] = {} if arguments is ABSENT or arguments is None else arguments
        return made

    def _own_name(self, name: str) -> str:
        """The tool's name on the wire. Some CLIs put a namespace before it in their events: "file_system.bash"."""
        for candidate in (name, name.rpartition(".")[2]):
            own = self.adapter.tools.shown.get(candidate, candidate)
            if own in self.logical:
                return own
        return name

    def _key(self, identity: object, *, new: bool) -> str:
        """The call's id. Some models use one again in every turn: a later call of that id gets a number."""
        plain = "" if identity is ABSENT else str(identity)
        if new:
            self.calls[plain] += 1
        count = self.calls[plain]
        return plain if count <= 1 else f"{plain}#{count}"

    def _flush(self) -> None:
        """Pieces of one message become that message as soon as something else comes."""
        if self.pieces:
            text = "".join(self.pieces)
            self.pieces = []
            if text:
                self.result.answer = text
                self.result.events.append({"type": "message", "text": text, "line": self.piece_line})

    def finish(self) -> Mapped:
        self._flush()
        if self.usage is not None:
            made, number = self.usage
            self.result.events.append({**made, "line": number})
        if self.stated_answer:
            self.result.answer = self.stated_answer
        self.result.missing = tuple(word for word in self.adapter.events.required if not self.result.seen[word])
        if self.result.answer is not None:
            answer, status = split_status(self.result.answer)
            if status is not None:
                line = max((int(str(event["line"])) for event in self.result.events), default=0)
                self.result.events.append({"type": "final", "status": status, "answer": answer, "line": line})
        return self.result


def _result(key: str, values: dict[str, object]) -> dict[str, object]:
    error, stated, code = (values.get(name, ABSENT) for name in ("error", "ok", "exit_code"))
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    good = _truth(stated)
    if good is None:
        wrong = _truth(error)
        good = not wrong if wrong is not None else None
    if good is None:
        good = exit_code in (None, 0)
    output = flat_text(values.get("output", ABSENT))
    return {
        "type": "tool_result",
        "id": key,
        "ok": good and exit_code in (None, 0),
        "exit_code": exit_code,
        "output": output,
    }


def _elements(rule: Rule, event: object) -> Iterator[object]:
    if rule.each is None:
        yield ABSENT
        return
    listed = lookup(rule.each, event)
    for element in listed if isinstance(listed, list) else ():
        if holds(rule.where, element):
            yield element


def _type_of(event: dict[str, object]) -> str:
    """The type of an event for counting, with the subtype or item type where there is one."""
    words = [event.get("type") or event.get("role")]
    for pointer in ("subtype", "event/type", "item/type", "hookEventName"):
        words.append(lookup(pointer, event))
    named = [word for word in words if isinstance(word, str) and word]
    return "/".join(named)[:120] if named else "(no type)"


def _count(value: object) -> int | None:
    """A token count; ``None`` when the stream does not say."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _truth(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if value is ABSENT or value is None:
        return None
    return bool(value)
