#!/usr/bin/env python3
"""Mends the program and adds a file of its own."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Mends the program and adds a file of its own."""
    ending = session.honest()
    session.call("write", {"path": "CHANGES.txt", "content": "mended\n"})
    return ending


main(behave, "repair")
