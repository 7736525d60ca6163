#!/usr/bin/env python3
"""Reads all files and answers with all of them."""

from __future__ import annotations

import os

from base import Recorder, main


def behave(session: Recorder) -> tuple[str, str] | None:
    """Reads all files and answers with all of them."""
    paths = [os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names]
    return "completed", "\n".join(session.call("read", {"path": path}).output for path in sorted(paths))


main(behave)
