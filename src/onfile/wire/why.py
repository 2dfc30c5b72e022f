"""Why each key is in a turn's block or out of it: the same resolution as the turn's, told in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..digest import DigestEntry, OverriddenMemory, instant, resolve_memory_digest
from ..keys import fold_key
from ..records import Author, MemoryRecord

PINNED = "pinned: in every turn"
FITS = "all that applies fits"
NOT_RECALLED = "not recalled for this message"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyLine:
    """One key that applies to a turn, and what became of it."""

    id: str
    """The winning record's."""
    key: str
    text: str
    scope: str
    author: Author
    pinned: bool
    beats: tuple[OverriddenMemory, ...] = ()
    """The values at wider scopes, widest last."""
    included: bool
    """Whether the key is in the block."""
    reason: str
    """In words, for a person; it names no fact."""


def explain_digest(
    *,
    records: Iterable[MemoryRecord],
    scopes: Sequence[str],
    max_memories: int | None,
    ranked: bool,
    on_file: Iterable[MemoryRecord] = (),
) -> list[WhyLine]:
    """Tell for each key whether a turn with these records shows it, and why.

    Args:
        records: What the provider answered for the turn, in its order.
        scopes: The turn's scopes, most specific first.
        max_memories: The turn's ceiling in keys; None means all.
        ranked: The records came from a search, most relevant first.
        on_file: All records at the scopes, where a search answered only some: a key that is only
            here is listed as not recalled.

    Returns:
        The keys of the block in the digest's order; then those left out, the nearest miss first;
        then those not recalled, in the digest's order.
    """
    answered = list(records)
    everything = resolve_memory_digest(records=answered, scopes=scopes, max_memories=None, ranked=ranked).entries
    digest = resolve_memory_digest(records=answered, scopes=scopes, max_memories=max_memories, ranked=ranked)
    queue = _queue(everything, scopes=digest.scopes, arrivals=_arrivals(answered) if ranked else None)
    kept = {fold_key(entry.key) for entry in digest.entries}
    known = {fold_key(entry.key) for entry in everything}
    pins = sum(entry.pinned for entry in everything)
    reasons: dict[str, str] = {}
    for place, entry in enumerate(queue, start=1):
        identity = fold_key(entry.key)
        if ranked and not entry.pinned:
            words, order = f"rank {place - pins}", " for this message"
        else:
            words, order = f"place {place} of {len(queue)}", " by scope and date"
        if identity in kept:
            reasons[identity] = PINNED if entry.pinned else FITS if not (ranked or digest.omitted) else words + order
        elif entry.pinned:
            reasons[identity] = f"pinned, but {pins} keys are, ceiling {max_memories}"
        else:
            reasons[identity] = f"{words}, ceiling {max_memories}" + (f" with {pins} pinned" if ranked and pins else "")
    missed = [entry for entry in queue if fold_key(entry.key) not in kept]
    rest = resolve_memory_digest(records=on_file, scopes=scopes, max_memories=None).entries
    return [
        *(_line(entry, included=True, reason=reasons[fold_key(entry.key)]) for entry in digest.entries),
        *(_line(entry, included=False, reason=reasons[fold_key(entry.key)]) for entry in missed),
        *(_line(entry, included=False, reason=NOT_RECALLED) for entry in rest if fold_key(entry.key) not in known),
    ]


def _queue(
    entries: Iterable[DigestEntry], *, scopes: Sequence[str], arrivals: Mapping[str, int] | None
) -> list[DigestEntry]:
    """Put the keys in the order in which the ceiling admits them: pinned first, then as the turn chose."""
    places = {scope: place for place, scope in enumerate(scopes)}

    def admission(entry: DigestEntry) -> tuple[bool, int, int, float, str]:
        identity = fold_key(entry.key)
        arrival = 0 if arrivals is None or entry.pinned else arrivals[identity]
        return not entry.pinned, arrival, places[entry.scope], -instant(entry.updated_at), identity

    return sorted(entries, key=admission)


def _arrivals(records: Iterable[MemoryRecord]) -> dict[str, int]:
    arrivals: dict[str, int] = {}
    for arrival, record in enumerate(records):
        arrivals.setdefault(fold_key(record.key), arrival)
    return arrivals


def _line(entry: DigestEntry, *, included: bool, reason: str) -> WhyLine:
    return WhyLine(
        id=entry.id,
        key=entry.key,
        text=entry.text,
        scope=entry.scope,
        author=entry.origin.author,
        pinned=entry.pinned,
        beats=entry.overrides,
        included=included,
        reason=reason,
    )
