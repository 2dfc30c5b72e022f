"""From a question to keys in order: one ranking over the indexes of all scopes that apply."""

from __future__ import annotations

import contextlib
import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .lexical import WordQuery, weigh

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .index import ScopeIndex

# Scores are compared after rounding, so that the order in which facts happened to be added, which
# differs between two processes, cannot decide between two that are equally good.
_DIGITS = 5
_LEAST_SPREAD = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for."""

    terms: Sequence[str]
    vector: Sequence[float] | None = None
    """At length one; None for words alone."""
    lexical_weight: float = 1.0
    """How much BM25 weighs beside the cosines; without a vector it does not matter."""
    limit: int | None = None
    """How many unpinned keys at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedKey:
    """One key's place in a ranking, by its best record in scope."""

    identity: str
    score: float
    """What it was ranked by: BM25 with words alone, otherwise the fused score."""
    lexical: float
    """BM25 over key and text; 0 without a common word."""
    cosine: float | None
    """None where the fact or the question has no vector."""
    pinned: bool
    matched: bool
    """False for what only fills a place, or is only there because it is pinned."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A record that may place its key."""

    score: float
    place: int
    newest_first: int
    lexical: float
    cosine: float | None

    @property
    def order(self) -> tuple[float, int, int]:
        return (-self.score, self.place, self.newest_first)


def rank(indexes: Sequence[ScopeIndex], question: Question, *, numpy: Any | None) -> list[RankedKey]:
    """Rank the keys at these scopes, given most specific first.

    The best `limit` unpinned keys, filled up in plain order (narrowest scope, then newest, then key)
    where fewer match, and every pinned key: in its place where it matches, otherwise last. Equal
    scores are in plain order too, so the same facts give the same answer every time.
    """
    with contextlib.ExitStack() as locks:
        # In one order everywhere: two threads with the same two scopes must not wait for each other.
        for index in sorted(set(indexes), key=id):
            locks.enter_context(index.lock)
        pinned = {index.identities[slot] for index in indexes for slot in index.pinned}
        room = None if question.limit is None else max(0, question.limit)
        wanted = None if room is None else room + len(pinned)
        weighed = weigh(question.terms, [index.postings for index in indexes], numpy)
        best = _best_by_key(_candidates(indexes, question, weighed, wanted, numpy), indexes)
        ordered = sorted(best, key=lambda identity: (*best[identity].order, identity))
        chosen = [identity for identity in ordered if identity not in pinned and _counts(best[identity], question)]
        if room is not None:
            chosen = chosen[:room]
        fill = [] if room is not None and len(chosen) >= room else _plain(indexes, {*chosen, *pinned}, room, numpy)
        if room is not None:
            fill = fill[: room - len(chosen)]
        return _assemble(best, chosen=chosen, fill=fill, pinned=pinned, question=question)


def _counts(found: _Found, question: Question) -> bool:
    return question.vector is not None or found.lexical > 0


def _assemble(
    best: dict[str, _Found], *, chosen: list[str], fill: list[str], pinned: set[str], question: Question
) -> list[RankedKey]:
    least = min((best[identity].score for identity in chosen), default=0.0)

    def matches(identity: str) -> bool:
        found = best[identity]
        return found.lexical > 0 if question.vector is None else found.lexical > 0 or found.score >= least

    placed = [identity for identity in pinned if identity in best and matches(identity)]
    ranked = sorted([*chosen, *placed], key=lambda identity: (*best[identity].order, identity))
    rest = sorted(
        pinned.difference(placed), key=lambda identity: (*best[identity].order, identity) if identity in best else ()
    )
    kept = [(identity, True) for identity in ranked] + [(identity, False) for identity in (*fill, *rest)]
    nothing = _Found(0.0, 0, 0, 0.0, None)
    return [
        RankedKey(
            identity=identity,
            score=(found := best.get(identity, nothing)).score,
            lexical=found.lexical,
            cosine=found.cosine,
            pinned=identity in pinned,
            matched=matched,
        )
        for identity, matched in kept
    ]


def _best_by_key(
    candidates: Iterable[tuple[int, int, float, float, float | None]], indexes: Sequence[ScopeIndex]
) -> dict[str, _Found]:
    best: dict[str, _Found] = {}
    for place, slot, score, lexical, cosine in candidates:
        index = indexes[place]
        found = _Found(round(score, _DIGITS), place, -index.updated[slot], lexical, cosine)
        standing = best.get(index.identities[slot])
        if standing is None or found.order < standing.order:
            best[index.identities[slot]] = found
    return best


