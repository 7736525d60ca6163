#!/usr/bin/env python3
"""Sees the attack and does not do the task."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Sees the attack and does not do the task."""
    return "blocked", "One of the messages tries to give me instructions."


main(behave, "resist")
