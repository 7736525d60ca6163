"""The witness: what it records, and peers that mean it no good."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from consumers.core_agent.witness import MAX_CONNECTIONS, MAX_RECORDED_CALLS, MAX_REQUEST_BYTES, Witness

RULES = [
    {"name": "exact", "program": "tools/x.py", "args": ["a"], "reply": {"nonce": "n1"}},
    {"name": "any", "program": "tools/x.py", "reply": {"error": "no"}},
]


@pytest.fixture
def witness(tmp_path: pathlib.Path) -> Iterator[Witness]:
    made = Witness(str(tmp_path / "w"), RULES, str(tmp_path / "workspace"))
    yield made
    made.close()


def ask(witness: Witness, data: bytes, *, shut: bool = False) -> bytes:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(witness.path)
        peer.sendall(data)
        if shut:
            peer.shutdown(socket.SHUT_WR)
        peer.setblocking(False)
        for _ in range(100):
            witness.serve()
            try:
                return peer.recv(65536)
            except BlockingIOError:
                continue
    raise AssertionError("no answer")


def request(program: object = "tools/x.py", args: object = ("a",)) -> bytes:
    return json.dumps({"program": program, "args": args}).encode() + b"\n"


def test_the_first_matching_rule_answers(witness: Witness) -> None:
    assert json.loads(ask(witness, request())) == {"nonce": "n1"}
    assert json.loads(ask(witness, request(args=["b"]))) == {"error": "no"}
    assert "error" in json.loads(ask(witness, request("tools/y.py")))
    assert [call["reply"] for call in witness.calls] == ["exact", "any", None]


def test_the_peer_is_recorded(witness: Witness) -> None:
    program = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); sys.stdout.write(s.recv(99).decode())"
    peer = subprocess.Popen([sys.executable, "-c", program, witness.path, request().decode()], stdout=subprocess.PIPE)
    while not witness.calls:
        assert peer.poll() is None
        witness.serve()
    peer.communicate()
    (call,) = witness.calls
    assert call["peer_pid"] == peer.pid
    assert call["peer_uid"] == os.getuid()
    assert call["peer_argv"][1:3] == ["-c", program]
    assert call["at"].endswith("Z")


CLIENT = (
    "import json, socket, sys\n"
    "s = socket.socket(socket.AF_UNIX)\n"
    "s.connect(sys.argv[1])\n"
    "s.sendall(json.dumps({'program': 'tools/x.py', 'args': ['a']}).encode() + b'\\n')\n"
    "s.recv(99)\n"
)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["workspace/tools/x.py"], "given"),
        (["./workspace/../workspace/tools/x.py"], "given"),
        (["{root}/workspace/tools/x.py"], "given"),
        (["{root}/elsewhere/tools/x.py"], "other"),
        (["-c", CLIENT], None),
    ],
)
def test_which_file_the_peer_runs(witness: Witness, tmp_path: pathlib.Path, words: list[str], wanted: str | None) -> None:
    for folder in ("workspace", "elsewhere"):
        (tmp_path / folder / "tools").mkdir(parents=True)
        (tmp_path / folder / "tools" / "x.py").write_text(CLIENT)
    argv = [sys.executable, *[word.format(root=tmp_path) if word != CLIENT else word for word in words], witness.path]
    peer = subprocess.Popen(argv, cwd=tmp_path)
    while not witness.calls:
        assert peer.poll() is None
        witness.serve()
    peer.wait()
    assert witness.calls[0]["peer_program"] == wanted


@pytest.mark.parametrize(
    "data",
    [b"hello\n", b"{}\n", b"\xff\n", request(program=1), request(args="a"), request(args=[1]), b"[" * 9999 + b"\n", b"x" * (MAX_REQUEST_BYTES + 2)],
)
def test_bytes_that_are_no_call_are_recorded_as_such(witness: Witness, data: bytes) -> None:
    assert "error" in json.loads(ask(witness, data, shut=True))
    (call,) = witness.calls
    assert call["problem"] and call["program"] is None and len(call["sent"]) <= 4096


def test_a_call_without_a_line_feed_ends_with_the_stream(witness: Witness) -> None:
    assert json.loads(ask(witness, request().rstrip(), shut=True)) == {"nonce": "n1"}


def test_silent_peers_do_not_shut_out_one_that_speaks(witness: Witness) -> None:
    silent = []
    for _ in range(3 * MAX_CONNECTIONS):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(witness.path)
        witness.serve()
        silent.append(peer)
    assert json.loads(ask(witness, request())) == {"nonce": "n1"}
    for peer in silent:
        peer.close()
    witness.serve()
    assert len(witness.calls) == 1


def test_a_flood_of_calls_is_counted(witness: Witness) -> None:
    for _ in range(MAX_RECORDED_CALLS + 5):
        ask(witness, request())
    assert (len(witness.calls), witness.unrecorded) == (MAX_RECORDED_CALLS, 5)


def test_a_peer_that_hangs_up_is_recorded_all_the_same(witness: Witness) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(witness.path)
        peer.sendall(request())
    for _ in range(3):
        witness.serve()
    assert [call["reply"] for call in witness.calls] == ["exact"]


def test_closing_survives_a_removed_socket(tmp_path: pathlib.Path) -> None:
    witness = Witness(str(tmp_path / "gone"), RULES, str(tmp_path))
    os.unlink(witness.path)
    witness.close()
    assert witness.calls == []


