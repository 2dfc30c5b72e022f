"""Many workers on PostgreSQL share the runs: each effect once, whoever dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.records import Actor
from onfile.runs.journal import NewRun
from onfile.runs.sql import SqlJournal
from onfile.runs.workers import WorkersConfig, queue_from_elsewhere
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from onfile.stores.journals import agent_run_checkpoint
from onfile.stores.schema import agent_memory
from tests.stores import servers

WORKER = Path(__file__).parent / "worker_run.py"


@pytest.fixture
async def url(postgres_url: str) -> str:
    """An empty PostgreSQL database of DBOS's and ours."""
    url = await servers.emptied(servers.by_driver(postgres_url, "postgresql+asyncpg"))
    engine = create_async_engine(url)
    async with engine.begin() as conn:
        await conn.execute(text("DROP SCHEMA IF EXISTS dbos CASCADE"))
    await engine.dispose()
    return url


@pytest.fixture
async def engine(url: str) -> AsyncIterator[AsyncEngine]:
    """The tables of facts and runs, made."""
    engine = create_async_engine(url)
    await SqlMemoryProvider(engine).setup()
    await SqlJournal(engine).setup()
    yield engine
    await engine.dispose()


def worker(url: str, executor: str, *, seconds: float, dead: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), url, executor, str(seconds), *([dead] if dead else [])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def config(url: str) -> WorkersConfig:
    system = url.replace("postgresql+asyncpg", "postgresql")
    return WorkersConfig(system_database_url=system, executor_id="test")


async def queued(engine: AsyncEngine, url: str, count: int) -> None:
    journal = SqlJournal(engine)
    for number in range(count):
        ctx = ScopeContext(actor=Actor(id=f"actor-{number}"), thread_id=f"t{number}")
        await journal.create(NewRun(id=f"r{number}", text="hello", ctx=ctx))
    await queue_from_elsewhere(config(url), await journal.runs(limit=count))


async def launched_once(url: str) -> None:
    """DBOS makes its tables when a worker launches first."""
    assert worker(url, "w0", seconds=0).communicate(timeout=60)[0] == "launched\n"


async def assert_each_once(engine: AsyncEngine, count: int) -> None:
    runs = await SqlJournal(engine).runs(limit=1000)
    assert Counter(run.status for run in runs) == {"done": count}
    c = agent_run_checkpoint.c
    async with engine.connect() as conn:
        facts = (await conn.execute(select(func.count()).select_from(agent_memory))).scalar_one()
        values = (await conn.execute(select(c.value).where(c.name == "tool:c1"))).scalars().all()
    assert facts == count
    assert sum('"recorded":true' in value for value in values) == count


async def test_two_workers_drain_sixty_runs_with_sixty_effects(engine: AsyncEngine, url: str):
    await launched_once(url)
    await queued(engine, url, 60)

    both = [worker(url, name, seconds=0.05) for name in ("w1", "w2")]
    told = [one.communicate(timeout=120)[0] for one in both]

    await assert_each_once(engine, 60)
    assert all("model" in one for one in told)


async def test_when_a_worker_is_killed_another_takes_its_runs_over(engine: AsyncEngine, url: str):
    await launched_once(url)
    await queued(engine, url, 12)
    first = worker(url, "w1", seconds=0.4)
    assert first.stdout is not None
    while "model" not in first.stdout.readline():
        pass
    time.sleep(0.6)
    first.kill()
    first.communicate()

    second = worker(url, "w2", seconds=0.01, dead="w1")
    told, _ = second.communicate(timeout=120)

    assert second.returncode == 0
    assert int(told.split("took over ")[1].split()[0]) > 0
    await assert_each_once(engine, 12)


async def test_no_word_of_a_run_is_in_a_table_of_dbos(engine: AsyncEngine, url: str):
    await launched_once(url)
    await queued(engine, url, 1)
    worker(url, "w1", seconds=0.01).communicate(timeout=60)

    async with engine.connect() as conn:
        rows = (await conn.execute(text("SELECT w::text FROM dbos.workflow_status w"))).scalars().all()

    assert rows
    assert all("hello" not in row and "km" not in row and "actor-0" not in row for row in rows)
