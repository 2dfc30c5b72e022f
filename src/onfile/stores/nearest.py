"""Ranking scopes whose vectors stay in PostgreSQL: words from memory, cosines from pgvector.

The nearest facts and those that words favour are asked for with how all cosines of the scope spread, and
more of them for as long as some other fact could still be among the best: the answer is the one
that comparing every vector in this process gives. With an HNSW index (`onfile db hnsw`) the nearest come
from it instead, in a fraction of the time, and are not certain to be all of the nearest.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, Integer, String, Text, bindparam, text

from ..recall.cosines import Far
from ..recall.ranking import attempt
from ..recall.vectors import VectorMarks
from .halfvec import from_sent, index_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..recall.cosines import Ask
    from ..recall.index import ScopeIndex
    from ..recall.ranking import Question, RankedKey
    from .embedding import Embedding

logger = logging.getLogger(__name__)

_FIRST_DEPTH = 512
_DEEPER = 8
# An index is asked for a few times the keys wanted, so that what words add to the nearest is among them.
_INDEX_DEPTH = 160
_FEW = _INDEX_DEPTH // 4
# So many vectors tell how cosines spread to within two hundredths.
_SAMPLE = 2_000

_HERE = "scope = :scope AND model = :model AND dimensions = :dimensions"
_LIVING = "memory_id <> ALL(CAST(:expired AS text[]))"
# In single precision with the question as it is, as a process that has the vectors does it. As a query
# of its own, because a prepared statement's plan may otherwise read the question's text anew for each row.
_COSINE = "-(CAST(embedding AS vector) <#> (SELECT CAST(:question AS vector)))"


def _statement(sql: str) -> Any:
    kinds: dict[str, Any] = {
        "scope": String(),
        "model": String(),
        "dimensions": Integer(),
        "question": Text(),
        "depth": Integer(),
        "ids": ARRAY(Text),
        "expired": ARRAY(Text),
    }
    return text(sql).bindparams(*(bindparam(name, type_=kind) for name, kind in kinds.items() if f":{name}" in sql))


_NEAREST = _statement(f"""
WITH compared AS MATERIALIZED (
    SELECT memory_id, {_COSINE} AS cosine FROM agent_memory_halfvec WHERE {_HERE} AND {_LIVING}
)
(SELECT 0 AS part, NULL AS memory_id, avg(cosine) AS cosine, count(*) AS facts, stddev_pop(cosine) AS deviation,
    max(cosine) AS nearest FROM compared)
UNION ALL (SELECT 1, memory_id, cosine, 0, 0, 0 FROM compared ORDER BY cosine DESC LIMIT :depth)
UNION ALL (SELECT 2, memory_id, cosine, 0, 0, 0 FROM compared WHERE memory_id = ANY(CAST(:ids AS text[])))
""")  # noqa: S608  # put together from constants
_OF_THESE = _statement(
    f"SELECT memory_id, {_COSINE} FROM unnest(CAST(:ids AS text[])) AS these (id)"  # noqa: S608  # put together from constants
    f" JOIN agent_memory_halfvec ON memory_id = these.id WHERE {_HERE}"
)
_INDEXED = _statement("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
# Until enough rows of this scope are found, in the order of their distance; for this transaction only.
_SETTINGS = text(
    "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', :ef, true)"
)
_SOME = _statement(
    f"SELECT memory_id, halfvec_send(embedding) FROM agent_memory_halfvec WHERE {_HERE}"  # noqa: S608  # put together from constants
    f" ORDER BY hashtextextended(memory_id, 0) LIMIT {_SAMPLE}"
)


@dataclass(slots=True)
class _Scope:
    """What is asked of one scope of a search."""

    index: ScopeIndex
    named: dict[str, Any]
    approximate: bool
    depth: int | None
    """How many of the nearest are asked for; None for all."""


async def ranked(
    conn: AsyncConnection,
    scopes: Sequence[str],
    indexes: Sequence[ScopeIndex],
    question: Question,
    *,
    embedding: Embedding,
    exact_up_to: float,
) -> list[RankedKey]:
    """Rank the keys at these scopes, some of whose vectors are in pgvector's table.

    A scope of up to so many facts is compared exactly whatever indexes there are: what an index finds
    of a scope that is a small part of all facts is few and not the nearest.
    """
    vector = question.vector or ()
    tag = {"model": embedding.model, "dimensions": embedding.dimensions, "question": spelled(vector)}
    few = question.limit is not None and question.limit <= _FEW
    approximate = few and await _is_indexed(conn, embedding)
    asked: dict[int, _Scope] = {}
    far: dict[int, Far] = {}
    while True:
        keys, asks = await asyncio.to_thread(attempt, indexes, question, far, numpy=embedding.numpy)
        if not asks:
            return keys
        for place, ask in asks.items():
            if place not in asked:
                index = indexes[place]
                with index.lock:
                    expired = list(index.expired)
                named = tag | {"scope": scopes[place], "expired": expired}
                asked[place] = _Scope(index, named, approximate and len(index) > exact_up_to, _FIRST_DEPTH)
            told = far.setdefault(place, Far())
            if asked[place].approximate:
                await _approach(conn, asked[place], told, ask, vector=vector, embedding=embedding)
            else:
                await _tell(conn, asked[place], told, ask, limited=question.limit is not None)


def spelled(vector: Sequence[float]) -> str:
    """Write a question's vector the way pgvector reads it, in single precision."""
    return "[" + ",".join(f"{value:.9g}" for value in vector) + "]"


