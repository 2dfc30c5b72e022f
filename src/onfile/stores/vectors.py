"""Where a database keeps its vectors: pgvector's side table, or bytes on every other database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, and_, bindparam, cast, delete, func, insert, select

from .derived import agent_memory_vector
from .halfvec import SENT, HalfVector, agent_memory_halfvec, from_sent, spelled
from .schema import agent_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Table

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
        self.drop: Any = delete(table).where(at.memory_id.in_(bindparam("ids", expanding=True)))
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
