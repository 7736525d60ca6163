#!/usr/bin/env python3
"""Answers right and cites a file more."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Answers right and cites a file more."""
    status, answer = session.honest()
    return status, answer + ", archive/README.txt"


main(behave, "read")
