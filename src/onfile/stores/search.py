"""`search`: a ranking over indexes in memory, each no older than the database, and rows from the database."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, or_, select

from ..recall.cache import IndexCache
from ..recall.fusion import lexical_weight
from ..recall.index import Indexed, ScopeIndex
from ..recall.ranking import Question, RankedKey, rank
from ..recall.tokens import has_words, tokenise
from ..recall.vectors import VectorMarks, VectorRows
from ..text import keepable_token
from . import nearest
from .derived import agent_memory_change, agent_memory_revision
from .embedding import Embedding
from .rows import records_of
from .schema import agent_memory, utc_time
from .statements import RECORD
from .vectors import HALVES, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..provider import SearchMemories
    from ..records import MemoryRecord
    from .transactions import Database
    from .vectors import VectorPlace

m = agent_memory.c
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MICROSECOND = timedelta(microseconds=1)

VECTORS_IN_MEMORY = 50_000
"""How many facts' vectors a search holds in memory where PostgreSQL can compare them instead (pgvector)."""

_SCOPES_AT_ONCE = 500
_IDENTITIES_AT_ONCE = 250
# What a question is about is said by then; a pasted book must not hold the event loop up.
_QUERY_CHARS = 8_000
# A page's rows are unpacked on the event loop: a few milliseconds each.
_PAGE = 1_000
# Beyond this many facts in scope a ranking takes long enough to be worth a thread.
_RANKED_ON_THE_LOOP = 4_000

