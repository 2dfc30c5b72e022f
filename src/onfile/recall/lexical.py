"""Ranking by words: an inverted index of one scope, scored by BM25 over exactly the facts in scope."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009). Facts are one line each, so
# their length says little (B below the usual 0.75). The exponent tempers rare words: a name that
# occurs once must not outweigh three words that match.
K1 = 0.9
B = 0.4
RARITY = 0.85

_DEAD = -1.0
"""The length of a slot whose fact is gone."""
_MOST = 65_535


class Postings:
    """Which facts of one scope hold which term, by slot number; slots are only ever added.

    Held in plain arrays, which numpy reads in place where it is installed.
    """

    __slots__ = ("_new", "_postings", "dead", "lengths", "total")

    def __init__(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        # What was added and not asked for yet. Few of a scope's terms ever are, and a list in passing
        # costs a third of two arrays: the first search of a scope waits for this.
        self._new: defaultdict[str, list[int]] = defaultdict(list)
        self.lengths: array[float] = array("f")
        self.total = 0.0
        """The number of terms of all living facts."""
        self.dead = 0

    @property
    def living(self) -> int:
        """The number of facts that can be found."""
        return len(self.lengths) - self.dead

    def add(self, terms: Sequence[str]) -> int:
        """Index one fact and answer its slot."""
        slot = len(self.lengths)
        new = self._new
        for term in terms:
            new[term].append(slot)
        self.lengths.append(len(terms))
        self.total += len(terms)
        return slot

    def _found(self, term: str) -> tuple[array[int], array[int]] | None:
        """Answer the slots that hold a term and how often, taking in what was added since it was last asked for."""
        new = self._new.pop(term, None)
        found = self._postings.get(term)
        if new is None:
            return found
        if found is None:
            found = self._postings[term] = (array("I"), array("H"))
        slots, counts = found
        for slot in new:
            # Slots only grow, so the last one tells whether this fact had the term before.
            if not slots or slots[-1] != slot:
                slots.append(slot)
                counts.append(1)
            elif counts[-1] < _MOST:
                counts[-1] += 1
        return found

    def drop(self, slot: int) -> None:
        """Make a fact unfindable, at once and in every statistic."""
        self.total -= self.lengths[slot]
        self.lengths[slot] = _DEAD
        self.dead += 1

    def frequency(self, term: str, numpy: Any | None) -> int:
        """Count the living facts that hold the term."""
        found = self._found(term)
        if found is None:
            return 0
        if not self.dead:
            return len(found[0])
        if numpy is None:
            return sum(self.lengths[slot] >= 0 for slot in found[0])
        lengths = numpy.frombuffer(self.lengths, dtype=numpy.float32)
        return int((lengths[numpy.frombuffer(found[0], dtype=numpy.uint32)] >= 0).sum())

    def scores(self, weights: Sequence[tuple[str, float]], average: float) -> dict[int, float]:
        """Score every living fact that holds a term: by slot, all above zero."""
        floor, slope = K1 * (1 - B), K1 * B / average
        lengths = self.lengths
        scores: dict[int, float] = {}
        for term, weight in weights:
            found = self._found(term)
            if found is None:
                continue
            for slot, count in zip(*found, strict=True):
                if lengths[slot] >= 0:
                    part = weight * count * (K1 + 1) / (count + floor + slope * lengths[slot])
                    scores[slot] = scores.get(slot, 0.0) + part
        return scores

    def score_array(self, weights: Sequence[tuple[str, float]], average: float, numpy: Any) -> Any:
        """Score as `scores` does, into an array with a place for every slot."""
        floor, slope = K1 * (1 - B), K1 * B / average
        scores = numpy.zeros(len(self.lengths), dtype=numpy.float32)
        if not len(scores):
            return scores
        lengths = numpy.frombuffer(self.lengths, dtype=numpy.float32)
        for term, weight in weights:
            found = self._found(term)
            if found is None:
                continue
            slots = numpy.frombuffer(found[0], dtype=numpy.uint32)
            counts = numpy.frombuffer(found[1], dtype=numpy.uint16).astype(numpy.float32)
            # A slot occurs once in a term's postings, so adding by index adds each part.
            scores[slots] += weight * (K1 + 1) * counts / (counts + floor + slope * lengths[slots])
        if self.dead:
            scores[lengths < 0] = 0
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuery:
    """A question's terms with their weights, by the statistics of the facts in scope and no others."""

    weights: Sequence[tuple[str, float]]
    average: float
    """The mean number of terms of a fact in scope."""


def weigh(terms: Iterable[str], scopes: Sequence[Postings], numpy: Any | None) -> WordQuery:
    """Weigh each term by how rare it is among the facts in scope.

    Nothing outside these scopes has a say: another tenant's facts can neither move a ranking nor be
    told from one.
    """
    living = sum(postings.living for postings in scopes)
    total = sum(postings.total for postings in scopes)
    weights: list[tuple[str, float]] = []
    for term, count in Counter(terms).items():
        holding = sum(postings.frequency(term, numpy) for postings in scopes)
        if holding:
            rarity = math.log(1 + (living - holding + 0.5) / (holding + 0.5)) ** RARITY
            weights.append((term, rarity * math.sqrt(min(count, 2))))
    return WordQuery(weights=weights, average=max(total / living, 1.0) if living else 1.0)
