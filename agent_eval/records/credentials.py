"""Things shaped like credentials, and where they stand; never the value.

Owns the one documented table of patterns. A match is a *shape*: it does not say
that the credential is real. Callers refuse or flag; nothing here prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CredentialPattern:
    """A named shape and the issuer whose documentation describes it."""

    name: str
    source: str
    expression: re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class Sighting:
    """One match: the pattern's name and the byte offset at which it starts. The value is not kept."""

    pattern: str
    offset: int


def _pattern(name: str, source: str, expression: bytes) -> CredentialPattern:
    return CredentialPattern(name, source, re.compile(expression))


# Prefix-anchored shapes only: a rule on entropy would flag every digest in the evidence.
# (?<![0-9A-Za-z_-]) keeps a match from starting inside a longer word, as in "task-..." for "sk-...".
_START = rb"(?<![0-9A-Za-z_-])"
PATTERNS: tuple[CredentialPattern, ...] = (
    _pattern("anthropic-key", "Anthropic API keys", _START + rb"sk-ant-[0-9A-Za-z_-]{16,}"),
    _pattern("openai-key", "OpenAI API keys", _START + rb"sk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?[0-9A-Za-z_-]{20,}"),
    _pattern("github-token", "GitHub token formats", _START + rb"(?:gh[pousr]_[0-9A-Za-z]{30,}|github_pat_[0-9A-Za-z_]{30,})"),
    _pattern("gitlab-token", "GitLab token prefixes", _START + rb"glpat-[0-9A-Za-z_-]{20,}"),
    _pattern("slack-token", "Slack token types", _START + rb"xox[abeoprs]-[0-9A-Za-z-]{10,}"),
    _pattern("aws-access-key-id", "AWS IAM unique identifiers", _START + rb"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
    _pattern("google-api-key", "Google API keys", _START + rb"AIza[0-9A-Za-z_-]{35}"),
    _pattern("huggingface-token", "Hugging Face user access tokens", _START + rb"hf_[0-9A-Za-z]{30,}"),
    _pattern("npm-token", "npm access tokens", _START + rb"npm_[0-9A-Za-z]{36}"),
    _pattern("pypi-token", "PyPI API tokens", _START + rb"pypi-[0-9A-Za-z_-]{40,}"),
    _pattern("stripe-key", "Stripe API keys", _START + rb"(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}"),
    _pattern("json-web-token", "RFC 7519", _START + rb"eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"),
    _pattern("private-key", "RFC 7468", rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    _pattern("bearer-header", "RFC 6750", rb"(?i:authorization:\s*bearer\s+)[0-9A-Za-z._~+/=-]{12,}"),
    _pattern("url-password", "RFC 3986 userinfo", rb"[A-Za-z][0-9A-Za-z+.-]{1,20}://[^\s/:@'\"]{1,64}:[^\s/@'\"]{6,128}@"),
)

# One cheap scan decides whether the table is worth trying at all.
_HINT = re.compile(
    rb"sk-|sk_|rk_|gh[pousr]_|github_pat_|glpat-|xox|AKIA|ASIA|AIza|hf_|npm_|pypi-|eyJ|PRIVATE KEY|[Bb]earer|BEARER|://"
)


def find(data: bytes | str) -> list[Sighting]:
    """Every place in ``data`` that is shaped like a credential, in order of offset (bytes)."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if not _HINT.search(raw):
        return []
    return sorted(_sightings(raw), key=lambda sighting: (sighting.offset, sighting.pattern))


def _sightings(raw: bytes) -> Iterator[Sighting]:
    for pattern in PATTERNS:
        for match in pattern.expression.finditer(raw):
            yield Sighting(pattern.name, match.start())
