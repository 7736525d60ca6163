"""The content of ``plan.json``.

Owns putting a plan together with its digest. It is written by the evidence writer
and read by the reader.
"""

from __future__ import annotations

import os
import time
from typing import Any

from agent_eval.evidence import layout
from agent_eval.records.clock import now_at
from agent_eval.records.plan import PlannedRun, plan_sha256


def make_plan(consumer_name: str, planned: PlannedRun, argv: tuple[str, ...], evaluator: dict[str, str], **facts: object) -> dict:
    """The content of ``plan.json``; ``facts`` are further keys, such as ``kind`` or ``source``.

    ``chosen`` among them (case to numbers of trials) makes ``planned`` the number of those; the digest stays the whole plan's.
    """
    plan: dict[str, Any] = {
        "format": layout.FORMAT,
        "kind": "run",
        "run_id": f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(6).hex()}",
        "consumer": consumer_name,
        "argv": [os.fsencode(argument).decode("utf-8", "backslashreplace") for argument in argv],
        "limits": planned.limits.to_json(),
        "task_seed": planned.task_seed,
        "cases": [case.to_json() for case in planned.cases],
        "trials": planned.trials,
        "planned": planned.planned,
        "subject": planned.subject or {},
        "selection": planned.selection or {},
        "evaluator": evaluator,
        "created_at": now_at(),
        **facts,
    }
    if "chosen" in plan:
        plan["planned"] = sum(len(numbers) for numbers in plan["chosen"].values())
    plan["plan_sha256"] = plan_sha256(plan)
    return plan
