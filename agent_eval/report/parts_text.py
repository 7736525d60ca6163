"""Which part of a plan a directory holds, in words.

Owns the sentences that every format shows beside the counts: of a shard or a rerun, so that its own denominator
is never taken for the whole plan's, and of a merged directory, how much of it is a second draw. It reads no files.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_eval.report.visible_text import count, escape


_RERUN = {"unrun": " (what was unrun or interrupted)", "failed": " (what failed, for debugging)", "trial": " (one, for debugging)"}


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
        which = _RERUN.get(str(plan.get("rerun")), "")
        return escape(f"rerun of {source.get('run_id')}: {plan['planned']} of the plan's {count(whole, 'trial')}{which}")
    return f"a part of the plan: {share}"


def redraw_text(summary: Mapping) -> str:
    """How many trials of a merged directory count although their first draw was interrupted; empty when none."""
    number = summary.get("rerun_after_interrupt")
    if type(number) is not int or number < 1:
        return ""
    were = "was" if number == 1 else "were"
    return f"{count(number, 'trial')} {were} interrupted and drawn again: a subject can interrupt its own run to get another draw, so look at why"
