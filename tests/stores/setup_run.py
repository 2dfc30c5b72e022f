"""Run by `test_processes.py`, many at once: set up one database after the other, each at its appointed moment.

Usage: python setup_run.py START SECONDS URL...
"""

from __future__ import annotations

import asyncio
import sys
import time

from onfile.stores import SqlMemoryProvider


async def main() -> None:
    start, seconds = float(sys.argv[1]), float(sys.argv[2])
    for number, url in enumerate(sys.argv[3:]):
        store = SqlMemoryProvider.from_url(url)
        await asyncio.sleep(max(0.0, start + number * seconds - time.time()))
        await store.setup()
        assert await store.count() == 0
        await store.aclose()


asyncio.run(main())
