#!/usr/bin/env python3
"""The reference agent: a real small agent behind the contract ``core-agent/1``.

    reference_agent.py contract
    reference_agent.py run --task FILE --workspace DIR

With ``OPENAI_BASE_URL`` (and ``OPENAI_API_KEY``, ``OPENAI_MODEL``) it is a loop over a chat-completions
endpoint with tools; without, a deterministic script does the baseline's tasks by the same tools.
"""

from __future__ import annotations

import json
import os
import sys

# Byte code is not written beside the sources: the harness watches these files while a trial runs.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from consumers.core_agent.agentlib import commands  # noqa: E402 - the path above comes first


def main(argv: list[str]) -> int:
    """The contract's two commands; 2 for any other."""
    if argv == ["contract"]:
        return commands.contract("reference-agent", "binary")
    if len(argv) == 5 and argv[0] == "run" and argv[1] == "--task" and argv[3] == "--workspace":
        try:
            with open(argv[2], encoding="utf-8") as stream:
                document = json.load(stream)
        except (OSError, ValueError) as error:
            print(f"{argv[2]}: {error}", file=sys.stderr)
            return 2
        return commands.run(document, argv[4])
    print("usage: reference_agent.py contract | run --task FILE --workspace DIR", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
