"""The boundary as a process: limits, secrets, pass-through, and its end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from consumers.core_agent.model_boundary.client import Address, BoundaryLost, ModelBoundary
from consumers.core_agent.model_boundary.record import read_bodies

ROOT = pathlib.Path(__file__).resolve().parents[4]
CHAT = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
TEMPLATES = {"execute": {"tool": "bash", "args": {"command": "{command}"}}}


@pytest.fixture
def boundary() -> Iterator[ModelBoundary]:
    running = ModelBoundary()
    yield running
    running.close()


@pytest.fixture
def opened(boundary: ModelBoundary, tmp_path: pathlib.Path) -> Callable[..., Address]:
    """``opened("honest")``: a scripted trial; ``opened(base_url=...)``: one that records."""

    def call(conduct: str = "honest", *, name: str = "trial", base_url: str | None = None, max_requests: int = 100, redact: list[str] | None = None,
             key: str | None = None) -> Address:
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        policy = {"conduct": conduct, "model": "m", "workspace": "/w", "templates": TEMPLATES, "answer": "ok", "status": "completed",
                  "calls": [{"tool": "execute", "arguments": {"command": "ls"}}]}
        address = boundary.address()
        boundary.open(address, folder=str(folder), mode="record" if base_url else "scripted", api="openai-chat", max_requests=max_requests,
                      base_url=base_url, key=key, redact=redact, policy=policy)
        return address

    return call


def post(address: Address, body: object, path: str = CHAT, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", f"/{address.secret}{path}", data, headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def asking(*results: str, stream: bool = False) -> dict:
    messages = [{"role": "user", "content": "x"}, *({"role": "tool", "tool_call_id": "c", "content": text} for text in results)]
    return {"model": "m", "stream": stream, "messages": messages, "tools": TOOLS}


def lines(tmp_path: pathlib.Path, name: str = "trial") -> list[dict]:
    return [json.loads(line) for line in (tmp_path / name / "model.jsonl").read_bytes().splitlines()]


class Upstream:
    """A model service that does what ``handle(connection, request)`` does, on a socket of its own."""

    def __init__(self, handle: Callable[[socket.socket, bytes], None]) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"
        self._handle = handle
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while request := read_request(connection):
                self._handle(connection, request)

    def close(self) -> None:
        self.socket.close()


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(1 << 20)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def upstream() -> Iterator[Callable[..., Upstream]]:
    made: list[Upstream] = []

    def make(handle: Callable[[socket.socket, bytes], None]) -> Upstream:
        made.append(Upstream(handle))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_policy_goes_by_the_number_of_tool_results(opened: Callable, boundary: ModelBoundary, tmp_path: pathlib.Path) -> None:
    address = opened()
    for _ in range(2):
        status, body = post(address, asking())
        assert status == 200
        assert json.loads(body)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "bash"
    assert json.loads(post(address, asking("a"))[1])["choices"][0]["message"]["content"] == "ok\nSTATUS: completed"
    side = json.loads(post(address, {"model": "m", "messages": []})[1])
    assert "tool_calls" not in side["choices"][0]["message"]
    closed = boundary.close_trial(address)
    assert (closed["exchanges"], closed["model_requests"]) == (4, 4)
    assert [line["results_total"] for line in lines(tmp_path)] == [0, 0, 1, 0]


def test_trials_cannot_cross_talk(opened: Callable, boundary: ModelBoundary, tmp_path: pathlib.Path) -> None:
    first, second = opened(name="first"), opened(name="second")
    assert first.secret != second.secret
    assert len(first.secret) >= 20
    assert post(first, asking())[0] == 200
    assert post(Address(first.origin, "wrong", first.port), asking())[0] == 404
    boundary.close_trial(first)
    assert post(first, asking())[0] == 404
    assert post(second, asking())[0] == 200
    assert boundary.close_trial(second)["strangers"] == 2
    assert len(lines(tmp_path, "first")) == len(lines(tmp_path, "second")) == 1
    assert first.secret not in (tmp_path / "first" / "model.jsonl").read_text()


def test_it_listens_on_loopback_only(boundary: ModelBoundary) -> None:
    for name in ("tcp", "tcp6"):
        path = pathlib.Path("/proc/net") / name
        if path.exists():
            local = [line.split()[1] for line in path.read_text().splitlines()[1:] if line.split()[3] == "0A"]
            mine = [address for address in local if address.endswith(f":{boundary.port:04X}")]
            assert mine in ([], [f"0100007F:{boundary.port:04X}"])


@pytest.mark.parametrize(("conduct", "status"), [("error-401", 401), ("error-429", 429), ("error-500", 500)])
def test_scripted_errors_have_the_apis_form(opened: Callable, boundary: ModelBoundary, tmp_path: pathlib.Path, conduct: str, status: int) -> None:
    address = opened(conduct)
    got, body = post(address, asking())
    assert got == status
    assert json.loads(body)["error"]["code"] == status
    boundary.close_trial(address)
    assert (lines(tmp_path)[0]["fault"], lines(tmp_path)[0]["finish"]) == (f"http-{status}", "error")


def test_a_scripted_cut_breaks_the_stream(opened: Callable, boundary: ModelBoundary, tmp_path: pathlib.Path) -> None:
    address = opened("cut-stream")
    with pytest.raises(http.client.HTTPException):
        post(address, asking(stream=True))
    with pytest.raises(http.client.HTTPException):
        post(address, asking(stream=False))
    boundary.close_trial(address)
    assert [(line["fault"], line["finish"]) for line in lines(tmp_path)] == [("cut", "cut"), ("cut", "cut")]


def test_closing_a_trial_ends_a_request_that_is_never_answered(opened: Callable, boundary: ModelBoundary, tmp_path: pathlib.Path) -> None:
    address = opened("no-answer")
    with socket.create_connection(("127.0.0.1", address.port)) as waiting:
        body = json.dumps(asking()).encode()
        waiting.sendall(b"POST /%b%b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (address.secret.encode(), CHAT.encode(), len(body), body))
        deadline = time.monotonic() + 10
        while body not in list(read_bodies(str(tmp_path / "trial"))) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert boundary.close_trial(address)["exchanges"] == 1
        assert waiting.recv(10) == b""
    assert (lines(tmp_path)[0]["fault"], lines(tmp_path)[0]["finish"]) == ("no-answer", "no-answer")


def test_more_requests_than_allowed_are_refused_and_recorded(opened: Callable, boundary: ModelBoundary, tmp_path: pathlib.Path) -> None:
    address = opened(max_requests=2)
    statuses = [post(address, asking())[0] for _ in range(4)]
    assert statuses == [200, 200, 403, 403]
    boundary.close_trial(address)
    assert [line["fault"] for line in lines(tmp_path)] == [None, None, "max-model-requests", "max-model-requests"]


def test_64_connections_are_held_and_more_are_refused_with_a_clear_error(opened: Callable, boundary: ModelBoundary) -> None:
    address = opened("no-answer")
    head = b"POST /%b%b HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n" % (address.secret.encode(), CHAT.encode())
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", address.port))) for _ in range(64)]
        for connection in held:
            connection.sendall(head)
        status, body = post(address, asking())
        assert status == 503
        assert "64 connections are open" in json.loads(body)["error"]["message"]
    assert boundary.close_trial(address)["connections_refused"] == 1


def test_what_is_no_http_is_refused(opened: Callable, boundary: ModelBoundary) -> None:
    address = opened()
    for data, answer in ((b"hello\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000, b"431"),
                         (b"POST /%b%b HTTP/1.1\r\nContent-Length: lots\r\n\r\n" % (address.secret.encode(), CHAT.encode()), b"400")):
        with socket.create_connection(("127.0.0.1", address.port)) as connection:
            connection.sendall(data)
            assert connection.recv(4096).split(b" ")[1] == answer
    assert post(address, b"{")[0] == 400
    boundary.close_trial(address)


def test_a_streamed_answer_goes_on_as_it_comes(opened: Callable, boundary: ModelBoundary, upstream: Callable, tmp_path: pathlib.Path) -> None:
    go_on = threading.Event()

    def slow(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: {}\n\r\n")
        assert go_on.wait(20)
        connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    address = opened(base_url=upstream(slow).url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    connection.request("POST", f"/{address.secret}{CHAT}", json.dumps(asking(stream=True)))
    response = connection.getresponse()
    # The service has not gone on, and its first bytes are here.
    assert response.read(9) == b"data: {}\n"
    go_on.set()
    assert response.read() == b"data: [DONE]\n\n"
    connection.close()
    boundary.close_trial(address)
    assert lines(tmp_path)[0]["finish"] == "stop"


def test_recording_passes_bodies_unchanged_and_keeps_a_connection(opened: Callable, boundary: ModelBoundary, upstream: Callable, tmp_path: pathlib.Path) -> None:
    seen: list[bytes] = []
    answer = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()

    def reply(connection: socket.socket, request: bytes) -> None:
        seen.append(b"%d " % connection.getpeername()[1] + request)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nSet-Cookie: s=1\r\n\r\n%b" % (len(answer), answer))

    address = opened(base_url=upstream(reply).url, key="service-key-123456")
    sent = json.dumps({**asking(), "key": "sk-" + "a" * 40}).encode()
    for _ in range(3):
        assert post(address, sent, CHAT + "?key=query-secret-1", {"Authorization": "Bearer agents-own-1234"}) == (200, answer)
    boundary.close_trial(address)
    assert [request.partition(b"\r\n\r\n")[2] for request in seen] == [sent] * 3
    assert len({request.split(b" ")[0] for request in seen}) == 1
    assert b"authorization: Bearer service-key-123456" in seen[0]
    assert b"agents-own" not in seen[0]
    assert seen[0].split(b" ")[2] == b"/v1/chat/completions?key=query-secret-1"
    written = b"".join(path.read_bytes() for path in (tmp_path / "trial").rglob("*") if path.is_file())
    for secret in (b"service-key", b"agents-own", b"query-secret", b"sk-aaaa"):
        assert secret not in written
    assert lines(tmp_path)[0]["path"] == "/v1/chat/completions?key=[redacted]"


def test_a_service_that_cuts_and_one_that_refuses(opened: Callable, boundary: ModelBoundary, upstream: Callable, tmp_path: pathlib.Path) -> None:
    def cut(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: {}\n\r\n")
        connection.shutdown(socket.SHUT_RDWR)

    address = opened(base_url=upstream(cut).url)
    with pytest.raises(http.client.HTTPException):
        post(address, asking(stream=True))
    boundary.close_trial(address)
    gone = opened(name="gone", base_url="http://127.0.0.1:9/v1")
    assert post(gone, asking())[0] == 502
    boundary.close_trial(gone)
    assert (lines(tmp_path)[0]["fault"], lines(tmp_path, "gone")[0]["fault"]) == ("cut", "unreachable")


def test_a_body_over_8_mib_is_passed_on_and_kept_unparsed(opened: Callable, boundary: ModelBoundary, upstream: Callable, tmp_path: pathlib.Path) -> None:
    sizes: list[int] = []

    def reply(connection: socket.socket, request: bytes) -> None:
        sizes.append(len(request.partition(b"\r\n\r\n")[2]))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

    address = opened(base_url=upstream(reply).url)
    body = json.dumps({**asking(), "filler": "x y " * (9 << 18)}).encode()
    assert post(address, body)[0] == 200
    assert sizes == [len(body)]
    scripted = opened(name="scripted")
    assert post(scripted, body)[0] == 413
    boundary.close_trial(address)
    boundary.close_trial(scripted)
    line = lines(tmp_path)[0]
    assert line["request"]["parsed"] is False
    assert line["request"]["kept_bytes"] == len(body)
    assert "tools" not in line
    assert body in list(read_bodies(str(tmp_path / "trial")))
    assert lines(tmp_path, "scripted")[0]["fault"] == "body-too-large"


def test_64_streams_stay_within_128_mib(opened: Callable, boundary: ModelBoundary, upstream: Callable) -> None:
    go_on = threading.Event()
    started = threading.Semaphore(0)

    def stream(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"data: " + json.dumps({"choices": [{"delta": {"content": "word " * 3000}}]}).encode() + b"\n\n"
        for _ in range(8):
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        started.release()
        assert go_on.wait(30)
        connection.sendall(b"0\r\n\r\n")

    address = opened(base_url=upstream(stream).url)
    body = {**asking(stream=True), "filler": "f " * 100_000}
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(post(address, body)[0])) for _ in range(64)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert started.acquire(timeout=30)
    status = pathlib.Path(f"/proc/{boundary.pid}/status").read_text()
    peak_kib = int(status.split("VmHWM:")[1].split()[0])
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert got == [200] * 64
    assert peak_kib < 128 * 1024
    boundary.close_trial(address)


def test_it_ends_when_the_harness_is_killed(tmp_path: pathlib.Path) -> None:
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from consumers.core_agent.model_boundary.client import ModelBoundary\n"
        "print(ModelBoundary().pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(ROOT)], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        harness.send_signal(signal.SIGKILL)
        harness.wait()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _alive(pid):
        time.sleep(0.02)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_boundary_that_died_is_said(boundary: ModelBoundary, tmp_path: pathlib.Path) -> None:
    os.kill(boundary.pid, signal.SIGKILL)
    with pytest.raises(BoundaryLost):
        boundary.close_trial(boundary.address())


def test_addresses_of_services() -> None:
    from consumers.core_agent.model_boundary.service import Service

    def joined(url: str, asked: str) -> str:
        return Service.parse(url).path(asked)

    assert joined("https://api.example.com/v1", "/v1/responses") == "/v1/responses"
    assert joined("https://api.example.com", "/v1/messages") == "/v1/messages"
    assert joined("https://host/proxy/v1/", "/v1/chat/completions") == "/proxy/v1/chat/completions"
    assert joined("https://host/v1", "/v1beta/models/m:generateContent") == "/v1beta/models/m:generateContent"
    assert joined("https://host/openai", "/chat/completions") == "/openai/chat/completions"
    assert (Service.parse("https://h").port, Service.parse("http://h:81").port) == (443, 81)
    for url in ("ftp://h", "h:80", "http://", "http://h/?q=1", "http://h/#x"):
        with pytest.raises(ValueError, match="no http"):
            Service.parse(url)
