"""Which API and which operation a request path means.

Owns the table of endpoints. Everything after the trial's secret is looked at here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType

from . import api_anthropic, api_gemini, api_openai_chat, api_openai_responses

_GEMINI = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(streamGenerateContent|generateContent|countTokens)\Z")

APIS: dict[str, ModuleType] = {
    "openai-chat": api_openai_chat,
    "openai-responses": api_openai_responses,
    "anthropic": api_anthropic,
    "gemini": api_gemini,
}


@dataclass(frozen=True, slots=True)
class Route:
    """What a path asks for: ``generate``, ``count`` (tokens), ``models`` or ``other``."""

    api: str
    operation: str
    model: str = ""
    streams: bool = False


def route(method: str, path: str, default_api: str) -> Route:
    """The route of ``path`` (without secret and query); ``default_api`` is the trial's."""
    if found := _GEMINI.search(path):
        operation = "count" if found[2] == "countTokens" else "generate"
        return Route("gemini", operation, found[1], found[2] == "streamGenerateContent")
    if method == "POST":
        if path.endswith("/chat/completions"):
            return Route("openai-chat", "generate")
        if path.endswith("/responses"):
            return Route("openai-responses", "generate")
        if path.endswith("/messages"):
            return Route("anthropic", "generate")
        if path.endswith("/messages/count_tokens"):
            return Route("anthropic", "count")
    if method == "GET" and path.rstrip("/").endswith("/models"):
        return Route(default_api, "models")
    return Route(default_api, "other")
