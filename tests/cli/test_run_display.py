"""What a run prints at its end is in the order of the plan, whatever finished first."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys

import pytest

from agent_eval.cli.run_display import Display
from agent_eval.measure.summary import Tally
from agent_eval.records.judgment import Basis, Failure, Judgment, Verdict
from agent_eval.records.outcome import Outcome, StopReason, Tree
from agent_eval.trials.recording import FinishedTrial

# Fails once two trials of the run are on record: a journal line is written before a trial is counted.
WAITING = """
import sys, time
until = time.monotonic() + 20
while time.monotonic() < until and open(sys.argv[1]).read().count('"finished"') < 2:
    time.sleep(0.005)
sys.exit(3)
"""


def verdicts(cases: int, trials: int) -> list[FinishedTrial]:
    failure = Judgment(Verdict.FAIL, Basis.RECOMPUTED, (Failure("owner-failed", "no"),))
    return [FinishedTrial(f"c{case}", number, failure, None, True) for case in range(cases) for number in range(1, trials + 1)]


@pytest.mark.parametrize("seed", range(3))
def test_the_failures_kept_are_the_first_of_the_plan(seed: int) -> None:
    display = Display(argparse.Namespace(color="never", quiet=True), 4000)
    # The order of the plan is neither that of names nor of numbers as text: c2 comes before c10.
    display.begun("e", {"cases": [{"id": f"c{case}"} for case in range(200)]})
    finished = verdicts(200, 20)
    del finished[1]
    random.Random(seed).shuffle(finished)
    most = 0
    for trial in finished:
        display.finished(trial)
        most = max(most, len(display.failed))
    assert [name for name, _ in display.failed] == ["c0/001", "c0/003", "c0/004"]
    assert most <= 3, "memory does not grow with failures"


def test_the_printed_failures_and_the_summary_are_in_the_order_of_the_plan(run_py, write_case, tmp_path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    commands = {"slow": [sys.executable, "waiting.py", str(tmp_path / "e" / "journal.jsonl"), "{report}"], "fast": ["false", "{report}"]}
    arguments = []
    for name, command in commands.items():
        arguments += ["--case", str(write_case(id=name, command=command, cwd=str(tmp_path)))]
    done = run_py("check", *arguments, "--trials", 2, "-j", 4, "-o", "e")
    order = re.findall(r"^\[\d/4\] fail (\w+)/", done.stderr, re.M)
    assert order[:2] == ["fast", "fast"], "the later case of the plan finished first"
    shown = re.findall(r"^(\w+/\d+): ", done.stdout, re.M)
    assert shown == ["slow/001", "slow/002", "fast/001"]
    assert "run.py show" in done.stdout and re.search(r"^more: .* slow/001$", done.stdout, re.M)


def test_reasons_limits_and_lost_records_are_in_the_order_of_the_plan() -> None:
    plan = {"cases": [{"id": name, "not_scored": []} for name in ("b", "a")], "trials": 2, "planned": 4}

    def failed(*reasons: str) -> Judgment:
        return Judgment(Verdict.FAIL, Basis.RECOMPUTED, tuple(Failure(reason, "") for reason in reasons))

    def ended(stop: StopReason | None) -> Outcome:
        return Outcome(tree=Tree(containment="subreaper"), started_at="", wall_s=1.0, stop_reason=stop)

    trials = [
        ("b", 1, failed("timeout", "missing-report"), ended(StopReason.TIMEOUT), False),
        ("b", 2, failed("output-limit", "timeout"), ended(StopReason.OUTPUT_LIMIT), True),
        ("a", 1, failed("owner-failed"), ended(None), False),
        ("a", 2, failed("nonzero-exit", "owner-failed"), ended(None), True),
    ]
    texts = set()
    for order in itertools.permutations(trials):
        tally = Tally(plan)
        for case_id, number, judgment, outcome, recorded in order:
            tally.add(case_id, number, judgment, outcome, recorded=recorded)
        texts.add(json.dumps(tally.summary()))
    assert len(texts) == 1, "the same whatever finished first"
    summary = json.loads(texts.pop())
    assert summary["unrecorded"] == ["b/001", "a/001"]
    assert list(summary["cases"]["b"]["reasons"]) == ["timeout", "missing-report", "output-limit"]
