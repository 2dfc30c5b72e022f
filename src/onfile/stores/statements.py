"""Every SQL statement of the store, named, saying what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, delete, func, insert, literal, or_, select, tuple_, update

from .schema import agent_memory, agent_memory_receipt

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import ColumnElement, Delete, Insert, Select, Update

    Rows = Select[*tuple[Any, ...]]

m = agent_memory.c
r = agent_memory_receipt.c

# The order that `rows.py` unpacks.
RECORD = (
    m.id,
    m.key,
    m.text,
    m.scope,
    m.origin_author,
    m.origin_thread_id,
    m.origin_run_id,
    m.origin_actor_ref,
    m.updated_at,
    m.pinned,
)
STORED = (*RECORD, m.created_at, m.expires_at)

UNEXPIRED = or_(m.expires_at.is_(None), m.expires_at > bindparam("now"))
"""What a read shows. It is asked by every read itself, so that no sweep has to have run."""

AT_SCOPES: Rows = select(*RECORD).where(m.scope.in_(bindparam("scopes", expanding=True)), UNEXPIRED)
"""Every record at some scopes, by equality: no prefix, no pattern."""

STANDING: Rows = (
    select(*STORED)
    .where(m.scope == bindparam("at_scope"), m.key_identity == bindparam("at_identity"))
    .with_for_update()  # SQLite leaves it out: there the whole transaction holds the database's write lock
)
"""The record that a write meets at its scope and key, held until the write is decided."""

BY_ID: Rows = select(*STORED).where(m.id == bindparam("of_id"))
"""One record at whatever scope, for operators."""

HELD_BY_ID: Rows = BY_ID.with_for_update()
"""The same, held until an edit is decided."""

HOLD: Rows = (
    select(m.id)
    .where(m.id.in_(bindparam("ids", expanding=True)))
    .order_by(m.id)
    .with_for_update(key_share=True, read=True)
)
"""Which rows are there, kept from being deleted, not from a new answer; in the order that `erase_where` takes."""

KEEP: Insert = insert(agent_memory)
"""A new row. It fails where another writer was quicker; the write is then decided anew."""

_ANSWER = ("text", "origin_author", "origin_thread_id", "origin_run_id", "origin_actor_ref", "updated_at")
REPLACED = tuple(f"new_{name}" for name in _ANSWER)

REPLACE_TEXT: Update = (
    update(agent_memory).where(m.id == bindparam("of_id")).values({name: bindparam(f"new_{name}") for name in _ANSWER})
)
"""A fact gets a new answer. id, scope, key, key_identity, pinned and created_at are absent from SET on purpose."""

SET_PIN: Update = update(agent_memory).where(m.id == bindparam("of_id")).values(pinned=bindparam("new_pinned"))
"""A pin set or cleared. updated_at is absent from SET on purpose: it dates the text."""

SET_EXPIRY: Update = (
    update(agent_memory).where(m.id == bindparam("of_id")).values(expires_at=bindparam("new_expires_at"))
)
"""When a fact stops being read. updated_at is absent from SET on purpose: it dates the text."""

RECEIPT: Rows = select(r.digest).where(r.digest == bindparam("of_digest"))
"""Whether a write with this idempotency key, scope and key was made before."""

SIGN: Insert = insert(agent_memory_receipt)
"""The receipt of a write, also of one that changed nothing."""

DROP_RECEIPTS: Delete = delete(agent_memory_receipt).where(r.created_at < bindparam("before"))
"""Receipts of writes too old to be retried."""

COUNT: Rows = select(func.count()).select_from(agent_memory)
"""How many facts there are, at whatever scope."""

HELD: Rows = select(m.id, m.scope, m.key_identity).where(
    or_(
        m.id.in_(bindparam("ids", expanding=True)),
        and_(
            m.scope.in_(bindparam("scopes", expanding=True)),
            m.key_identity.in_(bindparam("identities", expanding=True)),
        ),
    )
)
"""Which rows may stand in the way of a restore: more than do, since scopes and identities are crossed."""

REMOVE: Delete = delete(agent_memory).where(m.id.in_(bindparam("ids", expanding=True)))
"""Rows at whatever scope, for operators."""


def page_after(position: tuple[str, str] | None, *, scopes: list[str] | None, size: int, dialect: str) -> Rows:
    """Build the next page of an export: by scope, key identity, after the position reached so far."""
    page = select(*STORED, m.key_identity).order_by(m.scope, m.key_identity).limit(size)
    if scopes is not None:
        page = page.where(m.scope.in_(scopes))
    return page if position is None else page.where(beyond((m.scope, m.key_identity), position, dialect=dialect))


def beyond(
    order: tuple[ColumnElement[Any], ColumnElement[Any]],
    place: tuple[Any, Any],
    *,
    dialect: str,
    descending: bool = False,
) -> ColumnElement[bool]:
    """What comes after a place in the order, as each database finds it in the index without reading what is before."""
    first, second = order
    a, b = place
    if dialect in {"mysql", "mariadb"}:  # these read a comparison of rows without their index, and this with it
        further, further_tie = (first < a, second < b) if descending else (first > a, second > b)
        return or_(further, and_(first == a, further_tie))
    reached, start = tuple_(first, second), tuple_(literal(a, first.type), literal(b, second.type))
    return reached < start if descending else reached > start
