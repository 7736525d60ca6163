"""Evidence directories written by hand in format ``agent-eval/evidence/1``, for what no real run makes at will.

Two thousand trials in a second, hostile output and names, records of any shape. It shares no
code with the writer of the project, so that a report is tried against the format and not
against one implementation of it.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

STARTED_AT = "2026-11-30T14:03:58.123Z"
BINARY_SHA256 = hashlib.sha256(b"binary").hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def outcome(**changes: object) -> dict:
    """The outcome of an ordinary process that exited 0 after 1.25 s."""
    stream = {"seen_bytes": 0, "kept_bytes": 0, "truncated": False, "sha256": None, "write_error": None}
    report = {"state": "none", "reason": None, "kept_bytes": 0, "size_bytes": None, "mode": None, "sha256": None,
              "write_error": None}
    plain = {
        "tree": {"containment": "subreaper", "leaked": 0, "escaped": 0, "killed": 0, "unreaped": []},
        "started_at": STARTED_AT, "wall_s": 1.25, "suspended_s": 0.0, "exit_code": 0, "signal": None,
        "core_dumped": False, "status_lost": False, "start_error": None, "stop_reason": None, "stop_steps": [],
        "cpu_user_s": 0.5, "cpu_system_s": 0.1, "max_rss_bytes": 12_345_678,
        "stdout": dict(stream), "stderr": dict(stream), "report": report,
    }  # fmt: skip
    return plain | changes


def judgment(verdict: str, *reasons: str, detail: str = "", cause: str | None = None) -> dict:
    return {
        "verdict": verdict, "basis": "recomputed", "cause": cause,
        "failures": [{"reason": r, "detail": detail, "evidence": ["trial.json#/outcome/exit_code"]} for r in reasons],
        "checks": [], "grader": {"name": "synthetic", "source_sha256": "0" * 64},
    }  # fmt: skip


class Directory:
    """An evidence directory under construction; :meth:`seal` makes it whole."""

    def __init__(self, path: Path, cases: list[str], trials: int, **plan: object) -> None:
        self.path = path
        self.cases = cases
        self.trials = trials
        self.records: list[dict] = []
        self.seal_hex = ""
        for folder in ("cases", "trials"):
            (path / folder).mkdir(parents=True)
        self.plan = {
            "format": "agent-eval/evidence/1", "run_id": "20261130T140358Z-synthetic", "consumer": "core-agent",
            "argv": ["run.py", "core-agent", "--binary", "/abs/agent"], "task_seed": 1, "trials": trials,
            "limits": {"timeout_s": 60.0, "max_output_bytes": 8 << 20, "grace_s": 1.0},
            "cases": [{"id": case, "sha256": sha256(b"{}"), "scope": f"Scope of {case}",
                       "not_scored": ["Elegance of the answer"]} for case in cases],
            "planned": len(cases) * trials, "created_at": STARTED_AT, "kind": "run",
            "subject": {"binary": {"path": "/abs/agent", "sha256": BINARY_SHA256}, "subject_kind": "model"},
            "evaluator": {"version": "0.1.0", "source_sha256": "1" * 64, "python": "3.11.2", "platform": "linux"},
            "plan_sha256": "2" * 64,
        } | plan  # fmt: skip
        for case in cases:
            (path / "cases" / f"{case}.json").write_bytes(b"{}")

    def trial(self, case: str, number: int, judged: dict, ended: dict | None = None,
              files: dict[str, bytes] | None = None, **own: object) -> None:
        """Write one trial with ``files`` beside its record."""
        folder = self.path / "trials" / case / f"{number:03d}"
        folder.mkdir(parents=True)
        ended = outcome() if ended is None else ended
        digests = {}
        for name, data in (files or {}).items():
            target = folder / name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
            digests[name] = sha256(data)
            stream = {"stdout.bin": "stdout", "stderr.bin": "stderr"}.get(name)
            if stream:
                ended[stream] = {"seen_bytes": len(data), "kept_bytes": len(data), "truncated": False,
                                 "sha256": digests[name], "write_error": None}  # fmt: skip
        record = {
            "case_id": case, "number": number, "outcome": ended, "judgment": judged, "files": digests,
            "request": {"argv": ["/abs/agent", "run"], "cwd": "/tmp/w", "env_names": ["PATH"],
                        "limits": self.plan["limits"]},
            "identity": {"before": [], "after": [], "reused": []}, "scratch": {"entries": 0, "bytes": 0},
        } | own  # fmt: skip
        (folder / "trial.json").write_text(json.dumps(record))
        self.records.append(record)

    def counts(self, records: list[dict], planned: int) -> dict:
        verdicts = [(r["judgment"]["cause"] == "interrupted" and "interrupted") or r["judgment"]["verdict"] for r in records]
        passed, failed, void = (verdicts.count(word) for word in ("pass", "fail", "void"))
        interrupted = verdicts.count("interrupted")
        judged = passed + failed
        able = {str(k): 1.0 if passed else 0.0 for k in range(1, judged + 1)}
        reliable = {str(k): 1.0 if judged and not failed else 0.0 for k in range(1, judged + 1)}
        if judged:
            able["1"] = reliable["1"] = passed / judged
        reasons: dict[str, int] = {}
        for record in records:
            for failure in record["judgment"]["failures"]:
                reason = str(failure["reason"]) if isinstance(failure, dict) else "?"
                reasons[reason] = reasons.get(reason, 0) + 1
        return {"planned": planned, "passed": passed, "failed": failed, "void": void, "interrupted": interrupted,
                "unrun": planned - len(records), "n_judged": judged, "pass_at_k": able, "pass_hat_k": reliable,
                "reasons": reasons}  # fmt: skip

    def summary(self) -> dict:
        whole = self.counts(self.records, len(self.cases) * self.trials)
        exit_code = 1 if whole["failed"] else 0
        by_case: dict[str, list[dict]] = {case: [] for case in self.cases}
        for record in self.records:
            by_case[record["case_id"]].append(record)
        return whole | {
            "cases": {case: self.counts(found, self.trials) for case, found in by_case.items()},
            "basis": {"recomputed": {"passed": whole["passed"], "failed": whole["failed"]}},
            "not_scored": ["Elegance of the answer"], "limits_reached": {}, "leaks": {"trials": 0, "processes": 0},
            "exit_code": exit_code, "verdict": "fail" if exit_code else "pass",
        }  # fmt: skip

    def seal(self, summary: dict | None = None) -> str:
        """Write plan, summary and manifest; returns the seal."""
        (self.path / "plan.json").write_text(json.dumps(self.plan))
        (self.path / "journal.jsonl").write_text(json.dumps({"event": "planned", "plan_sha256": hashlib.sha256((self.path / "plan.json").read_bytes()).hexdigest()}) + "\n")
        (self.path / "summary.json").write_text(json.dumps(summary or self.summary()))
        for folder in ("cases", "trials"):
            if not any((self.path / folder).iterdir()):
                (self.path / folder).rmdir()
        lines = [
            f"{sha256(file.read_bytes())}  {file.relative_to(self.path)}\n"
            for file in sorted(self.path.rglob("*"))
            if file.is_file()
        ]
        manifest = "".join(lines).encode()
        (self.path / "manifest-sha256.txt").write_bytes(manifest)
        self.seal_hex = sha256(manifest)
        return self.seal_hex


def mixed(path: Path) -> Directory:
    """A run with every verdict, sealed: 4 cases of 3 trials, one of them never started."""
    made = Directory(path, ["read@1", "edit@1", "repair@1", "resist@1"], 3)
    for number in (1, 2, 3):
        made.trial("read@1", number, judgment("pass"), files={"stdout.bin": b"three lines\nof text\n"})
    made.trial("edit@1", 1, judgment("pass"))
    made.trial("edit@1", 2, judgment("fail", "timeout", "missing-report", detail="no report after 60 s"),
               outcome(exit_code=None, signal=9, stop_reason="timeout", wall_s=61.2,
                       stop_steps=[{"signal": "SIGTERM", "at_s": 60.0}, {"signal": "SIGCONT", "at_s": 60.0},
                                   {"signal": "SIGKILL", "at_s": 61.0}],
                       tree={"containment": "subreaper", "leaked": 2, "escaped": 1, "killed": 2, "unreaped": []}),
               files={"stderr.bin": b"Traceback: \x1b[31mred\x1b[0m\n"})  # fmt: skip
    made.trial("edit@1", 3, judgment("void", cause="model-service"))
    made.trial("repair@1", 1, judgment("fail", "nonzero-exit"), outcome(exit_code=3), files={"stdout.bin": bytes(range(256))})
    made.trial("repair@1", 2, judgment("pass"))
    made.trial("repair@1", 3, judgment("pass"))
    made.trial("resist@1", 1, judgment("pass"))
    made.trial("resist@1", 2, judgment("void", cause="interrupted"), outcome(stop_reason="interrupted", exit_code=None, signal=15))
    made.seal(made.summary() | {"limits_reached": {"timeout": 1}, "leaks": {"trials": 1, "processes": 2}})
    return made


def large(path: Path, cases: int, trials: int, output_bytes: int) -> Directory:
    """A big run: every fifth trial fails, each with ``output_bytes`` of output."""
    source = random.Random(20261130)
    words = [bytes(source.choices(b"abcdefghij klmnop\n<>&\"", k=97)) for _ in range(64)]
    made = Directory(path, [f"case-{index:04d}@1" for index in range(cases)], trials)
    for case in made.cases:
        for number in range(1, trials + 1):
            output = b"".join(source.choices(words, k=output_bytes // 97 + 1))[:output_bytes]
            judged = judgment("fail", "owner-failed", detail="the answer differs") if source.random() < 0.2 else judgment("pass")
            made.trial(case, number, judged, outcome(wall_s=source.uniform(0.1, 59)), {"stdout.bin": output})
    made.seal()
    return made
