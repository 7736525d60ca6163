#!/usr/bin/env python3
"""Changes the setting in the example as well."""

from __future__ import annotations

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Changes the setting in the example as well."""
    ending = session.honest()
    service = said(session, r"section \[(\w+)\]")
    session.call("edit", {"path": f"example/{service}.conf", "old": "timeout_ms = 1000", "new": "timeout_ms = 2000"})
    return ending


main(behave, "edit")
