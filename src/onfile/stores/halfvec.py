"""pgvector's half-precision vectors on PostgreSQL: a table beside the facts, where the extension is there for it.

Kept out of the schema's definitions, because a server without the extension has no such type. It
needs pgvector 0.7; everything works without it, with vectors as bytes in `agent_memory_vector`.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from sqlalchemy import ARRAY, Column, ForeignKey, Index, Integer, MetaData, Table, Text, bindparam, func, text
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import UserDefinedType

from .failures import sqlstate
from .schema import agent_memory, exact_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

    from .transactions import Database

LEAST_VERSION = (0, 7)
MOST_DIMENSIONS = 16_000
"""What pgvector keeps; vectors of more stay bytes."""

_AT_ONCE = 500
# The role may not; the server has no such extension, or cannot load it.
_NOT_TO_BE_HAD = {"42501", "0A000", "58P01", "22023"}


class HalfVector(UserDefinedType[Any]):
    """pgvector's `halfvec`, of any dimensions: texts of vectors of several models are in one column."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Name the type as PostgreSQL does."""
        return "halfvec"


# So that looking at a database's tables does not warn of a type that SQLAlchemy has never heard of.
cast("dict[str, Any]", ischema_names).setdefault("halfvec", HalfVector)

halfvec_metadata = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s"})

agent_memory_halfvec = Table(
    "agent_memory_halfvec",
    halfvec_metadata,
    Column("memory_id", exact_text(), ForeignKey(agent_memory.c.id, ondelete="CASCADE"), primary_key=True),
    Column("scope", exact_text(), nullable=False),
    Column("model", exact_text(), nullable=False),
    Column("dimensions", Integer, nullable=False),
    # At length one, as the bytes of `agent_memory_vector` are.
    Column("embedding", HalfVector(), nullable=False),
    Index(None, "scope", "model"),
    # Long vectors stay in their row up to a whole page: each one that is elsewhere is another read in every search.
    postgresql_with={"toast_tuple_target": 8160},
)
"""At most one vector per fact, of the text that stands, with the scope that it is searched by."""

_REGISTERED = text("SELECT to_regclass('agent_memory_halfvec') IS NOT NULL AND to_regtype('halfvec') IS NOT NULL")
_TYPE = text("SELECT to_regtype('halfvec') IS NOT NULL")
_VERSIONS = text("SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'")
# As the locks of whoever writes facts are taken: first the facts', then their vectors'. Who waited for
# this and finds the side table then deletes there too.
_LOCK = text("LOCK TABLE agent_memory, agent_memory_vector IN SHARE ROW EXCLUSIVE MODE")
_BYTES = text(
    "SELECT memory_id, model, dimensions, vector FROM agent_memory_vector"
    " WHERE dimensions <= :most AND length(vector) = 2 * dimensions AND memory_id > :after"
    " ORDER BY memory_id LIMIT :page FOR UPDATE"
)
_MOVE = text(
    "INSERT INTO agent_memory_halfvec (memory_id, scope, model, dimensions, embedding)"
    " SELECT m.id, m.scope, v.model, v.dimensions, CAST(v.spelled AS halfvec)"
    " FROM unnest(CAST(:ids AS text[]), CAST(:models AS text[]), CAST(:dimensions AS int[]), CAST(:spelled AS text[]))"
    " AS v (id, model, dimensions, spelled) JOIN agent_memory m ON m.id = v.id"
    " ON CONFLICT (memory_id) DO NOTHING"
).bindparams(
    bindparam("ids", type_=ARRAY(Text)),
    bindparam("models", type_=ARRAY(Text)),
    bindparam("dimensions", type_=ARRAY(Integer)),
    bindparam("spelled", type_=ARRAY(Text)),
)
_DROP_BYTES = text("DELETE FROM agent_memory_vector WHERE memory_id = ANY(CAST(:ids AS text[]))").bindparams(
    bindparam("ids", type_=ARRAY(Text))
)


async def set_up(database: Database, dialect: str) -> None:
    """Do what `install` does, one process at a time."""
    if dialect == "postgresql":
        await database.create(_SideTable())


class _SideTable(MetaData):
    """What `create` runs under the lock that serialises `setup()`."""

    def create_all(self, bind: Any, tables: Any = None, checkfirst: Any = True) -> None:  # noqa: ARG002, FBT002  # SQLAlchemy's own signature
        install(bind)


def install(conn: Connection) -> None:
    """Make the side table where the extension is there or may be made, and move vectors kept as bytes into it.

    Where it cannot be had nothing is changed and nothing is raised. It may run any number of times.
    """
    if conn.dialect.name != "postgresql" or not _made(conn):
        return
    if not conn.execute(_REGISTERED).scalar_one():
        try:
            with conn.begin_nested():
                conn.execute(_LOCK)
                halfvec_metadata.create_all(conn)
        except DBAPIError as error:
            if sqlstate(error) in _NOT_TO_BE_HAD:
                return
            raise
    move(conn)


