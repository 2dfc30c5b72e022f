"""`DjangoMemoryProvider`: facts in your Django database, through its ORM."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, IntegrityError, connections, transaction

from ...errors import StoreError, WriteRefused
from ...ids import new_id
from ...provider import ForgetMemory, ListMemories, SearchMemories, StoreMemory
from ...records import MemoryOrigin, MemoryRecord
from ...scopes import actor_scope, check_actor
from ...text import keepable_token
from ...writes import Step, forgotten_since, judge_write, key_identity, receipt_digest, why_unkeepable
from ..ranked import ranked
from .models import Fact, Receipt

T = TypeVar("T")

_TRIES = 5
_SCOPES_AT_ONCE = 500

# The ORM's types are made at run time, so to a type checker its managers are anything.
_facts: Any = cast("Any", Fact).objects
_receipts: Any = cast("Any", Receipt).objects


def utc_now() -> datetime:
    """Answer the time, timezone-aware UTC."""
    return datetime.now(UTC)


class DjangoMemoryProvider:
    """Keep facts in your Django database. Needs `USE_TZ = True`.

    Inside `transaction.atomic()` a write is part of your transaction, where the call is made from
    a sync view through `async_to_sync`, as the app's own views do.
    """

    guards_writes: ClassVar[bool] = True

    def __init__(self, *, using: str = DEFAULT_DB_ALIAS, clock: Callable[[], datetime] = utc_now) -> None:
        self._using = using
        self._clock = clock

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        """Return every record at the scopes."""
        return await sync_to_async(self._list)(request.scopes)

    async def search(self, request: SearchMemories) -> Sequence[MemoryRecord]:
        """Return the records of the best keys, most relevant first, by words."""
        return ranked(await self.list(ListMemories(scopes=request.scopes, ctx=request.ctx)), request)

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
        step = await sync_to_async(self._write)(request)
        if request.report is not None:
            request.report.unchanged = step.unchanged
            request.report.replaced = step.replaced
        return step.record

    async def forget(self, request: ForgetMemory) -> bool:
        """Delete the record; False when there is none at the actor's own scope."""
        own = actor_scope(request.ctx.actor)
        if not (keepable_token(request.id) and keepable_token(own)):
            return False
        return await sync_to_async(self._forget)(request.id, own)

    async def pin(self, *, id: str, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin without moving `updated_at`; False for an unknown id."""
        if not keepable_token(id):
            return False
        return await sync_to_async(self._pin)(id, pinned=pinned)

    def _list(self, scopes: Sequence[str]) -> list[MemoryRecord]:
        wanted = {_sha256(scope) for scope in scopes if keepable_token(scope)}
        hashes = sorted(wanted)
        rows: list[Any] = []
        for start in range(0, len(hashes), _SCOPES_AT_ONCE):
            some = hashes[start : start + _SCOPES_AT_ONCE]
            rows += _facts.using(self._using).filter(scope_sha256__in=some).order_by("created_at", "id")
        return [_record(row) for row in rows]

    def _write(self, request: StoreMemory) -> Step:
        for _ in range(_TRIES):
            try:
                return self._in_a_transaction(partial(self._judge_and_keep, request))
            except IntegrityError:
                # Another writer made the same key or receipt first; theirs is seen in the next try.
                continue
        msg = "several writers of one key kept getting in each other's way; try again"
        raise StoreError(msg)

    def _judge_and_keep(self, request: StoreMemory) -> Step:
        identity = key_identity(request.key)
        at = {"scope_sha256": _sha256(request.scope), "key_sha256": _sha256(identity)}
        row = _facts.using(self._using).select_for_update().filter(**at).first()
        standing = None if row is None else _record(row)
        digest = None
        if request.idempotency_key is not None:
            digest = receipt_digest(idempotency_key=request.idempotency_key, scope=request.scope, identity=identity)
            if _receipts.using(self._using).filter(digest=digest).exists():
                if standing is None:
                    raise WriteRefused(forgotten_since(scope=request.scope))
                return Step(record=standing, unchanged=True)
        now = self._clock()
        step = judge_write(standing=standing, request=request, now=now, new_id=new_id)
        if digest is not None:
            _receipts.using(self._using).create(digest=digest, created_at=now)
        if not step.unchanged:
            self._keep(step.record, at, is_new=standing is None)
        return step

    def _keep(self, record: MemoryRecord, at: dict[str, str], *, is_new: bool) -> None:
        origin = record.origin
        written = {
            "text": record.text,
            "origin_author": origin.author,
            "origin_thread_id": origin.thread_id,
            "origin_run_id": origin.run_id,
            "origin_actor_ref": origin.actor_ref,
            "updated_at": record.updated_at,
        }
        facts = _facts.using(self._using)
        if is_new:
            facts.create(
                id=record.id, scope=record.scope, key=record.key, created_at=record.updated_at, **at, **written
            )
        else:
            # id, key, pinned and created_at are absent on purpose: a correction is the same note.
            facts.filter(**at).update(**written)

    def _forget(self, id: str, own: str) -> bool:  # noqa: A002  # the record's own field name
        def work() -> bool:
            mine = _facts.using(self._using).filter(id=id, scope_sha256=_sha256(own))
            # Some databases take `mem_a` for `MEM_A`; an id is itself and no other.
            if [row.id for row in mine] != [id]:
                return False
            return bool(mine.delete()[0])

        return self._in_a_transaction(work)

    def _pin(self, id: str, *, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        def work() -> bool:
            found = _facts.using(self._using).filter(id=id)
            if [row.id for row in found] != [id]:
                return False
            found.update(pinned=pinned)
            return True

        return self._in_a_transaction(work)

    def _in_a_transaction(self, work: Callable[[], T]) -> T:
        connection = connections[self._using]
        sqlite = connection.vendor == "sqlite"
        outermost = not connection.in_atomic_block
        if sqlite and outermost:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA secure_delete = ON")  # old texts are overwritten, not only unlinked
        atomic: Any = transaction.atomic(using=self._using)
        with atomic:
            if sqlite:
                # A statement that writes comes first, though it finds no row: it waits for its turn,
                # where a read that turns into a write would fail as soon as another writer was there.
                _receipts.using(self._using).filter(digest="").delete()
            done = work()
        if sqlite and outermost:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # and leave no copy in the log; no-op without one
        return done


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _record(row: Any) -> MemoryRecord:
    origin = MemoryOrigin(
        author=row.origin_author,
        thread_id=row.origin_thread_id,
        run_id=row.origin_run_id,
        actor_ref=row.origin_actor_ref,
    )
    return MemoryRecord(
        id=row.id,
        key=row.key,
        text=row.text,
        scope=row.scope,
        origin=origin,
        updated_at=row.updated_at,
        pinned=row.pinned,
    )
