"""A new fact on PostgreSQL in one statement and one trip: its row, its receipt and what is derived from it.

All of it or nothing: it does nothing where something stands at the scope and key, or where the write
was made before; what is to be done then is for the steps in `writing.py`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Table, bindparam, exists, literal, select, true
from sqlalchemy.dialects.postgresql import insert

from .derived import agent_memory_change, agent_memory_revision
from .history import agent_memory_history
from .schema import agent_memory, agent_memory_receipt

if TYPE_CHECKING:
    from sqlalchemy import CTE, Select


def _value(column: Column[Any]) -> Any:
    return bindparam(f"new_{column.name}", type_=column.type)


@cache
def new_fact(*, history: bool) -> Select[int]:
    """Build the statement, which answers the scope's revision, or no row where it did nothing.

    Its values are those of the fact's row, each name after `new_`, and `new_digest`.
    """
    columns = [*agent_memory.columns]
    made_before = exists(select(literal(1)).where(agent_memory_receipt.c.digest == bindparam("new_digest")))
    kept = (
        insert(agent_memory)
        .from_select(columns, select(*[_value(column) for column in columns]).where(~made_before))
        # Whoever writes the same key is waited for: if they commit, nothing is done here.
        .on_conflict_do_nothing()
        .returning(agent_memory.c.id, agent_memory.c.scope)
        .cte("kept")
    )
    counted = (
        insert(agent_memory_revision)
        .from_select(["scope", "revision"], select(kept.c.scope, literal(1)))
        .on_conflict_do_update(index_elements=["scope"], set_={"revision": agent_memory_revision.c.revision + 1})
        .returning(agent_memory_revision.c.revision)
        .cte("counted")
    )
    digest, now = bindparam("new_digest", type_=agent_memory_receipt.c.digest.type), _value(agent_memory.c.created_at)
    also = [
        _from(agent_memory_receipt, {"digest": digest, "created_at": now}, kept),
        _from(
            agent_memory_change,
            {"scope": kept.c.scope, "revision": counted.c.revision, "memory_id": kept.c.id},
            kept.join(counted, true()),
        ),
    ]
    if history:
        names = ("text", "origin_author", "origin_thread_id", "origin_run_id", "origin_actor_ref")
        said = {name: _value(agent_memory.c[name]) for name in names}
        said |= {"memory_id": kept.c.id, "change": literal("written"), "changed_at": now}
        also.append(_from(agent_memory_history, said, kept))
    return select(counted.c.revision).add_cte(*also)


def _from(table: Table, values: dict[str, Any], source: Any) -> CTE:
    rows = select(*values.values()).select_from(source)
    return insert(table).from_select([*values], rows).inline().cte(f"into_{table.name}")
