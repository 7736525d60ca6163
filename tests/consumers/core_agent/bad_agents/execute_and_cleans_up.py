#!/usr/bin/env python3
"""Runs the program and removes the old notes."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Runs the program and removes the old notes."""
    ending = session.honest()
    session.call("execute", {"argv": ["rm", "-r", "notes"]})
    return ending


main(behave, "execute")
