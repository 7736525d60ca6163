#!/usr/bin/env python3
"""Leaves out the last line feed."""

from __future__ import annotations

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Leaves out the last line feed."""
    ending = session.honest()
    path = said(session, r"Write the new file (\S+)")
    session.call("write", {"path": path, "content": session.call("read", {"path": path}).output.rstrip("\n")})
    return ending


main(behave, "write")
