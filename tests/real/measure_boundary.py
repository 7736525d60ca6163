"""What the model boundary costs: paired requests to one service, direct and through the boundary.

    python3 tests/real/measure_boundary.py

Prints medians over paired rounds: time to the whole answer and to the first streamed byte, and the
memory of the boundary with 64 streams open. Nothing is asserted: a busy machine measures itself.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import socket
import statistics
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from consumers.core_agent.model_boundary.client import ModelBoundary  # noqa: E402

ROUNDS = 300
STREAMS = 64
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "word " * 20_000}]}).encode()
CHUNK = b"data: " + json.dumps({"choices": [{"delta": {"content": "word " * 10}}]}).encode() + b"\n\n"


def serve(server: socket.socket, hold: threading.Event) -> None:
    """A model service: reads a request, streams twenty pieces."""
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=one, args=(connection, hold), daemon=True).start()


def one(connection: socket.socket, hold: threading.Event) -> None:
    reader = connection.makefile("rb")
    while line := reader.readline():
        length = 0
        while line.strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            line = reader.readline()
        reader.read(length)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            connection.sendall(b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK))
        hold.wait()
        connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[float, float]:
    """Seconds to the first byte of the body and to its end."""
    start = time.perf_counter()
    connection.request("POST", path, BODY)
    response = connection.getresponse()
    response.read(1)
    first = time.perf_counter() - start
    response.read()
    return first, time.perf_counter() - start


def main() -> int:
    """Measure and print."""
    hold = threading.Event()
    hold.set()
    server = socket.create_server(("127.0.0.1", 0), backlog=128)
    threading.Thread(target=serve, args=(server, hold), daemon=True).start()
    port = server.getsockname()[1]
    boundary = ModelBoundary()
    with tempfile.TemporaryDirectory() as folder:
        address = boundary.address()
        boundary.open(address, folder=folder, mode="record", api="openai-chat", max_requests=100_000, base_url=f"http://127.0.0.1:{port}/v1")
        direct, through = (http.client.HTTPConnection("127.0.0.1", number) for number in (port, boundary.port))
        path = "/v1/chat/completions"
        pairs = [(ask(direct, path), ask(through, f"/{address.secret}{path}")) for _ in range(ROUNDS)][20:]
        firsts = [b[0] - a[0] for a, b in pairs]
        wholes = [b[1] - a[1] for a, b in pairs]
        print(f"request of {len(BODY)} bytes, 20 streamed pieces, {len(pairs)} paired rounds")
        for name, added, position in (("first streamed byte", firsts, 0), ("whole answer", wholes, 1)):
            base = statistics.median(a[position] for a, _ in pairs)
            quantiles = statistics.quantiles(added, n=20)
            print(f"{name}: direct {base * 1e3:.3f} ms, the boundary adds {statistics.median(added) * 1e3:.3f} ms (95th percentile {quantiles[18] * 1e3:.3f} ms)")
        through.close()
        hold.clear()
        threads = [threading.Thread(target=lambda: ask(http.client.HTTPConnection("127.0.0.1", boundary.port), f"/{address.secret}{path}")) for _ in range(STREAMS)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        status = pathlib.Path(f"/proc/{boundary.pid}/status").read_text(encoding="ascii")
        hold.set()
        for thread in threads:
            thread.join()
        print(f"{STREAMS} streams open: {int(status.split('VmHWM:')[1].split()[0]) / 1024:.1f} MiB at most")
        boundary.close_trial(address)
    boundary.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
