"""The digest: which facts one run may see, and in which order. Pure: no clock, no id, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .errors import ScopeError
from .keys import fold_key
from .records import Author, MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenMemory:
    """A value that a narrower scope beat; shown, not hidden."""

    id: str
    scope: str
    text: str
    author: Author


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry(MemoryRecord):
    """One line of a digest: the winning record and the values it beat."""

    # `pinned` is the question's here: true when any record at this key is pinned.
    overrides: tuple[OverriddenMemory, ...] = ()
    """Widest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDigest:
    """What one run resolved; keep it with the run and never resolve it again."""

    scopes: tuple[str, ...]
    """Most specific first, as the run recorded them: what `remember` is judged by."""
    entries: tuple[DigestEntry, ...] = ()
    """In rendering order: pinned first, then scope, then key."""
    omitted: int = 0
    """Keys that the ceiling left out."""
    pinned_omitted: int = 0
    """Those of them that were pinned: standing policies that reached no prompt."""
    recalled: bool = False
    """True when the provider was searched rather than listed."""
    block: str = ""
    """The block as it was rendered when the digest was offered."""
    writable: bool = False
    """True when `remember` is offered in this run."""


# A group of records that answer one question, while it is being resolved.
_Ranked = tuple[int, float, str, DigestEntry, int]


def resolve_memory_digest(
    *,
    records: Iterable[MemoryRecord],
    scopes: Sequence[str],
    max_memories: int | None = 20,
    ranked: bool = False,
) -> MemoryDigest:
    """Turn the records that a provider returned into the digest a run keeps.

    Args:
        records: In any order, or most relevant first when `ranked`. One at a scope outside
            `scopes` is dropped, whatever the provider says. Never changed.
        scopes: Most specific first; the order is the whole of precedence. One that is listed
            twice counts at its first place.
        max_memories: How many KEYS the digest may hold, pinned ones first; None means all.
        ranked: The records came from a search: fill up by their order, not by scope.

    Returns:
        A digest without block. The same records in any order give the same one when not ranked.

    Raises:
        ScopeError: `scopes` is one bare string.
        ValueError: `max_memories` is negative.
    """
    if isinstance(scopes, str):
        msg = "scopes is one bare string; pass a sequence of tokens, most specific first"
        raise ScopeError(msg)
    if max_memories is not None and max_memories < 0:
        msg = f"max_memories is {max_memories}; use 0 for none and None for no ceiling"
        raise ValueError(msg)
    order = tuple(dict.fromkeys(scopes))
    groups = [_resolve_group(identity, group) for identity, group in _group(records, order)]
    pinned = sorted((group for group in groups if group[3].pinned), key=_by_scope)
    rest = sorted((group for group in groups if not group[3].pinned), key=_by_arrival if ranked else _by_scope)
    ceiling = len(groups) if max_memories is None else max_memories
    chosen = (pinned + rest)[:ceiling]
    return MemoryDigest(
        scopes=order,
        entries=tuple(group[3] for group in sorted(chosen, key=_by_rendering)),
        omitted=len(groups) - len(chosen),
        pinned_omitted=max(0, len(pinned) - ceiling),
        recalled=ranked,
    )


def instant(moment: datetime) -> float:
    """Answer when it was, in seconds since 1970, reading a time without zone as UTC."""
    # A provider of somebody else's may hand out naive times; comparing the two kinds raises.
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


_Placed = tuple[int, float, MemoryRecord, int]


def _group(records: Iterable[MemoryRecord], scopes: Sequence[str]) -> Iterable[tuple[str, list[_Placed]]]:
    # A blank scope is nowhere, even where a caller lists one: no scope, no reader.
    places = {scope: place for place, scope in enumerate(scopes) if scope.strip()}
    groups: dict[str, list[_Placed]] = {}
    for arrival, record in enumerate(records):
        place = places.get(record.scope)
        if place is not None:
            placed = (place, instant(record.updated_at), record, arrival)
            groups.setdefault(fold_key(record.key), []).append(placed)
    return groups.items()


def _resolve_group(identity: str, group: list[_Placed]) -> _Ranked:
    """Answer (scope place, when, identity, entry, best arrival) of one question."""
    if len(group) == 1:
        place, when, record, arrival = group[0]
        return place, when, identity, _entry(record, pinned=record.pinned, overrides=()), arrival
    # Newest first within a scope (equal dates: the greater id), so the first seen of a scope stands.
    group.sort(key=lambda placed: (placed[1], placed[2].id), reverse=True)
    standing: dict[int, _Placed] = {}
    for placed in group:
        standing.setdefault(placed[0], placed)
    winner, *beaten = (standing[place] for place in sorted(standing))
    overrides = tuple(
        OverriddenMemory(id=record.id, scope=record.scope, text=record.text, author=record.origin.author)
        for _, _, record, _ in beaten
    )
    entry = _entry(winner[2], pinned=any(placed[2].pinned for placed in group), overrides=overrides)
    return winner[0], winner[1], identity, entry, min(placed[3] for placed in group)


def _entry(record: MemoryRecord, *, pinned: bool, overrides: tuple[OverriddenMemory, ...]) -> DigestEntry:
    return DigestEntry(
        id=record.id,
        key=record.key,
        text=record.text,
        scope=record.scope,
        origin=record.origin,
        updated_at=record.updated_at,
        pinned=pinned,
        overrides=overrides,
    )


def _by_scope(group: _Ranked) -> tuple[int, float, str]:
    place, when, identity, _, _ = group
    return place, -when, identity


def _by_arrival(group: _Ranked) -> int:
    return group[4]


def _by_rendering(group: _Ranked) -> tuple[bool, int, str]:
    # Never recency, never score: a block that reshuffles on a write costs the prompt cache.
    place, _, identity, entry, _ = group
    return not entry.pinned, place, identity
