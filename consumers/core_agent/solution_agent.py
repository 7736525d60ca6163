"""Performs a declared solution by the tools of the contract: ``solution_agent.py SCRIPT WORKSPACE``.

Owns nothing but that. The harness uses it to prove that a scenario can be passed.
"""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from consumers.core_agent.agentlib.session import TOOL_NAMES, Session, Task


def main(script_path: str, workspace: str) -> int:
    """Do the calls in order and end as the script says."""
    with open(script_path, encoding="utf-8") as stream:
        script = json.load(stream)
    session = Session(Task("", TOOL_NAMES, 1000, 0), workspace)
    session.emit("start")
    for call in script["calls"]:
        session.call(call["tool"], call["arguments"])
    answer = script["answer"]
    session.final(script["status"], answer if isinstance(answer, str) else "\n".join(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
