"""Credential shapes: seen by name and offset, never by value, and digests are not among them."""

from __future__ import annotations

import hashlib
import random

import pytest

from agent_eval.records.credentials import PATTERNS, find

SHAPED = {
    "anthropic-key": "sk-ant-api03-" + "a1B2" * 8,
    "openai-key": "sk-proj-" + "a1B2" * 8,
    "github-token": "ghp_" + "a1B2" * 9,
    "gitlab-token": "glpat-" + "a1B2" * 5,
    "slack-token": "xoxb-" + "1234567890" * 2,
    "aws-access-key-id": "AKIA" + "ABCD2345" * 2,
    "google-api-key": "AIza" + "a1B2c" * 7,
    "huggingface-token": "hf_" + "a1B2c" * 7,
    "npm-token": "npm_" + "a1B2" * 9,
    "pypi-token": "pypi-" + "a1B2" * 12,
    "stripe-key": "sk_test_" + "a1B2" * 6,
    "json-web-token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTYifQ" + ".abcdefghijklmnop",
    "private-key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "bearer-header": "Authorization: " + "Bearer abcdefghijklmnop",
    "url-password": "https://user:" + "correct-horse@host.invalid/",
}


def test_every_pattern_is_exercised() -> None:
    assert set(SHAPED) == {pattern.name for pattern in PATTERNS}


@pytest.mark.parametrize("name", SHAPED)
def test_seen_at_its_offset(name: str) -> None:
    text = "before it: " + SHAPED[name] + " and after"
    found = [sighting for sighting in find(text) if sighting.pattern == name]
    assert [sighting.offset for sighting in found] == [11]
    assert SHAPED[name] not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha256(b"x").hexdigest(),
        "task-0123456789abcdefghijklmnop",
        "https://example.invalid/path?x=1",
        "http://127.0.0.1:8080/a@b",
        "sk-dummy",
        "basket-" + "a" * 40,
        "",
    ],
)
def test_not_seen(text: str) -> None:
    assert find(text) == []


def test_bytes_that_are_no_text() -> None:
    data = b"\xff\x00\xfe" + SHAPED["github-token"].encode() + b"\xff"
    assert [(s.pattern, s.offset) for s in find(data)] == [("github-token", 3)]


def test_trying_around_literals_finds_what_searching_everything_finds() -> None:
    random_ = random.Random(9)
    pieces = [*SHAPED.values(), "sk-", "task-", "://", "a://b:", "@", "eyJ", "xox", "xoxb-", "AKIA", "ghp_", " ", "\n", ".", "a" * 30, "A1" * 20, "'", "authorization:", "BEARER ", "-----BEGIN "]
    for _ in range(300):
        raw = "".join(random_.choice(pieces)[random_.randrange(3) :] for _ in range(40)).encode()
        expected = sorted((match.start(), pattern.name) for pattern in PATTERNS for match in pattern.expression.finditer(raw))
        assert [(sighting.offset, sighting.pattern) for sighting in find(raw)] == expected
