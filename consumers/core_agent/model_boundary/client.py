"""The harness's side of the boundary: starts the process, opens and closes trials.

Owns the child process and its control pipe. It waits for each answer (a few
milliseconds): trials are opened and closed one at a time by the scheduler.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import subprocess
import sys
import time
from dataclasses import dataclass

START_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 20.0
MAX_BODY_BYTES = 64 << 20
MAX_CONNECTIONS = 64
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


class BoundaryLost(Exception):
    """The boundary's process does not answer.

    ``killed`` is whether a signal ended it that the harness did not send: anyone of the same user can do that,
    the agent too. Otherwise the harness is at fault.
    """

    def __init__(self, what: str, *, killed: bool = False) -> None:
        self.killed = killed
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class Address:
    """Where one trial reaches the boundary."""

    origin: str
    secret: str
    port: int

    @property
    def base_url(self) -> str:
        """The base that OpenAI clients want."""
        return f"{self.origin}/v1"


class ModelBoundary:
    """One boundary process, for all trials of a run."""

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        # The parent's environment would hand it keys that it does not need.
        environment = {name: os.environ[name] for name in ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
        module = f"{__package__}.server"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(max_connections), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=_ROOT, start_new_session=True,
        )
        self._rest = b""
        self.port = int(str(self._read(START_TIMEOUT_S)["port"]))

    @property
    def pid(self) -> int:
        """The process id of the boundary."""
        return self._process.pid

    def address(self) -> Address:
        """A new address, with a secret of its own; nothing answers there before :meth:`open`."""
        secret = secrets.token_urlsafe(18)
        return Address(f"http://127.0.0.1:{self.port}/{secret}", secret, self.port)

    def open(self, address: Address, *, folder: str, mode: str, api: str, max_requests: int, redact: list[str] | None = None,
             base_url: str | None = None, key: str | None = None, policy: dict[str, object] | None = None,
             replay_folder: str | None = None) -> None:
        """Take on a trial at ``address``; its record goes to ``folder`` (private, outside the evidence).

        Raises :class:`BoundaryLost`, also when the boundary refuses.
        """
        answer = self._ask({
            "op": "open", "secret": address.secret, "folder": folder, "mode": mode, "api": api, "max_requests": max_requests,
            "max_body_bytes": MAX_BODY_BYTES, "redact": redact or [], "base_url": base_url, "key": key,
            "policy": policy, "replay_folder": replay_folder,
        })
        if not answer["ok"]:
            raise BoundaryLost(f"the model boundary refused the trial: {answer['error']}")

    def close_trial(self, address: Address) -> dict[str, object]:
        """End a trial: its record is complete when this returns. Raises :class:`BoundaryLost`."""
        return self._ask({"op": "close", "secret": address.secret})

    def _ask(self, message: dict[str, object]) -> dict[str, object]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._lost() from None
        return self._read(ANSWER_TIMEOUT_S)

    def _read(self, timeout_s: float) -> dict[str, object]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise BoundaryLost(f"the model boundary did not answer within {timeout_s:g} s")
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise self._lost()
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return dict(json.loads(line))

    def _lost(self) -> BoundaryLost:
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return BoundaryLost("the model boundary does not listen any more")
        ended = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return BoundaryLost(f"the model boundary has ended {ended}", killed=code < 0)

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

