"""The checker that the engines run: ``subject.py REPORT FOLDER CASE [WAIT]``.

It adds a line to ``FOLDER/started`` each time it runs, whoever started it: that is how many times trials really ran.
With ``WAIT`` the first run of the case tells which process asked for it, and sleeps for a minute.
"""

from __future__ import annotations

import json
import os
import sys
import time


def ancestor(generations: int) -> int:
    """The process id of a parent's parent: the subject's are guardian, supervisor and whoever started that."""
    pid = os.getpid()
    for _ in range(generations):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            pid = int(stream.read().rpartition(")")[2].split()[1])
    return pid


def main(report: str, folder: str, case: str, wait: str = "") -> int:
    """Note the start, perhaps wait, pass (the case ``c1`` fails)."""
    with open(os.path.join(folder, "started"), "a", encoding="utf-8") as stream:
        stream.write(f"{case}\n")
    if wait:
        try:
            # A link with this content appears whole, and once.
            os.symlink(str(ancestor(3)), os.path.join(folder, "waiting"))
            time.sleep(60)
        except FileExistsError:
            pass
    print(f"{case} ran")
    with open(report, "w", encoding="utf-8") as stream:
        json.dump({"passed": case != "c1", "limits": ["says nothing about a domain"]}, stream)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
