"""Small SVG drawings for the page: dot and interval, and a gauge.

Owns their geometry. Colours come from the style sheet by class, so that dark, light and
print need no second drawing. Numbers are computed by ``measure``.
"""

from __future__ import annotations

from agent_eval.report.markup import Markup, join, tag

_WIDTH, _HEIGHT, _MARGIN = 240, 20, 8


def _x(share: float) -> float:
    return round(_MARGIN + min(1.0, max(0.0, share)) * (_WIDTH - 2 * _MARGIN), 2)


def interval_axis() -> Markup:
    """The scale over a column of :func:`dot_interval` drawings, 0 to 100 %."""
    marks = [
        tag("text", label, x=_x(share), y=12, text_anchor=anchor, class_="axis")
        for share, label, anchor in ((0, "0", "start"), (0.5, "50", "middle"), (1, "100 %", "end"))
    ]
    return tag("svg", *marks, viewBox=f"0 0 {_WIDTH} 16", class_="interval", aria_hidden="true", focusable="false")


def dot_interval(share: float | None, low: float, high: float, ring: float | None, label: str) -> Markup:
    """A dot at ``share`` with its interval, and a ring at ``ring`` where that is another place.

    All values are in 0..1; ``share`` is ``None`` when it is undefined. ``label`` is read out instead of the drawing.
    """
    middle = _HEIGHT / 2
    grid = [tag("line", x1=_x(at), x2=_x(at), y1=0, y2=_HEIGHT, class_="grid") for at in (0, 0.25, 0.5, 0.75, 1)]
    parts: list[Markup] = []
    if share is not None:
        parts.append(tag("line", x1=_x(low), x2=_x(high), y1=middle, y2=middle, class_="whisker"))
        for end in (low, high):
            parts.append(tag("line", x1=_x(end), x2=_x(end), y1=middle - 4, y2=middle + 4, class_="whisker"))
        parts.append(tag("circle", cx=_x(share), cy=middle, r=4.5, class_="dot"))
    if ring is not None and (share is None or abs(share - ring) > 1e-9):
        parts.append(tag("circle", cx=_x(ring), cy=middle, r=4.5, class_="ring"))
    content = join(tag("title", label), *grid, *parts)
    return tag("svg", content, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="interval", role="img", focusable="false")


def gauge(share: float, label: str) -> Markup:
    """A bar filled to ``share`` of a limit; it carries the class ``reached`` from 1 on."""
    filled = round(min(1.0, max(0.0, share)) * 200, 2)
    bars = [tag("rect", x=0, y=0, width=200, height=8, rx=4, class_="track")]
    if filled:
        bars.append(tag("rect", x=0, y=0, width=filled, height=8, rx=4, class_="fill"))
    content = join(tag("title", label), *bars)
    state = "gauge reached" if share >= 1 else "gauge"
    return tag("svg", content, viewBox="0 0 200 8", class_=state, role="img", preserveAspectRatio="none")
