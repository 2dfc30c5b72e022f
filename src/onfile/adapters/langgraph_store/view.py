"""One actor's facts as a LangGraph store, for code that expects one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from ...blocking import Blocking
from ...digest import MemoryDigest
from ...errors import WriteRefused
from ...keys import fold_key
from ...memory import Memory
from ...provider import ListMemories, SearchMemories, can_search
from ...records import MemoryRecord
from ...scopes import ScopeContext, actor_scope
from .labels import label

NOT_YOURS = "This store writes at the actor's own scope and nowhere else; wider facts are a person's to publish."
DELETES = "This store deletes nothing: what is on file is deleted by the person it is about, with Memory.forget."
SHAPE = "A fact is put as {'text': ...}, one string, under its key."


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
