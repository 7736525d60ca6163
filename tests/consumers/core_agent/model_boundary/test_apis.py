"""The four model APIs: what is written is read back the same, streamed and not, and requests are understood."""

from __future__ import annotations

import json

import pytest

from consumers.core_agent.model_boundary.exchange import Call, Finish, Reply, Request, Tool, ToolResult, Usage
from consumers.core_agent.model_boundary.record import ReplyReader
from consumers.core_agent.model_boundary.routes import APIS, Route, route

ASKED = Request("m", True, "", (), (), (), ())
REPLIES = [
    Reply("hello", usage=Usage(10, 2)),
    Reply("look – \"at\" this\n", (Call("call_0", "bash", {"command": "ls 'a b'"}),), Finish.CALLS, Usage(10, 2)),
    Reply("", (Call("call_0", "read", {"path": "a"}), Call("call_1", "write", {"path": "b", "content": "ü"})), Finish.CALLS, Usage(1, 1)),
]


def normal(api: str, reply: Reply) -> Reply:
    """Gemini has no ids."""
    calls = tuple(Call("" if api == "gemini" else call.id, call.name, call.arguments) for call in reply.calls)
    return Reply(reply.text, calls, reply.finish, reply.usage, reply.complete)


@pytest.mark.parametrize("api", sorted(APIS))
@pytest.mark.parametrize("reply", REPLIES)
def test_a_streamed_reply_is_read_back_however_it_is_cut_into_pieces(api: str, reply: Reply) -> None:
    data = b"".join(APIS[api].write_events(reply, ASKED))
    for size in (1, 7, len(data)):
        reader = ReplyReader(api, "text/event-stream; charset=utf-8")
        for start in range(0, len(data), size):
            reader.feed(data[start:start + size])
        assert reader.finish() == normal(api, reply)


@pytest.mark.parametrize("api", sorted(APIS))
@pytest.mark.parametrize("reply", REPLIES)
def test_a_whole_reply_is_read_back(api: str, reply: Reply) -> None:
    reader = ReplyReader(api, "application/json")
    reader.feed(json.dumps(APIS[api].write_body(reply, ASKED)).encode())
    assert reader.finish() == normal(api, reply)


@pytest.mark.parametrize("api", sorted(APIS))
def test_a_stream_without_its_end_marker_is_cut(api: str) -> None:
    events = APIS[api].write_events(REPLIES[1], ASKED)
    reader = ReplyReader(api, "text/event-stream")
    reader.feed(events[0])
    assert reader.finish().finish is Finish.CUT
    assert ReplyReader(api, "text/event-stream").finish().complete is False
    assert ReplyReader(api, "application/json").finish().complete is False


@pytest.mark.parametrize("api", sorted(APIS))
def test_errors_and_rubbish_are_no_complete_replies(api: str) -> None:
    for body in (json.dumps(APIS[api].error_body(429, "slow down")).encode(), b"<html>", b"[]", b"null", b"\xff", b'{"choices": 3, "output": 4}'):
        reader = ReplyReader(api, "application/json")
        reader.feed(body)
        reply = reader.finish()
        assert reply.text == ""
        assert reply.calls == ()
    for line in (b"data: {\n", b"data: [1]\n", b"data: null\n", b"event: x\n", b": hi\n"):
        reader = ReplyReader(api, "text/event-stream")
        reader.feed(line)
        assert reader.finish().finish is Finish.CUT


BODIES = {
    "openai-chat": {
        "model": "m", "stream": True, "messages": [
            {"role": "system", "content": "sys"}, {"role": "user", "content": [{"type": "text", "text": "do it"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{\"a\": 1}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "out"}],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]},
    "openai-responses": {
        "model": "m", "stream": True, "instructions": "sys", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do it"}]},
            {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{\"a\": 1}"},
            {"type": "function_call_output", "call_id": "c", "output": "out"}],
        "tools": [{"type": "function", "name": "bash", "parameters": {"type": "object"}}]},
    "anthropic": {
        "model": "m", "stream": True, "system": [{"type": "text", "text": "sys"}], "messages": [
            {"role": "user", "content": "do it"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "out"}], "is_error": False}]}],
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}]},
    "gemini": {
        "systemInstruction": {"parts": [{"text": "sys"}]}, "contents": [
            {"role": "user", "parts": [{"text": "do it"}]}, {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "bash", "args": {"a": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "bash", "response": {"output": "out"}}}]}],
        "tools": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": {"type": "object"}}]}]},
}


@pytest.mark.parametrize("api", sorted(APIS))
def test_a_request_is_the_conversation_so_far(api: str) -> None:
    asked = APIS[api].read_request(BODIES[api], "m")
    assert asked.model == "m"
    assert asked.system == "sys"
    assert asked.user_text == ("do it",)
    assert asked.tools == (Tool("bash", {"type": "object"}),)
    assert asked.calls == (Call("c", "bash", {"a": 1}),)
    result, = asked.results
    assert (result.id, result.text) == ("c", "out")
    assert result.error in (None, False)


@pytest.mark.parametrize("api", sorted(APIS))
def test_a_request_of_any_shape_is_survived(api: str) -> None:
    for body in ({}, {"messages": 3, "input": 4, "contents": "x", "tools": {}}, {"messages": [1, None], "input": [None], "contents": [[]], "tools": [1]},
                 {"messages": [{"role": "tool"}], "tools": [{}], "contents": [{"parts": [{}]}]}):
        assert APIS[api].read_request(body, "m").calls == ()


def test_namespaced_and_hosted_tools_are_named() -> None:
    tools = [{"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]}, {"type": "web_search"}]
    asked = APIS["openai-responses"].read_request({"tools": tools, "input": "x"}, "")
    assert [tool.name for tool in asked.tools] == ["agents.spawn", "web_search"]


def test_a_failed_gemini_result_is_an_error() -> None:
    body = {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"error": "no such tool"}}}]}]}
    assert APIS["gemini"].read_request(body, "m").results == (ToolResult("bash", "no such tool", True),)


@pytest.mark.parametrize(("method", "path", "expected"), [
    ("POST", "/v1/chat/completions", Route("openai-chat", "generate")),
    ("POST", "/v1/responses", Route("openai-responses", "generate")),
    ("POST", "/v1/messages", Route("anthropic", "generate")),
    ("POST", "/v1/messages/count_tokens", Route("anthropic", "count")),
    ("POST", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", Route("gemini", "generate", "gemini-2.5-flash", True)),
    ("POST", "/v1beta/models/x:countTokens", Route("gemini", "count", "x")),
    ("GET", "/v1/models", Route("openai-chat", "models")),
    ("HEAD", "/", Route("openai-chat", "other")),
    ("POST", "/v1/embeddings", Route("openai-chat", "other")),
])
def test_paths_and_what_they_ask_for(method: str, path: str, expected: Route) -> None:
    assert route(method, path, "openai-chat") == expected
