"""Providers that each break one promise, as real stores have broken it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import count

from onfile.errors import WriteRefused
from onfile.keys import fold_key
from onfile.scopes import actor_scope
from onfile.testing import InMemoryMemoryProvider


class Recalling(InMemoryMemoryProvider):
    """Claims everything, so that what is broken can be any of it."""

    def __init__(self):
        super().__init__(recall=True)

    def place(self, request):
        return request.scope, fold_key(request.key)

    def is_retry(self, request):
        return (request.idempotency_key, self.place(request)) in self._receipts


class ListsByPrefix(Recalling):
    async def list(self, request):
        return [row for row in self._standing.values() if row.scope.startswith(tuple(request.scopes))]


class ComparesScopesLikeMySQL(Recalling):
    """Neither case nor trailing spaces make a difference, as under a PAD SPACE, _ci collation."""

    async def list(self, request):
        wanted = {scope.lower().rstrip(" ") for scope in request.scopes}
        return [row for row in self._standing.values() if row.scope.lower().rstrip(" ") in wanted]


class ListsOnePage(Recalling):
    async def list(self, request):
        return list(await super().list(request))[:100]


class HandsOutItsOwnList(Recalling):
    """Keeps each answer, renews it on a write and hands out that very list."""

    def __init__(self):
        super().__init__()
        self._answers = {}

    async def list(self, request):
        return self._answers.setdefault(tuple(request.scopes), list(self._at(request.scopes)))

    async def write(self, request):
        self._answers.clear()
        return await super().write(request)

    async def forget(self, request):
        self._answers.clear()
        return await super().forget(request)

    async def pin(self, *, id, pinned):
        self._answers.clear()
        return await super().pin(id=id, pinned=pinned)


class TellsTimesWithoutAZone(Recalling):
    def _now(self):
        return super()._now().replace(tzinfo=None)


class ForgetsByIdAlone(Recalling):
    async def forget(self, request):
        for place, row in self._standing.items():
            if row.id == request.id:
                del self._standing[place]
                return True
        return False


class ForgetsEverythingOfTheActor(Recalling):
    """Empties the collection, not the record."""

    async def forget(self, request):
        known = await super().forget(request)
        own = actor_scope(request.ctx.actor)
        if known:
            self._standing = {place: row for place, row in self._standing.items() if row.scope != own}
        return known


class LetsAgentsReplacePeople(Recalling):
    async def write(self, request):
        standing = self._standing.get(self.place(request))
        own = request.scope == actor_scope(request.ctx.actor)
        if standing and own and standing.text != request.text and not self.is_retry(request):
            self._standing[self.place(request)] = replace(standing, origin=replace(standing.origin, author="agent"))
        return await super().write(request)


class LetsAgentsWriteAnywhere(Recalling):
    async def write(self, request):
        if request.origin.author == "human" or request.scope == actor_scope(request.ctx.actor):
            return await super().write(request)
        await super().write(replace(request, origin=replace(request.origin, author="human")))
        self._standing[self.place(request)] = replace(self._standing[self.place(request)], origin=request.origin)
        return self._standing[self.place(request)]


class KeepsNoReceipts(Recalling):
    async def write(self, request):
        return await super().write(replace(request, idempotency_key=None))


class ReceiptsWithoutPlace(Recalling):
    """Takes every write under one idempotency key for the same write."""

    def __init__(self):
        super().__init__()
        self._places = {}

    async def write(self, request):
        first = self._places.get(request.idempotency_key)
        if first is not None:
            return await super().write(replace(request, scope=first[0], key=first[1]))
        record = await super().write(request)
        if request.idempotency_key is not None:
            self._places[request.idempotency_key] = (request.scope, request.key)
        return record


class DeletesAndInserts(Recalling):
    """A rewrite is another row: another id, the new spelling, no pin."""

    async def write(self, request):
        standing = self._standing.get(self.place(request))
        record = await super().write(request)
        if standing is None or record == standing or self._standing[self.place(request)] is standing:
            return record
        del self._standing[self.place(request)]
        return await super().write(replace(request, idempotency_key=None, report=None))


class SlugsKeys(Recalling):
    """Makes keys ASCII, so that every Japanese one is the same."""

    async def write(self, request):
        slug = fold_key(request.key).encode("ascii", "ignore").decode()
        known = (request.scope, slug) in self._standing
        record = await super().write(replace(request, key=slug))
        if known:
            return record
        self._standing[request.scope, slug] = replace(record, key=request.key)
        return self._standing[request.scope, slug]


class LosesUpdates(Recalling):
    """Reads all, waits, and writes all back."""

    async def write(self, request):
        read = dict(self._standing)
        await asyncio.sleep(0)
        self._standing = read
        return await super().write(request)


class TouchesOnTheSameText(Recalling):
    async def write(self, request):
        record = await super().write(request)
        touched = replace(record, updated_at=record.updated_at + timedelta(microseconds=1))
        self._standing[self.place(request)] = touched
        return touched


class RaisesWhatItsDriverRaises(Recalling):
    async def write(self, request):
        try:
            return await super().write(request)
        except WriteRefused as refused:
            if "no store can keep" in refused.reason:
                raise UnicodeError from refused
            raise


class PinMovesTheTime(Recalling):
    async def pin(self, *, id, pinned):
        known = await super().pin(id=id, pinned=pinned)
        for place, row in self._standing.items():
            if row.id == id:
                self._standing[place] = replace(row, updated_at=row.updated_at + timedelta(seconds=1))
        return known


class RanksBeforeItFilters(Recalling):
    async def _search(self, request):
        everywhere = list(dict.fromkeys([*request.scopes, *(row.scope for row in self._standing.values())]))
        found = await super()._search(replace(request, scopes=everywhere))
        return [row for row in found if row.scope in request.scopes]


class CountsRecordsAsKeys(Recalling):
    async def _search(self, request):
        found = list(await super()._search(replace(request, limit=None)))
        return (
            found[: request.limit] + [row for row in found[request.limit :] if row.pinned] if request.limit else found
        )


class IgnoresTheLimit(Recalling):
    async def _search(self, request):
        return await super()._search(replace(request, limit=None))


class ParsesTheQuery(Recalling):
    async def _search(self, request):
        if request.query.count('"') % 2:
            raise SyntaxError
        return await super()._search(request)


class MatchesAsciiOnly(Recalling):
    async def _search(self, request):
        ascii_only = request.query.encode("ascii", "replace").decode().replace("?", " ")
        return await super()._search(replace(request, query=ascii_only))


class ForgetsPinsInSearch(Recalling):
    async def _search(self, request):
        found = await super()._search(request)
        return [row for row in found if not row.pinned]


class BreaksTiesByChance(Recalling):
    def __init__(self):
        super().__init__()
        self._turn = count()

    async def _search(self, request):
        found = list(await super()._search(request))
        same = len({row.text for row in found}) == 1
        turn = next(self._turn) % len(found) if found and same else 0
        return found[turn:] + found[:turn]


class KeepsAStaleIndex(Recalling):
    """Goes on finding a record by every text that it ever had."""

    def __init__(self):
        super().__init__()
        self._indexed = {}

    async def write(self, request):
        record = await super().write(request)
        self._indexed.setdefault(self.place(request), []).append(record.text)
        return record

    async def _search(self, request):
        now = self._standing
        self._standing = {
            place: replace(row, text=" ".join(self._indexed.get(place, []))) for place, row in now.items()
        }
        try:
            found = await super()._search(request)
        finally:
            self._standing = now
        return [now[row.scope, fold_key(row.key)] for row in found]
