"""Looking through what is on file: filters, sorting, and pages that cost the same however far in."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, String, cast, or_, select
from sqlalchemy.dialects import mysql

from ..text import keepable_token, unkeepable
from . import statements
from .admin import MemoryPage
from .rows import stored_of
from .schema import agent_memory

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from .admin import BrowseMemories

m = agent_memory.c

# The second column makes each order total; both are the columns of one index.
_ORDERS: dict[str, tuple[Any, Any]] = {
    "updated_at": (m.updated_at, m.id),
    "created_at": (m.created_at, m.id),
    "scope": (m.scope, m.key_identity),
    "key": (m.key_identity, m.id),
}
_LARGEST_PAGE = 1_000


async def page_of(conn: AsyncConnection, request: BrowseMemories) -> MemoryPage:
    """Read one page."""
    statement = _page(request, conn.dialect.name)
    if statement is None:
        return MemoryPage(memories=(), next=None)
    size = _size(request)
    rows = (await conn.execute(statement)).all()
    more = len(rows) > size
    rows = rows[:size]
    return MemoryPage(memories=tuple(map(stored_of, rows)), next=_spell(request.sort_by, rows[-1]) if more else None)


def _page(request: BrowseMemories, dialect: str) -> Select[*tuple[Any, ...]] | None:
    first, second = _ORDERS[request.sort_by]
    conditions = _conditions(request)
    if conditions is None:
        return None
    if request.after is not None:
        place = _read(request.sort_by, request.after)
        conditions.append(statements.beyond((first, second), place, dialect=dialect, descending=request.descending))
    order = (first.desc(), second.desc()) if request.descending else (first, second)
    page = select(*statements.STORED, m.key_identity).where(*conditions).order_by(*order)
    return page.limit(_size(request) + 1)  # one more than is shown tells whether there is a next page


def _conditions(request: BrowseMemories) -> list[ColumnElement[bool]] | None:
    """The filters as conditions, or None where nothing can meet them."""
    conditions: list[ColumnElement[bool]] = []
    if request.scopes is not None:
        scopes = [scope for scope in dict.fromkeys(request.scopes) if keepable_token(scope)]
        if not scopes:
            return None
        conditions.append(m.scope.in_(scopes))
    for column, wanted in (
        (m.origin_author, request.author),
        (m.origin_run_id, request.run_id),
        (m.origin_actor_ref, request.actor_ref),
    ):
        if wanted is None:
            continue
        if unkeepable(wanted):
            return None
        conditions.append(column == wanted)
    if request.pinned is not None:
        conditions.append(m.pinned.is_(request.pinned))
    if request.contains:
        if unkeepable(request.contains):
            return None
        # As characters: on MySQL a key is bytes, whose letters have no case.
        key = cast(m.key, String().with_variant(mysql.CHAR(charset="utf8mb4"), "mysql", "mariadb"))
        conditions.append(
            or_(
                key.icontains(request.contains, autoescape=True),
                m.text.icontains(request.contains, autoescape=True),
            )
        )
    if request.updated_from is not None:
        conditions.append(m.updated_at >= request.updated_from)
    if request.updated_before is not None:
        conditions.append(m.updated_at < request.updated_before)
    return conditions


def _size(request: BrowseMemories) -> int:
    return max(1, min(request.size, _LARGEST_PAGE))


def _spell(sort_by: str, row: Any) -> str:
    first, second = (row._mapping[column] for column in _ORDERS[sort_by])
    spelled = [first.isoformat() if isinstance(first, datetime) else first, second]
    return base64.urlsafe_b64encode(json.dumps(spelled).encode()).decode()


def _read(sort_by: str, after: str) -> tuple[Any, Any]:
    first: Any = None
    second: Any = None
    with contextlib.suppress(binascii.Error, ValueError, TypeError):
        first, second = json.loads(base64.urlsafe_b64decode(after.encode()))
        first = datetime.fromisoformat(first) if sort_by.endswith("_at") else first
    if not keepable_token(second) or not (isinstance(first, datetime) or keepable_token(first)):
        msg = "`after` is not the `next` of a page in this order; start again without it"
        raise ValueError(msg)
    return first, second
