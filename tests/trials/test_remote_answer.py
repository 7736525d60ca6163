"""An answer of a worker with each of its parts in turn missing, of another type, out of range, or not its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_eval.records.digests import sha256_bytes
from agent_eval.records.outcome import Outcome, ReportRecord, ReportState, StartError, StopReason, StopStep, StreamRecord, Tree, Unreaped
from agent_eval.trials.consumer import TrialResult
from agent_eval.trials.execution import Execution
from agent_eval.trials.remote_answer import MAX_ANSWER_BYTES, RESERVED_KEYS, NoAnswer, read_answer
from agent_eval.trials.remote_call import RemoteResult, RemoteTrial

TRIAL = RemoteTrial(("check",), "/", None, "0" * 64, "case", 2, "mark", 31.0, 4096, "nonce")
ANSWERS = {"case_id": "case", "number": 2, "plan_sha256": "0" * 64, "nonce": "nonce"}
OUT, REPORT = b"hello\n", b'{"passed": true}'
FILES = (("stdout.bin", OUT), ("owner-report.json", REPORT), ("checks/probe.py", b""), (f"files/{sha256_bytes(b'x')}", b"x"))
LOOK = [
    {"path": "/x", "role": "program", "type": "file", "size_bytes": 1, "mode": "0755", "sha256": "a" * 64, "link_target": "y"},
    {"path": "/z", "role": "part", "type": "missing"},
]


def outcome(**more: Any) -> Outcome:
    fields: dict[str, Any] = {
        "tree": Tree("subreaper", 1, 1, 1, (Unreaped(5, "x", None),)),
        "started_at": "2026-11-30T10:00:00.123Z",
        "wall_s": 0.5,
        "exit_code": 0,
        "stop_steps": (StopStep("SIGTERM", 0.25),),
        "cpu_user_s": 0.1,
        "max_rss_bytes": 5,
        "stdout": StreamRecord(6, 6, False, sha256_bytes(OUT)),
        "report": ReportRecord(ReportState.KEPT, None, len(REPORT), len(REPORT), "0644", sha256_bytes(REPORT)),
    }
    return Outcome(**{**fields, **more})


def answer(ended: Outcome | None = None) -> dict[str, Any]:
    request = {"argv": ["x"], "cwd": "/", "env_names": ["A"], "limits": {"timeout_s": 1, "max_output_bytes": 1024, "grace_s": 0.5}}
    result = TrialResult(ended or outcome(), {"before": LOOK, "after": LOOK, "reused": ["/x"], "reused_after": []}, {"own": [1]})
    digests = {name: sha256_bytes(data) for name, data in FILES}
    return {**Execution(request, result, held=(3, 4)).to_json(), "answers": ANSWERS, "files": digests}


def sent(value: object, files: object = FILES) -> RemoteResult:
    return RemoteResult(json.dumps(value).encode(), files)  # type: ignore[arg-type]


def refusal(result: object, trial: RemoteTrial = TRIAL) -> str:
    with pytest.raises(NoAnswer) as caught:
        read_answer(result, trial, 1024)
    text = str(caught.value)
    assert text.isascii() and len(text) < 2000
    return text


def test_an_honest_answer_is_taken_as_it_is():
    execution, files = read_answer(sent(answer()), TRIAL, 1024)
    assert execution.result.outcome == outcome()
    assert execution.result.record == {"own": [1]}
    assert execution.held == (3, 4)
    assert tuple(files) == FILES


@pytest.mark.parametrize(
    "ended",
    [
        outcome(exit_code=None, signal=9, stop_reason=StopReason.TIMEOUT),
        outcome(exit_code=None, status_lost=True),
        outcome(exit_code=None, start_error=StartError("exec", "no", 2)),
        outcome(exit_code=None, stop_reason=StopReason.SUPERVISOR_LOST),
    ],
)
def test_every_way_in_which_a_trial_ends(ended):
    execution, _ = read_answer(sent(answer(ended)), TRIAL, 1024)
    assert execution.result.outcome == ended


def test_a_trial_without_a_process_or_without_a_look():
    execution, _ = read_answer(sent({**answer(), "outcome": None, "identity": {}, "request": {}}), TRIAL, 1024)
    assert execution.result.outcome is None


def places(value: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every member and item of a value, but for what is a consumer's own."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        if key != "record":
            yield from places(item, (*way, key))


def changed(way: tuple[Any, ...], change: Any) -> dict[str, Any]:
    value = copy.deepcopy(answer())
    *before, last = way
    inside: Any = value
    for key in before:
        inside = inside[key]
    change(inside, last)
    return value


def test_every_part_must_be_there_and_of_its_type():
    free = {"size_bytes", "mode", "sha256", "link_target"}  # of a file that was looked at; and one look may be new
    ways = list(places(answer()))
    assert len(ways) > 70
    for way in ways:
        if not (way[0] == "identity" and way[-1] in free | {"reused_after"}) and not isinstance(way[-1], int):
            assert "is no trial" in refusal(sent(changed(way, lambda inside, key: inside.pop(key)))) or way[0] == "files", way
        for wrong in ({"x": 1}, 2.5, -1, True) if way[0] != "record" else (5, [], None):
            value = changed(way, lambda inside, key, wrong=wrong: inside.__setitem__(key, wrong))
            if value == answer() or _takes(way, wrong):
                continue
            assert refusal(sent(value)), (way, wrong)


def _takes(way: tuple[Any, ...], value: object) -> bool:
    """Whether a place takes ``value`` too."""
    flags = ("core_dumped", "status_lost", "truncated", "interrupted")
    durations = ("wall_s", "suspended_s", "at_s", "cpu_user_s", "cpu_system_s", "timeout_s", "grace_s")
    return (value is True and way[-1] in flags) or (value == 2.5 and way[-1] in durations)


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("outcome", "exit_code"), 256), (("outcome", "signal"), 9), (("outcome", "exit_code"), None), (("outcome", "stop_reason"), "bored"),
        (("outcome", "started_at"), "yesterday"), (("outcome", "stdout", "kept_bytes"), 7), (("outcome", "stdout", "seen_bytes"), 1025),
        (("outcome", "report", "kept_bytes"), 1025), (("outcome", "report", "mode"), "rwx"), (("outcome", "tree", "containment"), "none"),
        (("outcome", "wall_s"), 1e308), (("outcome", "cpu_user_s"), 1e10), (("outcome", "max_rss_bytes"), 1 << 63), (("held", 1), 10**63), (("tampered",), ""),
        (("outcome", "surplus"), 1), (("identity", "after", 0, "surplus"), 1), (("identity", "surplus"), []), (("held",), [1]), (("held",), [1, 2, 3]),
        (("outcome", "stdout", "sha256"), "b" * 64), (("files", "stdout.bin"), "b" * 64), (("surplus",), 1),
        *((("record", key), None) for key in sorted(RESERVED_KEYS)),
    ],
)  # fmt: skip
def test_ranges_and_what_contradicts_itself(way, value):
    if way == ("outcome", "stdout", "seen_bytes"):
        ended = outcome(stdout=StreamRecord(2000, 1025, True, sha256_bytes(OUT)))
        assert "more than the 1024 bytes" in refusal(sent(answer(ended)))
        return
    assert refusal(sent(changed(way, lambda inside, key: inside.__setitem__(key, value))))


@pytest.mark.parametrize(("key", "value"), [("case_id", "other"), ("number", 3), ("plan_sha256", "1" * 64), ("nonce", "earlier")])
def test_the_answer_to_another_request(key, value):
    assert "another request" in refusal(sent({**answer(), "answers": {**ANSWERS, key: value}}))


@pytest.mark.parametrize("text", [b"", b"[]", b"nonsense", b'{"a":1,"a":2}', b'{"a":NaN}', b"[" * 5000, b" " * (MAX_ANSWER_BYTES + 1)])
def test_bytes_that_are_no_answer(text):
    assert "is no trial" in refusal(RemoteResult(text, FILES))


@pytest.mark.parametrize(
    "files",
    [
        None, (), list(FILES), FILES[:-1], (*FILES, FILES[0]), (*FILES, ("new", b"")), (*FILES[:-1], (FILES[-1][0], b"y")),
        tuple((name, bytearray(data)) for name, data in FILES), tuple((name, data, 1) for name, data in FILES), (*FILES, (b"name", b"")),
        tuple(map(list, FILES)), (*FILES, ("new", bytes(5000))),
    ],
)  # fmt: skip
def test_files_that_are_not_those_of_the_answer(files):
    assert refusal(sent(answer(), files))


@pytest.mark.parametrize(
    "name",
    ["trial.json", "../up", "/etc/passwd", "a/b/c", "a/../b", "", ".", "a\nb", "nul\0", "checks", "files", "files/short", "x" * 300, "é", "stdout.bin/x", "\ud800"],
)
def test_names_that_no_trial_has(name):
    value = {**answer(), "files": {**answer()["files"], name: sha256_bytes(b"")}}
    assert refusal(sent(value, (*FILES, (name, b""))))


def test_what_is_not_a_result():
    class Lookalike(RemoteResult):
        pass

    honest = sent(answer())
    for other in (None, "x", answer(), Lookalike(honest.execution, honest.files), object.__new__(RemoteResult), RemoteResult("{}", FILES), RemoteResult(refusal=5)):  # type: ignore[arg-type]
        assert refusal(other)
    assert refusal(RemoteResult(refusal="the worker is full")) == "the worker is full"
