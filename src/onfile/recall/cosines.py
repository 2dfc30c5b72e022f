"""How near each fact is to a question, from vectors in memory or from what a database told, and its fused score.

A scope of very many facts keeps its vectors in the database. Then only some cosines are known: the
nearest ones, and those of facts that words alone may carry to the top. `unseen` tells whether any other
fact could still be among the best, so that the answer is the one that all cosines would have given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .vectors import VectorMarks, VectorRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .index import ScopeIndex

LEAST_SPREAD = 0.01
MOST_ASKED = 2_000
"""How many facts are asked for by name at once; where more could matter the nearest are asked further down."""


@dataclass(slots=True, kw_only=True)
class Far:
    """What a database told of one scope's cosines."""

    count: int = 0
    """How many facts have a vector."""
    mean: float = 0.0
    deviation: float = 0.0
    nearest: float = 0.0
    cosines: dict[str, float] = field(default_factory=dict[str, float])
    """By a fact's id."""
    floor: float | None = None
    """No fact that is not among `cosines` is nearer than this; None when there is no such fact."""
    closed: bool = False
    """Facts that are not among `cosines` are left out, whatever they would have scored."""


class Ask(NamedTuple):
    """What has to be known of one scope before a ranking is right."""

    ids: Sequence[str]
    deeper: bool
    """More of the nearest facts than before."""


class Compared(NamedTuple):
    """The cosines of one scope, with a place for every slot."""

    cosines: Any
    has: Any
    """Which slots have a vector."""
    known: Any | None = None
    """Which slots' cosines are known, those without a vector among them; None when all are."""
    far: Far | None = None


class Scale(NamedTuple):
    """How cosines spread over all facts in scope."""

    mean: float
    spread: float
    nearest: float
    """The nearest fact's, in deviations."""


def compare(index: ScopeIndex, vector: Sequence[float] | None, far: Far | None, numpy: Any) -> Compared | None:
    """Compare a question with a scope's facts; None where none has a vector."""
    if vector is None or index.vectors is None:
        return None
    if isinstance(index.vectors, VectorRows):
        pair = index.vectors.cosines(vector)
        return None if pair is None else Compared(*pair)
    return None if far is None or not far.count else _told(index, index.vectors, far, numpy)


def _told(index: ScopeIndex, marks: VectorMarks, far: Far, numpy: Any) -> Compared:
    has = marks.has
    cosines = numpy.zeros(len(has), dtype=numpy.float32)
    asked = numpy.zeros(len(has), dtype=bool)
    slots, values = index.placed(far.cosines)
    cosines[slots] = values
    asked[slots] = True
    if far.floor is None and not far.closed:
        # All that have a vector were told: whoever is missing lost it while we asked.
        return Compared(cosines, has & asked, None, far)
    return Compared(cosines, has & asked, ~has | asked, far)


def scale_of(compared: Sequence[Compared | None], numpy: Any) -> Scale:
    """Tell how the cosines of all facts in scope spread."""
    parts = [one for one in compared if one is not None]
    if all(one.far is None for one in parts):
        meant = [one.cosines[one.has] for one in parts]
        cosines = meant[0] if len(meant) == 1 else numpy.concatenate(meant)
        mean = float(cosines.mean())
        spread = max(float(cosines.std()), LEAST_SPREAD)
        return Scale(mean, spread, (float(cosines.max()) - mean) / spread)
    told = [one.far or _summed(one) for one in parts]
    count = sum(far.count for far in told)
    mean = sum(far.count * far.mean for far in told) / count
    variance = sum(far.count * (far.deviation**2 + (far.mean - mean) ** 2) for far in told) / count
    spread = max(math.sqrt(variance), LEAST_SPREAD)
    return Scale(mean, spread, (max(far.nearest for far in told) - mean) / spread)


def _summed(one: Compared) -> Far:
    cosines = one.cosines[one.has]
    return Far(
        count=len(cosines), mean=float(cosines.mean()), deviation=float(cosines.std()), nearest=float(cosines.max())
    )


def fused(
    lexical: Sequence[Any], compared: Sequence[Compared | None], scale: Scale, weight: float, numpy: Any
) -> list[Any]:
    """Add up cosines, in standard deviations from their mean over all facts in scope, and weighted BM25.

    A fact without a vector is neither near nor far (0 deviations), and its words may lift it as high
    as the nearest vector: it must be found while its embedding is missing. One whose cosine is not
    known is below all others.
    """
    strongest = max((float(one.max()) for one in lexical if len(one)), default=0.0)
    lifted = weight + (scale.nearest / strongest if strongest > 0 else 0.0)
    scores: list[Any] = []
    for words, one in zip(lexical, compared, strict=True):
        if one is None:
            scores.append(lifted * words)
            continue
        deviations = (one.cosines - scale.mean) / scale.spread
        if one.has.all():
            scores.append(deviations + weight * words)
        else:
            scores.append(numpy.where(one.has, deviations + weight * words, lifted * words))
        if one.known is not None:
            scores[-1] = numpy.where(one.known, scores[-1], -numpy.inf)
    return scores


def likely(index: ScopeIndex, words: Any, count: int) -> Ask:
    """Tell what to ask first of a scope whose vectors are elsewhere: what words and pins may put into the answer."""
    best = words.argpartition(len(words) - count)[len(words) - count :] if count < len(words) else words.nonzero()[0]
    slots = {slot for slot in best.tolist() if words[slot] > 0} | index.pinned
    return Ask([index.ids[slot] for slot in slots], deeper=True)


def unseen(index: ScopeIndex, one: Compared | None, words: Any, scale: Scale, weight: float, last: float) -> Ask | None:
    """Tell which facts whose cosine is not known could still score as much as `last`, below which nothing counts."""
    if one is None or one.known is None or one.far is None or one.far.floor is None:
        return None
    slots = (~one.known & ((one.far.floor - scale.mean) / scale.spread + weight * words >= last)).nonzero()[0]
    if not len(slots):
        return None
    best = slots[(-words[slots]).argsort(kind="stable")[:MOST_ASKED]]
    return Ask([index.ids[slot] for slot in best.tolist()], deeper=len(slots) > MOST_ASKED)
