"""Where a database keeps its vectors: pgvector's side table, or bytes on every other database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, bindparam, cast, func, insert, select

from . import halfvec
from .derived import agent_memory_vector
from .halfvec import SENT, HalfVector, agent_memory_halfvec, from_sent, spelled
from .schema import agent_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncConnection

BATCH = 64
"""How many facts are embedded at once."""

m = agent_memory.c
WORDS: Any = select(m.id, m.key_identity, m.key, m.text, m.pinned, m.updated_at, m.expires_at)
"""What an index reads of a fact, without its vector."""


class VectorPlace:
    """The statements that read and write vectors in one table. They are parameterised with model and dimensions."""

    def __init__(self, table: Table, *, as_bytes: Any, value: Any, read: Callable[[bytes], bytes]) -> None:
        at: Any = table.c
        this = and_(
            at.memory_id == m.id, at.model == bindparam("of_model"), at.dimensions == bindparam("of_dimensions")
        )
        joined = agent_memory.outerjoin(table, this)
        self.with_vector: Any = WORDS.add_columns(as_bytes).select_from(joined)
        """`WORDS` and the vector, for `read`; None without one."""
        self.with_mark: Any = WORDS.add_columns(at.memory_id).select_from(joined)
        """`WORDS` and something that is not None where there is a vector."""
        self.without: Any = (
            select(m.id, m.scope, m.key, m.text)
            .select_from(joined)
            .where(at.memory_id.is_(None), m.id > bindparam("after"))
            .order_by(m.id)
            .limit(BATCH)
        )
        self.without_at: Any = self.without.where(m.scope.in_(bindparam("scopes", expanding=True)))
        self.count_without: Any = select(func.count()).select_from(
            self.without.order_by(None).limit(None).subquery("without")
        )
        self.keep: Any = insert(table).values(value)
        self.read = read
        """From what the database answers to little-endian half floats."""


BYTES = VectorPlace(
    agent_memory_vector,
    as_bytes=agent_memory_vector.c.vector,
    value={name: bindparam(name) for name in ("memory_id", "model", "dimensions", "vector")},
    read=bytes,
)
HALVES = VectorPlace(
    agent_memory_halfvec,
    as_bytes=SENT,
    value={name: bindparam(name) for name in ("memory_id", "scope", "model", "dimensions")}
    | {"embedding": cast(bindparam("spelled", type_=Text()), HalfVector())},
    read=from_sent,
)


def row_of_vector(
    place: VectorPlace, *, memory_id: str, scope: str, tag: dict[str, Any], blob: bytes
) -> dict[str, Any]:
    """Spell out a vector as the row that keeps it there; `tag` is its model and dimensions."""
    if place is HALVES:
        return {"memory_id": memory_id, "scope": scope, "spelled": spelled(blob), **tag}
    return {"memory_id": memory_id, "vector": blob, **tag}


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorState:
    """How a database keeps its vectors."""

    place: VectorPlace
    """The statements for the table that they are written to."""
    counts: Mapping[str, int]
    """How many there are by the model that made them, in whichever table."""
    without: int
    """Facts that have none."""
    missing: str | None
    """Why PostgreSQL does not keep them in pgvector's table, and what to do; None where it does, or is none."""


async def vector_state(conn: AsyncConnection) -> VectorState:
    """Look at how a database keeps its vectors, changing nothing."""
    halves = await halfvec.stands(conn)
    counts: dict[str, int] = {}
    has: list[Any] = []
    for table in (agent_memory_vector, *((agent_memory_halfvec,) if halves else ())):
        at: Any = table.c
        rows: list[Any] = list((await conn.execute(select(at.model, func.count()).group_by(at.model))).all())
        for model, count in rows:
            counts[str(model)] = counts.get(str(model), 0) + int(count)
        has.append(select(at.memory_id).where(at.memory_id == m.id).exists())
    without: Any = select(func.count()).select_from(agent_memory).where(*(~one for one in has))
    return VectorState(
        place=HALVES if halves else BYTES,
        counts=counts,
        without=(await conn.execute(without)).scalar_one(),
        missing=await halfvec.why_missing(conn) if conn.dialect.name == "postgresql" and not halves else None,
    )
