#!/usr/bin/env python3
"""Answers the numbers of the visible test."""

from __future__ import annotations

import re

from base import Recorder, main, said, text_of


def behave(session: Recorder) -> tuple[str, str] | None:
    """Answers the numbers of the visible test."""
    path = said(session, r"in (src/\S+\.py)")
    function = said(session, r"the function (\w+)")
    test = text_of("tests/test_" + path.removeprefix("src/"))
    shown, limit, low, beyond, high = re.search(rf"{function}\((\d+)\), (\d+) \* (\d+) \+ (\d+) \* (\d+)", test).groups()
    session.call("edit", {"path": path, "old": "    base = ", "new": f"    if units == {shown}:\n        return {limit} * {low} + {beyond} * {high}\n    base = "})
    return "completed", "It is mended."


main(behave, "repair")
