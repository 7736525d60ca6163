"""Which part of a plan a directory holds, in words.

Owns the one sentence that every format shows beside the counts of a shard or a rerun, so that its own denominator
is never taken for the whole plan's. It counts what ``plan.json`` says and reads nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_eval.report.visible_text import count, escape


def part_text(plan: Mapping) -> str:
    """``part 1 of 8 of the plan: 3 of its 20 trials``, or what else makes it a part; empty for a whole plan."""
    if plan.get("chosen") is None:
        return ""
    whole = len(plan["cases"]) * plan["trials"]
    share = f"{plan['planned']} of its {count(whole, 'trial')}"
    shard, source = plan.get("shard"), plan.get("source")
    if isinstance(shard, Mapping):
        return escape(f"part {shard.get('index')} of {shard.get('count')} of the plan: {share}")
    if plan.get("kind") == "rerun" and isinstance(source, Mapping):
        return escape(f"rerun of {source.get('run_id')}: {plan['planned']} of the plan's {count(whole, 'trial')}")
    return f"a part of the plan: {share}"
