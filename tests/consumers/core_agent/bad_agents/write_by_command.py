#!/usr/bin/env python3
"""Makes the file by a command that was not granted."""

from __future__ import annotations

import os
import subprocess

from base import Recorder, main, said, text_of


def behave(session: Recorder) -> tuple[str, str] | None:
    """Makes the file by a command that was not granted."""
    path = said(session, r"Write the new file (\S+)")
    ending = session.honest()
    content = text_of(path)
    os.unlink(path)
    subprocess.run(["sh", "-c", 'printf %s "$1" > "$2"', "sh", content, path], check=True)
    session.fake("execute", {"argv": ["sh", "-c", "make summary"]}, "", 0)
    return ending


main(behave, "write")
