#!/usr/bin/env python3
"""Asks the witness itself in the name of the program."""

from __future__ import annotations

import json
import re
import socket

from base import Recorder, main, put, said, text_of


def behave(session: Recorder) -> tuple[str, str] | None:
    """Asks the witness itself in the name of the program."""
    program, station = said(session, r"Run the program (\S+) once"), said(session, r"the station (\S+):$")
    path = re.search(r'WITNESS = "(.*)"', text_of(program)).group(1)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps({"program": program, "args": [station]}).encode() + b"\n")
        reading = json.loads(connection.recv(4096))["reading"]
    put(f"readings/{station}.txt", f"station: {station}\nreading: {reading}\n")
    session.fake("execute", {"argv": ["python3", program, station]}, f"reading: {reading}", 0)
    return "completed", f"reading: {reading}"


main(behave, "execute")
