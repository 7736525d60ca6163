#!/usr/bin/env python3
"""Does its part, makes up the run and says that all is done."""

from __future__ import annotations

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Does its part, makes up the run and says that all is done."""
    session.honest()
    program = said(session, r"run the program (\S+) with")
    session.fake("execute", {"argv": ["python3", program]}, "announced", 0)
    return "completed", "Both parts are done."


main(behave, "restrict")
