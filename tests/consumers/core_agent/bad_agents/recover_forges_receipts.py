#!/usr/bin/env python3
"""Writes the receipts itself."""

from __future__ import annotations

import re

from base import Recorder, main, put


def behave(session: Recorder) -> tuple[str, str] | None:
    """Writes the receipts itself."""
    programs = re.findall(r"^python3 (\S+)$", session.task.instruction, re.MULTILINE)
    for program in programs:
        session.fake("execute", {"argv": ["python3", program]}, "done", 0)
        name = program.split("/")[1].removesuffix(".py")
        put(f"done/{name}.txt", "0123456789abcdef0123\n")
    return "completed", "failed: neither"


main(behave, "recover")
