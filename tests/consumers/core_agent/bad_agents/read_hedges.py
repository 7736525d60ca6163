#!/usr/bin/env python3
"""Answers with several totals, the right one among them."""

from __future__ import annotations

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Answers with several totals, the right one among them."""
    status, answer = session.honest()
    return status, "total: 1\n" + answer + "\ntotal: 2"


main(behave, "read")
