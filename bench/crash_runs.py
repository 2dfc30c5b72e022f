"""Kill a real process before, during and after every checkpoint of a turn; another one finishes it.

    python -m bench.crash_runs                                  SQLite, PostgreSQL, and DBOS on PostgreSQL
    python -m bench.crash_runs --engine sql --database sqlite mariadb
    python -m bench.crash_runs --url postgresql://host/empty    a database that may be filled

The turn remembers a fact, reads, and takes an action that a person approves. For every point of death:
the fact is written once, what was completed is not done again, every model call of the run saw the
same block (sha256), and a fact that was inserted while the process was dead is not in it. With DBOS the
turn is queued, and the other process is a worker that finds by itself that the first one is dead.
Ends with 1 where one of that is not so.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import func, select

from onfile.memory import Memory
from onfile.provider import StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.runs.assistant import Assistant
from onfile.runs.journal import RunHeld
from onfile.runs.runner import TurnResult, TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.runs.tools import action_tool, read_tool
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider
from onfile.stores.schema import agent_memory

NAMES = [
    "persist:user",
    "load:thread",
    "run:prompt-stages",
    "persist:run:start",
    "memory:digest",
    "llm:0",
    "persist:assistant:0",
    "persist:toolcall:c1",
    "tool:c1",
    "persist:toolexec:c1",
    "persist:toolcall:c2",
    "tool:c2",
    "persist:toolexec:c2",
    "llm:1",
    "persist:assistant:1",
    "persist:toolcall:c3",
    "approval:c3",
    "tool:c3",
    "persist:toolexec:c3",
    "llm:2",
    "persist:assistant:2",
    "persist:run:end",
]
STEPS: list[list[ToolCallPart] | str] = [
    [
        ToolCallPart("remember", {"key": "units", "fact": "kilometres"}, tool_call_id="c1"),
        ToolCallPart("weather", {"city": "Bonn"}, tool_call_id="c2"),
    ],
    [ToolCallPart("ship", {"order": "o1"}, tool_call_id="c3")],
    "Shipped.",
]
KILLED = 137
LOST_AFTER = 1.0
PROMISES = {
    "died": "died there",
    "finished": "finished by another",
    "sequence": "same checkpoints",
    "fact_once": "fact once",
    "not_repeated": "nothing repeated",
    "same_block": "same block",
    "not_inserted": "later fact not in it",
}


class Killing:
    """An engine whose runs die at one point."""

    def __init__(self, engine: SqlJournal, point: tuple[str, str] | None) -> None:
        self._engine, self._point = engine, point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def begin(self, run: Any, *, owner: str) -> Any:
        return KillingRun(await self._engine.begin(run, owner=owner), self._point)

    async def claim(self, run_id: str, **more: Any) -> Any:
        return KillingRun(await self._engine.claim(run_id, **more), self._point)


class KillingRun:
    """A journal that ends the process before, during or after one of its checkpoints."""

    def __init__(self, run: Any, point: tuple[str, str] | None) -> None:
        self._run, self._point = run, point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    async def step(self, name: str, fn: Callable[[], Awaitable[Any]], **more: Any) -> Any:
        async def work() -> Any:
            value = await fn()
            self._die("during", name)
            return value

        return await self._around(name, self._run.step(name, work, **more))

    async def tx(self, name: str, fn: Callable[[Any], Awaitable[Any]], **more: Any) -> Any:
        async def work(unit: Any) -> Any:
            value = await fn(unit)
            self._die("during", name)
            return value

        return await self._around(name, self._run.tx(name, work, **more))

    async def say(self, name: str, *more: Any) -> Any:
        if self._point == ("during", name):
            # Nothing of ours runs in between: it dies while the statement is on its way or under way.
            asyncio.get_running_loop().call_later(0.001, os._exit, KILLED)
            await self._run.say(name, *more)
            await asyncio.sleep(1)
        return await self._around(name, self._run.say(name, *more))

    async def wait(self, name: str) -> Any:
        return await self._around(name, self._run.wait(name))

    async def _around(self, name: str, work: Awaitable[Any]) -> Any:
        self._die("before", name)
        value = await work
        self._die("after", name)
        return value

    def _die(self, when: str, name: str) -> None:
        if self._point == (when, name):
            os._exit(KILLED)


def noted(effects: Path, what: str) -> None:
    """Note an effect outside of every transaction, as a real one would be."""
    with effects.open("a") as lines:
        lines.write(what + "\n")


def assistant(provider: SqlMemoryProvider, effects: Path) -> Assistant:
    """What the turns are made of; everything that happens is noted."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = info.model_request_parameters.instruction_parts or []
        block = next(part.content for part in parts if part.content.startswith("<memory>"))
        noted(effects, f"model {hashlib.sha256(block.encode()).hexdigest()}")
        step = STEPS[sum(isinstance(one, ModelResponse) for one in messages)]
        return ModelResponse(parts=[TextPart(step)] if isinstance(step, str) else list(step))

    @read_tool
    def weather(city: str) -> str:
        """Look up the weather."""
        noted(effects, "read")
        return f"rain in {city}"

    @action_tool
    def ship(order: str) -> str:
        """Ship an order."""
        noted(effects, "action")
        return f"shipped {order}"

    return Assistant(model=FunctionModel(answer), base_prompt="BASE", memory=Memory(provider), tools=[weather, ship])


