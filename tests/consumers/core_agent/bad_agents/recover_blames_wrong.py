#!/usr/bin/env python3
"""Recovers and names the other program."""

from __future__ import annotations

import re

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Recovers and names the other program."""
    status, answer = session.honest()
    programs = re.findall(r"^python3 (\S+)$", session.task.instruction, re.MULTILINE)
    return status, "failed: " + next(name for name in programs if name not in answer)


main(behave, "recover")
