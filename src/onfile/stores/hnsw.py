"""An HNSW index on pgvector's table, for whoever prefers a quick answer to the exact one in very large scopes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

from ..errors import StoreError
from . import halfvec
from .failures import spoken
from .halfvec import INDEX_PREFIX, agent_memory_halfvec, index_name
from .sight import SEE_EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

MOST_DIMENSIONS = 4_000
"""What pgvector can index."""
_LEAST_VERSION = (0, 8)
_LOOKED_EVERY = 0.5

_INDEXES = text(
    "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
    " WHERE i.indrelid = to_regclass('agent_memory_halfvec') AND starts_with(CAST(c.relname AS text), :prefix)"
)
# Rows for the most part, and where their number is not known yet, blocks.
_PROGRESS = text(
    "SELECT GREATEST(tuples_done, blocks_done), GREATEST(tuples_total, blocks_total)"
    " FROM pg_stat_progress_create_index WHERE relid = to_regclass('agent_memory_halfvec')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """One model's vectors, and what became of their index."""

    model: str
    dimensions: int
    vectors: int
    refused: str | None = None
    """Why there is no index."""


async def build(engine: AsyncEngine, *, tell: Callable[[int, int], None]) -> Sequence[Indexed]:
    """Make an index for each model that has vectors, while others read and write.

    What an earlier attempt left unfinished is made anew.

    Args:
        engine: Of a database with pgvector's table.
        tell: Called now and then with how much is done, and of how much.

    Raises:
        StoreError: The database has no pgvector's table, or a version of it without what a search needs.
    """
    async with engine.connect() as conn:
        await _check(conn)
        await conn.execute(text(SEE_EVERYTHING))  # row-level security holds the table's owner too
        c = agent_memory_halfvec.c
        found = await conn.execute(select(c.model, c.dimensions, func.count()).group_by(c.model, c.dimensions))
        models = [Indexed(model=row[0], dimensions=row[1], vectors=row[2]) for row in found]
        standing: dict[str, bool] = {row[0]: row[1] for row in await conn.execute(_INDEXES, {"prefix": INDEX_PREFIX})}
    done: list[Indexed] = []
    for one in sorted(models, key=lambda model: (model.model, model.dimensions)):
        name = index_name(one.model, one.dimensions)
        if one.dimensions > MOST_DIMENSIONS:
            refused = f"pgvector indexes at most {MOST_DIMENSIONS:,} dimensions"
            done.append(Indexed(model=one.model, dimensions=one.dimensions, vectors=one.vectors, refused=refused))
            continue
        if standing.get(name) is False:
            await _alone(engine, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        if not standing.get(name):
            await _watched(engine, _statement(name, one), tell)
        done.append(one)
    return done


async def drop(engine: AsyncEngine) -> int:
    """Remove the indexes of all models, and count them."""
    async with engine.connect() as conn:
        names: list[str] = [row[0] for row in await conn.execute(_INDEXES, {"prefix": INDEX_PREFIX})]
    for name in names:
        await _alone(engine, f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    return len(names)


async def _check(conn: AsyncConnection) -> None:
    if conn.dialect.name != "postgresql":
        msg = "an HNSW index is pgvector's, on PostgreSQL; this database compares vectors in the process that searches"
        raise StoreError(msg)
    if not await halfvec.stands(conn):
        raise StoreError(await halfvec.why_missing(conn))
    version = await halfvec.version_of(conn) or "0"
    if halfvec.parsed(version) < _LEAST_VERSION:
        msg = f"pgvector {version} cannot go on looking for the rows of one scope; update the extension to 0.8 or later"
        raise StoreError(msg)


def _statement(name: str, one: Indexed) -> str:
    # An index takes no parameters. Only what `search` writes into its statement in the same way is here.
    model = one.model.replace("'", "''")
    return (
        f"CREATE INDEX CONCURRENTLY {name} ON {agent_memory_halfvec.name}"
        f" USING hnsw ((CAST(embedding AS halfvec({one.dimensions}))) halfvec_cosine_ops)"
        f" WHERE model = '{model}' AND dimensions = {one.dimensions}"
    )


async def _watched(engine: AsyncEngine, statement: str, tell: Callable[[int, int], None]) -> None:
    building = asyncio.create_task(_alone(engine, statement))
    try:
        while not (await asyncio.wait([building], timeout=_LOOKED_EVERY))[0]:
            async with engine.connect() as conn:
                row: Any = (await conn.execute(_PROGRESS)).first()
            if row is not None and row[1]:
                tell(row[0], row[1])
    finally:
        if not building.done():
            building.cancel()
    await building


async def _alone(engine: AsyncEngine, statement: str) -> None:
    """Run a statement that may not be in a transaction."""

    async def run() -> None:
        async with engine.connect() as conn:
            # Without parameters, or psycopg would look for one after each % in a model's name.
            await conn.execution_options(isolation_level="AUTOCOMMIT", no_parameters=True)
            await conn.exec_driver_sql(statement)

    await spoken(run())
