"""Turns the plan of an external benchmark of process harnesses into a run of ``check``.

    peer_adapter.py PLAN

PLAN is JSON: ``jobs``, ``timeout_s``, ``output_cap_bytes``, ``identity`` (paths), ``out`` (an empty folder) and ``trials``
[{``id``, ``argv``, ``report``}]. Trials that differ only in where their report goes are trials of one case. After the run each
owner report is copied out of the evidence to where the plan wants it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

RUN_PY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "run.py")
TRIALS_OF_A_CASE = 20


def cases_of(plan: dict) -> tuple[list[dict], list[list[str]]]:
    """Cases of at most 20 equal trials, each with the report paths of its trials."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for trial in plan["trials"]:
        argv = tuple("{report}" if argument == trial["report"] else argument for argument in trial["argv"])
        groups.setdefault(argv, []).append(trial["report"])
    cases, reports = [], []
    for argv, paths in groups.items():
        for start in range(0, len(paths), TRIALS_OF_A_CASE):
            cases.append({"id": f"c{len(cases)}", "scope": "benchmark", "command": list(argv), "identity_files": plan["identity"]})
            reports.append(paths[start : start + TRIALS_OF_A_CASE])
    return cases, reports


def run(plan: dict, cases: list[dict], reports: list[list[str]], trials: int, name: str) -> int:
    """Run cases that have the same number of trials, and copy their reports out."""
    out = plan["out"]
    arguments = [sys.executable, RUN_PY, "check", "-q", "-o", os.path.join(out, name), "--trials", str(trials), "-j", str(plan["jobs"])]
    arguments += ["--timeout", str(plan["timeout_s"]), "--max-output-bytes", str(plan["output_cap_bytes"])]
    for case in cases:
        path = os.path.join(out, f"{name}-{case['id']}.json")
        with open(path, "w", encoding="ascii") as stream:
            json.dump(case, stream)
        arguments += ["--case", path]
    code = subprocess.run(arguments, stdout=subprocess.DEVNULL).returncode
    for case, paths in zip(cases, reports, strict=True):
        for number, path in enumerate(paths, 1):
            kept = os.path.join(out, name, "trials", case["id"], f"{number:03d}", "owner-report.json")
            if os.path.exists(kept):
                with open(kept, "rb") as source, open(path, "wb") as target:
                    target.write(source.read())
    return code


def main(path: str) -> int:
    """Run the plan; the exit code is the worst of the runs'."""
    with open(path, encoding="utf-8") as stream:
        plan = json.load(stream)
    cases, reports = cases_of(plan)
    worst = 0
    for trials in sorted({len(paths) for paths in reports}, reverse=True):
        chosen = [index for index, paths in enumerate(reports) if len(paths) == trials]
        worst = max(worst, run(plan, [cases[i] for i in chosen], [reports[i] for i in chosen], trials, f"evidence-{trials}"))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
