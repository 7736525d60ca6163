"""Anthropic messages: reading requests and responses, writing scripted ones.

Source: the "Messages" and "Streaming messages" pages of Anthropic's API reference.
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
    text_of,
    word,
)

_FINISH = {"end_turn": Finish.STOP, "stop_sequence": Finish.STOP, "tool_use": Finish.CALLS,
           "max_tokens": Finish.LENGTH, "refusal": Finish.FILTERED}


def read_request(body: dict[str, object], _model: str) -> Request:
    """The conversation in a request body."""
    user, calls, results = [], [], []
    for message in dicts(body.get("messages")):
        content = message.get("content")
        if message.get("role") == "user":
            text = content if isinstance(content, str) else "".join(
                word(block.get("text")) for block in dicts(content) if block.get("type") == "text"
            )
            if text:
                user.append(text)
        for block in dicts(content):
            if block.get("type") == "tool_use":
                calls.append(Call(word(block.get("id")), word(block.get("name")), block.get("input")))
            elif block.get("type") == "tool_result":
                failed = block.get("is_error")
                text = text_of(block.get("content"))
                results.append(ToolResult(word(block.get("tool_use_id")), text, failed if isinstance(failed, bool) else None))
    tools = tuple(Tool(word(tool.get("name")), tool.get("input_schema") or {}) for tool in dicts(body.get("tools")))
    return Request(word(body.get("model")), body.get("stream") is True, text_of(body.get("system")), tuple(user),
                   tools, tuple(calls), tuple(results))


def read_event(into: Collected, event: dict[str, object]) -> None:
    """Add one streamed event."""
    kind = event.get("type")
    key = event.get("index")
    if kind == "message_start" and isinstance(event.get("message"), dict):
        _usage(into, event["message"].get("usage"))
    elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
        block = event["content_block"]
        if block.get("type") == "tool_use":
            into.call(key, name=word(block.get("name")), identity=word(block.get("id")))
            if block.get("input"):
                into.call(key, piece=json.dumps(block["input"]))
        elif block.get("type") == "text":
            into.text.append(word(block.get("text")))
    elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
        delta = event["delta"]
        if delta.get("type") == "text_delta":
            into.text.append(word(delta.get("text")))
        elif delta.get("type") == "input_json_delta":
            into.call(key, piece=word(delta.get("partial_json")))
    elif kind == "message_delta" and isinstance(event.get("delta"), dict):
        into.finish = _FINISH.get(word(event["delta"].get("stop_reason")), into.finish)
        _usage(into, event.get("usage"))
    elif kind == "message_stop":
        into.ended = True
    elif kind == "error":
        into.failed = True


def read_body(into: Collected, body: dict[str, object]) -> None:
    """Add a response that was not streamed."""
    for position, block in enumerate(dicts(body.get("content"))):
        if block.get("type") == "text":
            into.text.append(word(block.get("text")))
        elif block.get("type") == "tool_use":
            into.call(position, name=word(block.get("name")), identity=word(block.get("id")), piece=json.dumps(block.get("input")))
    into.finish = _FINISH.get(word(body.get("stop_reason")), into.finish)
    _usage(into, body.get("usage"))
    into.ended = "content" in body
    into.failed = body.get("type") == "error"


def _usage(into: Collected, usage: object) -> None:
    if isinstance(usage, dict):
        into.tokens(usage.get("input_tokens"), usage.get("output_tokens"))


def write_body(reply: Reply, request: Request) -> dict[str, object]:
    """A response that is not streamed."""
    content: list[dict[str, object]] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in reply.calls]
    return {"id": "msg_scripted", "type": "message", "role": "assistant", "model": request.model, "content": content,
            "stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": reply.usage.input_tokens or 0, "output_tokens": reply.usage.output_tokens or 0}}


def write_events(reply: Reply, request: Request) -> list[bytes]:
    """The events of a streamed response."""
    whole = write_body(reply, request)
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}  # type: ignore[dict-item]
    events: list[dict[str, object]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(dicts(whole["content"])):
        if block["type"] == "text":
            opened, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            opened = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [{"type": "content_block_start", "index": index, "content_block": opened},
                   {"type": "content_block_delta", "index": index, "delta": delta},
                   {"type": "content_block_stop", "index": index}]
    usage = {"output_tokens": reply.usage.output_tokens or 0}
    events += [{"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": usage},
               {"type": "message_stop"}]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def error_body(status: int, message: str) -> dict[str, object]:
    """The API's form of an error."""
    kinds = {401: "authentication_error", 429: "rate_limit_error", 400: "invalid_request_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}