def _made(conn: Connection) -> bool:
    """Tell whether the database has the type, after making the extension if that is allowed."""
    if conn.execute(_TYPE).scalar_one():
        return True
    versions = conn.execute(_VERSIONS).first()
    if versions is None or versions[0] is not None or not _fits(versions[1]):
        return False
    try:
        with conn.begin_nested():
            conn.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
    except DBAPIError as error:
        if sqlstate(error) in _NOT_TO_BE_HAD:
            return False
        raise
    return bool(conn.execute(_TYPE).scalar_one())


def move(conn: Connection) -> None:
    """Move what an older version, or one that met no extension, kept as bytes."""
    after = ""
    while rows := conn.execute(_BYTES, {"after": after, "most": MOST_DIMENSIONS, "page": _AT_ONCE}).all():
        ids = [row[0] for row in rows]
        moved = {
            "ids": ids,
            "models": [row[1] for row in rows],
            "dimensions": [row[2] for row in rows],
            "spelled": [spelled(bytes(row[3])) for row in rows],
        }
        conn.execute(_MOVE, moved)
        conn.execute(_DROP_BYTES, {"ids": ids})
        after = ids[-1]


_standing: WeakSet[Any] = WeakSet()


async def stands(conn: AsyncConnection) -> bool:
    """Tell whether this database keeps its vectors in the side table.

    A yes is remembered for the engine. A no is asked again each time, so that a process which runs
    while the table is made takes to it at once, and no vector of a replaced text stays in either.
    """
    if conn.dialect.name != "postgresql":
        return False
    if conn.engine.sync_engine in _standing:
        return True
    found = bool((await conn.execute(_REGISTERED)).scalar_one())
    if found:
        _standing.add(conn.engine.sync_engine)
    return found


async def why_missing(conn: AsyncConnection) -> str:
    """Say in words why the side table is not there, and what to do about it."""
    versions = (await conn.execute(_VERSIONS)).first()
    if versions is None:
        return (
            "the server has no pgvector; install it there (the package is often called postgresql-NN-pgvector), "
            "then run `onfile db upgrade`"
        )
    installed, available = versions
    if not _fits(installed or available):
        version = installed or available
        return f"pgvector {version} is too old, it takes 0.7; update the extension, then run `onfile db upgrade`"
    if installed is None:
        return (
            "pgvector is on the server and not in this database; have one of its administrators run "
            "`CREATE EXTENSION vector` in it, then run `onfile db upgrade`"
        )
    if not (await conn.execute(_TYPE)).scalar_one():
        return "pgvector is in a schema that is not on this role's search_path; put it there"
    return "pgvector is there and its table is not; run `onfile db upgrade` as a role that may make tables"


async def version_of(conn: AsyncConnection) -> str | None:
    """Answer the version of the extension in this database, or None."""
    versions = (await conn.execute(_VERSIONS)).first()
    return None if versions is None else versions[0]


def _fits(said: str) -> bool:
    return parsed(said) >= LEAST_VERSION


def parsed(said: str) -> tuple[int, ...]:
    """Read a version's numbers."""
    return tuple(int(part) for part in said.split(".") if part.isdigit())


class _Spellings(dict[int, str]):
    """How each half float that was met is written: a table of vectors holds the same 65,536 over and over."""

    def __missing__(self, bits: int) -> str:
        # Six digits tell any two halves apart, and come back as the one they were.
        written = self[bits] = f"{struct.unpack('<e', bits.to_bytes(2, 'little'))[0]:.6g}"
        return written


_SPELLINGS = _Spellings()


def spelled(blob: bytes) -> str:
    """Write a vector that is kept as little-endian half floats the way pgvector reads it."""
    return f"[{','.join(map(_SPELLINGS.__getitem__, _halves(blob)))}]"


def _halves(blob: bytes) -> Sequence[int]:
    return struct.unpack(f"<{len(blob) // 2}H", blob)


def from_sent(sent: bytes) -> bytes:
    """Turn what `halfvec_send` answers (sizes, then big-endian halves) into little-endian halves."""
    halves = array("H")
    halves.frombytes(sent[4:])
    halves.byteswap()
    return halves.tobytes()


SENT: Any = func.halfvec_send(agent_memory_halfvec.c.embedding)
"""The column as bytes, alike through every driver; see `from_sent`."""


INDEX_PREFIX = "ix_agent_memory_halfvec_hnsw_"


@lru_cache(maxsize=64)
def index_name(model: str, dimensions: int) -> str:
    """Name the HNSW index of one model's vectors; a model's own name may be too long to be one."""
    return f"{INDEX_PREFIX}{hashlib.sha256(f'{model}:{dimensions}'.encode()).hexdigest()[:16]}"