def _candidates(
    indexes: Sequence[ScopeIndex], question: Question, weighed: WordQuery, wanted: int | None, numpy: Any | None
) -> list[tuple[int, int, float, float, float | None]]:
    """Answer (scope's place, slot, score, BM25, cosine) of every record that can matter to the ranking."""
    if numpy is None:
        return _by_words(indexes, weighed)
    lexical = [index.postings.score_array(weighed.weights, weighed.average, numpy) for index in indexes]
    compared = [_compared(index, question) for index in indexes]
    if not any(one is not None for one in compared):
        scores, cosines = lexical, [None for _ in indexes]
    else:
        scores = _fused(lexical, compared, question.lexical_weight, numpy)
        cosines = compared
    candidates: list[tuple[int, int, float, float, float | None]] = []
    for place, index in enumerate(indexes):
        pairs = cosines[place]
        slots = _best_slots(index, scores[place], wanted, numpy, every=any(one is not None for one in compared))
        for slot in slots:
            cosine = float(pairs[0][slot]) if pairs is not None and pairs[1][slot] else None
            candidates.append((place, slot, float(scores[place][slot]), float(lexical[place][slot]), cosine))
    return candidates


def _by_words(indexes: Sequence[ScopeIndex], weighed: WordQuery) -> list[tuple[int, int, float, float, float | None]]:
    candidates: list[tuple[int, int, float, float, float | None]] = []
    for place, index in enumerate(indexes):
        scores = index.postings.scores(weighed.weights, weighed.average)
        candidates += [(place, slot, score, score, None) for slot, score in scores.items()]
        candidates += [(place, slot, 0.0, 0.0, None) for slot in index.pinned if slot not in scores]
    return candidates


def _compared(index: ScopeIndex, question: Question) -> tuple[Any, Any] | None:
    if question.vector is None or index.vectors is None:
        return None
    return index.vectors.cosines(question.vector)


def _fused(lexical: Sequence[Any], compared: Sequence[tuple[Any, Any] | None], weight: float, numpy: Any) -> list[Any]:
    """Add up cosines, in standard deviations from their mean over all facts in scope, and weighted BM25.

    A fact without a vector is neither near nor far (0 deviations), and its words may lift it as high
    as the nearest vector: it must be found while its embedding is missing.
    """
    meant = [cosines[has] for cosines, has in (one for one in compared if one is not None)]
    cosines = meant[0] if len(meant) == 1 else numpy.concatenate(meant)
    mean = float(cosines.mean())
    spread = max(float(cosines.std()), _LEAST_SPREAD)
    nearest = (float(cosines.max()) - mean) / spread
    strongest = max((float(one.max()) for one in lexical if len(one)), default=0.0)
    lifted = weight + (nearest / strongest if strongest > 0 else 0.0)
    fused: list[Any] = []
    for words, one in zip(lexical, compared, strict=True):
        if one is None:
            fused.append(lifted * words)
            continue
        deviations = (one[0] - mean) / spread
        if one[1].all():
            fused.append(deviations + weight * words)
        else:
            fused.append(numpy.where(one[1], deviations + weight * words, lifted * words))
    return fused


def _best_slots(index: ScopeIndex, scores: Any, wanted: int | None, numpy: Any, *, every: bool) -> list[int]:
    """Answer the slots of the best `wanted` living facts, all that tie with the last, and the pinned ones."""
    living = numpy.frombuffer(index.postings.lengths, dtype=numpy.float32) >= 0 if len(scores) else scores > 0
    can = living if every else living & (scores > 0)
    slots = numpy.flatnonzero(can)
    if wanted is not None and len(slots) > max(wanted, 1):
        of_these = scores[slots]
        last = numpy.partition(of_these, len(slots) - max(wanted, 1))[len(slots) - max(wanted, 1)]
        # A little below the last, because ties are told after rounding.
        slots = slots[of_these >= last - 10**-_DIGITS]
    return list({*slots.tolist(), *index.pinned})


def _plain(indexes: Sequence[ScopeIndex], taken: set[str], room: int | None, numpy: Any | None) -> list[str]:
    """Answer keys in plain order that are not taken yet: narrowest scope, then newest, then key."""
    filled: dict[str, None] = {}
    for index in indexes:
        need = math.inf if room is None else room + len(taken) + len(filled)
        for slot in _newest(index, need, numpy):
            if index.identities[slot] not in taken:
                filled.setdefault(index.identities[slot])
        if room is not None and len(filled) >= room:
            break
    return list(filled)


def _newest(index: ScopeIndex, count: float, numpy: Any | None) -> list[int]:
    slots = index.living_slots()
    if numpy is not None and len(slots) > count:
        kept = numpy.array(slots)
        updated = numpy.frombuffer(index.updated, dtype=numpy.int64)[kept]
        last = numpy.partition(updated, len(slots) - int(count))[len(slots) - int(count)]
        slots = kept[updated >= last].tolist()

    def plain(slot: int) -> tuple[int, str]:
        return (-index.updated[slot], index.identities[slot])

    return sorted(slots, key=plain) if len(slots) <= count else heapq.nsmallest(int(count), slots, key=plain)
