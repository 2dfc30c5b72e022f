"""`SqlMemoryProvider`: facts in a SQL database, through SQLAlchemy's async engine."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..errors import WriteRefused
from ..ids import new_id
from ..records import MemoryRecord
from ..scopes import actor_scope, check_actor
from ..writes import Step, judge_write
from ..wire.redaction import erasure_of
from . import statements
from .derived import after_text_removed, after_text_written
from .dialects import build_engine, database_of
from .joined import JoinedDatabase
from .journals import erase_from_journals
from .restore import RestoreReport, put_back
from .rows import (
    StoredMemory,
    keepable_token,
    receipt_digest,
    record_of,
    records_of,
    row_of,
    stored_of,
    why_unkeepable,
)
from .schema import key_identity, metadata

if TYPE_CHECKING:
    from sqlalchemy.engine import URL
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from ..provider import ForgetMemory, ListMemories, StoreMemory
    from .transactions import Transaction

_SCOPES_AT_ONCE = 500
_PAGE = 500


def utc_now() -> datetime:
    """Answer the time, timezone-aware UTC."""
    return datetime.now(UTC)


class SqlMemoryProvider:
    """Keeps facts in one table of your database; the engine stays yours.

    Call `setup()` once before the first use, from as many processes as you like.
    """

    guards_writes: ClassVar[bool] = True

    def __init__(
        self, engine: AsyncEngine, embedder: object | None = None, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._engine = engine
        self._database = database_of(engine)
        self._embedder = embedder
        self._clock = clock
        self._owns_engine = False

    @classmethod
    def from_url(cls, url: str | URL, embedder: object | None = None) -> SqlMemoryProvider:
        """Build a provider with an engine of its own, which `aclose()` disposes.

        A URL without a driver gets the async one: `sqlite:///onfile.db`, `postgresql://…`.

        Raises:
            StoreError: The URL cannot be used; the message says why and holds no part of it.
        """
        provider = cls(build_engine(url), embedder)
        provider._owns_engine = True
        return provider

    @property
    def engine(self) -> AsyncEngine:
        """The engine in use: the caller's, or the one that `from_url` built."""
        return self._engine

    async def setup(self) -> None:
        """Make the tables that are missing. Run twice, or by eight processes at once, it is done once."""
        await self._database.create(metadata)

    async def aclose(self) -> None:
        """Finish what is under way, and dispose the engine if `from_url` built it."""
        await self._database.settle()
        if self._owns_engine:
            await self._engine.dispose()

    def within(self, transaction: Transaction) -> SqlMemoryProvider:
        """Answer the same provider inside a transaction under way, which it does not commit.

        So that a fact is kept together with something else of yours in this database, or not at all.
        """
        joined = copy.copy(self)
        joined._database = JoinedDatabase(transaction)
        joined._owns_engine = False
        return joined

    # The provider protocol.

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        """Return every record at the scopes, in any order."""
        # A scope that no row can have matches nothing, and never reaches a driver that would choke on it.
        scopes = [scope for scope in dict.fromkeys(request.scopes) if keepable_token(scope)]
        if not scopes:
            return []

        async def work(conn: AsyncConnection) -> list[MemoryRecord]:
            rows: list[Any] = []
            for start in range(0, len(scopes), _SCOPES_AT_ONCE):
                some = {"scopes": scopes[start : start + _SCOPES_AT_ONCE]}
                rows += (await conn.execute(statements.AT_SCOPES, some)).all()
            return records_of(rows)

        return await self._database.read(work)

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
        step = await self._database.transact(lambda transaction: self._write(transaction, request))
        if request.report is not None:
            request.report.unchanged = step.unchanged
            request.report.replaced = step.replaced
        return step.record

    async def _write(self, transaction: Transaction, request: StoreMemory) -> Step:
        conn = transaction.conn
        at = {"at_scope": request.scope, "at_identity": key_identity(request.key)}
        # The standing row first: on a server this is where writers of one key queue up, so that the
        # receipt is read after the one before has left its own.
        row = (await conn.execute(statements.STANDING, at)).first()
        standing = None if row is None else record_of(row)
        digest = None
        if request.idempotency_key is not None:
            digest = receipt_digest(
                idempotency_key=request.idempotency_key, scope=request.scope, identity=at["at_identity"]
            )
            if (await conn.execute(statements.RECEIPT, {"of_digest": digest})).first() is not None:
                if standing is None:
                    reason = "this fact was recorded by this very call and has been forgotten since"
                    raise WriteRefused(reason)
                return Step(record=standing, unchanged=True)
        now = self._now()
        step = judge_write(standing=standing, request=request, now=now, new_id=_id_at(now))
        if digest is not None:
            await conn.execute(statements.SIGN, {"digest": digest, "created_at": now})
        if not step.unchanged:
            await self._keep(transaction, standing, step.record)
        return step

    async def _keep(self, transaction: Transaction, standing: MemoryRecord | None, record: MemoryRecord) -> None:
        row = row_of(record, created_at=record.updated_at)
        if standing is None:
            await transaction.conn.execute(statements.KEEP, row)
        else:
            new = {f"new_{name}": value for name, value in row.items()}
            await transaction.conn.execute(
                statements.REPLACE_TEXT, {"of_id": record.id, **{name: new[name] for name in statements.REPLACED}}
            )
            await after_text_removed(transaction.conn, [record.id])
            transaction.removed_text = True
        await after_text_written(transaction.conn, [record])

    async def forget(self, request: ForgetMemory) -> bool:
        """Delete the record and all that was derived from it; False when there was none to delete.

        Only at the scope of `request.ctx.actor`.
        """
        own = actor_scope(request.ctx.actor)
        if not (keepable_token(request.id) and keepable_token(own)):
            return False

        async def work(transaction: Transaction) -> bool:
            row = (await transaction.conn.execute(statements.BY_ID, {"of_id": request.id})).first()
            deleted = await transaction.conn.execute(statements.FORGET, {"of_id": request.id, "at_scope": own})
            if row is None or not deleted.rowcount:
                return False
            erasure = erasure_of(record_id=request.id, scope=own, key=record_of(row).key)
            await erase_from_journals(transaction, erasure, now=self._now())
            await after_text_removed(transaction.conn, [request.id])
            transaction.removed_text = True
            return True

        return await self._database.transact(work)

    # An operator's acts: on no protocol that an agent is given.

    async def pin(self, *, id: str, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin without moving `updated_at`; False for an unknown id."""
        if not keepable_token(id):
            return False

        async def work(transaction: Transaction) -> bool:
            changed = await transaction.conn.execute(statements.SET_PIN, {"of_id": id, "new_pinned": pinned})
            return bool(changed.rowcount)

        return await self._database.transact(work)

    async def get(self, id: str) -> StoredMemory | None:  # noqa: A002  # the record's own field name
        """Answer one fact at whatever scope, or None for an unknown id."""
        if not keepable_token(id):
            return None

        async def work(conn: AsyncConnection) -> StoredMemory | None:
            row = (await conn.execute(statements.BY_ID, {"of_id": id})).first()
            return None if row is None else stored_of(row)

        return await self._database.read(work)

    async def count(self) -> int:
        """Count all facts, at whatever scope."""

        async def work(conn: AsyncConnection) -> int:
            return (await conn.execute(statements.COUNT)).scalar_one()

        return await self._database.read(work)

    async def export(self, *, scopes: Sequence[str] | None = None) -> AsyncIterator[StoredMemory]:
        """Stream every fact, ordered by scope and key identity; None means all scopes.

        Read in pages, each on a connection of its own, so that an export that is broken off leaves
        nothing open. A fact that is there from beginning to end comes exactly once.
        """
        wanted = None if scopes is None else [scope for scope in dict.fromkeys(scopes) if keepable_token(scope)]
        position: tuple[str, str] | None = None
        while wanted is None or wanted:
            page = statements.page_after(position, scopes=wanted, size=_PAGE)

            async def work(conn: AsyncConnection, page: Any = page) -> list[Any]:
                return list((await conn.execute(page)).all())

            rows = await self._database.read(work)
            for row in rows:
                yield stored_of(row)
            if len(rows) < _PAGE:
                return
            position = (rows[-1][3], rows[-1][11])

    async def restore(
        self, memories: Sequence[StoredMemory], *, on_conflict: Literal["stop", "skip", "replace"] = "stop"
    ) -> RestoreReport:
        """Put facts back exactly as they were: id, times, pin and origin included, in one transaction.

        Who may write what is not asked here; only what no database could keep is refused. An id
        that is taken, or a scope and key, is a conflict.

        Raises:
            RestoreConflict: With `on_conflict="stop"`; its `.positions` say where. Nothing was written.
            WriteRefused: A fact cannot be kept at all; its `.reason` says which and why. Nothing was written.
        """
        return await self._database.transact(
            lambda transaction: put_back(transaction, memories, on_conflict=on_conflict)
        )

    def _now(self) -> datetime:
        now = self._clock()
        if now.tzinfo is None:
            msg = "the clock of SqlMemoryProvider returned a time without a timezone; return aware UTC times"
            raise ValueError(msg)
        return now.astimezone(UTC)


def _id_at(now: datetime) -> Callable[[], str]:
    return lambda: new_id(now_ms=max(0, int(now.timestamp() * 1000)))
