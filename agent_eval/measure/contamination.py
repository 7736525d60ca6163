"""Has a benchmark item been seen before? Canary, n-gram and whole-text overlap, split overlap, date.

Owns: levels of contamination per item, the scores with and without the items in question, the review queue.
Does not own: reading files, text normalisation (`text_overlap`), and any change of the benchmark: output is a report
and a queue, an item is never removed here.

Comparison is by text, never by id. What an order-exchangeability test needs (log-probabilities) is not exercised.
Levels: `confirmed`: the whole item or the suite's canary is in a source, or the same text is in two splits.
`possible`: some n-gram is, or the item is older than the model's cutoff. `none`: nothing found in what was searched.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent_eval.measure.intervals import clopper_pearson, newcombe_diff_unpaired
from agent_eval.measure.text_overlap import boilerplate, canaries, holds_words, known_ngrams, ngram_length, ngrams, normalise

FORMAT = "agent-eval/audit-contamination/1"
CONFIDENCE = 0.95
_MAX_SHOWN = 3


class Level(enum.StrEnum):
    """How sure it is that an item was seen."""

    NONE = "none"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class TextItem:
    """One benchmark item. `passed` is its outcome where known; `created` is `YYYY-MM-DD` where known."""

    id: str
    text: str
    split: str | None = None
    passed: bool | None = None
    created: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One document that the item might have been seen in."""

    name: str
    text: str


@dataclass(slots=True)
class _Found:
    level: Level = Level.NONE
    reasons: list[dict[str, object]] = field(default_factory=list)
    ignored: int = 0

    def add(self, level: Level, kind: str, source: str, detail: str) -> None:
        self.reasons.append({"kind": kind, "source": source, "detail": detail})
        if level is Level.CONFIRMED or self.level is Level.NONE:
            self.level = level


def audit_contamination(
    items: Sequence[TextItem],
    sources: Iterable[Source],
    *,
    own_canaries: frozenset[str] = frozenset(),
    cutoff: str | None = None,
    n: int | None = None,
) -> dict:
    """The audit as plain JSON: level and reasons per item, canaries seen, scores, queue.

    `own_canaries` are GUIDs of this suite besides those in its texts. `cutoff` (`YYYY-MM-DD`) is the model's. `n` is
    the n-gram length in words; by default the rule of ngram_length. n-grams in more than ten sources (items and
    documents together) are boilerplate and ignored, except that a whole item found is always reported.
    """
    texts = [normalise(item.text) for item in items]
    length = n or ngram_length(len(text.split()) for text in texts)
    own = own_canaries.union(*(canaries(item.text) for item in items))
    found = [_Found() for _ in items]
    searched = _search(texts, sources, length)
    _judge_grams(searched, length, found)
    _find_split_overlap(items, texts, found)
    for item, result in zip(items, found, strict=True):
        if cutoff is not None and item.created is not None and item.created < cutoff:
            result.add(Level.POSSIBLE, "date", "", f"created {item.created}, before the cutoff {cutoff}")
    seen = [{"source": one.name, "guid": guid, "own": guid in own} for one in searched.documents for guid in one.canaries]
    return _record(items, found, length, len(searched.documents), seen, cutoff)


@dataclass(frozen=True, slots=True)
class _Document:
    """What is kept of a document that was searched: the items' n-grams in it, the items that it holds whole."""

    name: str
    grams: set[str]
    whole: set[int]
    canaries: list[str]


@dataclass(frozen=True, slots=True)
class _Searched:
    item_grams: list[set[str]]
    documents: list[_Document]


def _search(texts: Sequence[str], sources: Iterable[Source], n: int) -> _Searched:
    """Look through every document once; a corpus may be larger than memory, so only what matches is kept."""
    item_grams = [ngrams(text.split(), n) for text in texts]
    holders: dict[str, list[int]] = {}
    for index, grams in enumerate(item_grams):
        for gram in grams:
            holders.setdefault(gram, []).append(index)
    sizes = {n, *(gram.count(" ") + 1 for gram in holders)}
    documents = []
    for source in sources:
        text = normalise(source.text)
        words = text.split()
        grams = set().union(*(known_ngrams(words, size, holders.keys()) for size in sizes))
        sharing = {index for gram in grams for index in holders[gram]}
        whole = {index for index in sharing if holds_words(text, texts[index])}
        documents.append(_Document(source.name, grams, whole, sorted(canaries(source.text))))
    return _Searched(item_grams, documents)


