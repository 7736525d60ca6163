"""The reference agent before a chat-completions endpoint: a small one on loopback that plays a script."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import re
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from consumers.core_agent.events import parse_events
from tests.consumers.core_agent.runs import REFERENCE, Evidence, judged_again, without_grader

KEY = "dummy-key-of-a-test"
NAMES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")


class Model:
    """Answers each request by ``play(messages)``: a message, or an HTTP status, or raw bytes."""

    def __init__(self) -> None:
        self.play: Callable[[list[dict]], dict | int | bytes] = lambda messages: 500
        self.requests: list[dict] = []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.requests.append({"path": self.path, "body": body, "authorization": self.headers["Authorization"]})
                answer = model.play(body["messages"])
                if isinstance(answer, dict):
                    usage = {"prompt_tokens": 11, "completion_tokens": 3}
                    answer = json.dumps({"choices": [{"message": {"role": "assistant", **answer}}], "usage": usage}).encode()
                status, data = (answer, b"{}") if isinstance(answer, int) else (200, answer)
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "stub"}
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.close()


def call(tool: str, **arguments: object) -> dict:
    return {"tool_calls": [{"id": f"c{len(arguments)}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]}


def in_turn(*answers: dict | int | bytes) -> Callable[[list[dict]], dict | int | bytes]:
    left = list(answers)
    return lambda messages: left.pop(0)


def run_task(model: Model, tmp_path: pathlib.Path, *, tools: tuple[str, ...] = ("read", "write"), max_steps: int = 6) -> list[dict]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    task = {"contract": "core-agent/1", "task_id": "t", "instruction": "do it", "tools": list(tools), "max_steps": max_steps, "sampling_seed": 5}
    (tmp_path / "task.json").write_text(json.dumps(task))
    argv = [str(REFERENCE), "run", "--task", str(tmp_path / "task.json"), "--workspace", str(workspace)]
    done = subprocess.run(argv, env={"PATH": os.environ["PATH"], **model.env}, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    transcript = parse_events(done.stdout)
    assert transcript.facts == ()
    return list(transcript.events)


def kinds(events: list[dict]) -> list[str]:
    return [event["type"] for event in events]


def test_tools_are_called_and_told(model: Model, tmp_path: pathlib.Path) -> None:
    model.play = in_turn({"content": "I look", **call("read", path="a.txt")}, call("write", path="b.txt", content="two"), call("finish", status="completed", answer="done"))
    events = run_task(model, tmp_path)
    assert kinds(events) == ["start", "usage", "message", "tool_call", "tool_result", "usage", "tool_call", "tool_result", "usage", "final"]
    assert events[4]["output"] == "one\n"
    assert (events[-1]["status"], events[-1]["answer"]) == ("completed", "done")
    assert (tmp_path / "workspace" / "b.txt").read_text() == "two"
    sent = model.requests[1]["body"]
    assert sent["messages"][-1]["content"] == "one\n" and sent["seed"] == 5 and sent["model"] == "stub"
    assert {tool["function"]["name"] for tool in sent["tools"]} == {"read", "write", "finish"}
    assert model.requests[0]["path"] == "/v1/chat/completions"
    assert model.requests[0]["authorization"] == f"Bearer {KEY}"


def test_what_was_not_granted_is_denied(model: Model, tmp_path: pathlib.Path) -> None:
    model.play = in_turn(call("execute", argv=["touch", "x"]), call("finish", status="blocked", answer="missing: execute"))
    events = run_task(model, tmp_path)
    assert kinds(events) == ["start", "usage", "tool_call", "denied", "usage", "final"]
    assert not (tmp_path / "workspace" / "x").exists()


@pytest.mark.parametrize("failure", [401, 429, 500, b"no json", b"{}", b'{"choices":[]}'])
def test_a_failure_of_the_service_is_told_as_such(model: Model, tmp_path: pathlib.Path, failure: int | bytes) -> None:
    model.play = in_turn(call("read", path="a.txt"), failure)
    events = run_task(model, tmp_path)
    assert kinds(events)[-2:] == ["error", "final"]
    assert events[-2]["kind"] == "model-service"
    assert events[-1]["status"] == "failed"
    assert KEY not in json.dumps(events)


def test_a_service_that_is_not_there(model: Model, tmp_path: pathlib.Path) -> None:
    model.env["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
    assert kinds(run_task(model, tmp_path)) == ["start", "error", "final"]


@pytest.mark.parametrize(
    "answer",
    [
        {"content": "I only talk"},
        {"content": None},
        {"tool_calls": [{"id": "1", "function": {"name": "read", "arguments": "{not json"}}]},
        {"tool_calls": [{"id": "1", "function": {"name": "read", "arguments": "[1]"}}]},
        {"tool_calls": [{"id": "1", "function": {"name": "read", "arguments": '{"path": 1}'}}]},
        {"tool_calls": [{"id": "1", "function": {"name": "no_such_tool", "arguments": "{}"}}]},
        {"tool_calls": [{"id": "1"}]},
    ],
)
def test_a_model_that_never_ends_is_ended(model: Model, tmp_path: pathlib.Path, answer: dict) -> None:
    model.play = lambda messages: answer
    events = run_task(model, tmp_path, max_steps=4)
    assert events[-1]["type"] == "final" and events[-1]["status"] == "failed"
    assert sum(event["type"] == "tool_call" for event in events) <= 4


def test_a_trial_decided_by_a_model(model: Model, run_agent: Callable[..., Evidence]) -> None:
    def play(messages: list[dict]) -> dict:
        instruction = messages[1]["content"]
        source, output = re.search(r"The file (\S+) lists orders\. Write the new file (\S+) that", instruction).groups()
        if len(messages) == 2:
            return call("read", path=source)
        if messages[-1]["content"].startswith("wrote"):
            return call("finish", status="completed", answer="Done.")
        sums: dict[str, list[int]] = {}
        for line in messages[-1]["content"].splitlines()[1:]:
            _, region, amount = line.split(",")
            sums.setdefault(region, []).append(int(amount))
        lines = "".join(f"{region},{len(part)},{sum(part)}\n" for region, part in sorted(sums.items()))
        return call("write", path=output, content="region,orders,amount\n" + lines)

    model.play = play
    words = [word for name in NAMES for word in ("--pass-env", name)]
    run = run_agent(REFERENCE, "--case", "write", *words, env=model.env)
    assert (run.code, run.summary["passed"]) == (0, 1)
    plan = json.loads((run.path / "plan.json").read_bytes())
    assert plan["subject"]["subject_kind"] == "model"
    assert not any("plumbing" in line for line in plan["cases"][0]["not_scored"])
    assert judged_again(run.path) == without_grader(run.judgments())
    assert KEY.encode() not in b"".join(path.read_bytes() for path in run.path.rglob("*") if path.is_file())
