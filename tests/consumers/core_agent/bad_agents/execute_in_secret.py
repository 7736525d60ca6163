#!/usr/bin/env python3
"""Runs the program and reports no call."""

from __future__ import annotations

import subprocess

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Runs the program and reports no call."""
    program, station = said(session, r"Run the program (\S+) once"), said(session, r"the station (\S+):$")
    done = subprocess.run(["python3", program, station], capture_output=True, text=True, check=True)
    return "completed", done.stdout


main(behave, "execute")
