#!/usr/bin/env python3
"""Turns any program that only exits into a checker.

    report_exit.py --report FILE -- PROGRAM [ARG ...]

Runs the program, writes ``{"passed": exit code is 0, ...}`` to FILE, and exits 0 when the program
did and 1 otherwise. It is itself an ordinary checker: standard library only, no import of this project.
"""

import json
import os
import sys

USAGE = "usage: report_exit.py --report FILE -- PROGRAM [ARG ...]"


def main(argv: list[str]) -> int:
    """Run the program and report how it ended."""
    if len(argv) < 4 or argv[0] != "--report" or argv[2] != "--":
        print(USAGE, file=sys.stderr)
        return 2
    report, command = argv[1], argv[3:]
    detail: dict[str, object] = {"program": command[0]}
    try:
        pid = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        passed, text = False, f"did not start: {error.strerror}"
    else:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        passed = code == 0
        text = f"exit code {code}" if code >= 0 else f"died of signal {-code}"
        detail["exit_code" if code >= 0 else "signal"] = abs(code)
    body = {
        "passed": passed,
        "checks": [{"id": "exit-code", "passed": passed, "detail": text}],
        "limits": ["the program's exit code is all that was looked at"],
        **detail,
    }
    with open(report, "x", encoding="ascii") as stream:
        json.dump(body, stream)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
