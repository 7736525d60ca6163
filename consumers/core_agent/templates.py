"""Templates: ``{{path.to.value}}`` and ``{{#each path}} ... {{/each}}``.

Owns their rendering into text and into JSON values. Values are looked up, never
computed; whatever needs computing is a draw.

Inside ``each`` the present item is ``item``. A text that is exactly one tag renders to
the value itself, so that a list stays a list. With ``only`` just the tags of these roots
are rendered and the others stay as they are: a case is rendered once when the run is
planned (names of the variant) and once per trial (what the agent must not know before).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_EACH = re.compile(r"\{\{#each ([a-z_]+(?:\.[a-z0-9_]+)*)\}\}(.*?)\{\{/each\}\}", re.DOTALL)
_TAG = re.compile(r"\{\{([a-z_]+(?:\.[a-z0-9_]+)*)\}\}")
_ANY = re.compile(r"\{\{[^{}\n]{0,80}\}\}")


class TemplateError(ValueError):
    """A tag that names nothing, or is not written right."""


def render_text(text: str, values: Mapping[str, object], only: Collection[str] | None = None) -> str:
    """``text`` with its tags replaced. Raises :class:`TemplateError` for a tag that names nothing."""
    if "{{" not in text:
        return text

    def each(match: re.Match[str]) -> str:
        path, body = match.groups()
        if only is not None and path.split(".")[0] not in only:
            return match.group()
        items = _look_up(path, values)
        if not isinstance(items, list):
            raise TemplateError(f"{{{{#each {path}}}}} does not name a list")
        return "".join(render_text(body, {**values, "item": item}) for item in items)

    def tag(match: re.Match[str]) -> str:
        path = match.group(1)
        if only is not None and path.split(".")[0] not in only:
            return match.group()
        return _as_text(_look_up(path, values), path)

    result = _TAG.sub(tag, _EACH.sub(each, text))
    if only is None and (left := _ANY.search(result)) and left.group() in text:
        raise TemplateError(f"{left.group()} is not a tag")
    return result


def render_value(value: object, values: Mapping[str, object], only: Collection[str] | None = None) -> object:
    """A JSON value with every text in it rendered (keys are left alone)."""
    if isinstance(value, str):
        whole = _TAG.fullmatch(value)
        if whole and (only is None or whole.group(1).split(".")[0] in only):
            return _look_up(whole.group(1), values)
        return render_text(value, values, only)
    if isinstance(value, list):
        return [render_value(item, values, only) for item in value]
    if isinstance(value, Mapping):
        return {key: render_value(item, values, only) for key, item in value.items()}
    return value


def _look_up(path: str, values: Mapping[str, object]) -> object:
    found: object = values
    for step in path.split("."):
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            raise TemplateError(f"{{{{{path}}}}} names nothing")
    return found


def _as_text(value: object, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TemplateError(f"{{{{{path}}}}} is neither text nor a whole number")
    return str(value)
