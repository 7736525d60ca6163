"""A skill as bytes: front matter, body, and the digests of what each measurement exposes.

Owns splitting ``SKILL.md`` and the three exposure digests. Routing sees the front matter only, effectiveness the
body with its declared references, activation everything as shipped. Bytes are never re-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes

_FRONT_MATTER = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(rb"^(name|description)[ \t]*:[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
_BLOCK_SCALAR = re.compile(rb"[>|][+-]?\d?")


@dataclass(frozen=True, slots=True)
class Exposure:
    """The digests of what is shown: ``routing``, ``effectiveness``, ``activation``."""

    routing: str
    effectiveness: str
    activation: str

    def of(self, measurement: str) -> str:
        """The digest for a measurement by name."""
        return {"routing": self.routing, "effectiveness": self.effectiveness, "activation": self.activation}[measurement]

    def to_json(self) -> dict[str, str]:
        """The three digests by name."""
        return {"routing": self.routing, "effectiveness": self.effectiveness, "activation": self.activation}


def split(document: bytes) -> tuple[bytes, bytes]:
    """(front matter with its fences, body). Without front matter the first is empty."""
    match = _FRONT_MATTER.match(document)
    return (b"", document) if match is None else (document[: match.end()], document[match.end() :])


def front_matter_problem(document: bytes) -> str | None:
    """What is wrong with the front matter, in words: it must be there once, with one name and one description."""
    match = _FRONT_MATTER.match(document)
    if match is None:
        return "has no front matter between two lines of ---"
    found: dict[bytes, list[bytes]] = {}
    for key, value in _FIELD.findall(match.group(1)):
        found.setdefault(key, []).append(value)
    for key in (b"name", b"description"):
        values = found.get(key, [])
        if len(values) != 1:
            return f"front matter has {len(values)} lines of {key.decode()}, expected 1"
        if not values[0] or (_BLOCK_SCALAR.fullmatch(values[0]) and not _continued(match.group(1), key)):
            return f"front matter has an empty {key.decode()}"
    return None


def skill_name(document: bytes) -> str:
    """The ``name`` of the front matter, without quotes; empty when there is none."""
    for key, value in _FIELD.findall(split(document)[0]):
        if key == b"name":
            return value.decode("utf-8", "replace").strip("\"'")
    return ""


def exposure(files: Mapping[str, bytes], main: str) -> Exposure:
    """Digests of what each measurement exposes, over all declared files."""
    front, body = split(files[main])
    rest = {path: sha256_bytes(data) for path, data in files.items() if path != main}
    everything = {path: sha256_bytes(data) for path, data in files.items()}
    return Exposure(
        routing=sha256_bytes(front),
        effectiveness=sha256_bytes(strict_json.canonical({"body": sha256_bytes(body), "files": rest})),
        activation=sha256_bytes(strict_json.canonical(everything)),
    )


def required(before: Exposure, after: Exposure) -> tuple[str, ...]:
    """The measurements that a change needs: of whatever it changed, and always activation."""
    changed = [name for name in ("routing", "effectiveness") if before.of(name) != after.of(name)]
    return (*changed, "activation") if changed else ()


def _continued(block: bytes, key: bytes) -> bool:
    return re.search(rb"^" + key + rb"[ \t]*:[^\n]*\n[ \t]+\S", block, re.MULTILINE) is not None
