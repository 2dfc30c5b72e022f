"""A store that counts what a turn asks of it, in a process that is asked for nothing else."""

from __future__ import annotations

from onfile.stores import SqlMemoryProvider


class Counting(SqlMemoryProvider):
    asked = 0
    written = 0

    async def list(self, request):
        type(self).asked += 1
        return await super().list(request)

    async def search(self, request):
        type(self).asked += 1
        return await super().search(request)

    async def write(self, request):
        type(self).written += request.origin.author == "agent"
        return await super().write(request)
