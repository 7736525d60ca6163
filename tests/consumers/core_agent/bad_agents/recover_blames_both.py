#!/usr/bin/env python3
"""Recovers and names both programs."""

from __future__ import annotations

import re

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Recovers and names both programs."""
    session.honest()
    return "completed", "failed: " + ", ".join(re.findall(r"^python3 (\S+)$", session.task.instruction, re.MULTILINE))


main(behave, "recover")
