"""From a question to keys in order: one ranking over the indexes of all scopes that apply."""

from __future__ import annotations

import contextlib
import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cosines import compare, fused, likely, scale_of, unseen
from .lexical import WordQuery, weigh
from .vectors import VectorMarks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .cosines import Ask, Far
    from .index import ScopeIndex

# Scores are compared after rounding, so that the order in which facts happened to be added, which
# differs between two processes, cannot decide between two that are equally good.
_DIGITS = 5
# What two ways of adding up the same cosine may differ by, and a little more.
_ROUNDING = 10**-6
_FEW_ASKED = 256


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
    """Rank the keys at these scopes, given most specific first, all vectors being in memory.

    The best `limit` unpinned keys, filled up in plain order (narrowest scope, then newest, then key)
    where fewer match, and every pinned key: in its place where it matches, otherwise last. Equal
    scores are in plain order too, so the same facts give the same answer every time.
    """
    return attempt(indexes, question, {}, numpy=numpy)[0]


def attempt(
    indexes: Sequence[ScopeIndex], question: Question, far: Mapping[int, Far], *, numpy: Any | None
) -> tuple[list[RankedKey], dict[int, Ask]]:
    """Rank as `rank` does with what is known so far of vectors that are elsewhere, by the scope's place.

    Returns:
        The ranking, and what else has to be known of which scope; the ranking is right when that is nothing.
    """
    with contextlib.ExitStack() as locks:
        # In one order everywhere: two threads with the same two scopes must not wait for each other.
        for index in sorted(set(indexes), key=id):
            locks.enter_context(index.lock)
        pinned = {index.identities[slot] for index in indexes for slot in index.pinned}
        room = None if question.limit is None else max(0, question.limit)
        wanted = None if room is None else room + len(pinned)
        weighed = weigh(question.terms, [index.postings for index in indexes], numpy)
        candidates, asks = _candidates(indexes, question, weighed, wanted, far, numpy)
        if asks:
            return [], asks
        best = _best_by_key(candidates, indexes)
        ordered = sorted(best, key=lambda identity: (*best[identity].order, identity))
        chosen = [identity for identity in ordered if identity not in pinned and _counts(best[identity], question)]
        if room is not None:
            chosen = chosen[:room]
        fill = [] if room is not None and len(chosen) >= room else _plain(indexes, {*chosen, *pinned}, room, numpy)
        if room is not None:
            fill = fill[: room - len(chosen)]
        return _assemble(best, chosen=chosen, fill=fill, pinned=pinned, question=question), {}


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


def _best_by_key(candidates: Iterable[_Candidate], indexes: Sequence[ScopeIndex]) -> dict[str, _Found]:
    best: dict[str, _Found] = {}
    for place, slot, score, lexical, cosine in candidates:
        index = indexes[place]
        found = _Found(round(score, _DIGITS), place, -index.updated[slot], lexical, cosine)
        standing = best.get(index.identities[slot])
        if standing is None or found.order < standing.order:
            best[index.identities[slot]] = found
    return best


_Candidate = tuple[int, int, float, float, float | None]
"""A scope's place, a slot in it, and its score, BM25 and cosine."""


def _candidates(
    indexes: Sequence[ScopeIndex],
    question: Question,
    weighed: WordQuery,
    wanted: int | None,
    far: Mapping[int, Far],
    numpy: Any | None,
) -> tuple[list[_Candidate], dict[int, Ask]]:
    """Answer every record that can matter to the ranking, or what must be known before that can be told."""
    if numpy is None:
        return _by_words(indexes, weighed), {}
    lexical = [index.postings.score_array(weighed.weights, weighed.average, numpy) for index in indexes]
    if question.vector is not None:
        asks = {
            place: likely(index, lexical[place], _first_asked(wanted))
            for place, index in enumerate(indexes)
            if place not in far and isinstance(index.vectors, VectorMarks) and index.vectors.count
        }
        if asks:
            return [], asks
    compared = [compare(index, question.vector, far.get(place), numpy) for place, index in enumerate(indexes)]
    every, weight = any(one is not None for one in compared), question.lexical_weight
    scale = scale_of(compared, numpy) if every else None
    scores = lexical if scale is None else fused(lexical, compared, scale, weight, numpy)
    candidates: list[_Candidate] = []
    asks: dict[int, Ask] = {}
    for place, (index, one) in enumerate(zip(indexes, compared, strict=True)):
        slots, last = _best_slots(index, scores[place], wanted, numpy, every=every)
        if scale is not None:
            ask = unseen(index, one, lexical[place], scale, weight, last - _ROUNDING)
            if ask is not None:
                asks[place] = ask
        for slot in slots:
            cosine = float(one.cosines[slot]) if one is not None and one.has[slot] else None
            candidates.append((place, slot, float(scores[place][slot]), float(lexical[place][slot]), cosine))
    return candidates, asks


def _first_asked(wanted: int | None) -> int:
    return _FEW_ASKED if wanted is None else max(_FEW_ASKED, 4 * wanted)


def _by_words(indexes: Sequence[ScopeIndex], weighed: WordQuery) -> list[_Candidate]:
    candidates: list[_Candidate] = []
    for place, index in enumerate(indexes):
        scores = index.postings.scores(weighed.weights, weighed.average)
        candidates += [(place, slot, score, score, None) for slot, score in scores.items()]
        candidates += [(place, slot, 0.0, 0.0, None) for slot in index.pinned if slot not in scores]
    return candidates


def _best_slots(
    index: ScopeIndex, scores: Any, wanted: int | None, numpy: Any, *, every: bool
) -> tuple[list[int], float]:
    """Answer the slots of the best `wanted` living facts, all that tie with the last, and the pinned ones.

    With them, the score below which a fact is not among them.
    """
    living = index.living(numpy)
    can = living & (scores > (-numpy.inf if every else 0))
    slots, last = numpy.flatnonzero(can), -math.inf
    if wanted is not None and len(slots) >= max(wanted, 1):
        of_these = scores[slots]
        # A little below the last, because ties are told after rounding.
        last = float(numpy.partition(of_these, len(slots) - max(wanted, 1))[len(slots) - max(wanted, 1)]) - 10**-_DIGITS
        slots = slots[of_these >= last]
    return list({*slots.tolist(), *index.pinned}), last


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
