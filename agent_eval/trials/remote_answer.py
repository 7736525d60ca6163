"""Reading what an engine gives back for a trial, believing none of it.

Owns the check that an answer is that of exactly the trial that was sent out, that everything in it has the
shape and the ranges of a trial's run, and that its files are those it names, within the trial's bounds.
It records nothing and knows no engine.
"""

from __future__ import annotations

from typing import Any

from agent_eval.evidence import layout
from agent_eval.records import shapes, strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.outcome import ReportState, StopReason
from agent_eval.records.plan import Limits, PlannedCase
from agent_eval.trials.execution import Execution
from agent_eval.trials.remote_call import RemoteResult, RemoteTrial, too_large

MAX_ANSWER_BYTES = layout.MAX_RECORD_BYTES // 2
"""Of a run as JSON: its record, with the judgment, must stay one that can be read back."""

RESERVED_KEYS = frozenset(
    ("case_id", "number", "request", "identity", "outcome", "scratch", "files", "judgment")
    + ("interrupted", "recording", "worker_lost", "credential_shapes", "source_trial_sha256")
)
"""Keys of ``trial.json`` that are the harness's own: what a worker says of its trial may not set them."""

Files = list[tuple[str, bytes]]

_MAX_NAME_CHARS = 200
_SHA256 = shapes.text("[0-9a-f]{64}")
_MAX_COUNT = (1 << 63) - 1
_MAX_DURATION_S = 1e9
_TEXT, _COUNT, _DURATION = shapes.text(), shapes.whole(0, _MAX_COUNT), shapes.number(0.0, _MAX_DURATION_S)
_MODE = shapes.text("[0-7]{4}")
_STREAM = {
    "seen_bytes": _COUNT,
    "kept_bytes": _COUNT,
    "truncated": shapes.flag,
    "sha256": shapes.optional(_SHA256),
    "write_error": shapes.optional(_TEXT),
}
_REPORT = {
    "state": shapes.one_of(*(state.value for state in ReportState)),
    "reason": shapes.optional(_TEXT),
    "kept_bytes": _COUNT,
    "size_bytes": shapes.optional(_COUNT),
    "mode": shapes.optional(_MODE),
    "sha256": shapes.optional(_SHA256),
    "write_error": shapes.optional(_TEXT),
}
_UNREAPED = {"pid": shapes.whole(1, _MAX_COUNT), "name": shapes.optional(_TEXT), "wchan": shapes.optional(_TEXT)}
_TREE = {
    "containment": shapes.one_of("subreaper", "group"),
    "leaked": _COUNT,
    "escaped": _COUNT,
    "killed": _COUNT,
    "unreaped": shapes.array(shapes.record(_UNREAPED)),
}
_START_ERROR = {"stage": shapes.one_of("cwd", "argv", "env", "exec", "fork", "setup"), "message": _TEXT, "errno": shapes.optional(_COUNT)}
_OUTCOME = {
    "tree": shapes.record(_TREE),
    "started_at": shapes.text(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z"),
    "wall_s": _DURATION,
    "suspended_s": _DURATION,
    "exit_code": shapes.optional(shapes.whole(0, 255)),
    "signal": shapes.optional(shapes.whole(1, 64)),
    "core_dumped": shapes.flag,
    "status_lost": shapes.flag,
    "start_error": shapes.optional(shapes.record(_START_ERROR)),
    "stop_reason": shapes.one_of(None, *(reason.value for reason in StopReason)),
    "stop_steps": shapes.array(shapes.record({"signal": _TEXT, "at_s": _DURATION})),
    "cpu_user_s": shapes.optional(_DURATION),
    "cpu_system_s": shapes.optional(_DURATION),
    "max_rss_bytes": shapes.optional(_COUNT),
    "stdout": shapes.record(_STREAM),
    "stderr": shapes.record(_STREAM),
    "report": shapes.record(_REPORT),
}
_REQUEST = shapes.record(
    {
        "argv": shapes.array(_TEXT),
        "cwd": _TEXT,
        "env_names": shapes.array(_TEXT),
        "limits": shapes.record({"timeout_s": _DURATION, "max_output_bytes": _COUNT, "grace_s": _DURATION}),
    }
)
_LOOK = shapes.array(
    shapes.record(
        {"path": _TEXT, "role": _TEXT, "type": shapes.one_of("file", "missing", "other")},
        {"size_bytes": _COUNT, "mode": _MODE, "sha256": _SHA256, "link_target": _TEXT},
    )
)
_IDENTITY = shapes.record(
    {"before": _LOOK, "after": _LOOK, "reused": shapes.array(_TEXT)}, {"reused_after": shapes.array(_TEXT)}
)
ANSWERS = shapes.record({"case_id": _TEXT, "number": shapes.whole(1), "plan_sha256": _SHA256, "nonce": _TEXT})
"""Which request an answer is to; the request has it, and the answer repeats it."""

_ANSWER = shapes.record(
    {
        "answers": ANSWERS,
        "files": shapes.mapping(_TEXT, _SHA256),
        "request": shapes.mapping(_TEXT, shapes.anything),
        "outcome": shapes.optional(shapes.record(_OUTCOME)),
        "identity": shapes.mapping(_TEXT, shapes.anything),
        "record": shapes.mapping(_TEXT, shapes.anything),
        "interrupted": shapes.flag,
        "errors": shapes.array(_TEXT),
        "error_numbers": shapes.array(_COUNT),
        "held": shapes.array(_COUNT),
        "tampered": shapes.optional(shapes.text("(?s).+")),
    }
)


class NoAnswer(Exception):
    """Why what came back is not the trial that was sent out, in words."""


def read_answer(result: object, trial: RemoteTrial, max_output_bytes: int) -> tuple[Execution, Files]:
    """The run of exactly ``trial`` and its files. Raises :class:`NoAnswer` for everything else.

    ``max_output_bytes`` is the run's cap on captured output and report together.
    """
    if type(result) is not RemoteResult:
        raise NoAnswer(f"a {type(result).__name__} came back")
    try:
        execution, files, refusal = result.execution, result.files, result.refusal
    except AttributeError as error:
        raise NoAnswer(f"half a result came back ({error})") from None
    if refusal is not None:
        raise NoAnswer(refusal if type(refusal) is str else "the worker refused, and not in words")
    if type(execution) is not bytes:
        raise NoAnswer(f"what came back is no trial (a {type(execution).__name__} instead of bytes)")
    try:
        answer: Any = strict_json.parse_object(execution, max_bytes=MAX_ANSWER_BYTES)
        _check(answer, trial)
        _check_outcome(answer["outcome"], max_output_bytes)
    except (strict_json.JsonError, shapes.ShapeError) as error:
        raise NoAnswer(f"what came back is no trial ({error})") from None
    return Execution.from_json(answer), _checked_files(files, answer, trial)


def files_bound(limits: Limits, case: PlannedCase) -> int:
    """How many bytes the files of one trial of ``case`` may have together."""
    return limits.max_output_bytes + case.files_bytes


def _check(answer: dict[str, Any], trial: RemoteTrial) -> None:
    _ANSWER(answer, "it")
    mine = {"case_id": trial.case_id, "number": trial.number, "plan_sha256": trial.plan_sha256, "nonce": trial.nonce}
    if answer["answers"] != mine:
        theirs = answer["answers"]
        raise NoAnswer(f"the answer to another request came back: {ascii(theirs['case_id'])[:_MAX_NAME_CHARS]}, trial {theirs['number']}")
    if answer["request"]:
        _REQUEST(answer["request"], "it.request")
    if answer["identity"]:
        _IDENTITY(answer["identity"], "it.identity")
    if len(answer["held"]) != 2:
        raise shapes.ShapeError("it.held has not two numbers")
    if reserved := sorted(RESERVED_KEYS & answer["record"].keys()):
        raise shapes.ShapeError(f"it.record sets {', '.join(reserved)}, which a worker may not")


def _check_outcome(outcome: dict[str, Any] | None, max_output_bytes: int) -> None:
    if outcome is None:
        return
    ended = [key for key in ("exit_code", "signal") if outcome[key] is not None]
    excused = outcome["start_error"] is not None or outcome["status_lost"] or outcome["stop_reason"] == StopReason.SUPERVISOR_LOST
    if len(ended) != 1 and not (excused and not ended):
        raise shapes.ShapeError("it.outcome has neither an exit code nor a signal" if not ended else "it.outcome has an exit code and a signal")
    parts = [outcome[name] for name in ("stdout", "stderr", "report")]
    if sum(part["kept_bytes"] for part in parts) > max_output_bytes:
        raise shapes.ShapeError(f"it.outcome has kept more than the {max_output_bytes} bytes that the limits allow")
    if any(stream["kept_bytes"] > stream["seen_bytes"] for stream in parts[:2]):
        raise shapes.ShapeError("it.outcome has kept more of a stream than it has seen")


def _checked_files(files: object, answer: dict[str, Any], trial: RemoteTrial) -> Files:
    """The files, once they are known to be those that the answer names: no more, no fewer, no others, and not too large."""
    digests: dict[str, str] = answer["files"]
    pairs: Any = files
    if type(files) is not tuple or not all(type(pair) is tuple and [type(part) for part in pair] == [str, bytes] for pair in pairs):
        raise NoAnswer("what came back has files that are not pairs of a name and bytes")
    names = {name for name, _ in pairs}
    unsafe = next((name for name in names if not _is_name_of_trial(name, names)), None)
    if unsafe is not None:
        raise NoAnswer(f"what came back has a file that no trial has ({ascii(unsafe)[:_MAX_NAME_CHARS]})")
    total_bytes = sum(len(data) for _, data in pairs)
    if total_bytes > trial.files_bytes:
        raise NoAnswer(too_large(total_bytes, trial.files_bytes))
    if len(names) != len(pairs) or names != digests.keys():
        raise NoAnswer("what came back has other files than it names")
    for name, data in pairs:
        if sha256_bytes(data) != digests[name]:
            raise NoAnswer(f"a file came back changed ({name})")
    _check_streams(answer["outcome"], digests)
    return list(pairs)


def _check_streams(outcome: dict[str, Any] | None, digests: dict[str, str]) -> None:
    for name, part in ((layout.STDOUT, "stdout"), (layout.STDERR, "stderr"), (layout.OWNER_REPORT, "report")):
        if outcome is not None and name in digests and outcome[part]["sha256"] not in (None, digests[name]):
            raise NoAnswer(f"what came back is no trial ({name} is not the {part} of its outcome)")


def _is_name_of_trial(name: str, names: set[str]) -> bool:
    """Whether ``name`` may be a file of a trial's folder beside ``names``: in it or in one folder below, and not a name of the harness's own."""
    folder, _, own = name.rpartition("/")
    if not layout.is_safe_path(name) or "/" in folder or len(name) > _MAX_NAME_CHARS or name == layout.TRIAL_RECORD or folder in names:
        return False
    return folder != layout.FILES or len(own) == 64
