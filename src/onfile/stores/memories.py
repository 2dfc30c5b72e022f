"""`SqlMemoryProvider`: facts in a SQL database, through SQLAlchemy's async engine."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from ..errors import WriteRefused
from ..scopes import actor_scope, check_actor
from ..text import keepable_token
from ..writes import why_unkeepable
from . import halfvec, row_security, statements
from .administration import SqlAdministration
from .derived import after_row_set
from .dialects import build_engine, database_of
from .embedding import Embedding, ReindexProgress
from .erasures import with_id
from .history import Ledger
from .joined import JoinedDatabase
from .keeping import Keeper, utc_now
from .rows import reader_for
from .schema import metadata
from .search import ExplainedKey, Search
from .transactions import EVERY_SCOPE
from .writing import write

if TYPE_CHECKING:
    from sqlalchemy.engine import URL
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from ..provider import ForgetMemory, ListMemories, SearchMemories, StoreMemory
    from ..recall import Embedder
    from ..records import MemoryOrigin, MemoryRecord
    from .transactions import Transaction

_AT_ONCE = 500


class SqlMemoryProvider(SqlAdministration):
    """Keeps facts in one table of your database; the engine stays yours.

    Call `setup()` once before the first use, from as many processes as you like.
    """

    guards_writes: ClassVar[bool] = True
    notes_who_pins: ClassVar[bool] = True

    def __init__(
        self,
        engine: AsyncEngine,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] = utc_now,
        *,
        history: bool = False,
        audit: bool = False,
        row_level_security: bool = False,
    ) -> None:
        self._engine = engine
        self._database = database_of(engine, row_level_security=row_level_security)
        self._row_level_security = row_level_security
        self._records = reader_for(engine.dialect)
        self._embedding = Embedding(self._database, embedder)
        self._search = Search(self._database, self._embedding)
        self._keeper = Keeper(clock=clock, ledger=Ledger(history=history, audit=audit))
        self._owns_engine = False

    @classmethod
    def from_url(
        cls,
        url: str | URL,
        embedder: Embedder | None = None,
        *,
        history: bool = False,
        audit: bool = False,
        row_level_security: bool = False,
    ) -> SqlMemoryProvider:
        """Build a provider with an engine of its own, which `aclose()` disposes.

        A URL without a driver gets the async one: `sqlite:///onfile.db`, `postgresql://…`.

        Raises:
            StoreError: The URL cannot be used; the message says why and holds no part of it.
        """
        provider = cls(build_engine(url), embedder, history=history, audit=audit, row_level_security=row_level_security)
        provider._owns_engine = True
        return provider

    @property
    def engine(self) -> AsyncEngine:
        """The engine in use: the caller's, or the one that `from_url` built."""
        return self._engine

    @property
    def row_level_security(self) -> bool:
        """Whether every transaction tells PostgreSQL which scopes it is about."""
        return self._row_level_security

    async def setup(self) -> None:
        """Make the tables that are missing, and bring those of an older version up to date.

        Run twice, or by eight processes at once, it is done once. Needs no Alembic.

        Raises:
            StoreError: A table lacks something that only `onfile db upgrade` can add, or row-level
                security would hide every fact from this provider.
        """
        await self._database.create(metadata)
        await halfvec.set_up(self._database, self._engine.dialect.name)
        if self._engine.dialect.name == "postgresql":
            await row_security.confirm(self._database, wanted=self._row_level_security)

    async def aclose(self) -> None:
        """Finish what is under way, and dispose the engine if `from_url` built it."""
        await self._embedding.settle()
        await self._database.settle()
        if self._owns_engine:
            await self._engine.dispose()

    def within(self, transaction: Transaction) -> SqlMemoryProvider:
        """Answer the same provider inside a transaction under way, which it does not commit.

        So that a fact is kept together with something else of yours in this database, or not at all.
        """
        joined = copy.copy(self)
        joined._database = JoinedDatabase(transaction, row_level_security=self._row_level_security)
        # Without the embedder, which must not be waited for under a lock, and with an index of its
        # own, which may see what is never committed.
        joined._embedding = Embedding(joined._database, None)
        joined._search = Search(joined._database, joined._embedding)
        joined._owns_engine = False
        return joined

    async def hold(self, ids: Sequence[str], *, scopes: Sequence[str]) -> set[str]:
        """Answer which of these facts are there, and keep them from being deleted until the transaction ends.

        Only of use `within` a transaction. The scopes are those that the facts were read at.
        """

        async def work(transaction: Transaction) -> set[str]:
            there, wanted = set[str](), sorted(ids)
            for start in range(0, len(wanted), _AT_ONCE):
                some = {"ids": wanted[start : start + _AT_ONCE]}
                there.update((await transaction.conn.execute(statements.HOLD, some)).scalars())
            return there

        return await self._database.transact(work, scopes=[scope for scope in scopes if keepable_token(scope)])

    # The provider protocol.

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        """Return every record at the scopes, in any order."""
        # A scope that no row can have matches nothing, and never reaches a driver that would choke on it.
        scopes = [scope for scope in dict.fromkeys(request.scopes) if keepable_token(scope)]
        if not scopes:
            return []

        now = self._keeper.now()

        async def work(conn: AsyncConnection) -> list[MemoryRecord]:
            records: list[MemoryRecord] = []
            for start in range(0, len(scopes), _AT_ONCE):
                some = {"scopes": scopes[start : start + _AT_ONCE], "now": now}
                records += self._records(await conn.execute(statements.AT_SCOPES, some))
            return records

        return await self._database.read(work, scopes=scopes)

    async def search(self, request: SearchMemories) -> Sequence[MemoryRecord]:
        """Return the records of the best keys, most relevant first, by words and, with an embedder, by vectors.

        Places for which too few keys match are filled narrowest scope first, then newest, then key.
        """
        return await self._search.records(request, now=self._keeper.now())

    async def write(self, request: StoreMemory) -> MemoryRecord:
        """Keep the fact and return the record that now stands at its scope and key.

        One transaction: receipt, author and scope guard, same text, upsert.

        Raises:
            WriteRefused: The fact may not be kept there, or was kept and has been forgotten since.
        """
        check_actor(request.ctx.actor)
        reason = why_unkeepable(scope=request.scope, key=request.key, text=request.text, origin=request.origin)
        if reason is not None:
            raise WriteRefused(reason)
        step = await write(self._database, request, keeper=self._keeper)
        if request.report is not None:
            request.report.unchanged = step.unchanged
            request.report.replaced = step.replaced
        if not step.unchanged:
            await self._embedding.keep(step.record)
        return step.record

    async def forget(self, request: ForgetMemory) -> bool:
        """Delete the record and all that was derived from it; False when there was none to delete.

        Only at the scope of `request.ctx.actor`.
        """
        own = actor_scope(request.ctx.actor)
        if not (keepable_token(request.id) and keepable_token(own)):
            return False

        async def work(transaction: Transaction) -> bool:
            return await self._keeper.erase(transaction, with_id(request.id, scope=own), "forgotten") > 0

        return await self._database.transact(work, scopes=[own])

    # An operator's acts: on no protocol that an agent is given.

    async def pin(self, *, id: str, pinned: bool, by: MemoryOrigin | None = None) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin without moving `updated_at`; False for an unknown id.

        Args:
            id: A record's, at whatever scope.
            pinned: Whether it is always on from now on.
            by: Who does it, for the history; None is an operator without a name.
        """
        if not keepable_token(id):
            return False

        async def work(transaction: Transaction) -> bool:
            changed = await transaction.conn.execute(statements.SET_PIN, {"of_id": id, "new_pinned": pinned})
            if not changed.rowcount:
                return False
            await after_row_set(transaction, id)
            change = "pinned" if pinned else "unpinned"
            await self._note_act(transaction, id, change, by)
            return True

        return await self._database.transact(work, scopes=EVERY_SCOPE)

    async def explain(
        self, *, scopes: Sequence[str], query: str, limit: int = 20, others: int = 20
    ) -> Sequence[ExplainedKey]:
        """Say why a search answers what it does: each key's scores and rank, and the next best that are left out."""
        return await self._search.explain(scopes, query, limit=limit, others=others, now=self._keeper.now())

    async def reindex(self) -> AsyncIterator[ReindexProgress]:
        """Give every fact that lacks one its vector, yielding progress; call it again to go on after a failure."""
        async for progress in self._embedding.reindex():
            yield progress
