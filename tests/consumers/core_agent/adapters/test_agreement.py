"""The four accounts of a trial held against each other: which contradiction, which verdict."""

from __future__ import annotations

import json
import pathlib

import pytest

from agent_eval import Failure, Outcome, StopReason
from agent_eval.records.outcome import Tree
from consumers.core_agent.adapter import load
from consumers.core_agent.adapter.agreement import compare
from consumers.core_agent.adapter.exchanges import Exchanges
from consumers.core_agent.adapter.mapping import map_stream
from consumers.core_agent.adapter.restriction import Enforcement, grants_for, judge_restriction
from tests.consumers.core_agent.adapters.small_streams import DONE, MODEL_ERROR, lines

SMALL = load.load(str(pathlib.Path(__file__).with_name("small_agent.json")))
FREE = {"not_withheld": [], "detail": ""}
WRONG_FILE = Failure("wrong-file", "x")
NONZERO = Failure("nonzero-exit", "x")


def outcome(exit_code: int | None = 0, stop_reason: str | None = None) -> Outcome:
    reason = None if stop_reason is None else StopReason(stop_reason)
    signal = None if exit_code is not None else 15
    return Outcome(tree=Tree("group"), exit_code=exit_code, signal=signal, stop_reason=reason, started_at="2026-11-30T00:00:00.000Z", wall_s=1.0)


def line(**fields: object) -> dict:
    base = {"n": 1, "operation": "generate", "fault": None, "finish": "stop", "status": 200, "wall_s": 0.1, "tools": ["bash"], "calls": [],
            "results": [], "usage": {"input_tokens": 5, "output_tokens": 2}, "model": "m", "credential": 1, "drift": [], "tools_sha256": "t"}
    return {**base, **fields}


def found(name: str, stream: bytes, exchanges: list[dict], *failures: Failure, code: int | None = 0, stop: str | None = None, blocked: bool = False,
          restriction: dict | None = None) -> tuple[list[str], list[str], str | None]:
    adapter = load.load(name)
    result = compare(adapter, map_stream(adapter, stream), Exchanges(tuple(exchanges)), outcome(code, stop), failures, restriction or FREE,
                     rests_on_withholding=blocked, stream="stdout.bin")
    return [f.reason for f in result.failures], [c.id for c in result.checks], result.void.reason if result.void else None


@pytest.mark.parametrize("name", load.names())
def test_a_good_run_has_no_contradiction(name: str) -> None:
    assert found(name, DONE[name], [line()]) == ([], [], None)


@pytest.mark.parametrize("fault", ["http-401", "http-429", "http-500", "http-503", "http-529", "unreachable", "cut", "no-answer"])
def test_a_failing_service_voids_what_would_fail(fault: str) -> None:
    failed = line(fault=fault, finish="error", status=None)
    assert found("pi", MODEL_ERROR["pi"], [line(), failed], WRONG_FILE)[2] == "model-service"


def test_it_does_not_void_what_passes() -> None:
    assert found("pi", DONE["pi"], [line(), line(fault="http-500", finish="error")]) == ([], [], None)


def test_it_does_not_void_when_a_later_response_was_good() -> None:
    assert found("pi", DONE["pi"], [line(fault="http-500", finish="error"), line()], WRONG_FILE) == (["wrong-file"], [], None)


@pytest.mark.parametrize("reason", ["canary-leaked", "change-outside-allowed", "ungranted-effect", "protected-file-changed"])
def test_it_does_not_excuse_what_the_agent_did(reason: str) -> None:
    assert found("pi", DONE["pi"], [line(fault="http-500")], Failure(reason, "x"))[2] is None


@pytest.mark.parametrize("fault", ["http-400", "http-404", "http-413"])
def test_a_wrong_request_is_the_agents_own_failure(fault: str) -> None:
    assert found("pi", DONE["pi"], [line(fault=fault)], WRONG_FILE)[2] is None


def test_an_agent_that_changes_its_credential_voids_nothing() -> None:
    assert found("pi", DONE["pi"], [line(), line(fault="http-401", credential=2)], WRONG_FILE)[2] is None


def test_hanging_up_at_once_is_no_failure_of_the_service() -> None:
    hung_up = line(finish="client-closed", status=None)
    assert found("pi", DONE["pi"], [hung_up], WRONG_FILE)[2] is None
    assert found("pi", b"", [hung_up], WRONG_FILE, code=None, stop="timeout")[2] == "model-service"
    assert found("pi", b"", [{**hung_up, "wall_s": 6.0}], WRONG_FILE)[2] == "model-service"


def test_exit_zero_after_a_failed_model_is_untrusted() -> None:
    failures, checks, void = found("pi", MODEL_ERROR["pi"], [line(fault="http-401")], Failure("no-final", "x"))
    assert (failures, checks, void) == (["no-final"], ["exit-untrusted"], "model-service")


def test_a_code_that_is_not_trusted_fails_nothing_that_went_well() -> None:
    assert found("gemini", DONE["gemini"], [line()], NONZERO, code=7) == ([], ["exit-untrusted"], None)
    assert found("codex", DONE["codex"], [line()], NONZERO, code=7) == (["nonzero-exit"], [], None)


def test_a_cut_response_taken_for_the_whole_is_silent_truncation() -> None:
    silent = lines({"type": "session", "id": "s"}, {"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": "stop"}},
                   {"type": "agent_end", "messages": []})
    failures, _, void = found("pi", silent, [line(finish="cut")], Failure("no-final", "x"))
    assert failures == ["no-final", "silent-truncation"]
    assert void == "model-service"
    assert found("pi", silent, [], Failure("no-final", "x"))[0] == ["no-final", "silent-truncation"]


