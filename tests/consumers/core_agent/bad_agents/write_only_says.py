#!/usr/bin/env python3
"""Makes up the events of writing the file."""

from __future__ import annotations

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Makes up the events of writing the file."""
    path = said(session, r"Write the new file (\S+)")
    session.fake("write", {"path": path, "content": "region,orders,amount\n"}, "wrote 21 bytes")
    return "completed", "The file is written."


main(behave, "write")
