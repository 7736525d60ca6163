"""A headless Chromium driven over its DevTools pipe, by the standard library.

The pipe (descriptors 3 and 4, messages ended by NUL) needs no port and no network. Each browser has
its own empty profile and is ended by its own process group when the test is over.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)  # fmt: skip
ANSWER_WITHIN_S = 30.0


def find() -> str | None:
    """The browser of this machine, ``None`` when there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One browser with one page. ``events`` holds everything that it reported, in order."""

    def __init__(self, path: str) -> None:
        self.profile = tempfile.mkdtemp(prefix="report-chromium-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def place_pipes() -> None:
            # Above 4 first: either end may hold one of the two numbers.
            reading, writing = os.dup2(to_browser, 103), os.dup2(from_browser, 104)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=place_pipes, close_fds=False, start_new_session=True,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.events: list[dict] = []
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **parameters: object) -> dict:
        """Send one command and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(ANSWER_WITHIN_S)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, within_s: float) -> dict:
        deadline = time.monotonic() + within_s
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise AssertionError("the browser did not answer")
            block = os.read(self._read, 1 << 20)
            if not block:
                raise AssertionError("the browser ended")
            self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> float:
        """Load a page and wait for its load event; returns the seconds that took."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # From a blank page: another hash of the same file would be no new load.
        self._load("about:blank")
        return self._load(url)

    def _load(self, url: str) -> float:
        self.events.clear()
        started = time.monotonic()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(ANSWER_WITHIN_S))
        return time.monotonic() - started

    def evaluate(self, expression: str) -> object:
        """The JSON value of an expression in the page; an exception fails the test."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def key(self, name: str, code: int, text: str = "") -> None:
        """Press and release one key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def screenshot(self, target: Path) -> None:
        """The visible part of the page as a PNG file."""
        target.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[str]:
        """Console errors, exceptions, policy violations and log entries since the page was opened."""
        self.evaluate("1")
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown" or (
                method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert")
            ):
                found.append(json.dumps(parameters)[:500])
            elif method == "Log.entryAdded":
                found.append(json.dumps(parameters["entry"])[:500])
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for since it was opened."""
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
