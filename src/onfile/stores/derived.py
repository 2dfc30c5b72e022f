"""What is derived from a fact's text and comes and goes with it, in the same transaction.

No word of a fact is kept twice: the index that a search reads is built in memory from the facts
themselves. What is kept beside them is their vectors, and what has to be known so that no index in
any process is ever stale: a revision per scope, counted up by each transaction that changes what
the scope holds, and which record each revision was about.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import mysql

from . import halfvec
from .schema import agent_memory, exact_text, metadata
from .steps import Ask, carry_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..records import MemoryRecord
    from .steps import Steps
    from .transactions import Transaction

KEPT_CHANGES = 1_000
"""How many of a scope's latest changes an index can catch up with; one further behind is built anew."""
_PRUNED_EVERY = 200

_TABLE: Any = {"mysql_engine": "InnoDB", "mariadb_engine": "InnoDB"}

agent_memory_revision = Table(
    "agent_memory_revision",
    metadata,
    Column("scope", exact_text(), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    **_TABLE,
)
"""One row per scope that was ever written to."""

agent_memory_change = Table(
    "agent_memory_change",
    metadata,
    Column("scope", exact_text(), primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    # No foreign key: that a record is gone is a change too.
    Column("memory_id", exact_text(), nullable=False),
    **_TABLE,
)
"""Which record a revision wrote, pinned, embedded or removed. Holds ids, never a text."""

agent_memory_vector = Table(
    "agent_memory_vector",
    metadata,
    Column("memory_id", exact_text(), ForeignKey(agent_memory.c.id, ondelete="CASCADE"), primary_key=True),
    Column("model", exact_text(), nullable=False),
    Column("dimensions", Integer, nullable=False),
    # Half floats, little-endian, at length one.
    Column(
        "vector",
        LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb"),
        nullable=False,
    ),
    **_TABLE,
)
"""At most one vector per fact, of the text that stands; one of another model is not compared.

On PostgreSQL with pgvector they are in `halfvec.agent_memory_halfvec` instead.
"""

_r, _c, _v = agent_memory_revision.c, agent_memory_change.c, agent_memory_vector.c

_COUNT_UP = (
    update(agent_memory_revision)
    .where(_r.scope == bindparam("at_scope"))
    .values(revision=_r.revision + bindparam("steps"))
)
_START = insert(agent_memory_revision)
# The row that was just counted up is ours until the transaction ends, so that revisions are
# committed in their order: an index that has seen one has seen all before it.
_REVISION = select(_r.revision).where(_r.scope == bindparam("at_scope"))
_NOTE = insert(agent_memory_change)
_PRUNE = delete(agent_memory_change).where(_c.scope == bindparam("at_scope"), _c.revision <= bindparam("up_to"))
_DROP_VECTOR = delete(agent_memory_vector).where(_v.memory_id == bindparam("of_id"))
_DROP_VECTORS = delete(agent_memory_vector).where(_v.memory_id.in_(bindparam("ids", expanding=True)))
_h = halfvec.agent_memory_halfvec.c
_DROP_HALFVEC = delete(halfvec.agent_memory_halfvec).where(_h.memory_id == bindparam("of_id"))
_DROP_HALFVECS = delete(halfvec.agent_memory_halfvec).where(_h.memory_id.in_(bindparam("ids", expanding=True)))
_SCOPE_OF = select(agent_memory.c.scope).where(agent_memory.c.id == bindparam("of_id"))


def text_written(records: Sequence[MemoryRecord]) -> Steps[None]:
    """Note new texts, within the transaction that wrote them. Their vectors come after it."""
    yield from changes([(record.id, record.scope) for record in records])


def text_replaced(record: MemoryRecord) -> Steps[None]:
    """Remove what was derived from the text that a record had, and note its new one."""
    # The bytes first, as in `drop_vectors`.
    yield Ask(statement=_DROP_VECTOR, values={"of_id": record.id})
    yield from halfvec_dropped(record.id)
    yield from changes([(record.id, record.scope)])


def halfvec_dropped(id_: str) -> Steps[None]:
    """Remove a record's vector from pgvector's table, where there is one."""
    yield Ask(statement=_DROP_HALFVEC, values={"of_id": id_}, only_if=halfvec.stands)


async def after_text_removed(transaction: Transaction, places: Sequence[tuple[str, str]]) -> None:
    """Remove all that was derived from some records' texts, given as (id, scope), with the records."""
    await drop_vectors(transaction.conn, [id_ for id_, _ in places])
    await note_changes(transaction, places)


async def drop_vectors(conn: AsyncConnection, ids: Sequence[str]) -> None:
    """Remove the vectors of some records, wherever they are kept."""
    # The bytes first: whoever makes the side table and moves them locks out this statement until it is done.
    await conn.execute(_DROP_VECTORS, {"ids": ids})
    if await halfvec.stands(conn):
        await conn.execute(_DROP_HALFVECS, {"ids": ids})


async def after_row_set(transaction: Transaction, id_: str) -> None:
    """Note that something other than a record's text was set: its pin, or when it expires."""
    scope = (await transaction.conn.execute(_SCOPE_OF, {"of_id": id_})).scalar_one()
    await note_changes(transaction, [(id_, scope)])


async def note_changes(transaction: Transaction, places: Iterable[tuple[str, str]]) -> None:
    """Do what `changes` says, within a transaction that is under way."""
    await carry_out(transaction, changes(places))


def changes(places: Iterable[tuple[str, str]]) -> Steps[None]:
    """Count up the scopes' revisions and note which record each is about, given as (id, scope).

    Scopes in their order, so that two transactions over the same ones cannot block each other.
    """
    by_scope = sorted(places, key=lambda place: place[1])
    for scope, group in groupby(by_scope, key=lambda place: place[1]):
        ids = [id_ for id_, _ in group]
        counted = yield Ask(statement=_COUNT_UP, values={"at_scope": scope, "steps": len(ids)})
        if not counted.count:
            # Two first writers at once: one of them fails here, and is run again from its start.
            yield Ask(statement=_START, values={"scope": scope, "revision": len(ids)})
        answer = yield Ask(statement=_REVISION, values={"at_scope": scope})
        [(revision,)] = answer.rows
        first = revision - len(ids) + 1
        notes = [{"scope": scope, "revision": first + i, "memory_id": id_} for i, id_ in enumerate(ids)]
        yield Ask(statement=_NOTE, values=notes if len(notes) > 1 else notes[0])
        if is_to_prune(revision, first):
            yield from pruning(scope, revision)


def is_to_prune(last: int, first: int | None = None) -> bool:
    """Tell whether the changes of some revisions are reason enough to drop old ones."""
    return last // _PRUNED_EVERY != ((first or last) - 1) // _PRUNED_EVERY


def pruning(scope: str, revision: int) -> Steps[None]:
    """Drop the changes that no index is to catch up with any more."""
    yield Ask(statement=_PRUNE, values={"at_scope": scope, "up_to": revision - KEPT_CHANGES})
