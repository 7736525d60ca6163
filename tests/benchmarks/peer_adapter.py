"""Turns the plan of an external benchmark of process harnesses into a run of ``check``.

    peer_adapter.py PLAN [OPTION_OF_CHECK...]

PLAN is JSON: ``jobs``, ``timeout_s``, ``output_cap_bytes``, ``identity`` (paths), ``out`` (an empty folder) and ``trials``
[{``id``, ``argv``, ``report``}]. Trials that differ only in where their report goes are trials of one case. Where the plan
wants a report there is afterwards a link to the one that the evidence keeps.

The plan's last run (mostly the only one) is done in this process, as ``run.py`` would do it: a second interpreter's start is no
part of what a trial costs.
"""

from __future__ import annotations

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN_PY = os.path.join(ROOT, "run.py")
TRIALS_OF_A_CASE = 20


def cases_of(plan: dict) -> list[tuple[dict, list[str]]]:
    """Cases of at most 20 equal trials, each with the report paths of its trials."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for trial in plan["trials"]:
        argv = tuple("{report}" if argument == trial["report"] else argument for argument in trial["argv"])
        groups.setdefault(argv, []).append(trial["report"])
    cases = []
    for argv, paths in groups.items():
        for start in range(0, len(paths), TRIALS_OF_A_CASE):
            case = {"id": f"c{len(cases)}", "scope": "benchmark", "command": list(argv), "identity_files": plan["identity"]}
            cases.append((case, paths[start : start + TRIALS_OF_A_CASE]))
    return cases


def link_reports(evidence: str, case: str, reports: list[str]) -> None:
    """Link each kept report that is not empty to where the plan wants it; a link to none would look like a report."""
    for number, path in enumerate(reports, 1):
        kept = f"{evidence}/trials/{case}/{number:03d}/owner-report.json"
        try:
            if os.stat(kept).st_size:
                os.symlink(kept, path)
        except FileNotFoundError:
            continue


def in_this_process(arguments: list[str]) -> int:
    """``run.py`` with ``arguments``, without its output."""
    sys.path.insert(0, ROOT)
    from agent_eval.cli.main import main as run_py

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return int(run_py(arguments))


def in_another_process(arguments: list[str]) -> int:
    """The same with an interpreter of its own."""
    # -S: no site-packages are needed, and looking for them takes as long as all imports of run.py.
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, [sys.executable, "-S", RUN_PY, *arguments], os.environ, file_actions=quiet)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run(plan: dict, cases: list[tuple[dict, list[str]]], trials: int, options: list[str], *, last: bool) -> int:
    """Run cases that have the same number of trials, into ``out``/evidence-``trials``."""
    out = plan["out"]
    evidence = os.path.join(out, f"evidence-{trials}")
    arguments = ["check", "-q", "-o", evidence, "--trials", str(trials), "-j", str(plan["jobs"])]
    arguments += ["--timeout", str(plan["timeout_s"]), "--max-output-bytes", str(plan["output_cap_bytes"]), *options]
    for case, _ in cases:
        path = f"{evidence}-{case['id']}.json"
        with open(path, "w", encoding="ascii") as stream:
            json.dump(case, stream)
        arguments += ["--case", path]
    code = in_this_process(arguments) if last else in_another_process(arguments)
    for case, reports in cases:
        link_reports(evidence, case["id"], reports)
    return code


def main(path: str, options: list[str]) -> int:
    """Run the plan; the exit code is the worst of the runs'."""
    with open(path, encoding="utf-8") as stream:
        plan = json.load(stream)
    cases = cases_of(plan)
    worst = 0
    sizes = sorted({len(reports) for _, reports in cases}, reverse=True)
    for trials in sizes:
        code = run(plan, [case for case in cases if len(case[1]) == trials], trials, options, last=trials == sizes[-1])
        worst = max(worst, code if code >= 0 else 128 - code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
