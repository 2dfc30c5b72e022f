"""What a whole `offer` costs without search, beside SQLAlchemy Core and the bare driver on the same statement.

python -m bench.offer

Also how long the event loop is held up while a thousand offers are under way at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.latency import Made, postgres
from bench.stand import RESULTS, fill, machine, percentile
from onfile.memory import Memory
from onfile.records import Actor
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider, statements
from onfile.stores.keeping import utc_now

CTX = ScopeContext(actor=Actor(id="ana", tenant_ref="a"))
SCOPES = ["actor:ana", "tenant:a", "global"]
SIZES = (20, 200, 2_000)
ROUNDS = 100
AT_ONCE = 1_000
TICK = 0.010


async def timed(call: Callable[[], Awaitable[Any]]) -> list[float]:
    """Milliseconds of each call."""
    for _ in range(5):
        await call()
    spent: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        await call()
        spent.append((time.perf_counter() - started) * 1000)
    return spent


async def longest_wait(memory: Memory) -> float:
    """The longest that a 10 ms ticker was late, in milliseconds, while a thousand offers ran."""
    late = [0.0]
    done = asyncio.Event()

    async def tick() -> None:
        while not done.is_set():
            started = time.perf_counter()
            await asyncio.sleep(TICK)
            late.append((time.perf_counter() - started - TICK) * 1000)

    ticker = asyncio.create_task(tick())
    await asyncio.gather(*(memory.offer(CTX, query="") for _ in range(AT_ONCE)))
    done.set()
    await ticker
    return max(late)


def plans(provider: SqlMemoryProvider) -> dict[str, Callable[[], Awaitable[Any]]]:
    """The same rows four ways."""
    memory = Memory(provider)
    engine = provider.engine
    named: dict[str, Any] = {"scopes": SCOPES, "now": utc_now()}

    async def offer() -> None:
        await memory.offer(CTX, query="")

    async def core() -> None:
        async with engine.connect() as conn:
            (await conn.execute(statements.AT_SCOPES, named)).all()

    async def driver() -> None:
        async with engine.connect() as conn:
            await _bare((await conn.get_raw_connection()).driver_connection)

    return {"offer": offer, "SQLAlchemy Core": core, "driver": driver}


async def _bare(driver: Any) -> None:
    columns = ", ".join(column.name for column in statements.RECORD)
    where = "(expires_at IS NULL OR expires_at > {now})"
    if hasattr(driver, "execute_fetchall"):
        await driver.execute_fetchall(
            f"SELECT {columns} FROM agent_memory WHERE scope IN (?, ?, ?) AND {where.format(now='?')}",
            (*SCOPES, utc_now().isoformat()),
        )
    else:
        await driver.fetch(
            f"SELECT {columns} FROM agent_memory WHERE scope = ANY($1) AND {where.format(now='$2')}", SCOPES, utc_now()
        )


async def measure(url: str, size: int, database: str, *, crowd: bool) -> list[dict[str, Any]]:
    """One size on one database."""
    provider = SqlMemoryProvider.from_url(url)
    rows: list[dict[str, Any]] = []
    try:
        made = Made()
        mine = [fact._replace(key=f"my {fact.key}") for fact in made.facts("actor:ana", size // 4)]
        await fill(provider, [*mine, *made.facts("tenant:a", size - size // 4)], embed=False)
        spent = {name: await timed(call) for name, call in plans(provider).items()}
        middle = {name: statistics.median(times) for name, times in spent.items()}
        for name, times in spent.items():
            rows.append(
                {"database": database, "facts": size, "what": name, "p50": middle[name], "p95": percentile(times, 0.95)}
            )
            print(
                f"{database:12} {size:6,} facts   {name:16} p50 {middle[name]:7.2f} ms"
                f"   p95 {percentile(times, 0.95):7.2f} ms   offer is {middle['offer'] / middle[name]:.2f} times this",
                flush=True,
            )
        if crowd:
            waited = await longest_wait(Memory(provider))
            rows.append({"database": database, "facts": size, "what": "ticker late at most", "ms": waited})
            print(
                f"{database:12} {size:6,} facts   {AT_ONCE:,} offers at once:"
                f" a 10 ms ticker was late by {waited:.0f} ms at most"
            )
    finally:
        await provider.aclose()
    return rows


async def main() -> None:
    """Measure and print; `--json` keeps the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=RESULTS / "offer.json")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            rows += await measure(f"sqlite:///{folder}/onfile.db", size, "sqlite", crowd=size < SIZES[-1])
    with postgres() as fresh:
        for size in SIZES if fresh is not None else ():
            rows += await measure(fresh(), size, "postgresql", crowd=size < SIZES[-1])
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")


if __name__ == "__main__":
    asyncio.run(main())
