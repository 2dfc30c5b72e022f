"""Providers as a host might write them in ten lines: honest, naive, and none of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onfile import ForgetMemory, ListMemories, MemoryRecord, SearchMemories, StoreMemory
from tests.facts import fact


class ListOnly:
    """Lists and forgets, and writes down what it was asked."""

    def __init__(self, *records: MemoryRecord) -> None:
        self.records = list(records)
        self.asked: list[object] = []

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        self.asked.append(request)
        return [record for record in self.records if record.scope in request.scopes]

    async def forget(self, request: ForgetMemory) -> bool:
        self.asked.append(request)
        own = f"actor:{request.ctx.actor.id}"
        before = len(self.records)
        self.records = [record for record in self.records if (record.id, record.scope) != (request.id, own)]
        return len(self.records) < before


class Writable(ListOnly):
    """Upserts on scope and key as spelled; guards nothing and keeps no receipt."""

    async def write(self, request: StoreMemory) -> MemoryRecord:
        self.asked.append(request)
        for place, record in enumerate(self.records):
            if (record.scope, record.key) == (request.scope, request.key):
                self.records[place] = replace(record, text=request.text, origin=request.origin)
                return self.records[place]
        self.records.append(fact(request.key, request.text, scope=request.scope, origin=request.origin))
        return self.records[-1]

    @property
    def writes(self) -> list[StoreMemory]:
        return [request for request in self.asked if isinstance(request, StoreMemory)]


class Searchable(ListOnly):
    """Answers every search with the records it was given for it, in that order."""

    def __init__(self, *records: MemoryRecord, found: Sequence[MemoryRecord] = ()) -> None:
        super().__init__(*records)
        self.found = found

    async def search(self, request: SearchMemories) -> Sequence[MemoryRecord]:
        self.asked.append(request)
        return self.found


class Leaky(Writable):
    """Forgets to filter: lists everything that anybody has."""

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        self.asked.append(request)
        return list(self.records)


class Broken:
    """Raises whatever it is asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def asked(self, request: object) -> Sequence[MemoryRecord]:
        raise self.error

    list = forget = write = search = asked
