"""A provider that keeps facts in this process: for tests, for trying things out, and as the store rules to read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from ..errors import WriteRefused
from ..ids import new_id
from ..keys import fold_key
from ..provider import ForgetMemory, ListMemories, SearchMemories, StoreMemory
from ..records import MemoryRecord
from ..scopes import actor_scope, check_actor
from ..writes import forgotten_since, judge_write, why_unkeepable
from .overlap import fact_words, overlap_scores

_Place = tuple[str, str]
"""Where a fact stands: its scope and the identity of its key. One record each."""


def utc_now() -> datetime:
    """Read the wall clock, timezone-aware UTC."""
    return datetime.now(UTC)


class InMemoryMemoryProvider:
    """Keep facts in a dict, by the rules of a real store; nothing outlives the object.

    With `recall=True` it claims `search` as well, by word overlap. `records` are on file from the
    start. One event loop at a time: no method awaits between reading and writing, so two calls
    never interleave.
    """

    guards_writes = True

    def __init__(
        self,
        recall: bool = False,  # noqa: FBT001, FBT002  # the public signature of API.md
        clock: Callable[[], datetime] = utc_now,
        *,
        records: Iterable[MemoryRecord] = (),
    ) -> None:
        self._clock = clock
        self._standing: dict[_Place, MemoryRecord] = {}
        # An idempotency key and the place of its write; never a text, and kept when the fact is forgotten.
        self._receipts: set[tuple[str, _Place]] = set()
        for record in records:
            place = (record.scope, fold_key(record.key))
            if place in self._standing:
                msg = "two of the records answer one key at one scope; a store holds one of them"
                raise ValueError(msg)
            self._standing[place] = record
        if recall:
            # On the instance, because having the method is the claim: without recall there is none.
            self.search = self._search

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        """Return every record at the scopes, in the order in which they were first written."""
        return self._at(request.scopes)

    async def forget(self, request: ForgetMemory) -> bool:
        """Delete the record if it is held at the actor's own scope; False when there is none there.

        Its receipts stay, so that a replayed run does not bring the fact back.
        """
        own = actor_scope(request.ctx.actor)
        for place, record in self._standing.items():
            if record.id == request.id and record.scope == own:
                del self._standing[place]
                return True
        return False

    async def write(self, request: StoreMemory) -> MemoryRecord:
        """Keep the fact and return the record that now stands at its scope and key.

        Raises:
            WriteRefused: No store can keep it, an agent may not write it, or it was written before
                and has been forgotten since.
        """
        check_actor(request.ctx.actor)
        why = why_unkeepable(scope=request.scope, key=request.key, text=request.text, origin=request.origin)
        if why is not None:
            raise WriteRefused(why)
        place = (request.scope, fold_key(request.key))
        standing = self._standing.get(place)
        receipt = None if request.idempotency_key is None else (request.idempotency_key, place)
        if receipt in self._receipts:
            return _answer_retry(request, standing)
        step = judge_write(standing=standing, request=request, now=self._now(), new_id=new_id)
        self._standing[place] = step.record
        if receipt is not None:
            self._receipts.add(receipt)
        if request.report is not None:
            request.report.unchanged = step.unchanged
            request.report.replaced = step.replaced
        return step.record

    async def pin(self, *, id: str, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin without moving `updated_at`; False for an unknown id."""
        for place, record in self._standing.items():
            if record.id == id:
                self._standing[place] = dataclasses.replace(record, pinned=pinned)
                return True
        return False

    async def _search(self, request: SearchMemories) -> Sequence[MemoryRecord]:
        """Return the best keys' records by word overlap, then filled up narrowest scope first, newest first."""
        groups = _grouped(self._at(request.scopes), request.scopes)
        words = [fact_words(" ".join(f"{record.key} {record.text}" for record in group)) for group in groups]
        scores = overlap_scores(request.query, words)
        # Sorting is stable, so among equal scores the plain order of the groups holds.
        ranked = sorted(zip(groups, scores, strict=True), key=lambda pair: -pair[1])
        answer: list[MemoryRecord] = []
        pinned_without_a_match: list[MemoryRecord] = []
        room = len(groups) if request.limit is None else request.limit
        for group, score in ranked:
            if any(record.pinned for record in group):
                (answer if score > 0 else pinned_without_a_match).extend(group)
            elif room > 0:
                answer.extend(group)
                room -= 1
        return answer + pinned_without_a_match

    def _at(self, scopes: Sequence[str]) -> Sequence[MemoryRecord]:
        wanted = frozenset(scopes)
        return [record for record in self._standing.values() if record.scope in wanted]

    def _now(self) -> datetime:
        now = self._clock()
        if now.tzinfo is None:
            msg = "the clock answered a time without a zone; return datetime.now(UTC)"
            raise ValueError(msg)
        return now.astimezone(UTC)


def _answer_retry(request: StoreMemory, standing: MemoryRecord | None) -> MemoryRecord:
    if standing is None:
        raise WriteRefused(forgotten_since(scope=request.scope))
    if request.report is not None:
        request.report.unchanged = True
        request.report.replaced = None
    return standing


def _grouped(records: Iterable[MemoryRecord], scopes: Sequence[str]) -> list[list[MemoryRecord]]:
    """Group records by the question they answer, in plain order: narrowest scope, newest, key.

    Within a group the narrowest scope leads, so its first record is the one that wins.
    """
    rank = {scope: place for place, scope in reversed(list(enumerate(scopes)))}
    groups: dict[str, list[MemoryRecord]] = {}
    for record in sorted(records, key=lambda record: rank[record.scope]):
        groups.setdefault(fold_key(record.key), []).append(record)
    plain = sorted(
        groups.items(), key=lambda item: (rank[item[1][0].scope], -item[1][0].updated_at.timestamp(), item[0])
    )
    return [group for _, group in plain]
