"""OpenAI Responses: reading requests and responses, writing scripted ones.

Source: the "Responses" and "Responses streaming" pages of OpenAI's API reference.
"""

from __future__ import annotations

import json

from .api_openai_chat import error_body
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

__all__ = ["error_body", "read_body", "read_event", "read_request", "write_body", "write_events"]


def read_request(body: dict[str, object], _model: str) -> Request:
    """The conversation in a request body."""
    user, calls, results = [], [], []
    given = body.get("input")
    if isinstance(given, str):
        user.append(given)
    for item in dicts(given):
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") == "user":
            user.append(text_of(item.get("content")))
        elif kind in ("function_call", "custom_tool_call"):
            arguments = parsed(word(item.get("arguments"))) if kind == "function_call" else item.get("input")
            calls.append(Call(word(item.get("call_id")), word(item.get("name")), arguments))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            results.append(ToolResult(word(item.get("call_id")), text_of(item.get("output"))))
    return Request(word(body.get("model")), body.get("stream") is True, word(body.get("instructions")), tuple(user),
                   tuple(_tools(body.get("tools"))), tuple(calls), tuple(results))


def _tools(listed: object, prefix: str = "") -> list[Tool]:
    """Functions, custom tools, and the tools of namespaces as ``namespace.name``; hosted tools by their type."""
    tools = []
    for tool in dicts(listed):
        name = word(tool.get("name")) or word(tool.get("type"))
        if tool.get("type") == "namespace":
            tools += _tools(tool.get("tools"), f"{prefix}{name}.")
        else:
            tools.append(Tool(prefix + name, tool.get("parameters") or {}))
    return tools


def read_event(into: Collected, event: dict[str, object]) -> None:
    """Add one streamed event."""
    kind = word(event.get("type"))
    item = event.get("item")
    if kind == "response.output_item.done" and isinstance(item, dict):
        _item(into, item)
    elif kind in ("response.completed", "response.incomplete", "response.done"):
        into.ended = True
        response = event.get("response")
        if isinstance(response, dict):
            _outcome(into, response)
    elif kind in ("response.failed", "error"):
        into.failed = True


def read_body(into: Collected, body: dict[str, object]) -> None:
    """Add a response that was not streamed."""
    for item in dicts(body.get("output")):
        _item(into, item)
    into.ended = "output" in body
    into.failed = body.get("status") == "failed" or "output" not in body
    _outcome(into, body)


def _item(into: Collected, item: dict[str, object]) -> None:
    if item.get("type") == "message":
        into.text.append(text_of(item.get("content")))
    elif item.get("type") in ("function_call", "custom_tool_call"):
        key = word(item.get("call_id")) or len(into.arguments)
        piece = word(item.get("arguments")) or word(item.get("input"))
        into.call(key, name=word(item.get("name")), identity=word(item.get("call_id")), piece=piece)


def _outcome(into: Collected, response: dict[str, object]) -> None:
    usage = response.get("usage")
    if isinstance(usage, dict):
        into.tokens(usage.get("input_tokens"), usage.get("output_tokens"))
    details = response.get("incomplete_details")
    if isinstance(details, dict):
        into.finish = Finish.LENGTH if details.get("reason") == "max_output_tokens" else Finish.FILTERED


def _items(reply: Reply) -> list[dict[str, object]]:
    items: list[dict[str, object]] = []
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append({"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed", "content": content})
    for call in reply.calls:
        items.append({"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name,
                      "arguments": json.dumps(call.arguments), "status": "completed"})
    return items


def write_body(reply: Reply, request: Request) -> dict[str, object]:
    """A response that is not streamed."""
    given, made = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    usage = {"input_tokens": given, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": made,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": given + made}
    return {"id": "resp_scripted", "object": "response", "created_at": 0, "status": "completed",
            "model": request.model, "output": _items(reply), "usage": usage, "error": None}


def write_events(reply: Reply, request: Request) -> list[bytes]:
    """The events of a streamed response."""
    whole = write_body(reply, request)
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    ]
    for index, item in enumerate(_items(reply)):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}})
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", "item_id": item["id"], "output_index": index,
                           "content_index": 0, "delta": reply.text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(events)
    ]
