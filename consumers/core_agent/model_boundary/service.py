"""Where the model service is: reading ``--model-base-url``.

Owns the URL and how an agent's path is joined to it. It connects to nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_VERSION = re.compile(r"/v[0-9][a-z0-9]*\Z")


@dataclass(frozen=True, slots=True)
class Service:
    """Where the model service is, from ``--model-base-url``."""

    host: str
    port: int
    tls: bool
    prefix: str

    @classmethod
    def parse(cls, url: str) -> Service:
        """Raises ``ValueError`` for what is no http(s) URL with a host."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is no http or https URL without query")
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"))

    def path(self, asked: str) -> str:
        """The path there. A version that the agent names too (``/v1``, ``/v1beta``) is the agent's."""
        base = _VERSION.sub("", self.prefix) if re.match(r"/v[0-9]", asked) else self.prefix
        return base + asked
