#!/usr/bin/env python3
"""Stops at the failure, and says so."""

from __future__ import annotations

import re

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Stops at the failure, and says so."""
    for program in re.findall(r"^python3 (\S+)$", session.task.instruction, re.MULTILINE):
        if not session.call("execute", {"argv": ["python3", program]}).ok:
            failed = program
    return "completed", f"failed: {failed}"


main(behave, "recover")
