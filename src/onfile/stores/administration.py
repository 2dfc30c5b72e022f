"""What `SqlMemoryProvider` does for operators and consoles: `MemoryAdmin`, in SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ScopeError, WriteRefused
from ..records import MemoryOrigin
from ..scopes import actor_scope
from ..text import keepable_token
from ..writes import why_unkeepable
from . import statements
from .admin import BrowseMemories, EditMemory, EditOutcome, MemoryPage, SweepReport
from .browsing import page_of
from .derived import after_row_set
from .erasures import at_scope, expired_by, with_id
from .history import MemoryChange, MemoryDeletion, deletions_after, history_of
from .restore import RestoreReport, put_back
from .rows import StoredMemory, record_of, stored_of
from .steps import carry_out
from .transactions import EVERY_SCOPE

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..records import Actor
    from .history import Change, Deletion
    from .keeping import Keeper
    from .transactions import Database, Scopes, Transaction

_PAGE = 500
_MICROSECOND = timedelta(microseconds=1)
KEEP_RECEIPTS = timedelta(days=90)
"""How long a write can be retried: longer than any run stays suspended."""


class SqlAdministration:
    """The operator's side of a SQL store: on no protocol that an agent is given."""

    _database: Database
    _keeper: Keeper

    async def browse(self, request: BrowseMemories) -> MemoryPage:
        """Return one page of what is on file, expired facts included.

        Raises:
            ValueError: `after` is not the `next` of a page in this order.
        """

        async def work(conn: AsyncConnection) -> MemoryPage:
            return await page_of(conn, request)

        return await self._database.read(work, scopes=_scopes_of(request.scopes))

    async def get(self, id: str) -> StoredMemory | None:  # noqa: A002  # the record's own field name
        """Return one fact at whatever scope, or None for an unknown id."""
        if not keepable_token(id):
            return None

        async def work(conn: AsyncConnection) -> StoredMemory | None:
            row = (await conn.execute(statements.BY_ID, {"of_id": id})).first()
            return None if row is None else stored_of(row)

        return await self._database.read(work, scopes=EVERY_SCOPE)

    async def count(self) -> int:
        """Count all facts, at whatever scope."""

        async def work(conn: AsyncConnection) -> int:
            return (await conn.execute(statements.COUNT)).scalar_one()

        return await self._database.read(work, scopes=EVERY_SCOPE)

    async def edit(self, request: EditMemory) -> EditOutcome:
        """Give a record a person's new text, unless somebody changed it since that person saw it.

        Raises:
            WriteRefused: The text cannot be kept, or an agent is named as its author.
        """
        if request.origin.author != "human":
            reason = "an edit is a person's act; an agent corrects its own note by writing the same key"
            raise WriteRefused(reason)
        reason = why_unkeepable(scope="any", key="any", text=request.text, origin=request.origin)
        if reason is not None:
            raise WriteRefused(reason)
        if not keepable_token(request.id):
            return EditOutcome(status="not_found", record=None)
        return await self._database.transact(lambda transaction: self._edit(transaction, request), scopes=EVERY_SCOPE)

    async def _edit(self, transaction: Transaction, request: EditMemory) -> EditOutcome:
        row = (await transaction.conn.execute(statements.HELD_BY_ID, {"of_id": request.id})).first()
        if row is None:
            return EditOutcome(status="not_found", record=None)
        standing = record_of(row)
        if standing.updated_at != request.seen_at:
            return EditOutcome(status="conflict", record=standing)
        if standing.text == request.text and standing.origin.author == "human":
            return EditOutcome(status="unchanged", record=standing)
        # Later than what was seen whatever the clock says: the date is the version.
        now = max(self._keeper.now(), standing.updated_at + _MICROSECOND)
        record = replace(standing, text=request.text, origin=request.origin, updated_at=now)
        await carry_out(transaction, self._keeper.keep(standing, record))
        return EditOutcome(status="edited", record=record)

    async def remove(self, *, id: str) -> bool:  # noqa: A002  # the record's own field name
        """Delete one fact at whatever scope, with all that was made of it; False for an unknown id."""
        return keepable_token(id) and await self._erase(with_id(id), "removed", EVERY_SCOPE) > 0

    async def forget_all(self, *, actor: Actor) -> int:
        """Delete all facts at the actor's own scope, and answer how many there were.

        Raises:
            ScopeError: The actor is nobody.
        """
        own = actor_scope(actor)
        return await self._erase(at_scope(own), "forgotten", [own]) if keepable_token(own) else 0

    async def erase(self, *, scope: str, elevated: bool) -> int:
        """Delete all facts at one scope, for a person administering it, and answer how many there were.

        Args:
            scope: Compared byte for byte. There is no way to say "all".
            elevated: The host's answer to whether this person may.

        Raises:
            ScopeError: The scope is blank.
            WriteRefused: Not elevated.
        """
        if not scope.strip():
            msg = "the scope to erase is blank; name one, such as 'tenant:acme'"
            raise ScopeError(msg)
        if not elevated:
            reason = "erasing a whole scope needs a person who may administer it; the host says who that is"
            raise WriteRefused(reason)
        return await self._erase(at_scope(scope), "erased", [scope]) if keepable_token(scope) else 0

    async def _erase(self, condition: ColumnElement[bool], deletion: Deletion, scopes: Scopes) -> int:
        return await self._database.transact(
            lambda transaction: self._keeper.erase(transaction, condition, deletion), scopes=scopes
        )

    async def expire(self, *, id: str, expires_at: datetime | None, by: MemoryOrigin | None = None) -> bool:  # noqa: A002  # the record's own field name
        """Set when a fact stops being read, or None for never; a person's act. False for an unknown id.

        From that moment on no read shows it, and a wider fact of the same key is shown again.
        Reading never puts the moment off; `sweep` deletes what has expired. `by` is who does it, for
        the history; None is an operator without a name.

        Raises:
            ValueError: The time has no timezone.
        """
        if expires_at is not None and expires_at.tzinfo is None:
            msg = "expires_at has no timezone; give an aware time"
            raise ValueError(msg)
        if not keepable_token(id):
            return False

        async def work(transaction: Transaction) -> bool:
            new = {"of_id": id, "new_expires_at": expires_at}
            if not (await transaction.conn.execute(statements.SET_EXPIRY, new)).rowcount:
                return False
            await after_row_set(transaction, id)
            await self._note_act(transaction, id, "expiry set" if expires_at else "expiry cleared", by)
            return True

        return await self._database.transact(work, scopes=EVERY_SCOPE)

    async def _note_act(self, transaction: Transaction, id_: str, change: Change, by: MemoryOrigin | None) -> None:
        row = (await transaction.conn.execute(statements.BY_ID, {"of_id": id_})).one()
        by = by or MemoryOrigin(author="human")
        noting = self._keeper.ledger.changed(record_of(row), change, at=self._keeper.now(), by=by)
        await carry_out(transaction, noting)

    async def history(self, id: str) -> Sequence[MemoryChange]:  # noqa: A002  # the record's own field name
        """Return what a record went through, oldest first; nothing where `history` is off or the record is gone."""

        async def work(conn: AsyncConnection) -> list[MemoryChange]:
            return await history_of(conn, id)

        return await self._database.read(work, scopes=EVERY_SCOPE) if keepable_token(id) else []

    async def deletions(self, *, after: int = 0, size: int = 100) -> Sequence[MemoryDeletion]:
        """Return the bare facts of deletions, oldest first; nothing where `audit` is off."""

        async def work(conn: AsyncConnection) -> list[MemoryDeletion]:
            return await deletions_after(conn, after, size=size)

        return await self._database.read(work, scopes=EVERY_SCOPE)

    async def written_by(self, *, run_id: str) -> Sequence[StoredMemory]:
        """Return every fact that stands as this run recorded it, newest first."""
        found: list[StoredMemory] = []
        page = await self.browse(BrowseMemories(run_id=run_id, size=_PAGE))
        found += page.memories
        while page.next is not None:
            page = await self.browse(BrowseMemories(run_id=run_id, size=_PAGE, after=page.next))
            found += page.memories
        return found

    async def sweep(self, *, keep_receipts: timedelta = KEEP_RECEIPTS) -> SweepReport:
        """Delete what has expired, and receipts of writes too old to be retried."""
        now = self._keeper.now()

        async def work(transaction: Transaction) -> SweepReport:
            expired = await self._keeper.erase(transaction, expired_by(now), "expired")
            old = await transaction.conn.execute(statements.DROP_RECEIPTS, {"before": now - keep_receipts})
            return SweepReport(expired=expired, receipts=old.rowcount)

        return await self._database.transact(work, scopes=EVERY_SCOPE)

    async def export(self, *, scopes: Sequence[str] | None = None) -> AsyncIterator[StoredMemory]:
        """Stream every fact, ordered by scope and key identity; None means all scopes.

        Read in pages, each on a connection of its own, so that an export that is broken off leaves
        nothing open. A fact that is there from beginning to end comes exactly once.
        """
        wanted = None if scopes is None else [scope for scope in dict.fromkeys(scopes) if keepable_token(scope)]
        position: tuple[str, str] | None = None
        while wanted is None or wanted:

            async def work(conn: AsyncConnection, position: tuple[str, str] | None = position) -> list[Any]:
                dialect = conn.dialect.name
                page = statements.page_after(position, scopes=wanted, size=_PAGE, dialect=dialect)
                return list((await conn.execute(page)).all())

            rows = await self._database.read(work, scopes=_scopes_of(wanted))
            for row in rows:
                yield stored_of(row)
            if len(rows) < _PAGE:
                return
            position = (rows[-1].scope, rows[-1].key_identity)

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
            lambda transaction: put_back(
                transaction, memories, on_conflict=on_conflict, ledger=self._keeper.ledger, now=self._keeper.now()
            ),
            scopes=EVERY_SCOPE,
        )


def _scopes_of(wanted: Sequence[str] | None) -> Scopes:
    """The scopes that were asked for, of those that a row can have; None is an operator's "all"."""
    return EVERY_SCOPE if wanted is None else [scope for scope in wanted if keepable_token(scope)]