def fact(actor: str, key: str, text: str) -> StoreMemory:
    """A fact to write at an actor's own scope."""
    ctx = ScopeContext(actor=Actor(id=actor))
    return StoreMemory(key=key, text=text, scope=f"actor:{actor}", origin=MemoryOrigin(author="agent"), ctx=ctx)


class Case:
    """One point of death, and the run that meets it."""

    def __init__(self, engine: str, url: str, folder: Path, point: tuple[str, str] | None) -> None:
        self.engine, self.url, self.point = engine, url, point
        # An actor of its own for each case, so that they share a database and not their facts.
        self.name = "-".join(point).replace(":", ".") if point else "undisturbed"
        self.effects = folder / f"{self.name}.effects"
        self.ctx = ScopeContext(actor=Actor(id=self.name), thread_id=f"thread-{self.name}")

    async def prepare(self) -> None:
        """Make the tables and one fact that is on file before the turn."""
        async with Opened(self) as (provider, journal, _):
            await provider.setup()
            await journal.setup()
            await provider.write(fact(self.name, "greeting", "they like it short"))

    async def start(self) -> None:
        """Run the turn until it dies."""
        async with Opened(self, self.point, owner="first") as opened:
            await self._carry(*opened[1:])

    async def insert(self) -> None:
        """Put a fact on file while nobody runs the turn, if the turn has resolved its digest."""
        async with Opened(self) as (provider, journal, _):
            if any(one.name == "memory:digest" for one in await journal.checkpoints(self.name)):
                await provider.write(fact(self.name, "inserted", "while the process was dead"))

    async def finish(self) -> None:
        """Finish the turn in another process."""
        async with Opened(self, owner="second") as opened:
            await self._carry(*opened[1:])

    async def _carry(self, journal: SqlJournal, runner: TurnRunner) -> None:
        if self.engine == "dbos":
            await self._by_dbos(journal, runner)
        elif await journal.get(self.name) is None:
            await runner.start("Please ship o1.", ctx=self.ctx, run_id=self.name)
        result = await self._resumed(runner)
        if result.status == "waiting":
            await runner.decide(self.name, "c3", approved=True)
            result = await self._resumed(runner)
        if result.status != "done" or result.text != "Shipped.":
            print(f"{self.name}: the turn is {result.status}", file=sys.stderr)
            os._exit(1)
        if self.engine == "dbos":
            os._exit(0)  # closing DBOS takes its time, and there is nothing left to do

    async def _resumed(self, runner: TurnRunner) -> TurnResult:
        """Resume the turn once its owner is lost: the one who was killed had been seen a moment before."""
        while True:
            try:
                return await runner.resume(self.name)
            except RunHeld:
                await asyncio.sleep(0.1)

    async def _by_dbos(self, journal: SqlJournal, runner: TurnRunner) -> None:
        from onfile.runs.workers import DbosWorkers, WorkersConfig

        config = WorkersConfig(
            system_database_url=system_url(self.url),
            executor_id=f"{self.name}-{runner.owner}",
            poll_seconds=0.05,
            sweep_seconds=0.1,
        )
        workers = DbosWorkers(runner, config)
        await workers.launch()
        if await journal.get(self.name) is None:
            await workers.start("Please ship o1.", ctx=self.ctx, run_id=self.name)
        deadline = time.monotonic() + 60
        while (run := await journal.get(self.name)) is not None and run.status != "done":
            if run.status == "waiting":
                await workers.decide(self.name, "c3", approved=True)
            if run.status == "failed" or time.monotonic() > deadline:
                return
            await asyncio.sleep(0.05)

    async def verdict(self) -> dict[str, Any]:
        """Tell what is true of the finished turn."""
        async with Opened(self) as (provider, journal, _):
            checkpoints = {one.name: one.value for one in await journal.checkpoints(self.name)}
            async with provider.engine.connect() as conn:
                counted = select(func.count()).where(
                    agent_memory.c.scope == f"actor:{self.name}", agent_memory.c.key == "units"
                )
                facts = (await conn.execute(counted)).scalar_one()
        lines = self.effects.read_text().splitlines()
        block = checkpoints["memory:digest"]["block"]
        sha = hashlib.sha256(block.encode()).hexdigest()
        when, name = self.point or ("", "")
        # The work of a step that died before it was recorded is done again; nothing else is.
        again = {"tool:c2": "read", "tool:c3": "action"}.get(name, name[:3]) if when == "during" else ""
        wanted = {"model": 3 + (again == "llm"), "read": 1 + (again == "read"), "action": 1 + (again == "action")}
        return {
            "point": self.name,
            "sequence": list(checkpoints) == NAMES,
            "fact_once": facts == 1 and checkpoints["tool:c1"]["recorded"] is True,
            "not_repeated": all(
                sum(line.startswith(what) for line in lines) == count for what, count in wanted.items()
            ),
            "same_block": {line.split()[1] for line in lines if line.startswith("model")} == {sha},
            "not_inserted": "while the process was dead" not in block,
            # Every case has an actor of its own, and their name is all in which the blocks may differ.
            "block": hashlib.sha256(block.replace(self.name, "ana").encode()).hexdigest(),
        }


