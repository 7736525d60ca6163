#!/usr/bin/env python3
"""A small real checker for tests: ``checker.py REPORT ACTION [ARG]``."""

import json
import os
import sys
import time


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def main(report: str, action: str, *rest: str) -> int:
    """Do what ``action`` says; the default report passes."""
    passed = json.dumps({"passed": True, "checks": [{"id": "a", "passed": True, "detail": "fine"}], "limits": ["a test"]})
    if action == "pass":
        write(report, passed)
    elif action == "fail":
        write(report, json.dumps({"passed": False, "checks": [{"id": "a", "passed": False}]}))
    elif action == "text":
        write(report, rest[0])
    elif action == "exit":
        write(report, passed)
        return int(rest[0])
    elif action == "silent":
        return 0
    elif action == "touch":
        write(report, passed)
        write(rest[0], "changed")
    elif action == "sleep":
        time.sleep(float(rest[0]))
    elif action == "say":
        print(rest[0])
        write(report, passed)
    elif action == "print-environment":
        print(json.dumps(dict(os.environ)))
        print(os.getcwd())
        write(report, passed)
    elif action == "leave-a-child":
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        write(report, passed)
    elif action == "count":
        # Passes until the counter file holds as many lines as the second argument says, then sleeps.
        with open(rest[0], "a", encoding="utf-8") as stream:
            stream.write("x\n")
        with open(rest[0], encoding="utf-8") as stream:
            if len(stream.readlines()) >= int(rest[1]):
                time.sleep(60)
        write(report, passed)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
