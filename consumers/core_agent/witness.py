"""The witness: a socket that the harness holds and that a scenario's programs call.

Owns the server side: it answers by the scenario's rules and records who called, when
and with what. Because the record is the harness's own, a transcript cannot invent it.
It serves many slow or hostile peers without ever blocking, and it judges nothing.

A call is one JSON line ``{"program": TEXT, "args": [TEXT, ...]}``; the answer is one JSON line.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
from collections.abc import Mapping

from agent_eval import clock, strict_json

MAX_RECORDED_CALLS = 200
MAX_REQUEST_BYTES = 64 * 1024
MAX_CONNECTIONS = 32
_MAX_ARGV_BYTES = 4096
# sun_path holds 108 bytes on Linux and 104 on macOS, the final NUL included.
MAX_SOCKET_PATH_BYTES = 100


class Witness:
    """One trial's witness. ``path`` is the socket; ``fileno`` becomes readable when :meth:`serve` has work.

    ``calls`` are the recorded calls in order, plain JSON: ``at``, ``program``, ``args``, ``reply`` (the name of the rule
    that answered, ``None`` for none), ``peer_pid``, ``peer_uid``, ``peer_argv`` and ``peer_program`` (``given``: the peer runs the
    workspace's own file of that name, ``other``: another file of that name; each ``None`` where the system does not
    tell), and ``problem`` with ``sent`` for bytes that are no call. ``unrecorded`` counts those beyond the first 200.
    """

    def __init__(self, path: str, rules: list, workspace: str) -> None:
        self.path = path
        self.calls: list[dict[str, object]] = []
        self.unrecorded = 0
        self._rules = rules
        self._workspace = workspace
        self._received: dict[socket.socket, bytes] = {}
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.setblocking(False)
        self._server.bind(path)
        self._server.listen(64)
        self._selector.register(self._server, selectors.EVENT_READ)

    def fileno(self) -> int:
        """A descriptor that covers the server and all its connections."""
        return self._selector.fileno()

    def serve(self) -> None:
        """Do what can be done without waiting."""
        for key, _ in self._selector.select(0):
            if key.fileobj is self._server:
                self._accept()
            else:
                self._receive(key.fileobj)

    def seen(self) -> dict[str, object]:
        """What was seen until now, for ``trial.json``: ``calls`` and how many more went unrecorded."""
        self.serve()
        return {"calls": list(self.calls), "unrecorded": self.unrecorded}

    def close(self) -> None:
        """Stop listening, drop every connection and remove the socket."""
        self.serve()
        for connection in list(self._received):
            self._drop(connection)
        self._selector.close()
        self._server.close()
        try:
            os.unlink(self.path)
        except OSError:
            # The subject may have removed it or its folder.
            pass

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:
            return
        if len(self._received) >= MAX_CONNECTIONS:
            # The oldest has had the most time: peers that never speak must not shut out one that does.
            self._drop(next(iter(self._received)))
        connection.setblocking(False)
        self._received[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _receive(self, connection: socket.socket) -> None:
        if connection not in self._received:
            return
        try:
            part = connection.recv(MAX_REQUEST_BYTES)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        data = self._received[connection] = self._received[connection] + part
        if part and b"\n" not in data and len(data) <= MAX_REQUEST_BYTES:
            return
        if data:
            self._answer(connection, data.split(b"\n", 1)[0][: MAX_REQUEST_BYTES + 1])
        self._drop(connection)

    def _answer(self, connection: socket.socket, line: bytes) -> None:
        call, reply = self._look_up(line)
        if len(self.calls) < MAX_RECORDED_CALLS:
            self.calls.append({"at": clock.now_at(), **call, **_peer(connection, self._workspace, call["program"])})
        else:
            self.unrecorded += 1
        try:
            connection.send(strict_json.canonical(reply) + b"\n")
        except OSError:
            # The peer went away without its answer; the call is recorded all the same.
            pass

    def _look_up(self, line: bytes) -> tuple[dict[str, object], Mapping[str, object]]:
        problem = ""
        try:
            request = strict_json.parse_object(line, max_bytes=MAX_REQUEST_BYTES)
        except strict_json.JsonError as error:
            request, problem = {}, str(error)
        program, args = request.get("program"), request.get("args")
        if not problem and (not isinstance(program, str) or not isinstance(args, list) or not all(isinstance(a, str) for a in args)):
            problem = "a call has 'program' and 'args'"
        if problem:
            sent = line[:1024].decode("utf-8", "backslashreplace")
            return {"program": None, "args": [], "reply": None, "problem": problem, "sent": sent}, {"error": problem}
        for rule in self._rules:
            if rule["program"] == program and rule.get("args", args) == args:
                return {"program": program, "args": args, "reply": rule["name"]}, rule["reply"]
        return {"program": program, "args": args, "reply": None}, {"error": "nobody answers that"}

    def _drop(self, connection: socket.socket) -> None:
        del self._received[connection]
        self._selector.unregister(connection)
        connection.close()


def _peer(connection: socket.socket, workspace: str, program: object) -> dict[str, object]:
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return {"peer_pid": None, "peer_uid": None, "peer_argv": None, "peer_program": None}
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    argv = _argv_of(pid)
    return {"peer_pid": pid, "peer_uid": uid, "peer_argv": argv, "peer_program": _which_program(pid, argv or [], workspace, program)}


def _which_program(pid: int, argv: list[str], workspace: str, program: object) -> str | None:
    """Whether the peer runs the workspace's own ``program`` or a file of the same name elsewhere."""
    if not isinstance(program, str):
        return None
    for argument in argv:
        if os.path.basename(argument) == os.path.basename(program):
            try:
                path = os.path.join(os.readlink(f"/proc/{pid}/cwd"), argument)
                return "given" if os.path.samefile(path, os.path.join(workspace, program)) else "other"
            except (OSError, ValueError):
                # In a sandbox of its own the paths are others: then the command line has to do.
                return None
    return None


def _argv_of(pid: int) -> list[str] | None:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            data = stream.read(_MAX_ARGV_BYTES)
    except OSError:
        return None
    # A zombie has an empty command line: the caller is gone and cannot be told.
    return [part.decode("utf-8", "backslashreplace") for part in data.removesuffix(b"\0").split(b"\0")] if data else None