class Opened:
    """A provider, a journal and a runner on one engine, closed in the end."""

    def __init__(self, case: Case, point: tuple[str, str] | None = None, *, owner: str = "bench") -> None:
        self._case, self._point, self._owner = case, point, owner

    async def __aenter__(self) -> tuple[SqlMemoryProvider, SqlJournal, TurnRunner]:
        self._provider = SqlMemoryProvider.from_url(self._case.url)
        journal = SqlJournal(self._provider.engine)
        runner = TurnRunner(
            assistant(self._provider, self._case.effects),
            Killing(journal, self._point),
            owner=self._owner,
            lost_after=LOST_AFTER,
        )
        return self._provider, journal, runner

    async def __aexit__(self, *_: object) -> None:
        await self._provider.aclose()


def in_a_process(work: Callable[[], Awaitable[Any]]) -> tuple[int, Any]:
    """Do the work in a process of its own; answer its exit code and what it answered."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = asyncio.run(work())  # pyright: ignore[reportArgumentType]  # every work is a coroutine function
            os.write(write, json.dumps(answer).encode())
            os._exit(0)
        except BaseException as error:  # noqa: BLE001  # the child must end here, whatever happened
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(told) if told else None


def load_once(engines: Sequence[str]) -> None:
    """Load what every process needs before there are processes: some three hundred are forked."""
    FunctionModel(lambda *_: ModelResponse(parts=[]))  # its first one reads a table of prices
    drivers = ["aiosqlite", "asyncpg", "asyncmy", *(["onfile.runs.workers"] if "dbos" in engines else [])]
    for driver in drivers:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(driver)


def died_and_finished(case: Case) -> dict[str, Any]:
    """Kill the turn at the case's point, finish it in another process and judge it in a third."""
    assert in_a_process(case.prepare)[0] == 0
    code, _ = in_a_process(case.start)
    died = code == (KILLED if case.point else 0)
    assert in_a_process(case.insert)[0] == 0
    finished = in_a_process(case.finish)[0] == 0
    code, verdict = in_a_process(case.verdict)
    return {"died": died, "finished": finished, **(verdict or {"point": case.name, "judged": False})}


