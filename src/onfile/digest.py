"""The digest: which facts one run may see, and in which order. Pure: no clock, no id, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)

# One record and its place among the scopes, its instant and its place in arrival order.
_Placed = tuple[int, int, MemoryRecord, int]


@dataclass(slots=True)
class _Question:
    """The records that answer one question, while the digest is being resolved."""

    place: int
    when: int
    identity: str
    pinned: bool
    arrival: int
    records: list[_Placed]
    """The winner first; then, most specific first, what it beat."""


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
    questions = [_settle(identity, placed) for identity, placed in _group(records, order)]
    pinned = sorted((question for question in questions if question.pinned), key=_by_scope)
    rest = sorted((question for question in questions if not question.pinned), key=_by_arrival if ranked else _by_scope)
    ceiling = len(questions) if max_memories is None else max_memories
    chosen = (pinned + rest)[:ceiling]
    return MemoryDigest(
        scopes=order,
        entries=tuple(_entry(question) for question in sorted(chosen, key=_by_rendering)),
        omitted=len(questions) - len(chosen),
        pinned_omitted=max(0, len(pinned) - ceiling),
        recalled=ranked,
    )


def instant(moment: datetime) -> int:
    """Answer when it was, in microseconds since 1970, reading a time without zone as UTC."""
    # A whole number, because seconds as a float round two times into one in far years.
    return (_aware(moment) - _EPOCH) // _TICK


def _aware(moment: datetime) -> datetime:
    # A provider of somebody else's may hand out naive times; comparing the two kinds raises.
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


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


def _settle(identity: str, group: list[_Placed]) -> _Question:
    """Decide which record of a question wins and which ride along."""
    if len(group) == 1:
        place, when, record, arrival = group[0]
        return _Question(place, when, identity, record.pinned, arrival, group)
    # Newest first within a scope (equal dates: the greater id), so the first seen of a scope stands.
    group.sort(key=_seniority, reverse=True)
    standing: dict[int, _Placed] = {}
    for placed in group:
        standing.setdefault(placed[0], placed)
    records = [standing[place] for place in sorted(standing)]
    # A pin and a rank belong to the question: those of a dropped record still count.
    pinned = any(placed[2].pinned for placed in group)
    arrival = min(placed[3] for placed in group)
    return _Question(records[0][0], records[0][1], identity, pinned, arrival, records)


def _seniority(placed: _Placed) -> tuple[int, str, str, str, str]:
    # The words come last for a provider that gives one id to two rows: arrival must not decide.
    _, when, record, _ = placed
    return when, record.id, record.text, record.key, record.origin.author


def _entry(question: _Question) -> DigestEntry:
    (_, _, winner, _), *beaten = question.records
    return DigestEntry(
        id=winner.id,
        key=winner.key,
        text=winner.text,
        scope=winner.scope,
        origin=winner.origin,
        updated_at=_aware(winner.updated_at),
        pinned=question.pinned,
        overrides=tuple(
            OverriddenMemory(id=record.id, scope=record.scope, text=record.text, author=record.origin.author)
            for _, _, record, _ in beaten
        ),
    )


def _by_scope(question: _Question) -> tuple[int, int, str]:
    return question.place, -question.when, question.identity


def _by_arrival(question: _Question) -> int:
    return question.arrival


def _by_rendering(question: _Question) -> tuple[bool, int, str]:
    # Never recency, never score: a block that reshuffles on a write costs the prompt cache.
    return not question.pinned, question.place, question.identity
