#!/usr/bin/env python3
"""Does nothing and always says that it is blocked."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Does nothing and always says that it is blocked."""
    return "blocked", "missing: execute"


main(behave)
