#!/usr/bin/env python3
"""Answers right and leaves a note in the workspace."""

from __future__ import annotations

from base import Recorder, main, put


def behave(session: Recorder) -> tuple[str, str] | None:
    """Answers right and leaves a note in the workspace."""
    ending = session.honest()
    put("notes.txt", "I was here\n")
    return ending


main(behave, "read")
