"""Several workers share the runs: each fact once, whoever dies, and nobody has to do anything about it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
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
from onfile.stores.journals import agent_run_checkpoint, agent_thread_message
from onfile.stores.schema import agent_memory
from tests.runs.conftest import sql_url, without_dbos

WORKER = Path(__file__).parent / "worker_run.py"


class Floor:
    """A database, and the processes that work on it."""

    def __init__(self, kind: str, url: str, folder: Path, system: str = "") -> None:
        self.kind, self.url, self.system = kind, url, system
        self.effects = folder / "effects"
        self.effects.touch()
        self.engine: AsyncEngine = create_async_engine(url)
        self.journal = SqlJournal(self.engine)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    async def setup(self) -> None:
        await SqlMemoryProvider(self.engine).setup()
        await self.journal.setup()

    async def create(self, count: int) -> None:
        for number in range(count):
            ctx = ScopeContext(actor=Actor(id=f"actor-{number}"), thread_id=f"t{number}")
            await self.journal.create(NewRun(id=f"r{number}", text="hello", ctx=ctx))

    def start(self, name: str, *, seconds: float) -> None:
        command = [sys.executable, str(WORKER), self.kind, self.url, name, str(seconds), str(self.effects)]
        self._processes[name] = subprocess.Popen([*command, self.system] if self.system else command)

    def kill(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGKILL)
        self._processes[name].wait()

    def stop(self, name: str) -> int:
        process = self._processes.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(30)

    def lines(self) -> list[tuple[str, str]]:
        return [(worker, run) for worker, run in map(str.split, self.effects.read_text().splitlines())]

    async def until(self, told: str, condition) -> None:
        async with asyncio.timeout(120):
            while not await condition():
                for name, process in self._processes.items():
                    assert process.poll() in (None, -signal.SIGKILL), f"{name} ended by itself, before {told}"
                await asyncio.sleep(0.1)

    async def until_effects_of(self, *names: str, each: int) -> None:
        async def enough() -> bool:
            by = Counter(worker for worker, _ in self.lines())
            return all(by[name] >= each for name in names)

        await self.until(f"{each} effects of each of {names}", enough)

    async def until_done(self, count: int) -> None:
        async def all_done() -> bool:
            return len(await self.journal.runs(status="done", limit=1000)) == count

        await self.until(f"{count} runs were done", all_done)

    async def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        await self.engine.dispose()

    async def assert_each_once(self, count: int) -> None:
        """Every effect happened, every fact is there once, and no run ended or said a thing twice."""
        runs = await self.journal.runs(limit=1000)
        assert Counter(run.status for run in runs) == {"done": count}
        assert {run for _, run in self.lines()} == {f"r{number}" for number in range(count)}
        c, said = agent_run_checkpoint.c, agent_thread_message
        async with self.engine.connect() as conn:
            facts = (await conn.execute(select(func.count()).select_from(agent_memory))).scalar_one()
            values = (await conn.execute(select(c.value).where(c.name == "tool:c2"))).scalars().all()
            ends = (await conn.execute(select(c.run_id).where(c.name == "persist:run:end"))).scalars().all()
            messages = (await conn.execute(select(said.c.run_id, func.count()).group_by(said.c.run_id))).all()
        assert facts == count
        assert sum('"recorded":true' in value for value in values) == count
        assert len(ends) == len(set(ends)) == count
        # What the user said, three messages of the model, two results.
        assert {tuple(row)[1] for row in messages} == {6}


async def floor_of(kind: str, url: str, folder: Path, system: str = "") -> AsyncIterator[Floor]:
    floor = Floor(kind, url, folder, system)
    await floor.setup()
    yield floor
    await floor.close()


@pytest.fixture(params=["sql", "dbos"])
async def floor(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Floor]:
    """An empty PostgreSQL database, for workers with and without DBOS."""
    url = await without_dbos(await sql_url(request, "postgres"))
    async for one in floor_of(request.param, url, tmp_path):
        yield one


@pytest.fixture
async def dbos(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Floor]:
    """An empty PostgreSQL database for workers with DBOS."""
    url = await without_dbos(await sql_url(request, "postgres"))
    async for one in floor_of("dbos", url, tmp_path):
        yield one


async def test_two_workers_drain_sixty_runs_though_one_is_killed_in_the_middle(floor: Floor):
    await floor.create(60)
    for name in ("w1", "w2"):
        floor.start(name, seconds=0.1)
    await floor.until_effects_of("w1", "w2", each=5)

    floor.kill("w1")

    assert len(await floor.journal.runs(status="done", limit=60)) < 60
    await floor.until_done(60)
    await floor.assert_each_once(60)
    doubled = [run for run, times in Counter(run for _, run in floor.lines()).items() if times > 1]
    assert len(doubled) <= 4  # only what the dead worker had under way can have happened twice


@pytest.mark.parametrize("kind", ["sqlite", "mariadb"])
async def test_workers_share_a_database_without_dbos(request: pytest.FixtureRequest, tmp_path: Path, kind: str):
    async for floor in floor_of("sql", await sql_url(request, kind), tmp_path):
        await floor.create(20)
        for name in ("w1", "w2"):
            floor.start(name, seconds=0.1)
        await floor.until_effects_of("w1", "w2", each=2)

        floor.kill("w1")

        await floor.until_done(20)
        await floor.assert_each_once(20)


async def test_a_worker_that_stands_still_is_fenced_off_when_it_goes_on(floor: Floor):
    await floor.create(4)
    floor.start("w1", seconds=0.3)
    await floor.until_effects_of("w1", each=1)
    process = floor._processes["w1"]
    process.send_signal(signal.SIGSTOP)
    floor.start("w2", seconds=0.01)

    await floor.until_done(4)
    process.send_signal(signal.SIGCONT)
    await asyncio.sleep(2)

    assert process.poll() is None
    await floor.assert_each_once(4)


async def test_a_worker_that_is_stopped_leaves_its_runs_at_once(floor: Floor):
    await floor.create(2)
    floor.start("w1", seconds=2)
    await floor.until_effects_of("w1", each=1)

    code = await asyncio.to_thread(floor.stop, "w1")

    assert code == 0
    # Not lost after a while, but left: nobody has to wait for that.
    assert {run.status for run in await floor.journal.runs()} == {"ready"}
    floor.start("w2", seconds=0.01)
    await floor.until_done(2)
    await floor.assert_each_once(2)


async def test_a_worker_that_comes_back_goes_on_at_once_with_what_it_had(floor: Floor):
    await floor.create(4)
    floor.start("w1", seconds=1)
    await floor.until_effects_of("w1", each=1)
    floor.kill("w1")

    floor.start("w1", seconds=0.01)

    await floor.until_done(4)
    await floor.assert_each_once(4)


async def test_one_worker_of_dbos_needs_no_postgresql(request: pytest.FixtureRequest, tmp_path: Path):
    url = await sql_url(request, "sqlite")
    async for floor in floor_of("dbos", url, tmp_path, f"sqlite:///{tmp_path}/dbos.db"):
        await floor.create(4)
        floor.start("w1", seconds=0.5)
        await floor.until_effects_of("w1", each=1)
        floor.kill("w1")

        floor.start("w1", seconds=0.01)

        await floor.until_done(4)
        await floor.assert_each_once(4)


async def test_no_word_of_a_run_is_in_a_table_of_dbos(dbos: Floor):
    dbos.start("w1", seconds=0.01)
    await dbos.create(2)
    await dbos.until_done(2)
    # Queued by a process that is no worker, which finds that they are done.
    system = dbos.url.replace("postgresql+asyncpg", "postgresql")
    await queue_from_elsewhere(
        WorkersConfig(system_database_url=system, executor_id="test"), await dbos.journal.runs(limit=2)
    )

    async with dbos.engine.connect() as conn:
        tables = (
            await conn.execute(text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'dbos'"))
        ).scalars()
        rows = [
            row
            for table in tables.all()
            for row in (await conn.execute(text(f'SELECT t::text FROM dbos."{table}" t'))).scalars().all()
        ]

    assert any("onfile:0:r0" in row for row in rows)
    assert all("hello" not in row and "km" not in row and "actor-0" not in row for row in rows)


@pytest.fixture(autouse=True)
def _only_where_processes_can_be_stopped() -> Iterator[None]:
    if not hasattr(signal, "SIGSTOP") or os.name != "posix":
        pytest.skip("this system has no signals to kill and stop processes with")
    yield
