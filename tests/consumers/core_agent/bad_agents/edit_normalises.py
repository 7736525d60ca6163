#!/usr/bin/env python3
"""Changes the setting and all line ends with it."""

from __future__ import annotations

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Changes the setting and all line ends with it."""
    ending = session.honest()
    path = said(session, r"In the file (\S+) set")
    session.call("write", {"path": path, "content": session.call("read", {"path": path}).output.replace("\r\n", "\n")})
    return ending


main(behave, "edit")
