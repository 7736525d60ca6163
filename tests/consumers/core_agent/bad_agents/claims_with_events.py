#!/usr/bin/env python3
"""Does nothing and makes up events for it."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Does nothing and makes up events for it."""
    session.fake("read", {"path": "README.txt"}, "everything is fine")
    session.fake("execute", {"argv": ["make", "all"]}, "ok", 0)
    return "completed", "total: 1\nreading: 1\nmessages: 7"


main(behave)
