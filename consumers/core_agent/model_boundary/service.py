"""Where the model service is: reading ``--model-base-url``.

Owns the URL and how an agent's path is joined to it. It connects to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


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
        """The path there: a version that both the base and the agent name is not doubled."""
        first = "/" + asked.lstrip("/").split("/", 1)[0]
        if self.prefix.endswith(first) and first.startswith("/v1"):
            return self.prefix[: -len(first)] + asked
        return self.prefix + asked
