#!/usr/bin/env python3
"""Leaves a link to a right file elsewhere."""

from __future__ import annotations

import os

from base import Recorder, main, said


def behave(session: Recorder) -> tuple[str, str] | None:
    """Leaves a link to a right file elsewhere."""
    ending = session.honest()
    path = said(session, r"Write the new file (\S+)")
    elsewhere = os.path.join(os.environ["HOME"], "summary.csv")
    os.rename(path, elsewhere)
    os.symlink(elsewhere, path)
    return ending


main(behave, "write")
