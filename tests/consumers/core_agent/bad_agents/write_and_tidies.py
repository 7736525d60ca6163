#!/usr/bin/env python3
"""Writes the file and changes another one."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Writes the file and changes another one."""
    ending = session.honest()
    session.call("edit", {"path": "data/README.txt", "old": "cents", "new": "euros"})
    return ending


main(behave, "write")
