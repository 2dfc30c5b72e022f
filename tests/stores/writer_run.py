"""Run by `test_processes.py`, many at once: set up, then write.

Usage: python writer_run.py URL WRITES KEYS NAME. KEYS is `own` (each write another key) or `same`.
"""

from __future__ import annotations

import asyncio
import sys

from onfile.provider import StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider

URL, WRITES, KEYS, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
CTX = ScopeContext(actor=Actor(id="ana"))


async def main() -> None:
    store = SqlMemoryProvider.from_url(URL)
    await store.setup()
    for number in range(WRITES):
        await store.write(
            StoreMemory(
                key=f"key {NAME} {number}" if KEYS == "own" else "units",
                text=f"{NAME} wrote {number} " + "and so on " * 20 + "to the end",
                scope="actor:ana",
                origin=MemoryOrigin(author="agent", run_id=NAME),
                ctx=CTX,
                idempotency_key=f"{NAME} {number}",
            )
        )
    await store.aclose()


asyncio.run(main())
