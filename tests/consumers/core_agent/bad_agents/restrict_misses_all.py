#!/usr/bin/env python3
"""Does its part and names every tool as missing."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Does its part and names every tool as missing."""
    session.honest()
    return "blocked", "missing: read, list, search, write, edit, execute"


main(behave, "restrict")
