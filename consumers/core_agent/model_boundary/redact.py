"""Keeping keys out of what is written, while it streams.

Owns replacing key-shaped values and the exact values that a request authorised itself
with. It never changes what is passed on to the agent or the model, only what is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from agent_eval import credentials

MIN_SECRET_BYTES = 6
#: A key that is longer than this, without a character that ends it, is cut in two.
MAX_HELD_BYTES = 64 << 10

#: Where a match of each pattern can begin. Looking for these is a hundred times faster than the patterns themselves.
_BEGINNINGS: dict[str, tuple[bytes, ...]] = {
    "anthropic-key": (b"sk-ant-",),
    "openai-key": (b"sk-",),
    "github-token": (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
    "gitlab-token": (b"glpat-",),
    "slack-token": (b"xox",),
    "aws-access-key-id": (b"AKIA", b"ASIA"),
    "google-api-key": (b"AIza",),
    "huggingface-token": (b"hf_",),
    "npm-token": (b"npm_",),
    "pypi-token": (b"pypi-",),
    "stripe-key": (b"sk_live_", b"sk_test_", b"rk_live_", b"rk_test_"),
    "json-web-token": (b"eyJ",),
}
#: Patterns that begin with no fixed text, in a form that does.
_ANCHORED = {"url-password": re.compile(rb"://[^\s/:@'\"]{1,64}:[^\s/@'\"]{6,128}@")}
_NEEDED = {"url-password": b"@", "bearer-header": b"earer", "private-key": b"PRIVATE KEY"}

_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----.*?(?:-----END (?:[A-Z]+ )?PRIVATE KEY-----|\Z)", re.DOTALL)
#: Characters that no key goes across. The space is not one of them: "authorization: bearer KEY" is one match.
_ENDS = re.compile(rb"[\n\"'`,;{}()<>|]")


class Redactor:
    """Replaces secrets in the bytes of one trial. ``found`` counts them by kind."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.found: dict[str, int] = {}
        self._values: set[bytes] = set()
        self._exact: re.Pattern[bytes] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Values that must not be written, as they stand and as JSON writes them."""
        before = len(self._values)
        for value in values:
            raw = value.encode("utf-8", "surrogateescape")
            if len(raw) >= MIN_SECRET_BYTES:
                self._values.update((raw, json.dumps(value)[1:-1].encode()))
        if len(self._values) != before:
            longest_first = sorted(self._values, key=len, reverse=True)
            self._exact = re.compile(b"|".join(map(re.escape, longest_first)))

    @property
    def reach(self) -> int:
        """How many bytes a secret may need before it can be recognised."""
        return max([256, *map(len, self._values)])

    def clean(self, data: bytes) -> bytes:
        """``data`` without secrets. Whole documents only: see :class:`Stream` for pieces."""
        if self._exact is not None:
            data = self._exact.sub(lambda _: self._mark("passed-value"), data)
        if b"PRIVATE KEY" in data:
            data = _PRIVATE_KEY.sub(lambda _: self._mark("private-key"), data)
        for pattern in credentials.PATTERNS:
            if pattern.name in _BEGINNINGS:
                for beginning in _BEGINNINGS[pattern.name]:
                    data = self._replace_at(data, beginning, pattern.name, pattern.expression)
            elif _NEEDED.get(pattern.name, b"") in data:
                expression = _ANCHORED.get(pattern.name, pattern.expression)
                data = expression.sub(lambda _, name=pattern.name: self._mark(name), data)
        return data

    def _replace_at(self, data: bytes, beginning: bytes, name: str, expression: re.Pattern[bytes]) -> bytes:
        """``data`` with every match that begins with ``beginning`` replaced."""
        place = data.find(beginning)
        if place < 0:
            return data
        parts, done = [], 0
        while place >= 0:
            match = expression.match(data, place)
            if match is not None:
                parts += [data[done:place], self._mark(name)]
                done = match.end()
            place = data.find(beginning, max(done, place + 1))
        return b"".join([*parts, data[done:]])

    def before_value(self, data: bytes, cut: int) -> int:
        """``cut``, or the start of the exact value that it would go through."""
        if self._exact is not None:
            for match in self._exact.finditer(data, max(0, cut - self.reach)):
                if match.start() >= cut:
                    break
                if match.end() > cut:
                    return match.start()
        return cut

    def _mark(self, kind: str) -> bytes:
        self.found[kind] = self.found.get(kind, 0) + 1
        return b"[redacted:" + kind.encode() + b"]"

    def clean_text(self, text: str) -> str:
        """The same for text."""
        return self.clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


class Stream:
    """Bytes that come in pieces: holds back the end, where a secret may have begun."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be written now."""
        data = self._held + piece
        cut = self._safe_cut(data)
        self._held = data[cut:]
        return self._redactor.clean(data[:cut]) if cut else b""

    def _safe_cut(self, data: bytes) -> int:
        limit = len(data) - self._redactor.reach
        if limit <= 0:
            return 0
        cut = 0
        for match in _ENDS.finditer(data, max(0, limit - 4096), max(0, limit)):
            cut = match.end()
        if not cut and len(data) > MAX_HELD_BYTES:
            cut = limit
        # A private key has line ends in it: not between its first line and its last.
        opened = data.rfind(b"-----BEGIN", 0, cut)
        if opened >= 0 and data.find(b"-----END", opened, cut) < 0 and len(data) - opened < MAX_HELD_BYTES:
            cut = opened
        return self._redactor.before_value(data, cut)

    def finish(self) -> bytes:
        """The rest."""
        rest, self._held = self._held, b""
        return self._redactor.clean(rest)
