"""Keys stay out of what is written, wherever the stream is cut; everything else stays as it is."""

from __future__ import annotations

import random

import pytest

from consumers.core_agent.model_boundary.redact import MAX_HELD_BYTES, Redactor, Stream

PASSED = "canary, with; odd 'chars' and = signs"
SECRETS = [
    b"sk-" + b"a1B2" * 12, b"sk-ant-" + b"x9" * 20, b"ghp_" + b"A" * 36, b"AKIA" + b"B" * 16, b"hf_" + b"c" * 34, PASSED.encode(),
    b"Authorization: Bearer " + b"q" * 40, b"eyJ" + b"a" * 20 + b".eyJ" + b"b" * 20 + b"." + b"c" * 20,
    b"-----BEGIN RSA PRIVATE KEY-----\nMIIB" + b"d" * 600 + b"\nQQ==\n-----END RSA PRIVATE KEY-----",
]


def in_pieces(data: bytes, redactor: Redactor, rng: random.Random) -> bytes:
    stream, out, place = Stream(redactor), b"", 0
    while place < len(data):
        size = rng.choice((1, 3, 17, 200, 5000))
        out += stream.feed(data[place:place + size])
        place += size
    return out + stream.finish()


@pytest.mark.parametrize("seed", range(12))
def test_no_secret_survives_any_cut(seed: int) -> None:
    rng = random.Random(seed)
    parts = []
    for _ in range(40):
        parts.append(b'{"text": "' + bytes(rng.choice(b"abc XYZ09-_./") for _ in range(rng.randrange(0, 400))) + b'", "k": "')
        parts.append(rng.choice(SECRETS))
        parts.append(b'"}\n')
    written = in_pieces(b"".join(parts), Redactor([PASSED]), rng)
    for secret in SECRETS:
        assert secret not in written
        assert secret[-12:] not in written
    assert b"[redacted:" in written


@pytest.mark.parametrize("seed", range(6))
def test_what_holds_no_secret_is_unchanged(seed: int) -> None:
    rng = random.Random(seed)
    data = bytes(rng.randrange(256) for _ in range(200_000)) + b"task-list sk-short disk-1234567890" + b"z" * 300_000
    assert in_pieces(data, Redactor([PASSED]), rng) == data


def test_memory_for_what_is_held_back_is_bounded() -> None:
    stream = Stream(Redactor())
    written = sum(len(stream.feed(b"k" * 10_000)) for _ in range(100))
    assert written > 1_000_000 - 2 * MAX_HELD_BYTES


def test_short_values_are_not_searched_for() -> None:
    redactor = Redactor(["abc", ""])
    assert redactor.clean(b"abcabc") == b"abcabc"
    redactor.add(["a\"quoted\"value"])
    assert b"quoted" not in redactor.clean(b'{"x": "a\\"quoted\\"value"}')
    assert redactor.found == {"passed-value": 1}
