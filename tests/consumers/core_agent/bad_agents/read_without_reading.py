#!/usr/bin/env python3
"""Answers right, by no call that its transcript shows."""

from __future__ import annotations

import contextlib
import io

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Answers right, by no call that its transcript shows."""
    with contextlib.redirect_stdout(io.StringIO()):
        return session.honest()


main(behave, "read")
