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
    """A named shape and the issuer whose documentation describes it.

    A match holds one of the ``literals``: at its start, or with ``lead`` at most that many bytes after it; ``reach`` bytes from
    there on decide then.
    """

    name: str
    source: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    lead: int = 0
    reach: int = 0


@dataclass(frozen=True, slots=True)
class Sighting:
    """One match: the pattern's name and the byte offset at which it starts. The value is not kept."""

    pattern: str
    offset: int


def _token(name: str, source: str, literals: str, expression: bytes) -> CredentialPattern:
    return CredentialPattern(name, source, tuple(literals.encode().split()), re.compile(_START + expression))


# Prefix-anchored shapes only: a rule on entropy would flag every digest in the evidence.
# (?<![0-9A-Za-z_-]) keeps a match from starting inside a longer word, as in "task-..." for "sk-...".
_START = rb"(?<![0-9A-Za-z_-])"
PATTERNS: tuple[CredentialPattern, ...] = (
    _token("anthropic-key", "Anthropic API keys", "sk-ant-", rb"sk-ant-[0-9A-Za-z_-]{16,}"),
    _token("openai-key", "OpenAI API keys", "sk-", rb"sk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?[0-9A-Za-z_-]{20,}"),
    _token("github-token", "GitHub token formats", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", rb"(?:gh[pousr]_[0-9A-Za-z]{30,}|github_pat_[0-9A-Za-z_]{30,})"),
    _token("gitlab-token", "GitLab token prefixes", "glpat-", rb"glpat-[0-9A-Za-z_-]{20,}"),
    _token("slack-token", "Slack token types", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", rb"xox[abeoprs]-[0-9A-Za-z-]{10,}"),
    _token("aws-access-key-id", "AWS IAM unique identifiers", "AKIA ASIA", rb"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
    _token("google-api-key", "Google API keys", "AIza", rb"AIza[0-9A-Za-z_-]{35}"),
    _token("huggingface-token", "Hugging Face user access tokens", "hf_", rb"hf_[0-9A-Za-z]{30,}"),
    _token("npm-token", "npm access tokens", "npm_", rb"npm_[0-9A-Za-z]{36}"),
    _token("pypi-token", "PyPI API tokens", "pypi-", rb"pypi-[0-9A-Za-z_-]{40,}"),
    _token("stripe-key", "Stripe API keys", "sk_live_ sk_test_ rk_live_ rk_test_", rb"(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}"),
    _token("json-web-token", "RFC 7519", "eyJ", rb"eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"),
    CredentialPattern("private-key", "RFC 7468", (b"-----BEGIN ",), re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")),
    CredentialPattern(
        "bearer-header", "RFC 6750", (b"uthorization:", b"UTHORIZATION:"),
        re.compile(rb"(?i:authorization:\s*bearer\s+)[0-9A-Za-z._~+/=-]{12,}"), lead=1, reach=512,
    ),
    CredentialPattern(
        "url-password", "RFC 3986 userinfo", (b"://",),
        re.compile(rb"[A-Za-z][0-9A-Za-z+.-]{1,20}://[^\s/:@'\"]{1,64}:[^\s/@'\"]{6,128}@"), lead=21, reach=3 + 64 + 1 + 128 + 1,
    ),
)


def find(data: bytes | str) -> list[Sighting]:
    """Every place in ``data`` that is shaped like a credential, in order of offset (bytes)."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) < _SHORT_BYTES and not _ANY_LITERAL.search(raw):
        return []
    marks = {mark for mark in _DIFFERENT_MARKS if mark in raw}
    found = {Sighting(pattern.name, offset) for pattern in PATTERNS for offset in _offsets(raw, pattern, marks)}
    return sorted(found, key=lambda sighting: (sighting.offset, sighting.pattern))


_SHORT_BYTES = 4096
_ANY_LITERAL = re.compile(b"|".join(re.escape(literal) for pattern in PATTERNS for literal in pattern.literals))
# Of most data a byte that is no lowercase letter already says that a literal is not there.
_MARKS = {
    literal: next((literal[at : at + 1] for at in range(len(literal)) if not literal[at : at + 1].islower()), b"")
    for pattern in PATTERNS
    for literal in pattern.literals
}


_DIFFERENT_MARKS = frozenset(_MARKS.values())


def _offsets(raw: bytes, pattern: CredentialPattern, marks: set[bytes]) -> Iterator[int]:
    """Where ``pattern`` matches. It is tried around its literals only: to search 8 MiB for it takes 0.3 s, for a literal 2 ms."""
    for literal in pattern.literals:
        at = raw.find(literal) if _MARKS[literal] in marks else -1
        free = 0
        while at >= 0:
            if pattern.lead:
                match = pattern.expression.search(raw, max(free, at - pattern.lead), at + pattern.reach)
            else:
                match = pattern.expression.match(raw, at)
            if match is not None:
                yield match.start()
                free = match.end()
            at = raw.find(literal, max(free, at + 1))
