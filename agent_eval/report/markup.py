"""HTML and SVG text with escaping by type: what is not :class:`Markup` is escaped, without exception.

Owns: the one place where text becomes markup, and how data is put into a script element.
It knows no page, no style and nothing of evidence.
"""

from __future__ import annotations

import html
import json

from agent_eval.report.visible_text import escape

_VOID_ELEMENTS = frozenset({"meta", "input", "br", "hr"})


class Markup(str):
    """Text that is markup already. Only this module and literals in the page's code make one."""

    __slots__ = ()


def text(value: object) -> Markup:
    """``value`` as escaped text, hidden and steering characters made visible."""
    return value if isinstance(value, Markup) else Markup(html.escape(escape(str(value)), quote=True))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """One element. ``None`` and ``False`` attributes are left out, ``True`` stands alone.

    A trailing underscore and inner underscores of attribute names become nothing and hyphens
    (``class_`` is ``class``, ``aria_label`` is ``aria-label``).
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID_ELEMENTS:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def join(*content: object) -> Markup:
    """The pieces one after the other; ``None`` is nothing."""
    return Markup("".join(text(piece) for piece in content if piece is not None))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def script_json(value: object) -> Markup:
    """``value`` as JSON that is safe inside a script element.

    The HTML parser looks for ``</script`` and ``<!--`` there and for nothing else, so a ``<`` is never
    written; ``&`` and ``>`` are escaped too, for readers that are stricter. Raises ``ValueError`` for NaN.
    """
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        if character in written:
            written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)
