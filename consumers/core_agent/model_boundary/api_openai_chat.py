"""OpenAI chat completions: reading requests and responses, writing scripted ones.

Source: the "Chat" and "Chat streaming" pages of OpenAI's API reference.
"""

from __future__ import annotations

import json

from .exchange import (
    Call,
    Collected,
    Finish,
    Reply,
    Request,
    Tool,
    ToolResult,
    dicts,
    parsed,
    text_of,
    word,
)

_FINISH = {"stop": Finish.STOP, "tool_calls": Finish.CALLS, "length": Finish.LENGTH, "content_filter": Finish.FILTERED}
_WRITTEN = {Finish.CALLS: "tool_calls", Finish.LENGTH: "length"}


def read_request(body: dict[str, object], _model: str) -> Request:
    """The conversation in a request body."""
    system, user, calls, results = [], [], [], []
    for message in dicts(body.get("messages")):
        role = message.get("role")
        if role in ("system", "developer"):
            system.append(text_of(message.get("content")))
        elif role == "user":
            user.append(text_of(message.get("content")))
        elif role == "tool":
            results.append(ToolResult(word(message.get("tool_call_id")), text_of(message.get("content"))))
        for call in dicts(message.get("tool_calls")):
            function = call.get("function")
            if isinstance(function, dict):
                arguments = parsed(word(function.get("arguments")))
                calls.append(Call(word(call.get("id")), word(function.get("name")), arguments))
    tools = []
    for tool in dicts(body.get("tools")):
        function = tool.get("function")
        if isinstance(function, dict):
            tools.append(Tool(word(function.get("name")), function.get("parameters") or {}))
    return Request(word(body.get("model")), body.get("stream") is True, "\n".join(system), tuple(user),
                   tuple(tools), tuple(calls), tuple(results))


def read_event(into: Collected, event: dict[str, object]) -> None:
    """Add one streamed chunk."""
    if "error" in event:
        into.failed = True
    for choice in dicts(event.get("choices"))[:1]:
        delta = choice.get("delta")
        _message(into, delta if isinstance(delta, dict) else {})
        _finish(into, choice)
    _usage(into, event)


def read_body(into: Collected, body: dict[str, object]) -> None:
    """Add a response that was not streamed."""
    for choice in dicts(body.get("choices"))[:1]:
        message = choice.get("message")
        _message(into, message if isinstance(message, dict) else {})
        _finish(into, choice)
    _usage(into, body)
    into.ended = "choices" in body
    into.failed = "error" in body and "choices" not in body


def _message(into: Collected, message: dict[str, object]) -> None:
    into.text.append(text_of(message.get("content")))
    for position, call in enumerate(dicts(message.get("tool_calls"))):
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        into.call(call.get("index", position), name=word(function.get("name")), identity=word(call.get("id")),
                  piece=word(function.get("arguments")))


def _finish(into: Collected, choice: dict[str, object]) -> None:
    reason = choice.get("finish_reason")
    if isinstance(reason, str):
        into.finish = _FINISH.get(reason, Finish.STOP)
        # Some servers never send "[DONE]"; the finish reason is what clients go by.
        into.ended = True


def _usage(into: Collected, body: dict[str, object]) -> None:
    usage = body.get("usage")
    if isinstance(usage, dict):
        into.tokens(usage.get("prompt_tokens"), usage.get("completion_tokens"))


def _calls(reply: Reply, *, indexed: bool) -> list[dict[str, object]]:
    return [
        {**({"index": index} if indexed else {}), "id": call.id, "type": "function",
         "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for index, call in enumerate(reply.calls)
    ]


def _count(reply: Reply) -> dict[str, int]:
    given, made = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def write_body(reply: Reply, request: Request) -> dict[str, object]:
    """A response that is not streamed."""
    message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = _calls(reply, indexed=False)
    choice = {"index": 0, "message": message, "finish_reason": _WRITTEN.get(reply.finish, "stop")}
    return {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": request.model,
            "choices": [choice], "usage": _count(reply)}


def write_events(reply: Reply, request: Request) -> list[bytes]:
    """The chunks of a streamed response."""
    base = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": request.model}

    def chunk(delta: dict[str, object], reason: str | None = None, **more: object) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return b"data: " + json.dumps({**base, "choices": choices, **more}).encode() + b"\n\n"

    chunks = [chunk({"role": "assistant", "content": ""})]
    if reply.text:
        chunks.append(chunk({"content": reply.text}))
    if reply.calls:
        chunks.append(chunk({"tool_calls": _calls(reply, indexed=True)}))
    chunks.append(chunk({}, _WRITTEN.get(reply.finish, "stop"), usage=_count(reply)))
    chunks.append(b"data: [DONE]\n\n")
    return chunks


def error_body(status: int, message: str) -> dict[str, object]:
    """The API's form of an error."""
    kinds = {401: "authentication_error", 429: "rate_limit_error", 400: "invalid_request_error"}
    return {"error": {"message": message, "type": kinds.get(status, "server_error"), "code": status, "param": None}}