def _judge_grams(searched: _Searched, n: int, found: Sequence[_Found]) -> None:
    common = boilerplate([*searched.item_grams, *(document.grams for document in searched.documents)])
    matching = [document for document in searched.documents if document.grams]
    for index, (grams, result) in enumerate(zip(searched.item_grams, found, strict=True)):
        short = all(gram.count(" ") < n - 1 for gram in grams)
        for document in matching:
            shared = grams & document.grams
            result.ignored += len(shared & common)
            if index in document.whole and not short:
                result.add(Level.CONFIRMED, "whole-text", document.name, "the whole item")
            elif shared - common:
                _add_shared(result, document.name, sorted(shared - common), short)


def _add_shared(result: _Found, source: str, shared: list[str], short: bool) -> None:
    if short:
        result.add(Level.CONFIRMED, "whole-text", source, f"the whole short item: {shared[0]!r}")
        return
    shown = "; ".join(repr(gram) for gram in shared[:_MAX_SHOWN])
    result.add(Level.POSSIBLE, "n-gram", source, f"{len(shared)} shared, such as {shown}")


def _find_split_overlap(items: Sequence[TextItem], texts: Sequence[str], found: Sequence[_Found]) -> None:
    first: dict[str, int] = {}
    for index, (item, text) in enumerate(zip(items, texts, strict=True)):
        if item.split is None or not text:
            continue
        other = first.setdefault(text, index)
        if items[other].split != item.split:
            for here, there in ((index, other), (other, index)):
                detail = f"the same text as {items[there].id} in {items[there].split}"
                found[here].add(Level.CONFIRMED, "split-overlap", f"split {items[there].split}", detail)


def _record(
    items: Sequence[TextItem], found: Sequence[_Found], n: int, documents: int, seen: list[dict], cutoff: str | None
) -> dict[str, object]:
    levels = [result.level for result in found]
    paired = list(zip(items, found, strict=True))
    return {
        "format": FORMAT,
        "items": len(items),
        "sources": documents,
        "ngram_words": n,
        "cutoff": cutoff,
        "levels": {level.value: levels.count(level) for level in Level},
        "canaries": seen,
        "suite_canary_seen": any(sighting["own"] for sighting in seen),
        "only_boilerplate": [item.id for item, result in paired if result.ignored and result.level is Level.NONE],
        "scores": _scores(paired),
        "queue": _queue(paired, seen),
        "not_exercised": ["order exchangeability (needs log-probabilities)"],
    }


def _queue(paired: Sequence[tuple[TextItem, _Found]], seen: Sequence[Mapping]) -> list[dict[str, object]]:
    """The suite itself where its canary was seen, then confirmed items, then possible ones."""
    own = [{"kind": "canary", "source": s["source"], "detail": s["guid"]} for s in seen if s["own"]]
    queue: list[dict[str, object]] = [{"id": None, "level": Level.CONFIRMED.value, "reasons": own}] if own else []
    for level in (Level.CONFIRMED, Level.POSSIBLE):
        queue += [{"id": item.id, "level": level.value, "reasons": found.reasons} for item, found in paired if found.level is level]
    return queue


def _scores(paired: Sequence[tuple[TextItem, _Found]]) -> dict[str, object] | None:
    """Passed of all, of all but confirmed, of clean, of dirty items, and clean minus dirty; None without outcomes."""
    known = [(item.passed, result.level) for item, result in paired if item.passed is not None]
    if not known:
        return None
    clean = [passed for passed, level in known if level is Level.NONE]
    dirty = [passed for passed, level in known if level is not Level.NONE]
    groups = {
        "all": [passed for passed, _ in known],
        "without_confirmed": [passed for passed, level in known if level is not Level.CONFIRMED],
        "clean": clean,
        "dirty": dirty,
    }
    scores: dict[str, object] = {name: _score(outcomes) for name, outcomes in groups.items()}
    scores["clean_minus_dirty"] = _difference(clean, dirty)
    return scores


def _score(outcomes: Sequence[bool]) -> Mapping[str, object]:
    passed, total = sum(outcomes), len(outcomes)
    lower, upper = clopper_pearson(passed, total, CONFIDENCE) if total else (None, None)
    return {"passed": passed, "total": total, "lower": lower, "upper": upper}


def _difference(clean: Sequence[bool], dirty: Sequence[bool]) -> dict[str, object] | None:
    if not clean or not dirty:
        return None
    lower, upper = newcombe_diff_unpaired(sum(clean), len(clean), sum(dirty), len(dirty), CONFIDENCE)
    value = sum(clean) / len(clean) - sum(dirty) / len(dirty)
    return {"value": value, "lower": lower, "upper": upper, "method": "newcombe-unpaired", "confidence": CONFIDENCE}