_REVISIONS: Any = select(agent_memory_revision.c.scope, agent_memory_revision.c.revision).where(
    agent_memory_revision.c.scope.in_(bindparam("scopes", expanding=True))
)
_CHANGES: Any = (
    select(agent_memory_change.c.revision, agent_memory_change.c.memory_id)
    .where(agent_memory_change.c.scope == bindparam("at_scope"), agent_memory_change.c.revision > bindparam("after"))
    .order_by(agent_memory_change.c.revision)
)
_AS_MANY_AS: Any = select(func.count()).select_from(
    select(m.id).where(m.scope == bindparam("at_scope")).limit(bindparam("most")).subquery("some")
)
_AT_KEYS: Any = select(*RECORD, m.key_identity).where(
    m.scope.in_(bindparam("scopes", expanding=True)),
    m.key_identity.in_(bindparam("identities", expanding=True)),
    or_(m.expires_at.is_(None), m.expires_at > bindparam("now", type_=utc_time())),
)
"""The rows of some keys, from the table itself: an index says which keys, never what a fact says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedKey:
    """Why a key is in a selection or out of it."""

    rank: int
    """From 1, in the order in which `search` answers."""
    chosen: bool
    """Whether `search` with that limit answers this key."""
    score: float
    lexical: float
    """BM25 over key and text; 0 without a common word."""
    cosine: float | None
    """None where the fact or the question has no vector."""
    pinned: bool
    matched: bool
    """False for what only fills a place, or is only there because it is pinned."""
    records: Sequence[MemoryRecord]
    """All records of the key in scope, most specific first."""


class Search:
    """Ranks a database's facts. One per provider; safe to use from several tasks, threads and event loops."""

    def __init__(
        self,
        database: Database,
        embedding: Embedding,
        *,
        cache: IndexCache | None = None,
        vectors_in_memory: float = VECTORS_IN_MEMORY,
    ) -> None:
        self._database = database
        self._embedding = embedding
        self._cache = cache if cache is not None else IndexCache()
        self._vectors_in_memory = vectors_in_memory
        self._loading: dict[tuple[int, str], asyncio.Lock] = {}

    async def records(self, request: SearchMemories, *, now: datetime) -> list[MemoryRecord]:
        """Answer the records of the best keys, most relevant first; see the provider protocol."""
        scopes = _keepable(request.scopes)
        if not scopes:
            return []
        question = await self._question(request.query, request.limit)

        async def work(conn: AsyncConnection) -> tuple[list[MemoryRecord], list[str]]:
            indexes = await self._indexes(conn, scopes)
            ranked = await self._rank(conn, scopes, indexes, question, now)
            by_key = await _rows_of(conn, scopes, ranked, now)
            gaps = [scope for scope, index in zip(scopes, indexes, strict=True) if index.lacks_vectors]
            return [record for key in ranked for record in by_key.get(key.identity, ())], gaps

        records, gaps = await self._database.read(work, scopes=scopes)
        if gaps:
            self._embedding.mend(gaps[:_SCOPES_AT_ONCE])
        return records

    async def explain(
        self, scopes: Sequence[str], query: str, *, limit: int, others: int, now: datetime
    ) -> list[ExplainedKey]:
        """Answer the keys that a search returns, and the next best `others` that it leaves out."""
        scopes = _keepable(scopes)
        if not scopes:
            return []
        question = await self._question(query, limit + others)

        async def work(conn: AsyncConnection) -> list[ExplainedKey]:
            ranked = await self._rank(conn, scopes, await self._indexes(conn, scopes), question, now)
            by_key = await _rows_of(conn, scopes, ranked, now)
            room = limit
            explained: list[ExplainedKey] = []
            for place, key in enumerate(ranked, 1):
                chosen = key.pinned or room > 0
                room -= not key.pinned
                explained.append(
                    ExplainedKey(
                        rank=place,
                        chosen=chosen,
                        score=key.score,
                        lexical=key.lexical,
                        cosine=key.cosine,
                        pinned=key.pinned,
                        matched=key.matched,
                        records=by_key.get(key.identity, []),
                    )
                )
            return explained

        return await self._database.read(work, scopes=scopes)

    async def _question(self, query: str, limit: int | None) -> Question:
        query = query[:_QUERY_CHARS]
        vector = await self._embedding.of_query(query) if has_words(query) else None
        weight = lexical_weight(self._embedding.embedder, query) if self._embedding.embedder is not None else 1.0
        return Question(terms=tokenise(query), vector=vector, lexical_weight=weight, limit=limit)

    async def _rank(
        self,
        conn: AsyncConnection,
        scopes: Sequence[str],
        indexes: Sequence[ScopeIndex],
        question: Question,
        now: datetime,
    ) -> list[RankedKey]:
        numpy = self._embedding.numpy
        for index in indexes:
            index.expire((now - _EPOCH) // _MICROSECOND)
        if question.vector is not None and any(isinstance(index.vectors, VectorMarks) for index in indexes):
            most = self._vectors_in_memory
            return await nearest.ranked(conn, scopes, indexes, question, embedding=self._embedding, exact_up_to=most)
        if sum(len(index) for index in indexes) <= _RANKED_ON_THE_LOOP:
            return rank(indexes, question, numpy=numpy)
        return await asyncio.to_thread(rank, indexes, question, numpy=numpy)

    async def _indexes(self, conn: AsyncConnection, scopes: Sequence[str]) -> list[ScopeIndex]:
        revisions: dict[str, int] = {}
        for start in range(0, len(scopes), _SCOPES_AT_ONCE):
            some = {"scopes": scopes[start : start + _SCOPES_AT_ONCE]}
            revisions.update((scope, revision) for scope, revision in (await _all(conn, _REVISIONS, some)))
        indexes: list[ScopeIndex] = []
        room = self._vectors_in_memory
        for scope in scopes:
            index = await self._index(conn, scope, revisions.get(scope, 0), room)
            indexes.append(index)
            room -= len(index) if isinstance(index.vectors, VectorRows) else 0
        return indexes

    async def _index(self, conn: AsyncConnection, scope: str, revision: int, room: float) -> ScopeIndex:
        """Answer the scope's index at this revision or a later one.

        Where PostgreSQL can compare vectors, one that must be read anew holds its own only if there
        is room for them: the narrowest scopes, which come first, are the small ones.

        What is read here after the revision may be newer than it. That is harmless: the changes
        that it came with have later revisions, and are applied once more by the next search.
        """
        index = self._cache.get(scope)
        if index is not None and index.revision >= revision and not index.worn:
            return index
        # Several tasks that want a big scope at the same time read it once.
        at = (id(asyncio.get_running_loop()), scope)
        lock = self._loading.setdefault(at, asyncio.Lock())
        try:
            async with lock:
                index = self._cache.get(scope)
                if index is not None and not index.worn:
                    current = index.revision >= revision or await self._catch_up(conn, scope, index)
                    if current:
                        return index
                return self._cache.keep(scope, await self._load(conn, scope, revision, room))
        finally:
            if not lock.locked():
                self._loading.pop(at, None)

    async def _catch_up(self, conn: AsyncConnection, scope: str, index: ScopeIndex) -> bool:
        """Apply what changed since the index's revision; False when that is no longer known."""
        known = index.revision
        changes = await _all(conn, _CHANGES, {"at_scope": scope, "after": known})
        if not changes or changes[0][0] != known + 1:
            return False
        ids: list[str] = list({id_ for _, id_ in changes})
        place = await self._place(conn)
        if place is HALVES and len(index) > self._vectors_in_memory:
            index.let_go_of_vectors()
        reading = self._reading(place, elsewhere=isinstance(index.vectors, VectorMarks))
        facts: list[Indexed] = []
        for start in range(0, len(ids), _IDENTITIES_AT_ONCE):
            some = ids[start : start + _IDENTITIES_AT_ONCE]
            facts += await self._read(conn, reading, m.scope == scope, m.id.in_(some))
        found = {fact.id for fact in facts}
        gone = [id_ for id_ in ids if id_ not in found]

        def apply() -> None:
            with index.lock:
                index.apply(revision=changes[-1][0], facts=facts, gone=gone)

        await asyncio.to_thread(apply) if len(index) > _RANKED_ON_THE_LOOP else apply()
        return True

    async def _load(self, conn: AsyncConnection, scope: str, revision: int, room: float) -> ScopeIndex:
        numpy, dimensions = self._embedding.numpy, self._embedding.dimensions
        place, elsewhere = await self._place(conn), False
        if place is HALVES and room < math.inf:
            most = max(0, int(room))
            elsewhere = (await conn.execute(_AS_MANY_AS, {"at_scope": scope, "most": most + 1})).scalar_one() > most
        index = ScopeIndex(revision=revision, dimensions=dimensions, numpy=numpy, vectors_elsewhere=elsewhere)
        reading = self._reading(place, elsewhere=elsewhere)
        after = ""
        while True:
            facts = await self._read(conn, reading, m.scope == scope, m.key_identity > after, page=True)
            if len(facts) == _PAGE:
                await asyncio.to_thread(index.put, facts)
            else:
                index.put(facts)
                return index
            after = facts[-1].identity

    async def _place(self, conn: AsyncConnection) -> VectorPlace | None:
        return None if self._embedding.embedder is None else await self._embedding.place(conn)

    def _reading(self, place: VectorPlace | None, *, elsewhere: bool) -> _Reading:
        if place is None:
            return _Reading(WORDS, {}, None)
        named = {"of_model": self._embedding.model, "of_dimensions": self._embedding.dimensions}
        if elsewhere:
            return _Reading(place.with_mark, named, _marked)
        return _Reading(place.with_vector, named, place.read)

    async def _read(
        self, conn: AsyncConnection, reading: _Reading, *conditions: Any, page: bool = False
    ) -> list[Indexed]:
        statement = reading.statement.where(*conditions)
        if page:
            statement = statement.order_by(m.key_identity).limit(_PAGE)
        rows: Sequence[Any] = (await conn.execute(statement, reading.named)).all()
        unpack = reading.unpack
        return [
            Indexed(
                id=id_,
                identity=identity,
                key=key,
                text=text,
                pinned=pinned,
                updated_us=(updated_at - _EPOCH) // _MICROSECOND,
                expires_us=None if expires_at is None else (expires_at - _EPOCH) // _MICROSECOND,
                vector=unpack(vector[0]) if unpack is not None and vector[0] is not None else None,
            )
            for id_, identity, key, text, pinned, updated_at, expires_at, *vector in rows
        ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """How facts are read into an index."""

    statement: Any
    named: dict[str, Any]
    unpack: Callable[[Any], bytes] | None
    """What makes of the last column what an index keeps of a vector; None without that column."""


def _marked(_: Any) -> bytes:
    return b""


async def _rows_of(
    conn: AsyncConnection, scopes: Sequence[str], ranked: Sequence[RankedKey], now: datetime
) -> dict[str, list[MemoryRecord]]:
    """Read the keys' rows at all the scopes, by key, most specific first."""
    identities = [key.identity for key in ranked]
    rows: list[Any] = []
    for first in range(0, len(scopes), _SCOPES_AT_ONCE):
        for start in range(0, len(identities), _IDENTITIES_AT_ONCE):
            some = {
                "scopes": scopes[first : first + _SCOPES_AT_ONCE],
                "identities": identities[start : start + _IDENTITIES_AT_ONCE],
                "now": now,
            }
            rows += await _all(conn, _AT_KEYS, some)
    place = {scope: i for i, scope in enumerate(scopes)}
    rows.sort(key=lambda row: place[row[3]])
    by_key: dict[str, list[MemoryRecord]] = {}
    for row, record in zip(rows, records_of(rows), strict=True):
        by_key.setdefault(row[10], []).append(record)
    return by_key


async def _all(conn: AsyncConnection, statement: Any, values: dict[str, Any]) -> Sequence[Any]:
    return (await conn.execute(statement, values)).all()


def _keepable(scopes: Sequence[str]) -> list[str]:
    # A scope that no row can have matches nothing, and never reaches a driver that would choke on it.
    return [scope for scope in dict.fromkeys(scopes) if keepable_token(scope)]
