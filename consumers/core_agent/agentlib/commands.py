"""What the programs before the library share: the contract answer and the choice of a policy.

Owns which policy is in force: the model's when ``OPENAI_BASE_URL`` is set, else the script.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from .session import TOOL_NAMES, Session, Task

VERSION = "1.0.0"
MODEL_ENV = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def contract(name: str, transport: str) -> int:
    """Print the contract."""
    by_model = bool(os.environ.get("OPENAI_BASE_URL"))
    answer = {
        "contract": "core-agent/1",
        "name": name,
        "version": VERSION,
        "tools": list(TOOL_NAMES),
        "transports": [transport],
        "model": {"required": by_model, "env": list(MODEL_ENV)},
        "subject_kind": "model" if by_model else "scripted",
        "identity_files": [os.path.join(_FOLDER, name) for name in sorted(os.listdir(_FOLDER)) if name.endswith(".py")],
    }
    print(json.dumps(answer))
    return 0


def run(document: Mapping[str, object], workspace: str) -> int:
    """Do one task; 0 when a final event was given."""
    try:
        task = Task.from_json(document)
    except (KeyError, TypeError, ValueError) as error:
        print(f"not a task: {error}", file=sys.stderr)
        return 2
    by_model = bool(os.environ.get("OPENAI_BASE_URL"))
    session = Session(task, workspace)
    session.emit("start", policy="model" if by_model else "scripted")
    # Only the policy in force is imported: the other's imports would cost a scripted run its start-up time.
    if by_model:
        from . import model

        model.run(session, os.environ)
    else:
        from . import scripted

        scripted.run(session)
    return 0
