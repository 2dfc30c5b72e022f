"""A store and the few sentences that its tests say to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from onfile.provider import ForgetMemory, ListMemories, StoreMemory, WriteReport
from onfile.records import Actor, MemoryOrigin, MemoryRecord
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from tests.facts import NOON


@dataclass
class Desk:
    """A store and the few sentences that tests say to it."""

    store: SqlMemoryProvider
    now: datetime = NOON
    reports: list[WriteReport] = field(default_factory=list)

    def clock(self) -> datetime:
        """One second passes with every look at it."""
        self.now += timedelta(seconds=1)
        return self.now

    async def write(
        self,
        key: str = "units",
        text: str = "kilometres",
        *,
        actor: str = "ana",
        scope: str | None = None,
        author: Any = "agent",
        idempotency_key: str | None = None,
        origin: MemoryOrigin | None = None,
    ) -> MemoryRecord:
        report = WriteReport()
        record = await self.store.write(
            StoreMemory(
                key=key,
                text=text,
                scope=f"actor:{actor}" if scope is None else scope,
                origin=origin or MemoryOrigin(author=author, thread_id="t1", run_id="r1", actor_ref=actor),
                ctx=context(actor),
                idempotency_key=idempotency_key,
                report=report,
            )
        )
        self.reports.append(report)
        return record

    async def list(self, *scopes: str) -> list[MemoryRecord]:
        return list(await self.store.list(ListMemories(scopes=scopes or ("actor:ana",), ctx=context("ana"))))

    async def texts(self, *scopes: str) -> dict[str, str]:
        return {record.key: record.text for record in await self.list(*scopes)}

    async def forget(self, id: str, *, actor: str = "ana") -> bool:
        return await self.store.forget(ForgetMemory(id=id, ctx=context(actor)))


def context(actor: str) -> ScopeContext:
    return ScopeContext(actor=Actor(id=actor))
