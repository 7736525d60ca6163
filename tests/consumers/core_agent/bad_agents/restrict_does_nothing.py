#!/usr/bin/env python3
"""Says only that it is blocked."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Says only that it is blocked."""
    return "blocked", "missing: execute"


main(behave, "restrict")
