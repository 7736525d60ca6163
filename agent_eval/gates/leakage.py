"""Whether a text that is judged, or a split that is trained on, holds what it must not have seen.

Owns normalising text and four scans: identical text, shared 13-word runs, shared runs of 50 characters, and ids
or canaries. Rules: NFKC, case folded, punctuation dropped, spaces collapsed; items of fewer than 13 words are
looked for whole (from 3 words or 12 characters on), so that short items are never skipped in silence. It decides nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WORDS = 13
CHARACTERS = 50
_MIN_SHORT_WORDS, _MIN_SHORT_CHARACTERS = 3, 12
_CANARY = re.compile(r"canary\s+GUID\s+([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.IGNORECASE)
_ID_BOUNDARY = "[0-9A-Za-z_-]"


@dataclass(frozen=True, slots=True)
class Leak:
    """What was found: the item's id and in which way (``text``, ``words``, ``characters``, ``id``, ``canary``)."""

    item: str
    how: str


def normalise(text: str) -> str:
    """The words of ``text``: NFKC, case folded, anything that is not a letter, mark or number as one space."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(
        "".join(c if unicodedata.category(c)[0] in "LMN" else ("" if unicodedata.category(c) == "Cf" else " ") for c in folded).split()
    )


class Scanner:
    """Looks for items (id -> text) in other texts; built once, used for many."""

    __slots__ = ("_canaries", "_characters", "_ids", "_short", "_words")

    def __init__(self, items: Mapping[str, str], canaries: Iterable[str] = ()) -> None:
        self._words: dict[str, str] = {}
        self._characters: dict[str, str] = {}
        self._short: dict[str, str] = {}
        self._ids = {item: re.compile(f"(?<!{_ID_BOUNDARY}){re.escape(item)}(?!{_ID_BOUNDARY})") for item in items if _telling(item)}
        self._canaries = {canary.casefold() for canary in canaries}
        for item, text in items.items():
            self._canaries |= {found.casefold() for found in _CANARY.findall(text)}
            self._add(item, normalise(text))

    def _add(self, item: str, plain: str) -> None:
        words = plain.split()
        if len(words) < WORDS and (len(words) >= _MIN_SHORT_WORDS or len(plain) >= _MIN_SHORT_CHARACTERS):
            self._short.setdefault(plain, item)
        for start in range(len(words) - WORDS + 1):
            self._words.setdefault(" ".join(words[start : start + WORDS]), item)
        for start in range(len(plain) - CHARACTERS + 1):
            self._characters.setdefault(plain[start : start + CHARACTERS], item)

    def find(self, text: str) -> list[Leak]:
        """Everything of the items that stands in ``text``, each (item, how) once, in a fixed order."""
        plain = normalise(text)
        words = plain.split()
        found = {Leak(item, "id") for item, pattern in self._ids.items() if pattern.search(text)}
        found |= {Leak(canary, "canary") for canary in self._canaries if canary in text.casefold()}
        padded = f" {plain} "
        found |= {Leak(item, "text") for short, item in self._short.items() if f" {short} " in padded}
        for start in range(len(words) - WORDS + 1):
            item = self._words.get(" ".join(words[start : start + WORDS]))
            if item is not None:
                found.add(Leak(item, "words"))
        if self._characters:
            for start in range(len(plain) - CHARACTERS + 1):
                item = self._characters.get(plain[start : start + CHARACTERS])
                if item is not None:
                    found.add(Leak(item, "characters"))
        return sorted(found, key=lambda leak: (leak.item, leak.how))


def overlap(one: Mapping[str, str], other: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Pairs (id in ``one``, id in ``other``, how) that share an id, a normalised text or a 13-word run."""
    found = [(item, item, "id") for item in one if item in other]
    texts: dict[str, str] = {}
    runs: dict[str, str] = {}
    for item, text in one.items():
        plain = normalise(text)
        texts.setdefault(plain, item)
        for run in _runs(plain):
            runs.setdefault(run, item)
    for item, text in other.items():
        plain = normalise(text)
        if plain in texts:
            found.append((texts[plain], item, "text"))
            continue
        shared = next((runs[run] for run in _runs(plain) if run in runs), None)
        if shared is not None:
            found.append((shared, item, "words"))
    return sorted(set(found))


def _runs(plain: str) -> Iterable[str]:
    words = plain.split()
    return (" ".join(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1))


def _telling(item: str) -> bool:
    # An id that is one plain word ("translate") says nothing when it stands in a text.
    return len(item) >= 2 and not item.isalpha() and not (item.isdigit() and len(item) < 4)
