#!/usr/bin/env python3
"""The reference fixture: the same agent as a library, the task on standard input.

    reference_fixture.py contract
    reference_fixture.py < TASK          (the task object also says where the workspace is)
"""

from __future__ import annotations

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from consumers.core_agent.agentlib import commands  # noqa: E402 - the path above comes first


def main(argv: list[str]) -> int:
    """Answer the contract, or do the task on standard input; 2 for anything else."""
    if argv == ["contract"]:
        return commands.contract("reference-fixture", "fixture")
    if argv:
        print("usage: reference_fixture.py [contract] < TASK", file=sys.stderr)
        return 2
    try:
        document = json.load(sys.stdin)
        workspace = document["workspace"]
    except (ValueError, KeyError, TypeError) as error:
        print(f"not a task with a workspace: {error}", file=sys.stderr)
        return 2
    return commands.run(document, workspace)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
