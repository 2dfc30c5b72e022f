"""What a journal costs: milliseconds per checkpoint, and whole turns with a model that takes no time.

    python -m bench.runs                                  in memory, SQLite, PostgreSQL, and DBOS on PostgreSQL
    python -m bench.runs --database sqlite mariadb --without-dbos

A turn remembers one fact: thirteen checkpoints, one of them with the fact, four with a message of the
thread. Beside it a bare DBOS workflow of thirteen steps on the same server, each of which answers as
much text and does nothing else. Turns and workflows take turns, so that a busy machine slows both:
compare within a line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from bench.databases import Databases, installed
from bench.stand import RESULTS, machine
from onfile.ids import new_id
from onfile.memory import Memory
from onfile.records import Actor
from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.journal import JournalEngine, NewRun
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from onfile.testing import InMemoryMemoryProvider

STEPS = 200
TURNS = 40
QUEUED = 60
CHECKPOINTS = 13
STEP_TARGET_MS = 3.0
OVERHEAD_TARGET = 1.25


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Remember one fact, then answer."""
    if isinstance(messages[-1].parts[-1], TextPart) or any(isinstance(one, ModelResponse) for one in messages):
        return ModelResponse(parts=[TextPart("Noted.")])
    return ModelResponse(parts=[ToolCallPart("remember", {"key": "units", "fact": "km"}, tool_call_id="c1")])


def context() -> ScopeContext:
    """A person and a thread that nobody had before."""
    name = new_id("a")
    return ScopeContext(actor=Actor(id=name), thread_id=f"thread-{name}")


