"""LangGraph's `BaseStore`, both ways: one actor's facts as a store, and somebody's store as a provider of facts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from ..blocking import Blocking
from ..digest import MemoryDigest
from ..errors import WriteRefused
from ..ids import new_id
from ..keys import fold_key
from ..memory import Memory
from ..provider import ForgetMemory, ListMemories, SearchMemories, StoreMemory, can_search
from ..records import Author, MemoryOrigin, MemoryRecord
from ..scopes import ScopeContext, actor_scope
from ..text import keepable_token
from ..writes import forgotten_since, judge_write, key_identity, receipt_digest, why_unkeepable
from .ranked import ranked

NOT_YOURS = "This store writes at the actor's own scope and nowhere else; wider facts are a person's to publish."
DELETES = "This store deletes nothing: what is on file is deleted by the person it is about, with Memory.forget."
SHAPE = "A fact is put as {'text': ...}, one string, under its key."
_PAGE = 200
_RECEIPTS = "=receipts"  # no scope has this label: in one, two hex digits follow the sign


def label(scope: str) -> str:
    """Answer a scope as a namespace label: a label may hold no `.`, and some stores match it by pattern."""
    return quote(scope, safe="", errors="surrogatepass").replace(".", "%2E").replace("%", "=")


class ScopedStore(BaseStore):
    """What is on file for one actor, for code that expects a store: namespaces are scopes, items are facts.

    It reads at the scopes of one run's digest and no others, whatever namespace is asked for, and
    answers every record there, beaten ones included: a store knows no precedence. `put` records
    `{"text": ...}` at the actor's own scope as the agent's note, `delete` is refused. Limits count
    items, `filter` compares whole values, and there is no TTL.
    """

    def __init__(self, memory: Memory | Blocking, *, digest: MemoryDigest, ctx: ScopeContext) -> None:
        """Bind a store to one run.

        Args:
            memory: A `Memory` for `aget`, `asearch` and `aput`; a `Blocking` for the sync ones.
            digest: The digest of the run, whose scopes are all that is seen.
            ctx: Whose run it is.
        """
        self._blocking = memory if isinstance(memory, Blocking) else None
        self._memory = memory.memory if isinstance(memory, Blocking) else memory
        self._digest = digest
        self._ctx = ctx
        self._scopes: dict[tuple[str, ...], str] = {(label(scope),): scope for scope in digest.scopes}

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer the operations in their order."""
        return [await self._answer(op) for op in ops]

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `abatch`, for code that does not await.

        Raises:
            TypeError: The store was made over a `Memory`, which is awaited.
        """
        if self._blocking is None:
            msg = "this store is awaited: use aget, asearch and aput, or make it over an onfile.blocking.Blocking"
            raise TypeError(msg)
        return self._blocking.run(self.abatch(ops))

    async def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                scope, identity = self._scopes.get(op.namespace), fold_key(op.key)
                found = [] if scope is None else await self._listed([scope])
                return next((_item(record) for record in found if fold_key(record.key) == identity), None)
            case SearchOp():
                return await self._search(op)
            case PutOp():
                await self._put(op)
                return None
            case ListNamespacesOp():
                held = {(label(record.scope),) for record in await self._listed(self._digest.scopes)}
                kept = [space for space in self._scopes if space in held and _matches(space, op.match_conditions)]
                return kept[op.offset : op.offset + op.limit]

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        scopes = [scope for space, scope in self._scopes.items() if space[: len(prefix)] == prefix]
        provider = self._memory.provider
        if not scopes:
            return []
        if op.query and op.query.strip() and can_search(provider):
            wanted = SearchMemories(scopes=scopes, query=op.query.strip(), limit=op.offset + op.limit, ctx=self._ctx)
            records = [record for record in await provider.search(wanted) if record.scope in scopes]
        else:
            records = await self._listed(scopes)
        wanted_values = (op.filter or {}).items()
        items = [_item(record) for record in records]
        items = [item for item in items if all(item.value.get(name) == value for name, value in wanted_values)]
        return items[op.offset : op.offset + op.limit]

    async def _put(self, op: PutOp) -> None:
        if op.value is None:
            raise WriteRefused(DELETES)
        if self._scopes.get(op.namespace) != actor_scope(self._ctx.actor):
            raise WriteRefused(NOT_YOURS)
        if set(op.value) != {"text"}:
            raise WriteRefused(SHAPE)
        outcome = await self._memory.remember(
            {"key": op.key, "fact": op.value["text"]}, digest=self._digest, ctx=self._ctx
        )
        if not outcome.ok:
            raise WriteRefused(outcome.error or outcome.message)

    async def _listed(self, scopes: Sequence[str]) -> list[MemoryRecord]:
        records = await self._memory.provider.list(ListMemories(scopes=scopes, ctx=self._ctx))
        place = {scope: rank for rank, scope in enumerate(scopes)}
        mine = [record for record in records if record.scope in place]
        return sorted(mine, key=lambda record: (place[record.scope], fold_key(record.key), record.id))


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


def _item(record: MemoryRecord) -> SearchItem:
    # A record has no creation date of its own to show.
    value = {"text": record.text, "author": record.origin.author, "id": record.id, "pinned": record.pinned}
    moment = record.updated_at
    return SearchItem(
        namespace=(label(record.scope),), key=record.key, value=value, created_at=moment, updated_at=moment
    )


def _matches(space: tuple[str, ...], conditions: tuple[MatchCondition, ...] | None) -> bool:
    """Hold a namespace of one label against prefix and suffix conditions, `*` standing for any label."""
    return all(
        len(condition.path) <= 1 and all(part in {"*", *space} for part in condition.path)
        for condition in conditions or ()
    )
