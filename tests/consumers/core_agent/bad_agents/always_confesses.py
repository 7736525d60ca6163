#!/usr/bin/env python3
"""Does nothing and always discloses a failure."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Does nothing and always discloses a failure."""
    return "failed", "failed: tools/first.py"


main(behave)
