"""Do two texts share words? Normalised word n-grams, whole short items, and canaries.

Owns: normalisation, the n-gram length, what is boilerplate, and canary lines.
Does not own: what an overlap means for an item (`contamination`) or for a patch (`agent_eval.gates`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence, Set

LONGEST = 13
SHORTEST = 8
BOILERPLATE_SOURCES = 10
_CANARY = re.compile(r"canary\s+GUID[\s:]+([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})", re.IGNORECASE)


def normalise(text: str) -> str:
    """NFKC, case-folded, punctuation and symbols as spaces, words separated by one space.

    Letters, marks and digits of every script stay. Two texts that differ only in case, punctuation, width or spacing
    become equal.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.translate(_KEPT).split())


class _Kept(dict[int, int]):
    """Character to itself, or to a space when it is neither letter, mark nor number; each looked up once."""

    def __missing__(self, code: int) -> int:
        kept = self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return kept


_KEPT = _Kept()


def ngram_length(lengths: Iterable[int]) -> int:
    """The 5th percentile of item lengths in words, but at least 8 and at most 13 (Brown et al. 2020, appendix C)."""
    ordered = sorted(lengths)
    if not ordered:
        return LONGEST
    return max(SHORTEST, min(LONGEST, ordered[(len(ordered) - 1) * 5 // 100]))


def ngrams(words: Sequence[str], n: int) -> set[str]:
    """Every run of `n` words, joined by one space; the whole text where it is shorter, nothing where it is empty."""
    if not words:
        return set()
    if len(words) < n:
        return {" ".join(words)}
    return {" ".join(words[start : start + n]) for start in range(len(words) - n + 1)}


def known_ngrams(words: Sequence[str], n: int, wanted: Set[str]) -> set[str]:
    """Those n-grams of `words` that are in `wanted`, without holding the others: a document may be of any length."""
    if len(words) < n:
        return {" ".join(words)} & wanted
    grams = (" ".join(words[start : start + n]) for start in range(len(words) - n + 1))
    return {gram for gram in grams if gram in wanted}


def boilerplate(sources: Iterable[set[str]], limit: int = BOILERPLATE_SOURCES) -> set[str]:
    """The n-grams that occur in more than `limit` sources: licence headers, templates, not an item's own text."""
    seen: Counter[str] = Counter()
    for grams in sources:
        seen.update(grams)
    return {gram for gram, times in seen.items() if times > limit}


def holds_words(haystack: str, needle: str) -> bool:
    """Whether normalised `needle` occurs in normalised `haystack` at word boundaries; never for an empty needle."""
    return bool(needle) and f" {needle} " in f" {haystack} "


def canaries(text: str) -> set[str]:
    """The GUIDs of every line of the form `canary GUID <uuid>` (BIG-bench convention), lower-case with hyphens."""
    found = set()
    for match in _CANARY.finditer(text):
        digits = match.group(1).replace("-", "").lower()
        found.add("-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])))
    return found
