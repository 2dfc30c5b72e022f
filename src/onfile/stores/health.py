"""What an operator wants to know of a database: counts and states, never a key, a text or a scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import and_, case, func, inspect, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from ..errors import StoreError
from .dialects import database_of
from .failures import spoken
from .journals import pending_erasures_on
from .managed import managed_tables
from .row_security import row_security_of
from .schema import agent_memory, agent_memory_receipt, metadata
from .transactions import EVERY_SCOPE
from .vectors import VectorPlace, vector_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..recall import Embedder

_m, _r = agent_memory.c, agent_memory_receipt.c
_VARIABLES = (
    "SHOW VARIABLES WHERE Variable_name IN ('character_set_database', 'collation_database',"
    " 'innodb_flush_log_at_trx_commit', 'max_allowed_packet', 'sql_mode', 'transaction_isolation', 'tx_isolation')"
)
_LOCK_SECONDS = 30
_MAINTAIN_SINCE = 170_000
_WITHHELD = (
    "SELECT c.relname, pg_get_userbyid(c.relowner) FROM unnest(CAST(:names AS text[])) AS n (name)"
    " JOIN pg_class c ON c.oid = to_regclass(n.name) WHERE NOT pg_has_role(c.relowner, 'USAGE') AND NOT {maintained}"
    " AND NOT (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database d WHERE d.datname = current_database())"
)
_PRAGMAS = ("journal_mode", "secure_delete", "auto_vacuum", "freelist_count", "page_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of one database."""

    database: str
    """Its kind and version."""
    settings: Mapping[str, str]
    """SQLite's pragmas as a new connection has them, PostgreSQL's extensions, or MySQL's variables that matter."""
    rows: Mapping[str, int]
    """Facts by the kind of their scope: actor, tenant, global, other."""
    vectors: Mapping[str, int] = field(default_factory=dict[str, int])
    """Vectors by the model that made them."""
    without_vector: int
    """Facts without a vector, or without one of the embedder that was asked about."""
    long_facts: int
    long_keys: int
    overpinned_scopes: int
    """Scopes with more pinned facts than a block has places."""
    expired: int
    old_receipts: int
    pgvector_missing: str | None = None
    """Why PostgreSQL does not keep vectors in pgvector's table, and what to do."""
    guarded: tuple[str, ...] = ()
    """The tables that row-level security holds to scopes."""
    unguarded: tuple[str, ...] = ()
    """Those that it should hold and does not, where it holds others."""
    pending_erasures: tuple[str, ...] = ()
    """The runs under way from which something forgotten is still to be taken, by id."""


async def missing_tables(engine: AsyncEngine) -> tuple[str, ...]:
    """Name the tables of facts that are not there, without making any."""
    async with engine.connect() as conn:
        standing = set(await conn.run_sync(lambda sync: inspect(sync).get_table_names()))
    return tuple(name for name in metadata.tables if name not in standing)


async def health_of(
    engine: AsyncEngine,
    *,
    now: datetime,
    receipts_before: datetime,
    max_fact: int,
    max_key: int,
    max_memories: int,
    embedder: Embedder | None = None,
    row_level_security: bool = False,
) -> Health:
    """Look at the database without changing anything.

    Args:
        engine: Of a database whose tables are in place.
        now: What has expired by then is counted as such.
        receipts_before: Receipts older than this are counted as old.
        max_fact: The longest fact, in code points.
        max_key: The longest key, in code points.
        max_memories: How many places a block has.
        embedder: Count the facts that have no vector of this one, whatever others they have.
        row_level_security: It holds this role, so that what is counted must be asked for as an operator.
    """
    dialect = engine.dialect.name

    async def work(conn: AsyncConnection) -> Health:
        async def one(statement: Any) -> int:
            return int((await conn.execute(statement)).scalar_one())

        async def by_name(statement: Any) -> dict[str, int]:
            rows: list[Any] = list((await conn.execute(statement)).all())
            return {str(row[0]): int(row[1]) for row in rows}

        def how_many(*conditions: Any) -> Any:
            return select(func.count()).select_from(agent_memory).where(*conditions)

        # Code points everywhere; keys are bytes on MySQL, to be read as what they spell before they are counted.
        length = func.length if dialect == "sqlite" else func.char_length
        key: Any = _m.key
        if dialect in {"mysql", "mariadb"}:
            key = _literal("CONVERT(agent_memory.`key` USING utf8mb4)")
        vectors, security = await vector_state(conn), await row_security_of(conn)
        pinned = select(_m.scope).where(_m.pinned).group_by(_m.scope).having(func.count() > max_memories).subquery()
        return Health(
            database=await _version(conn, dialect),
            settings=await _settings(conn, dialect),
            rows=await by_name(select(_kind(), func.count()).group_by(_literal("kind"))),
            vectors=vectors.counts,
            without_vector=vectors.without if embedder is None else await one(_without(vectors.place, embedder)),
            long_facts=await one(how_many(length(_m.text) > max_fact)),
            long_keys=await one(how_many(length(key) > max_key)),
            overpinned_scopes=await one(select(func.count()).select_from(pinned)),
            expired=await one(how_many(_m.expires_at <= now)),
            old_receipts=await one(
                select(func.count()).select_from(agent_memory_receipt).where(_r.created_at < receipts_before)
            ),
            pgvector_missing=vectors.missing,
            guarded=security.guarded,
            unguarded=security.unguarded if security.guarded else (),
            pending_erasures=tuple(await pending_erasures_on(conn)),
        )

    database = database_of(engine, row_level_security=row_level_security)
    return await database.read(work, scopes=EVERY_SCOPE)


