"""A LangGraph store that somebody already runs, as a provider of facts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, Item

from ...errors import WriteRefused
from ...ids import new_id
from ...provider import ForgetMemory, ListMemories, SearchMemories, StoreMemory
from ...records import Author, MemoryOrigin, MemoryRecord
from ...scopes import actor_scope
from ...text import keepable_token
from ...writes import forgotten_since, judge_write, key_identity, receipt_digest, why_unkeepable
from ..ranked import ranked
from .labels import label

_PAGE = 200
_RECEIPTS = "=receipts"  # no scope has this label: in one, two hex digits follow the sign


class LangGraphStoreProvider:
    """Keep facts in a LangGraph store that you already run.

    A `BaseStore` has no transaction, so this cannot promise what a store of onfile's own does: of two
    processes that write one key at once, the later wins, whoever it is; a process that dies between
    the fact and its receipt writes again when it is replayed. Within one process writes queue up.
    What is forgotten is gone from the store's rows as that store deletes.
    """

    def __init__(self, store: BaseStore, *, root: str = "onfile") -> None:
        self._store = store
        self._root = root
        self._lock = asyncio.Lock()

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        """Return every record at the scopes."""
        found: list[MemoryRecord] = []
        for scope in filter(keepable_token, dict.fromkeys(request.scopes)):
            space = self._space(scope)
            offset = 0
            while True:
                page = await self._store.asearch(space, limit=_PAGE, offset=offset)
                # Some stores match a namespace by its beginning: `ann` must not bring `anna` along.
                found += [_record(item, scope) for item in page if tuple(item.namespace) == space]
                offset += _PAGE
                if len(page) < _PAGE:
                    break
        return found

    async def search(self, request: SearchMemories) -> Sequence[MemoryRecord]:
        """Return the records of the best keys, by words; the store's own index is not asked."""
        return ranked(await self.list(ListMemories(scopes=request.scopes, ctx=request.ctx)), request)

    async def forget(self, request: ForgetMemory) -> bool:
        """Delete the record if it is held at the actor's own scope."""
        own = actor_scope(request.ctx.actor)
        async with self._lock:
            for record in await self.list(ListMemories(scopes=(own,), ctx=request.ctx)):
                if record.id == request.id:
                    await self._store.adelete(self._space(own), key_identity(record.key))
                    return True
        return False

    async def write(self, request: StoreMemory) -> MemoryRecord:
        """Keep the fact and return the record that now stands at its scope and key.

        Raises:
            WriteRefused: As every store does; see the class for what two processes at once can do.
        """
        reason = why_unkeepable(scope=request.scope, key=request.key, text=request.text, origin=request.origin)
        if reason is not None:
            raise WriteRefused(reason)
        space, identity, receipts = self._space(request.scope), key_identity(request.key), (self._root, _RECEIPTS)
        receipt = None
        if request.idempotency_key is not None:
            named = request.idempotency_key
            receipt = receipt_digest(idempotency_key=named, scope=request.scope, identity=identity)
        async with self._lock:
            item = await self._store.aget(space, identity)
            standing = None if item is None else _record(item, request.scope)
            if receipt is not None and await self._store.aget(receipts, receipt):
                if standing is None:
                    raise WriteRefused(forgotten_since(scope=request.scope))
                return standing
            step = judge_write(standing=standing, request=request, now=datetime.now(UTC), new_id=new_id)
            if not step.unchanged:
                await self._store.aput(space, identity, _value(step.record), index=False)
            if receipt is not None:
                await self._store.aput(receipts, receipt, {"done": True}, index=False)
        return step.record

    async def pin(self, *, id: str, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin; False for an unknown id. It reads through all scopes to find it."""
        async with self._lock:
            offset = 0
            while page := await self._store.asearch((self._root,), limit=_PAGE, offset=offset):
                for item in page:
                    if item.value.get("id") == id:
                        value = {**item.value, "pinned": pinned}
                        await self._store.aput(tuple(item.namespace), item.key, value, index=False)
                        return True
                offset += _PAGE
        return False

    def _space(self, scope: str) -> tuple[str, ...]:
        return (self._root, label(scope))


def _value(record: MemoryRecord) -> dict[str, Any]:
    origin = record.origin
    return {
        "id": record.id,
        "key": record.key,
        "text": record.text,
        "author": origin.author,
        "thread_id": origin.thread_id,
        "run_id": origin.run_id,
        "actor_ref": origin.actor_ref,
        "updated_at": record.updated_at.isoformat(),
        "pinned": record.pinned,
    }


def _record(item: Item, scope: str) -> MemoryRecord:
    value: Mapping[str, Any] = item.value
    origin = MemoryOrigin(
        author=cast("Author", value["author"]),
        thread_id=value["thread_id"],
        run_id=value["run_id"],
        actor_ref=value["actor_ref"],
    )
    moment = datetime.fromisoformat(value["updated_at"])
    record = MemoryRecord(
        id=value["id"], key=value["key"], text=value["text"], scope=scope, origin=origin, updated_at=moment
    )
    return replace(record, pinned=True) if value.get("pinned") else record
