#!/usr/bin/env python3
"""Ends well without a final event."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Ends well without a final event."""
    return None


main(behave)