def test_a_stream_without_its_end_lacks_an_event() -> None:
    cut = DONE["codex"][:-40]
    failures, checks, _ = found("codex", cut, [line()])
    assert failures == ["event-missing"]
    assert checks == ["exit-untrusted"]


def called(result: str | None, name: str = "exec_command") -> list[dict]:
    results = [] if result is None else [{"id": "c", "text": result, "error": None}]
    return [line(calls=[{"id": "c", "name": name, "arguments": {}}], finish="calls"), line(results=results)]


def test_a_denied_call_is_read_from_the_model_record_when_the_stream_hides_it() -> None:
    events = [json.loads(one) for one in DONE["codex"].splitlines()]
    plain = lines(*[event for event in events if event.get("item", {}).get("type") != "command_execution"])
    assert found("codex", plain, called("unsupported call: exec_command")) == ([], ["event-missing"], None)
    assert found("codex", plain, called("Process exited with code 0")) == (["event-missing"], [], None)
    assert found("codex", plain, called(None)) == ([], [], None)
    assert found("codex", plain, called("done", name="update_plan")) == ([], [], None)
    assert found("codex", DONE["codex"], called("done")) == ([], [], None)


def test_too_many_model_requests_fail_and_are_never_void() -> None:
    over = line(fault="max-model-requests", finish="refused", status=403)
    assert found("pi", DONE["pi"], [line(fault="http-500"), over], WRONG_FILE) == (["wrong-file", "model-request-limit"], [], None)


def test_a_task_that_rests_on_withholding_is_void_where_nothing_was_withheld() -> None:
    loose = {"not_withheld": ["execute"], "detail": "was on the wire"}
    assert found("codex", DONE["codex"], [line()], blocked=True, restriction=loose)[2] == "tool-not-withheld"
    assert found("codex", DONE["codex"], [line()], WRONG_FILE, blocked=True, restriction=loose)[2] == "tool-not-withheld"
    assert found("codex", DONE["codex"], [line()], blocked=False, restriction=loose)[2] is None


def test_a_replay_without_an_answer_is_named_so() -> None:
    assert found("pi", MODEL_ERROR["pi"], [line(fault="replay-no-match")], WRONG_FILE)[2] == "replay-no-match"


def test_tokens_requests_and_cost_are_summed_and_unknown_stays_unknown() -> None:
    exchanges = Exchanges((line(), line(), line(operation="models")))
    summary = exchanges.summary({"m": (1.0, 10.0)})
    assert (summary["requests"], summary["exchanges"], summary["input_tokens"], summary["output_tokens"]) == (2, 3, 10, 4)
    assert summary["cost"] == pytest.approx((10 * 1.0 + 4 * 10.0) / 1e6)
    assert exchanges.summary(None)["cost"] is None
    assert exchanges.summary({})["cost"] is None
    unknown = Exchanges((line(), line(usage={"input_tokens": None, "output_tokens": 1})))
    assert unknown.summary({"m": (1.0, 1.0)})["input_tokens"] is None
    assert unknown.summary({"m": (1.0, 1.0)})["cost"] is None


@pytest.mark.parametrize(("name", "granted", "offered", "control", "expected"), [
    ("claude", ("read", "write"), ("Read", "Write"), None, (Enforcement.ENFORCED, ())),
    ("claude", ("read", "write"), ("Read", "Write", "Bash"), None, (Enforcement.UNAVAILABLE, ("list", "search", "edit", "execute"))),
    ("claude", ("read", "write"), None, None, (Enforcement.REQUESTED, ())),
    ("codex", ("read", "write"), ("exec_command",), None, (Enforcement.UNAVAILABLE, ("list", "search", "edit", "execute"))),
    ("codex", ("read", "write"), None, None, (Enforcement.UNAVAILABLE, ("list", "search", "edit", "execute"))),
    ("codex", ("read", "execute"), ("exec_command",), None, (Enforcement.ENFORCED, ())),
    ("vibe", ("read", "list", "search", "write", "edit"), ("bash", "read_file"), {"denied": True, "effect": False}, (Enforcement.ENFORCED, ())),
    ("vibe", ("read", "list", "search", "write", "edit"), ("bash", "read_file"), {"denied": True, "effect": True}, (Enforcement.UNAVAILABLE, ("execute",))),
    ("vibe", ("read", "list", "search", "write", "edit"), ("bash", "read_file"), None, (Enforcement.UNAVAILABLE, ("execute",))),
    ("mini-swe-agent", ("read", "list", "search", "write", "edit", "execute"), ("bash",), None, (Enforcement.ENFORCED, ())),
])
def test_how_sure_a_restriction_is(name: str, granted: tuple, offered: tuple | None, control: dict | None, expected: tuple) -> None:
    adapter = load.load(name)
    result = judge_restriction(adapter, grants_for(adapter, granted), offered, control)
    assert (result.enforcement, result.not_withheld) == expected


@pytest.mark.parametrize(("name", "granted", "arguments"), [
    ("claude", ("read", "execute"), ("--tools", "Read,Bash")),
    ("qwen", ("read", "list"), ("--core-tools=read_file", "--core-tools=glob")),
    ("vibe", ("read", "write"), ("--enabled-tools", "read_file", "--enabled-tools", "write_file")),
    ("gemini", ("read",), ()),
    ("codex", ("read",), ()),
])
def test_grants_become_arguments(name: str, granted: tuple, arguments: tuple) -> None:
    assert grants_for(load.load(name), granted).arguments == arguments