def _without(place: VectorPlace, embedder: Embedder) -> Any:
    return place.count_without.params(of_model=embedder.model, of_dimensions=embedder.dimensions, after="")


async def vacuum(engine: AsyncEngine, *, full: bool = False) -> None:
    """Give back the room of what was deleted, and with it the last traces of its bytes in the files.

    Args:
        engine: Of the database.
        full: On PostgreSQL, write the tables anew. Without it the bytes of a deleted row stay in its page,
            as room that nobody has used yet; with it nobody can read or write the tables meanwhile.

    Raises:
        StoreError: The role may not, or another transaction holds a table for half a minute.
    """
    await spoken(_vacuum(engine, full=full))


async def _vacuum(engine: AsyncEngine, *, full: bool) -> None:
    async with engine.connect() as conn:
        await conn.execution_options(isolation_level="AUTOCOMMIT")
        if engine.dialect.name == "sqlite":
            await conn.exec_driver_sql("VACUUM")
            await conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            return
        standing = set(await conn.run_sync(lambda sync: inspect(sync).get_table_names()))
        names = [name for name in managed_tables() if name in standing]
        if engine.dialect.name == "postgresql":
            await _vacuum_postgresql(conn, names, full=full)
            return
        # A server waits a day for an open transaction, and everybody else then waits for us.
        await conn.exec_driver_sql(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}")
        for name in names:
            # What went wrong is a row of the answer, not an error.
            said = (await conn.exec_driver_sql(f"OPTIMIZE TABLE {name}")).mappings().all()
            for row in said:
                if str(row["Msg_type"]).casefold() == "error":
                    msg = f"the server did not rebuild the table {name}; look for a transaction that is kept open on it"
                    raise StoreError(msg)


async def _vacuum_postgresql(conn: AsyncConnection, names: Sequence[str], *, full: bool) -> None:
    # PostgreSQL only warns of a table that a role may not vacuum, and passes over it.
    version = int((await conn.execute(text("SHOW server_version_num"))).scalar_one())
    maintained = "has_table_privilege(c.oid, 'MAINTAIN')" if version >= _MAINTAIN_SINCE else "false"
    withheld = text(_WITHHELD.format(maintained=maintained))
    foreign = (await conn.execute(withheld, {"names": list(names)})).first()
    if foreign is not None:
        msg = f"only the owner of the table {foreign[0]} may do this; connect as {foreign[1]}"
        raise StoreError(msg)
    await conn.exec_driver_sql(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
    for name in names:
        await conn.exec_driver_sql(f"VACUUM {'(FULL) ' if full else ''}{name}")
    await conn.exec_driver_sql("RESET lock_timeout")


def _kind() -> Any:
    # A range instead of LIKE, which takes no heed of case in SQLite; ";" is the character after ":".
    beginning: list[Any] = [
        (and_(_m.scope >= f"{kind}:", _m.scope < f"{kind};"), _literal(f"'{kind}'")) for kind in ("actor", "tenant")
    ]
    whole: Any = case(*beginning, (_m.scope == "global", _literal("'global'")), else_=_literal("'other'"))
    return whole.label("kind")


def _literal(sql: str) -> Any:
    return cast("Any", literal_column(sql))


async def _version(conn: AsyncConnection, dialect: str) -> str:
    statement = "SELECT sqlite_version()" if dialect == "sqlite" else "SELECT version()"
    found = str((await conn.execute(text(statement))).scalar_one())
    return " ".join(found.split()[:2]) if dialect == "postgresql" else f"{dialect} {found}"


async def _settings(conn: AsyncConnection, dialect: str) -> dict[str, str]:
    if dialect == "sqlite":
        return {name: str((await conn.execute(text(f"PRAGMA {name}"))).scalar_one()) for name in _PRAGMAS}
    if dialect == "postgresql":
        return {str(n): str(v) for n, v in (await conn.execute(text("SELECT extname, extversion FROM pg_extension")))}
    return {str(name): str(value) for name, value in (await conn.execute(text(_VARIABLES)))}
