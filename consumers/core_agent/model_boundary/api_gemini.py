"""Gemini generateContent: reading requests and responses, writing scripted ones.

Source: the "Generating content" page of the Gemini API reference. The model and whether
the response is streamed stand in the path, and calls have ids only sometimes.
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

_FINISH = {"STOP": Finish.STOP, "MAX_TOKENS": Finish.LENGTH}


def read_request(body: dict[str, object], model: str) -> Request:
    """The conversation in a request body; ``model`` is from the path."""
    user, calls, results = [], [], []
    for content in dicts(body.get("contents")):
        texts = []
        for part in dicts(content.get("parts")):
            call, response = part.get("functionCall"), part.get("functionResponse")
            if isinstance(call, dict):
                calls.append(Call(word(call.get("id")), word(call.get("name")), call.get("args")))
            elif isinstance(response, dict):
                results.append(_result(response))
            elif content.get("role") != "model":
                texts.append(word(part.get("text")))
        if any(texts):
            user.append("".join(texts))
    tools = []
    for group in dicts(body.get("tools")):
        for function in dicts(group.get("functionDeclarations") or group.get("function_declarations")):
            tools.append(Tool(word(function.get("name")), function.get("parametersJsonSchema") or function.get("parameters") or {}))
        tools += [Tool(key, {}) for key in group if key not in ("functionDeclarations", "function_declarations")]
    system = body.get("systemInstruction")
    parts = system.get("parts") if isinstance(system, dict) else None
    return Request(model, False, text_of(parts), tuple(user), tuple(tools), tuple(calls), tuple(results))


def _result(response: dict[str, object]) -> ToolResult:
    answer = response.get("response")
    answer = answer if isinstance(answer, dict) else {}
    failed = "error" in answer
    value = answer.get("error", answer.get("output", answer))
    text = value if isinstance(value, str) else json.dumps(value)
    return ToolResult(word(response.get("id")) or word(response.get("name")), text, failed)


def read_event(into: Collected, event: dict[str, object]) -> None:
    """Add one streamed chunk, or the whole of a response that was not streamed."""
    if "error" in event:
        into.failed = True
    for candidate in dicts(event.get("candidates"))[:1]:
        content = candidate.get("content")
        for part in dicts(content.get("parts") if isinstance(content, dict) else None):
            call = part.get("functionCall")
            if isinstance(call, dict):
                into.call(len(into.arguments), name=word(call.get("name")), identity=word(call.get("id")),
                          piece=json.dumps(call.get("args")))
            elif part.get("thought") is not True:
                into.text.append(word(part.get("text")))
        reason = candidate.get("finishReason")
        if isinstance(reason, str):
            into.finish = _FINISH.get(reason, Finish.FILTERED)
            into.ended = True
    usage = event.get("usageMetadata")
    if isinstance(usage, dict):
        into.tokens(usage.get("promptTokenCount"), usage.get("candidatesTokenCount"))


read_body = read_event


def write_body(reply: Reply, request: Request) -> dict[str, object]:
    """A response that is not streamed."""
    parts: list[dict[str, object]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in reply.calls]
    given, made = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": given, "candidatesTokenCount": made, "totalTokenCount": given + made},
            "modelVersion": request.model, "responseId": "scripted"}


def write_events(reply: Reply, request: Request) -> list[bytes]:
    """The chunks of a streamed response."""
    whole = write_body(reply, request)
    candidate = dicts(whole["candidates"])[0]
    first = {**whole, "candidates": [{key: value for key, value in candidate.items() if key != "finishReason"}]}
    last = {**whole, "candidates": [{**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}]}
    return [b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in (first, last)]


def error_body(status: int, message: str) -> dict[str, object]:
    """The API's form of an error."""
    words = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 400: "INVALID_ARGUMENT"}
    return {"error": {"code": status, "message": message, "status": words.get(status, "INTERNAL")}}
