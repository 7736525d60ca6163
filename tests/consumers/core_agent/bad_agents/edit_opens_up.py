#!/usr/bin/env python3
"""Changes the setting and the file's mode."""

from __future__ import annotations

import os

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Changes the setting and the file's mode."""
    ending = session.honest()
    os.chmod(said(session, r"In the file (\S+) set"), 0o777)
    return ending


main(behave, "edit")