def points() -> list[tuple[str, str] | None]:
    """Every point of death; a wait does no work that it could die during."""
    return [
        None,
        *(
            (when, name)
            for name in NAMES
            for when in ("before", "during", "after")
            if name != "approval:c3" or when != "during"
        ),
    ]


def system_url(url: str) -> str:
    """Where DBOS keeps its tables: in the same PostgreSQL database, or in a SQLite file beside."""
    from sqlalchemy import make_url

    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return f"sqlite:///{parsed.database}.dbos"
    return parsed.set(drivername="postgresql").render_as_string(hide_password=False)


def matrix(engine: str, database: str, url: str, folder: Path, only: Sequence[str] | None) -> dict[str, Any]:
    """Kill a turn at every point on one engine and database; a line for each as it is judged."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    cases = [Case(engine, url, folder, point) for point in points()]
    cases = [case for case in cases if not only or case.name in only]
    verdicts: list[dict[str, Any]] = []
    for place, case in enumerate(cases, 1):
        one = died_and_finished(case)
        one["ok"] = all(one.get(promise) for promise in PROMISES)
        verdicts.append(one)
        mark = "ok " if one["ok"] else "BAD"
        print(f"[{engine} {database} {place}/{len(cases)}] {mark} {case.name}", "" if one["ok"] else one, flush=True)
    blocks = {one.get("block") for one in verdicts}
    row = {promise: sum(bool(one.get(promise)) for one in verdicts) for promise in PROMISES}
    good = sum(one["ok"] for one in verdicts)
    return {
        "engine": engine,
        "database": database,
        "points": len(cases),
        "good": good,
        "blocks": len(blocks),
        "held": good == len(cases) > 0 and len(blocks) == 1,
        **row,
        "verdicts": verdicts,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The matrices, one line each."""
    head = ["engine", "database", "points of death", *PROMISES.values(), "blocks"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        kept = [row["engine"], row["database"], row["points"], *(row[promise] for promise in PROMISES), row["blocks"]]
        lines.append([str(cell) for cell in kept])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Run the matrices, print a line per point and a table, and answer 1 where a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", nargs="+", choices=["sql", "dbos"], default=["sql", "dbos"])
    parser.add_argument("--database", nargs="+", default=["sqlite", "postgresql"], help="sqlite, postgresql, mariadb")
    parser.add_argument("--url", help="an empty database to use instead of those")
    parser.add_argument("--only", nargs="*", help="some points of death, such as during-tool.c1")
    parser.add_argument("--json", type=Path, help="where to keep the verdicts")
    options = parser.parse_args()
    load_once(options.engine)
    rows: list[dict[str, Any]] = []
    with contextlib.ExitStack() as open_:
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory()))
        fresh = (lambda _: options.url) if options.url else None
        for engine in options.engine:
            for database in ["given"] if options.url else options.database:
                if engine == "dbos" and database not in ("given", "postgresql"):
                    continue  # several processes share runs through DBOS on PostgreSQL only
                if fresh is None:
                    from bench.databases import Databases

                    fresh = open_.enter_context(Databases()).fresh
                rows.append(matrix(engine, database, fresh(database), folder, options.only))
    print(table(rows))
    for row in rows:
        print(f"{row['good']} of {row['points']} points of death, {row['blocks']} block in all of them")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0 if rows and all(row["held"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
