"""What the benchmarks do besides measuring: rounds, goals, the external script's results, the peers found, the adapter.

No test here says anything about time.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent / "benchmarks"
TABLE = FOLDER / "table.py"


@pytest.fixture
def load() -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the benchmarks, which import each other by bare names; all are forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def call_table(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TABLE), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_a_ratio_is_of_one_round_and_their_median_is_taken(load: Callable[[str], ModuleType]) -> None:
    found = load("rounds").within_rounds([1.0, 40.0, 3.0], [1.0, 10.0, 1.5])
    assert (found.median, found.low, found.high) == (2.0, 1.0, 4.0)  # the ratio of the medians would be 2.5 or so


def test_a_round_of_noise_is_left_out_and_too_many_leave_nothing(load: Callable[[str], ModuleType]) -> None:
    within_rounds = load("rounds").within_rounds
    assert within_rounds([1.0, -0.5, 3.0], [1.0, 1.0, 1.0]).low == 1.0
    assert within_rounds([1.0, -0.5, 3.0], [1.0, 1.0, -1.0]) is None


def test_every_round_begins_one_later_and_who_cannot_is_not_asked_again(load: Callable[[str], ModuleType]) -> None:
    rounds = load("rounds")
    asked = []

    def measure(name: str) -> float:
        asked.append(name)
        if name == "b":
            raise rounds.Unmeasured("has no limits")
        return float(len(asked))

    values, reasons = rounds.in_rounds(["a", "b", "c"], 3, measure)
    assert asked == ["a", "b", "c", "c", "a", "c", "a"]
    assert values == {"a": [1.0, 5.0, 7.0], "c": [3.0, 4.0, 6.0]}
    assert reasons == {"b": "has no limits"}


@pytest.mark.parametrize(
    ("kind", "bound", "value", "met"),
    [
        ("AT_MOST", 1.3, 1.3, True), ("AT_MOST", 1.3, 1.3001, False), ("AT_LEAST", 10, 10, True), ("AT_LEAST", 10, 9.999, False),
        ("BELOW", 1.0, 1.0, False), ("BELOW", 1.0, 0.999, True),
    ],
)  # fmt: skip
def test_a_goal_is_met_at_its_bound(load: Callable[[str], ModuleType], kind: str, bound: float, value: float, met: bool) -> None:
    rows, rounds = load("rows"), load("rounds")
    goal = rows.Goal(bound, "x", rows.Bound[kind])
    assert goal.judge(rounds.Spread.of([value, value * 0.5, value * 2])) is (rows.Verdict.MET if met else rows.Verdict.NOT_MET)


def test_a_goal_for_every_round_is_judged_by_the_worst(load: Callable[[str], ModuleType]) -> None:
    rows, rounds = load("rows"), load("rounds")
    survivors = rounds.Spread.of([0, 0, 0, 0, 1])
    assert rows.Goal(0, "", every_round=True).judge(survivors) is rows.Verdict.NOT_MET
    assert rows.Goal(0, "").judge(survivors) is rows.Verdict.MET


def test_a_goal_without_a_ratio_to_judge_is_open(load: Callable[[str], ModuleType]) -> None:
    rows, rounds = load("rows"), load("rounds")
    found = rounds.Spread.of([1.0])
    assert rows.Row("w", "ours", found, " ms", None, "inspect", rows.Goal(0.2, "x")).verdict is rows.Verdict.OPEN
    assert rows.Row("w", "ours", found, " ms", goal=rows.Goal(2, " ms")).verdict is rows.Verdict.MET
    assert rows.Row("w", "lit", found, " ms").verdict is rows.Verdict.NO_GOAL


def test_no_text_breaks_the_table(load: Callable[[str], ModuleType]) -> None:
    rows, rounds = load("rows"), load("rounds")
    drawn = rows.table([rows.Row("w", "a|b", rounds.Spread.of([0.00123, 0.5, 1234.5]), " ms", note="two\nlines")] * 2)
    lines = drawn.splitlines()
    assert len(lines) == 4 and {line.count("|") for line in lines} == {8}
    assert "0.5 ms (0.00123 to 1234)" in lines[2] and lines[3].startswith("|      |")


def script_results() -> dict[str, object]:
    def trials(*costs: float) -> list[dict[str, object]]:
        return [{"round": number, "marginal_ms": cost, "complete": True} for number, cost in enumerate(costs)]

    def walls(*seconds: float, **extra: object) -> list[dict[str, object]]:
        return [{"round": number, "wall": value, **extra} for number, value in enumerate(seconds)]

    cost = {"py_run_capture": trials(1.0, 2.0, 1.0), "ours": trials(1.3, 2.4, 1.5), "inspect": trials(8.0, 8.0, 8.0)}
    cost["lit"] = [{"round": 0, "error": "RuntimeError: no lit.cfg"}]
    hang = {"ours": walls(0.61, 0.62, timeout=0.5, survivors=[], hung=False), "lit": walls(15.0, timeout=1, survivors=["hang-daemon"], hung=True)}
    return {
        "A": {"j1": cost, "j2": {"py_run_capture": trials(1.0), "ours": trials(1.5)}},
        "B": {"baseline": {"ours": walls(0.1, 0.1), "lit": walls(0.2)}, "setsid": hang},
        "C": {"ours": walls(0.1, rss_kib=30 * 1024)},
        "D": {"ours": walls(0.02), "py_pass": walls(0.01)},
        "F": {"ours": walls(0.5, rc=0), "inspect score (whole log)": walls(6.0, rc=0)},
    }


def test_the_external_script_s_results_become_rows(load: Callable[[str], ModuleType]) -> None:
    external, rows = load("external"), load("rows")
    found = external.rows_of(script_results(), {"A": {"j1": script_results()["A"]["j1"]}}, 1000)
    judged = [(row.work, row.who, row.against, row.verdict) for row in found if row.goal is not None]
    assert ("by the script: no-op trial, serial", "ours", "py_run_capture", rows.Verdict.MET) in judged  # 1.3, 1.2 and 1.5
    assert ("by the script: no-op trial, serial", "ours", "inspect", rows.Verdict.MET) in judged
    assert ("by the script: no-op trial, --jobs 2", "ours", "py_run_capture", rows.Verdict.NOT_MET) in judged
    assert ("by the script: no-op trial, serial", "ours, --sync trial", "py_run_capture", rows.Verdict.MET) in judged
    assert ("by the script: regrade of 1,000", "ours, regrade", "inspect score (whole log)", rows.Verdict.MET) in judged
    assert sum(row.verdict is rows.Verdict.NOT_MET for row in found) == 1
    late = next(row for row in found if row.unit == " ms" and "timeout, setsid" in row.work and row.who == "ours")
    assert (round(late.found.low), round(late.found.high)) == (10, 20)
    notes = {row.who: row.note for row in found if row.who == "lit"}
    assert notes["lit"] == "hung; survivors: 1" and any("no lit.cfg" in row.note for row in found)


def test_a_script_that_measured_nothing_leaves_goals_open(load: Callable[[str], ModuleType]) -> None:
    external, rows = load("external"), load("rows")
    found = external.rows_of({"A": {"j1": {}}, "F": {}}, {}, 1000)
    assert found and all(row.verdict is rows.Verdict.OPEN and row.found is None for row in found)


def test_peers_are_found_in_the_folders_given_and_the_others_are_named(load: Callable[[str], ModuleType], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = load("peers")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for path in ("venv/bin/lit", "venv/bin/meson", "npm/node_modules/.bin/promptfoo"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("#!/bin/sh\n")
        (tmp_path / path).chmod(0o755)
    found, skipped = peers.installed(peers.Tools([str(tmp_path / "venv")], str(tmp_path / "npm")))
    assert [peer.name for peer in found] == ["lit"]
    assert skipped["meson"] == "not installed (ninja)" and skipped["promptfoo"] == "not installed (node)"
    assert set(skipped) == {peer.name for peer in peers.PEERS} - {"lit"}
    assert peers.installed(peers.Tools(), [])[0] == []


def test_a_job_s_template_survives_a_shell(load: Callable[[str], ModuleType], tmp_path: pathlib.Path) -> None:
    job = load("peers").Job(str(tmp_path / "a 'b'"), 2, 1, "/bin/echo", ("x y",))
    said = subprocess.run(["sh", "-c", job.template().replace("{}", "1")], capture_output=True, text=True, timeout=10).stdout
    assert said.strip() == f"{tmp_path}/a 'b'/reports/1.json x y"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rows", "overhead,jbos"], "unknown: jbos"), (["--rows", ","], "empty"), (["--peers", "lit,nose"], "unknown: nose"),
        (["--small", "20", "--trials", "20"], "less than --trials"), (["--rounds", "0"], "--rounds must be at least 1"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_one_line(arguments: list[str], said: str) -> None:
    done = call_table(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_room_is_asked_for_before_a_soak(load: Callable[[str], ModuleType], tmp_path: pathlib.Path) -> None:
    place = load("place")
    assert "GiB free" in place.room_for(str(tmp_path), size_bytes=1 << 60, files=1)
    assert place.room_for(str(tmp_path), size_bytes=1, files=1) == ""
    assert place.file_system("/proc") == "proc"


def test_the_adapter_leaves_links_to_the_reports_that_the_evidence_keeps(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "checker.sh"
    script.write_text('#!/bin/sh\n[ "$2" = silent ] || printf \'{"passed": true, "score": 1.0}\' > "$1"\n')
    script.chmod(0o755)
    out = tmp_path / "out"
    out.mkdir()
    trials = [{"id": f"t{index}", "argv": [str(script), f"{tmp_path}/{index}.json", "x"], "report": f"{tmp_path}/{index}.json"} for index in range(3)]
    trials.append({"id": "t3", "argv": [str(script), f"{tmp_path}/3.json", "silent"], "report": f"{tmp_path}/3.json"})
    plan = {"jobs": 1, "timeout_s": 30.0, "output_cap_bytes": 8 << 20, "identity": [str(script)], "out": str(out), "trials": trials}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run([sys.executable, FOLDER / "peer_adapter.py", tmp_path / "plan.json", "--grace", "0.2"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr  # the silent one fails
    for index in range(3):
        assert os.path.islink(tmp_path / f"{index}.json") and json.loads((tmp_path / f"{index}.json").read_text())["passed"]
    assert not os.path.lexists(tmp_path / "3.json")
    assert sorted(path.name for path in out.glob("evidence-*") if path.is_dir()) == ["evidence-1", "evidence-3"]


@pytest.mark.skipif(shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="skipped: needs Linux and a C compiler")
def test_the_whole_command_writes_the_form_that_is_committed(tmp_path: pathlib.Path) -> None:
    result = tmp_path / "RESULTS.md"
    arguments = ["--rows", "overhead,script", "--peers", "none", "--script", "none", "--rounds", 1, "--trials", 2, "--small", 1]
    done = call_table(*arguments, "--work", tmp_path / "work", "--markdown", result, "--json", tmp_path / "rows.json")
    assert done.returncode in (0, 1), done.stderr
    text = result.read_text()
    assert done.stdout.rstrip() in text and text.startswith("# What was measured, 2")
    assert "external script skipped: left out" in text and "not asked for" in text
    who = {row["who"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]}
    assert {"ours", "ours, --sync trial", "subprocess.run", "subprocess.run, timeout=60"} <= who
    assert list((tmp_path / "work").iterdir()) == []
