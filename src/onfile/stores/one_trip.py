"""Facts on PostgreSQL in one statement each: the row, its receipt and what is derived from it.

A new fact is one trip, and all of it or nothing: the statement does nothing where something stands at
the scope and key, or where the write was made before; what is to be done then is for the steps in
`writing.py`. There, what a write meets and a new text for it are one statement each as well.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Table, bindparam, delete, exists, literal, select, true, update
from sqlalchemy.dialects.postgresql import insert

from . import statements
from .derived import agent_memory_change, agent_memory_revision, agent_memory_vector
from .history import agent_memory_history
from .schema import agent_memory, agent_memory_receipt

if TYPE_CHECKING:
    from sqlalchemy import CTE, Select

_m, _r = agent_memory.c, agent_memory_receipt.c
_DIGEST = bindparam("new_digest", type_=_r.digest.type)
_SAID = ("text", "origin_author", "origin_thread_id", "origin_run_id", "origin_actor_ref")


def _value(column: Column[Any]) -> Any:
    return bindparam(f"new_{column.name}", type_=column.type)


def _made_before() -> Any:
    return exists(select(literal(1)).where(_r.digest == _DIGEST))


def _meet() -> Select[*tuple[Any, ...]]:
    standing = statements.STANDING.cte("standing")
    one = select(literal(1).label("one")).subquery("one")
    return select(_made_before().label("retried"), *standing.c).select_from(one.outerjoin(standing, true()))


MEET = _meet()
"""One row: whether the write was made before, then what stands, in the order of `statements.STORED`, or NULL.

The receipt is looked for as of when the statement began, and what stands is what is held then: a
receipt without its row is a fact that was forgotten since.
"""


@cache
def new_fact(*, history: bool) -> Select[int]:
    """Build the statement that keeps a new fact; it answers the scope's revision, or no row where it did nothing.

    Its values are those of the fact's row, each name after `new_`, and `new_digest`.
    """
    columns = [*agent_memory.columns]
    kept = (
        insert(agent_memory)
        .from_select(columns, select(*[_value(column) for column in columns]).where(~_made_before()))
        # Whoever writes the same key is waited for: if they commit, nothing is done here.
        .on_conflict_do_nothing()
        .returning(_m.id, _m.scope)
        .cte("kept")
    )
    return _with_what_follows(kept, change="written", signed=True, history=history)


@cache
def changed_fact(*, signed: bool, history: bool) -> Select[int]:
    """Build the statement that puts a new text in place of the one that `MEET` held; it answers the scope's revision.

    Its values are as for `new_fact`, as far as they change, and `of_id`; without `signed` no receipt is left.
    """
    names = (*_SAID, "updated_at")
    changed = (
        update(agent_memory)
        .where(_m.id == bindparam("of_id"))
        .values({name: _value(_m[name]) for name in names})
        .returning(_m.id, _m.scope)
        .cte("changed")
    )
    dropped = delete(agent_memory_vector).where(agent_memory_vector.c.memory_id == bindparam("of_id")).cte("dropped")
    return _with_what_follows(changed, change="replaced", signed=signed, history=history).add_cte(dropped)


def _with_what_follows(kept: CTE, *, change: str, signed: bool, history: bool) -> Select[int]:
    now = _value(_m.updated_at)
    counted = (
        insert(agent_memory_revision)
        .from_select(["scope", "revision"], select(kept.c.scope, literal(1)))
        .on_conflict_do_update(index_elements=["scope"], set_={"revision": agent_memory_revision.c.revision + 1})
        .returning(agent_memory_revision.c.revision)
        .cte("counted")
    )
    noted = {"scope": kept.c.scope, "revision": counted.c.revision, "memory_id": kept.c.id}
    also = [_from(agent_memory_change, noted, kept.join(counted, true()))]
    if signed:
        also.append(_from(agent_memory_receipt, {"digest": _DIGEST, "created_at": now}, kept))
    if history:
        said: dict[str, Any] = {name: _value(_m[name]) for name in _SAID}
        said |= {"memory_id": kept.c.id, "change": literal(change), "changed_at": now}
        also.append(_from(agent_memory_history, said, kept))
    return select(counted.c.revision).add_cte(*also)


def _from(table: Table, values: dict[str, Any], source: Any) -> CTE:
    rows = select(*values.values()).select_from(source)
    return insert(table).from_select([*values], rows).inline().cte(f"into_{table.name}")