async def _tell(conn: AsyncConnection, scope: _Scope, told: Far, ask: Ask, *, limited: bool) -> None:
    """Fill in what was asked, by comparing every vector of the scope or those of some ids."""
    if not ask.deeper:
        rows = await _all(conn, _OF_THESE, scope.named | {"ids": list(ask.ids)})
        found = {row[0]: row[1] for row in rows}
        # One that is not there any more is neither near nor far for this answer.
        told.cosines.update({id_: found.get(id_, told.mean) for id_ in ask.ids})
        return
    if told.cosines:
        scope.depth = None if scope.depth is None or scope.depth * _DEEPER > told.count else scope.depth * _DEEPER
    depth = scope.depth if limited else None
    named = scope.named | {"depth": depth, "ids": list(ask.ids)}
    nearest: list[float] = []
    for part, memory_id, cosine, facts, deviation, best in await _all(conn, _NEAREST, named):
        if part == 0:
            told.count, told.mean, told.deviation, told.nearest = facts, cosine or 0.0, deviation or 0.0, best or 0.0
            continue
        told.cosines[memory_id] = cosine
        if part == 1:
            nearest.append(cosine)
    told.floor = None if depth is None or len(nearest) < depth else min(nearest)


async def _approach(
    conn: AsyncConnection, scope: _Scope, told: Far, ask: Ask, *, vector: Sequence[float], embedding: Embedding
) -> None:
    """Fill in what was asked from the HNSW index, once; what the index did not find stays out."""
    if told.cosines:
        # What words favour beside the nearest was all that could be asked for.
        await _tell(conn, scope, told, ask._replace(deeper=False), limited=True)
        told.floor, told.closed = None, True
        return
    marks = scope.index.vectors
    await conn.execute(_SETTINGS, {"ef": str(_INDEX_DEPTH)})
    rows = await _all(conn, _by_index(embedding.dimensions), scope.named | {"depth": _INDEX_DEPTH})
    if not isinstance(marks, VectorMarks) or len(rows) < min(_INDEX_DEPTH, marks.count):
        # The filter left too few of what the index found.
        scope.approximate = False
        await _tell(conn, scope, told, ask, limited=True)
        return
    told.cosines.update((row[0], row[1]) for row in rows)
    if ask.ids:
        await _tell(conn, scope, told, ask._replace(deeper=False), limited=True)
    await _sample(conn, scope, marks, told, vector, embedding)
    told.nearest = max(row[1] for row in rows)
    told.floor = min(row[1] for row in rows)


async def _sample(
    conn: AsyncConnection, scope: _Scope, marks: VectorMarks, told: Far, vector: Sequence[float], embedding: Embedding
) -> None:
    """Tell from some of the scope's vectors, the same ones each time, how all cosines spread."""
    numpy: Any = embedding.numpy
    index, sample = scope.index, marks.sample
    if sample is None:
        revision = index.revision
        rows = await _all(conn, _SOME, scope.named)
        halves = numpy.frombuffer(b"".join(from_sent(bytes(row[1])) for row in rows), dtype="<f2")
        sample = halves.astype(numpy.float32).reshape(len(rows), embedding.dimensions)
        with index.lock:
            # Kept only where every later deletion will find it: no vector outlives its fact here either.
            slots, places = index.placed({row[0]: place for place, row in enumerate(rows)})
            if index.revision == revision and slots:
                marks.keep_sample(slots, sample[numpy.array(places)])
    cosines = numpy.einsum("ij,j->i", sample, numpy.asarray(vector, dtype=numpy.float32))
    told.count, told.mean, told.deviation = marks.count, float(cosines.mean()), float(cosines.std())


async def _all(conn: AsyncConnection, statement: Any, named: dict[str, Any]) -> list[Any]:
    return list((await conn.execute(statement, named)).all())


async def _is_indexed(conn: AsyncConnection, embedding: Embedding) -> bool:
    name = index_name(embedding.model, embedding.dimensions)
    return bool((await conn.execute(_INDEXED, {"name": name})).scalar())


def _by_index(dimensions: int) -> Any:
    # Model and dimensions are written into the statement, or the index on these alone could not be chosen.
    return _statement(f"""
SELECT memory_id, {_COSINE} FROM (
    SELECT memory_id, embedding FROM agent_memory_halfvec
    WHERE scope = :scope AND model = :model AND dimensions = {int(dimensions)} AND {_LIVING}
    ORDER BY CAST(embedding AS halfvec({int(dimensions)})) <=> (SELECT CAST(:question AS halfvec({int(dimensions)})))
    LIMIT :depth
) AS near
""").bindparams(bindparam("model", type_=String(), literal_execute=True))  # noqa: S608  # numbers only
