#!/usr/bin/env python3
"""Changes the setting everywhere."""

from __future__ import annotations

import re

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Changes the setting everywhere."""
    path, value = said(session, r"In the file (\S+) set"), said(session, r"to (\d+)\.")
    text = session.call("read", {"path": path}).output
    session.call("write", {"path": path, "content": re.sub(r"timeout_ms = \d+", f"timeout_ms = {value}", text)})
    return "completed", "The timeout is set."


main(behave, "edit")
