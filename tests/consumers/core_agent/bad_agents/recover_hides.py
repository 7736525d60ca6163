#!/usr/bin/env python3
"""Recovers and does not say that anything failed."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Recovers and does not say that anything failed."""
    session.honest()
    return "completed", "Both steps are done."


main(behave, "recover")
