"""The trials of a run as an Inspect AI log (``.json``, log schema version 2).

Owns the mapping, written against the format that ``inspect_ai`` 0.3 reads back with
``read_eval_log``. A case is a sample, a trial an epoch. A void trial has an error and no score,
so that no metric counts it. What the format cannot carry is named under ``dropped``: in the log's metadata for
the run, in a sample's metadata for the trial.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.report.activity import EVENTS, read_events
from agent_eval.report.excerpts import is_text
from agent_eval.report.parts_text import part_text
from agent_eval.report.records_view import COUNTS, RunRecords, TrialLine, mapping, number, read_run, retained
from agent_eval.report.visible_text import escape

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader, RetainedTrial

SCORER = "verdict"
_LOG_VERSION = 2
_MAX_TEXT = 100_000
_VALUES = {"pass": "C", "fail": "I"}
_RUN_DROPPED = (
    "the manifest and its seal protect the evidence directory, not this log",
    "planned trials that never started have no sample; they are named under unrun",
    "process trees, signals, digests of identity files and workspaces are in the evidence only",
)


def inspect_log(reader: EvidenceReader, summary: Mapping | None = None) -> bytes:
    """The log, UTF-8. ``summary`` stands in for that of an unsealed directory. Raises :class:`EvidenceFault`."""
    run = read_run(reader, summary)
    model = _model(run)
    recorded = [line for line in run.lines if line.recorded]
    samples = [_sample(retained(reader, line), line, run, model) for line in recorded]
    created = str(run.plan.get("created_at"))
    log = {
        "version": _LOG_VERSION,
        "status": _status(run),
        "eval": _spec(run, model, created),
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": _results(run, len(samples)),
        "stats": {"started_at": created, "completed_at": "", "model_usage": {}},
        "samples": samples,
    }
    if log["status"] == "error":
        log["error"] = _error("some planned trials have no verdict")
    return json.dumps(log, ensure_ascii=True, allow_nan=False, indent=1).encode("ascii") + b"\n"


def inspect_log_name(plan: Mapping) -> str:
    """A file name under which Inspect's viewer lists the log: it takes ``.json`` only with a time in front."""
    time = re.sub("[^0-9T-]", "-", str(plan.get("created_at"))[:19])
    task, run = (re.sub("[^A-Za-z0-9-]+", "-", str(plan.get(key)))[:60] for key in ("consumer", "run_id"))
    return f"{time}_{task}_{run.rpartition('-')[2]}.json"


def _status(run: RunRecords) -> str:
    """``success`` says that every planned trial was judged, and nothing of how."""
    if run.summary["interrupted"] or run.summary.get("interrupted_by_signal"):
        return "cancelled"
    return "error" if run.summary["void"] or run.summary["unrun"] else "success"


def _model(run: RunRecords) -> str:
    subject = mapping(run.plan.get("subject"))
    name = subject.get("name") or mapping(subject.get("contract")).get("name") or run.plan.get("consumer")
    return str(name)


def _spec(run: RunRecords, model: str, created: str) -> dict[str, object]:
    plan, part = run.plan, part_text(run.plan)
    cases = list(dict.fromkeys(line.case_id for line in run.lines))
    return {
        "eval_id": str(plan.get("run_id")),
        "run_id": str(plan.get("run_id")),
        "created": created,
        "task": str(plan.get("consumer")),
        "task_id": str(plan.get("plan_sha256")),
        "task_version": 0,
        "task_args": {"task_seed": plan.get("task_seed"), "trials": plan["trials"]},
        "dataset": {"name": str(plan.get("consumer")), "samples": len(cases), "sample_ids": cases, "shuffled": False},
        "model": model,
        "config": {"epochs": plan["trials"]},
        "packages": {},
        "metadata": {
            "agent_eval": {
                "evidence": escape(run.path),
                "seal": run.seal,
                "plan_sha256": plan.get("plan_sha256"),
                **({"part": part} if part else {}),
                "argv": plan.get("argv"),
                "limits": plan.get("limits"),
                "subject": plan.get("subject"),
                "evaluator": plan.get("evaluator"),
                "counts": {name: run.summary[name] for name in COUNTS},
                "not_scored": run.summary.get("not_scored"),
                "unrun": [line.name for line in run.lines if line.verdict == "unrun"],
                "dropped": list(_RUN_DROPPED),
            }
        },
    }


def _results(run: RunRecords, samples: int) -> dict[str, object]:
    """Passed of planned and passed of judged, under those names: ``accuracy`` would hide which one it is."""
    passed, judged = run.summary["passed"], run.summary["passed"] + run.summary["failed"]
    shares = (("passed_of_planned", passed, run.summary["planned"]), ("passed_of_judged", passed, judged))
    metrics = {name: {"name": name, "value": part / whole, "params": {}} for name, part, whole in shares if whole}
    score = {"name": SCORER, "scorer": SCORER, "scored_samples": judged, "unscored_samples": samples - judged}
    return {
        "total_samples": run.summary["planned"],
        "completed_samples": judged,
        "scores": [{**score, "params": {}, "metrics": metrics}],
    }


