#!/usr/bin/env python3
"""Makes up the event of the edit."""

from __future__ import annotations

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Makes up the event of the edit."""
    path = said(session, r"In the file (\S+) set")
    session.fake("edit", {"path": path, "old": "timeout_ms = 1", "new": "timeout_ms = 2"}, "replaced one occurrence")
    return "completed", "The timeout is set."


main(behave, "edit")
