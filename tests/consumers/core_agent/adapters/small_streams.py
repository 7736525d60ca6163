"""Small streams in the schemas of the ten CLIs, written for the tests.

Each is what the CLI would print for one short run; ids, texts and tool calls are made up. ``DONE`` ends
well, the others end as their names say.
"""

from __future__ import annotations

import json


def lines(*events: dict) -> bytes:
    """Events as JSON lines."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


FINAL = "It is done.\nSTATUS: completed"


def _codex_call(kind: str, **item: object) -> dict:
    return {"type": kind, "item": {"id": "item_7", "type": "command_execution", "command": "/bin/bash -lc 'ls'", **item}}


def _claude(kind: str, *blocks: dict) -> dict:
    return {"type": kind, "message": {"role": kind, "content": list(blocks)}, "session_id": "s"}


def _claude_result(**fields: object) -> dict:
    return {"type": "result", "subtype": "success", "is_error": False, "result": FINAL, "permission_denials": [],
            "usage": {"input_tokens": 30, "output_tokens": 4}, **fields}


_CLAUDE_INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Bash"], "claude_code_version": "9"}
_CLAUDE_CALL = _claude("assistant", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}})
_CLAUDE_DENIED = "Permission to use Bash has been denied because of a rule"
_QWEN_INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": [], "qwen_code_version": "9"}
_QWEN_CALL = _claude("assistant", {"type": "tool_use", "id": "t1", "name": "run_shell_command", "input": {"command": "ls"}})


def _opencode_tool(tool: str, **state: object) -> dict:
    return {"type": "tool_use", "sessionID": "s", "part": {"tool": tool, "callID": "c1", "state": {"input": {"command": "ls"}, **state}}}


_OPENCODE_START = {"type": "step_start", "sessionID": "s", "part": {}}


def _opencode_end(reason: str) -> dict:
    return {"type": "step_finish", "part": {"reason": reason, "tokens": {"input": 15, "output": 2}}}


def _gemini_end(**fields: object) -> dict:
    return {"type": "result", "status": "success", "stats": {"input_tokens": 30, "output_tokens": 4}, **fields}


_GEMINI_CALL = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "g1", "parameters": {"command": "ls"}}


def _pi_end(stop: str, text: str | None, **fields: object) -> dict:
    content = [{"type": "text", "text": text}] if text else []
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": stop,
                                               "usage": {"input": 15, "output": 2}, **fields}}


_PI_CALL = {"type": "tool_execution_start", "toolCallId": "p1", "toolName": "bash", "args": {"command": "ls"}}


def _copilot(kind: str, **data: object) -> dict:
    return {"type": kind, "data": data, "id": "x"}


_COPILOT_CALL = _copilot("tool.execution_start", toolCallId="k1", toolName="bash", arguments={"command": "ls"})


def _vibe_effect(status: str, **state: object) -> dict:
    return {"type": "effect", "id": "e1", "detail": {"toolName": "file_system.bash", "input": {"command": "ls"}},
            "state": {"status": status, **state}}


def _vibe_says(role: str, text: str) -> dict:
    return {"type": "message", "role": role, "sessionId": "s", "content": [{"type": "text", "text": text}]}


def _cline(**event: object) -> dict:
    return {"ts": "t", "type": "agent_event", "event": event}


_CLINE_START = {"type": "hook_event", "hookEventName": "agent_start", "taskId": "s"}
_CLINE_CALL = _cline(type="content_start", contentType="tool", toolName="run_commands", toolCallId="l1", input={"commands": ["ls"]})


def _cline_result(reason: str) -> dict:
    return {"type": "run_result", "finishReason": reason, "text": FINAL, "usage": {"inputTokens": 30, "outputTokens": 4}}


def _mini(status: str | None, *messages: dict, submission: str = FINAL) -> bytes:
    listed = [{"role": "system", "content": "x"}, {"role": "user", "content": "task"}, *messages]
    info: dict[str, object] = {"mini_version": "9"}
    if status is not None:
        listed.append({"role": "exit", "content": "", "extra": {"exit_status": status, "submission": submission}})
        info = {**info, "exit_status": status, "submission": submission}
    return json.dumps({"info": info, "messages": listed, "trajectory_format": "mini-swe-agent-1.1"}).encode()


_MINI_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "m1", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}],
              "extra": {"response": {"usage": {"prompt_tokens": 30, "completion_tokens": 4}}}}
_MINI_RESULT = {"role": "tool", "tool_call_id": "m1", "content": "{}", "extra": {"returncode": 0, "raw_output": "a"}}

#: A run with one shell call that ends well, in each CLI's schema.
DONE: dict[str, bytes] = {
    "codex": lines(
        {"type": "thread.started", "thread_id": "s"}, {"type": "turn.started"}, _codex_call("item.started", status="in_progress"),
        _codex_call("item.completed", status="completed", exit_code=0, aggregated_output="a"),
        {"type": "item.completed", "item": {"id": "item_8", "type": "agent_message", "text": FINAL}},
        {"type": "turn.completed", "usage": {"input_tokens": 30, "output_tokens": 4}}),
    "claude": lines(
        _CLAUDE_INIT, _CLAUDE_CALL, _claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": "a", "is_error": False}),
        _claude("assistant", {"type": "text", "text": FINAL}), _claude_result()),
    "qwen": lines(
        _QWEN_INIT, _QWEN_CALL, _claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": "a", "is_error": False}),
        _claude("assistant", {"type": "text", "text": FINAL}), _claude_result()),
    "opencode": lines(
        _OPENCODE_START, _opencode_tool("bash", status="completed", output="a", metadata={"exit": 0}), _opencode_end("tool-calls"),
        _OPENCODE_START, {"type": "text", "part": {"text": FINAL}}, _opencode_end("stop")),
    "gemini": lines(
        {"type": "init", "session_id": "s", "model": "m"}, {"type": "message", "role": "user", "content": "task"}, _GEMINI_CALL,
        {"type": "tool_result", "tool_id": "g1", "status": "success", "output": "a"},
        {"type": "message", "role": "assistant", "content": FINAL[:9], "delta": True},
        {"type": "message", "role": "assistant", "content": FINAL[9:], "delta": True}, _gemini_end()),
    "pi": lines(
        {"type": "session", "id": "s"}, {"type": "agent_start"}, _PI_CALL,
        {"type": "tool_execution_end", "toolCallId": "p1", "toolName": "bash", "isError": False, "result": {"content": [{"type": "text", "text": "a"}]}},
        _pi_end("toolUse", None), _pi_end("stop", FINAL), {"type": "agent_end", "messages": [{"role": "assistant", "stopReason": "stop"}]}),
    "copilot": lines(
        _copilot("user.message", interactionId="s"), _COPILOT_CALL,
        _copilot("tool.execution_complete", toolCallId="k1", success=True, result={"content": "a"}, shellExecution={"exitCode": 0}),
        _copilot("assistant.message", content=FINAL), {"type": "result", "exitCode": 0}),
    "vibe": lines(_vibe_says("user", "task"), _vibe_effect("completed", outputText="a"), _vibe_says("assistant", FINAL)),
    "cline": lines(
        _CLINE_START, _CLINE_CALL,
        _cline(type="content_end", contentType="tool", toolName="run_commands", toolCallId="l1", output=[{"result": "a", "success": True}]),
        _cline(type="content_end", contentType="text", text=FINAL), _cline_result("completed")),
    "mini-swe-agent": _mini("Submitted", _MINI_CALL, _MINI_RESULT),
}

#: The call was denied, by the stream's own account. codex and mini-swe-agent have no such event.
DENIED: dict[str, bytes] = {
    "claude": lines(
        _CLAUDE_INIT, _CLAUDE_CALL, {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "t1"},
        _claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": _CLAUDE_DENIED, "is_error": True}),
        _claude_result(permission_denials=[{"tool_name": "Bash", "tool_use_id": "t1"}])),
    "qwen": lines(
        _QWEN_INIT, _QWEN_CALL, _claude("user", {"type": "tool_result", "tool_use_id": "t1", "content": "not allowed", "is_error": True}),
        _claude_result(permission_denials=[{"tool_name": "run_shell_command", "tool_use_id": "t1"}])),
    "opencode": lines(_OPENCODE_START, _opencode_tool("invalid", status="completed", output="unavailable", input={"tool": "bash"}), _opencode_end("stop")),
    "gemini": lines(
        {"type": "init", "session_id": "s"}, _GEMINI_CALL,
        {"type": "tool_result", "tool_id": "g1", "status": "error", "error": {"type": "tool_not_registered", "message": "no"}}, _gemini_end()),
    "pi": lines(
        {"type": "session", "id": "s"}, _PI_CALL,
        {"type": "tool_execution_end", "toolCallId": "p1", "toolName": "bash", "isError": True, "result": {"content": [{"type": "text", "text": "Tool bash not found"}]}},
        {"type": "agent_end", "messages": []}),
    "copilot": lines(
        _COPILOT_CALL, _copilot("tool.execution_complete", toolCallId="k1", success=False, error={"code": "denied", "message": "no"}),
        {"type": "result", "exitCode": 0}),
    "vibe": lines(
        _vibe_says("user", "task"),
        _vibe_effect("failed", error={"code": "tool_denied", "message": "denied"}), _vibe_says("assistant", FINAL)),
    "cline": lines(
        _CLINE_START, _CLINE_CALL,
        _cline(type="content_end", contentType="tool", toolName="run_commands", toolCallId="l1", error="Tool call was denied"), _cline_result("completed")),
}

#: The model service answered with an error; the stream says so. vibe says it on stderr only.
MODEL_ERROR: dict[str, bytes] = {
    "codex": lines(
        {"type": "thread.started", "thread_id": "s"}, {"type": "error", "message": "status 429"},
        {"type": "turn.failed", "error": {"message": "status 429"}}),
    "claude": lines(
        _CLAUDE_INIT, {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"},
        {**_claude("assistant", {"type": "text", "text": "API Error: 429"}), "is_api_error_message": True},
        _claude_result(is_error=True, result="API Error: 429", terminal_reason="api_error")),
    "qwen": lines(_QWEN_INIT, {**_claude_result(is_error=True, error={"message": "429"}), "subtype": "error_during_execution", "result": None}),
    "opencode": lines({"type": "error", "error": {"name": "APIError", "data": {"message": "rate", "statusCode": 429}}}),
    "gemini": lines({"type": "init", "session_id": "s"}, _gemini_end(status="error", error={"message": "429"})),
    "pi": lines(
        {"type": "session", "id": "s"}, _pi_end("error", None, errorMessage="429 rate"),
        {"type": "agent_end", "messages": [{"role": "assistant", "stopReason": "error", "errorMessage": "429 rate"}]}),
    "copilot": lines(
        _copilot("model.call_failure", statusCode=429, errorMessage="rate"), _copilot("session.error", message="rate", statusCode=429),
        {"type": "result", "exitCode": 1}),
    "cline": lines(_CLINE_START, _cline_result("error")),
    "mini-swe-agent": _mini("RateLimitError", submission=""),
}