def _sample(trial: RetainedTrial, line: TrialLine, run: RunRecords, model: str) -> dict[str, object]:
    dropped: list[str] = []
    messages = list(_messages(trial, dropped))
    task = _task(trial)
    outcome = mapping(trial.record.get("outcome"))
    reasons = "; ".join(f"{reason}: {detail}" if detail else reason for reason, detail in line.details)
    sample: dict[str, Any] = {
        "id": line.case_id,
        "epoch": line.number,
        "input": _legal(str(task.get("instruction") or run.scope_of(line.case_id) or line.case_id), dropped, "input"),
        "target": "",
        "messages": messages,
        "output": _output(trial, model, dropped),
        "metadata": {
            "agent_eval": {
                "trial": line.name,
                "verdict": line.verdict,
                "reasons": list(line.reasons),
                "basis": line.basis,
                "outcome": trial.record.get("outcome"),
                "judgment": trial.record.get("judgment"),
                "files": trial.record["files"],
            }
        },
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
        "total_time": line.wall_s,
    }
    if isinstance(outcome.get("started_at"), str):
        sample["started_at"] = outcome["started_at"]
    if line.verdict in _VALUES:
        sample["scores"] = {SCORER: {"value": _VALUES[line.verdict], "explanation": _cut(reasons), "metadata": {"basis": line.basis}}}
    else:
        sample["error"] = _error(_cut(reasons) or line.verdict)
    timeout_s = number(run.limits.get("timeout_s"))
    if line.stop_reason == "timeout" and timeout_s is not None:
        sample["limit"] = {"type": "time", "limit": timeout_s}
    elif line.stop_reason == "output-limit":
        sample["limit"] = {"type": "custom", "limit": number(run.limits.get("max_output_bytes")) or 0}
    sample["metadata"]["agent_eval"]["dropped"] = dropped
    return sample


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _task(trial: RetainedTrial) -> Mapping:
    try:
        return strict_json.parse_object(trial.read("task.json") or b"{}")
    except strict_json.JsonError:
        return {}


def _messages(trial: RetainedTrial, dropped: list[str]) -> Iterator[dict[str, object]]:
    task = _task(trial)
    if task.get("instruction"):
        yield {"role": "user", "content": _legal(str(task["instruction"]), dropped, "instruction")}
    tools: dict[str, str] = {}
    kinds: set[str] = set()
    for line, event in read_events(trial):
        where = f"{EVENTS} line {line}"
        if isinstance(event, str):
            kinds.add("lines that are not JSON objects")
            continue
        kind = event.get("type")
        if kind == "message":
            yield {"role": "assistant", "content": _legal(_plain(event.get("text")), dropped, where)}
        elif kind == "tool_call":
            identifier, tool = str(event.get("id")), str(event.get("tool"))
            tools[identifier] = tool
            arguments = event.get("arguments")
            call = {
                "id": identifier,
                "function": tool,
                "arguments": dict(arguments) if isinstance(arguments, Mapping) else {"arguments": arguments},
                "type": "function",
            }
            yield {"role": "assistant", "content": "", "tool_calls": [call]}
        elif kind in ("tool_result", "denied"):
            yield _tool_message(event, tools, dropped, where)
        else:
            kinds.add(str(kind)[:40])
    kinds -= {"start", "final"}
    if kinds:
        dropped.append(f"{EVENTS}: {', '.join(sorted(kinds))} (counts and order are in the evidence)")


def _tool_message(event: Mapping, tools: Mapping[str, str], dropped: list[str], where: str) -> dict[str, object]:
    identifier = str(event.get("id"))
    message: dict[str, object] = {
        "role": "tool",
        "content": _legal(_plain(event.get("output")), dropped, where),
        "tool_call_id": identifier,
        "function": tools.get(identifier, "unknown"),
    }
    if event.get("type") == "denied":
        message["error"] = {"type": "approval", "message": "denied: the tool was not granted"}
    elif event.get("ok") is not True:
        message["error"] = {"type": "unknown", "message": f"not ok, exit code {event.get('exit_code')}"}
    return message


def _output(trial: RetainedTrial, model: str, dropped: list[str]) -> dict[str, object]:
    """The final answer, or what a checker printed; bytes that are not text stay in the evidence."""
    answer = None
    for _, event in read_events(trial):
        if isinstance(event, Mapping) and event.get("type") == "final":
            answer = _plain(event.get("answer"))
    for name in (layout.STDOUT, layout.STDERR):
        data = trial.read(name)
        if not data:
            continue
        if name == layout.STDOUT and answer is None and is_text(data):
            answer = data.decode("utf-8", "replace")
        else:
            dropped.append(f"{name}: {len(data)} bytes")
    for name in trial.record["files"]:
        if name not in (layout.STDOUT, layout.STDERR, EVENTS, "task.json"):
            dropped.append(f"{name}: only its sha256 is here")
    text = _legal(answer or "", dropped, "output")
    choice = {"message": {"role": "assistant", "content": text, "source": "generate", "model": model}, "stop_reason": "stop"}
    return {"model": model, "choices": [choice], "completion": text}


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} [... {len(text) - _MAX_TEXT} more characters]"


def _legal(text: str, dropped: list[str], where: str) -> str:
    """``text`` cut to a length that the viewer opens; the rest is named as dropped."""
    if len(text) > _MAX_TEXT:
        dropped.append(f"{where}: {len(text) - _MAX_TEXT} characters beyond {_MAX_TEXT}")
    return _cut(text)