async def timed(work: Awaitable[Any]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


async def value(*_: Any) -> dict[str, str]:
    """What a checkpoint holds: about as much as a short answer."""
    return {"text": "x" * 200}


async def checkpoints(engine: JournalEngine) -> dict[str, float]:
    """Medians of single checkpoints, with work that takes no time."""
    journal = await engine.begin(NewRun(id=new_id("run_"), text="hello", ctx=context()), owner="bench")
    steps = [await timed(journal.step(f"step:{number}", value)) for number in range(STEPS)]
    txs = [await timed(journal.tx(f"tx:{number}", value)) for number in range(STEPS)]
    await engine.cancel(journal.run_id)  # or the worker would find it left
    return {"step_ms": statistics.median(steps), "tx_ms": statistics.median(txs)}


async def turns_beside(runner: TurnRunner, bare: Callable[[], Awaitable[Any]] | None) -> dict[str, float]:
    """Medians of whole turns, and of bare workflows in between."""
    turns: list[float] = []
    workflows: list[float] = []
    for _ in range(TURNS):
        turns.append(await timed(runner.start("hello", ctx=context())))
        if bare is not None:
            workflows.append(await timed(bare()))
    kept = {"turn_ms": statistics.median(turns)}
    return kept | ({"bare_dbos_ms": statistics.median(workflows)} if workflows else {})


def assistant(provider: Any) -> Assistant:
    """A turn with memory and nothing else."""
    return Assistant(model=FunctionModel(answer), memory=Memory(provider))


class Sql:
    """Facts and runs on one engine, set up and closed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = create_async_engine(url)
        self.provider, self.journal = SqlMemoryProvider(self.engine), SqlJournal(self.engine)

    async def __aenter__(self) -> Sql:
        await self.provider.setup()
        await self.journal.setup()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.provider.aclose()
        await self.engine.dispose()


class Dbos:
    """DBOS in this process, with our workers and a bare workflow on one server."""

    def __init__(self, sql: Sql) -> None:
        from onfile.runs.workers import DbosWorkers, WorkersConfig

        system = make_url(sql.url).set(drivername="postgresql").render_as_string(hide_password=False)
        config = WorkersConfig(system_database_url=system, executor_id="bench", poll_seconds=0.05)
        self.journal = sql.journal
        self.workers = DbosWorkers(TurnRunner(assistant(sql.provider), sql.journal, owner="bench"), config)

    async def launch(self) -> None:
        """Start DBOS with both kinds of workflows."""
        from dbos import DBOS

        async def thirteen_steps() -> str:
            for number in range(CHECKPOINTS):
                await DBOS.run_step_async({"name": f"step:{number}"}, value)
            return "done"

        self._bare = DBOS.workflow(name="bare")(thirteen_steps)
        await self.workers.launch()

    async def bare(self) -> None:
        """One bare workflow, started at once in this process."""
        from dbos import DBOS

        await (await DBOS.start_workflow_async(self._bare)).get_result()

    async def queued(self) -> dict[str, float]:
        """How long it takes until many are through the same queue, four at once."""
        from dbos import DBOS

        from onfile.runs.workers import QUEUE

        async def ours() -> None:
            ids = [await self.workers.start("hello", ctx=context()) for _ in range(QUEUED)]
            for run_id in ids:
                while (await self.journal.get(run_id)).status != "done":  # noqa: ASYNC110  # no event crosses the queue
                    await asyncio.sleep(0.02)

        async def theirs() -> None:
            handles = [await DBOS.enqueue_workflow_async(QUEUE, self._bare) for _ in range(QUEUED)]
            for handle in handles:
                await handle.get_result(polling_interval_sec=0.02)

        both = [(await timed(ours()), await timed(theirs())) for _ in range(3)]
        return {
            "queued_turn_ms": statistics.median(one for one, _ in both) / QUEUED,
            "queued_bare_dbos_ms": statistics.median(one for _, one in both) / QUEUED,
        }


async def measure(database: str, url: str, *, with_dbos: bool) -> list[dict[str, Any]]:
    """Measure a SQL journal with facts beside it, and DBOS on the same server."""
    async with Sql(url) as sql:
        row: dict[str, Any] = {"engine": f"SqlJournal, {database}", **await checkpoints(sql.journal)}
        runner = TurnRunner(assistant(sql.provider), sql.journal)
        if not with_dbos:
            return [row | await turns_beside(runner, None)]
        dbos = Dbos(sql)
        await dbos.launch()
        try:
            await dbos.bare()
            row |= await turns_beside(runner, dbos.bare)
            through = await dbos.queued()
        finally:
            await dbos.workers.close()
        return [row, {"engine": f"DBOS, {database}", **through}]


def told(row: dict[str, Any]) -> str:
    """One line for one engine."""
    parts = [f"{row['engine']:<24}"]
    if "step_ms" in row:
        parts.append(f"step {row['step_ms']:6.2f} ms   tx {row['tx_ms']:6.2f} ms   turn {row['turn_ms']:7.1f} ms")
    for ours, bare in (("turn_ms", "bare_dbos_ms"), ("queued_turn_ms", "queued_bare_dbos_ms")):
        if bare in row:
            how = "" if ours == "turn_ms" else f"queued turn {row[ours]:7.1f} ms   "
            parts.append(f"{how}bare DBOS {row[bare]:7.1f} ms   ratio {row[ours] / row[bare]:.2f}")
    return "   ".join(parts)


def missed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The targets that were not met."""
    found = [
        f"a step on SQLite took {row['step_ms']:.2f} ms, more than {STEP_TARGET_MS:.0f}"
        for row in rows
        if row["engine"] == "SqlJournal, sqlite" and row["step_ms"] > STEP_TARGET_MS
    ]
    for ours, bare in (("turn_ms", "bare_dbos_ms"), ("queued_turn_ms", "queued_bare_dbos_ms")):
        found += [
            f"{row['engine']}: {ours} is {row[ours] / row[bare]:.2f} of {bare}, more than {OVERHEAD_TARGET}"
            for row in rows
            if bare in row and row[ours] / row[bare] > OVERHEAD_TARGET
        ]
    return found


async def main() -> int:
    """Measure every engine there is; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", nargs="+", default=["sqlite", "postgresql"], help="sqlite, postgresql, mariadb")
    parser.add_argument("--without-dbos", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS / "runs.json")
    options = parser.parse_args()
    engine = InlineJournal()
    rows: list[dict[str, Any]] = [{"engine": "InlineJournal", **await checkpoints(engine)}]
    rows[0] |= await turns_beside(TurnRunner(assistant(InMemoryMemoryProvider()), engine), None)
    print(told(rows[0]), flush=True)
    with contextlib.ExitStack() as open_:
        databases = open_.enter_context(Databases())
        for database in installed(options.database):
            with_dbos = database == "postgresql" and not options.without_dbos
            for row in await measure(database, databases.fresh(database), with_dbos=with_dbos):
                rows.append(row)
                print(told(row), flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n", encoding="utf-8")
    print(f"medians of {STEPS} checkpoints and {TURNS} turns; wrote {options.json}")
    for sentence in missed(rows):
        print(f"missed: {sentence}")
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
