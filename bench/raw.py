"""The limit: the same question put to the database alone, through the same engine's driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import text

from onfile.recall.tokens import tokenise

LIMIT = 20
Call = Callable[[str], Awaitable[None]]


class RawSqlite:
    """FTS5 with the scope as an indexed token; vectors read and compared with numpy; a postings table."""

    def __init__(self, engine: Any, scope: str, made: Any) -> None:
        self._engine, self._scope, self._made = engine, scope, made

    async def prepare(self) -> bool:
        """Index the scope's rows, and those of all others, both ways."""
        async with self._engine.begin() as conn:
            await conn.execute(text("CREATE VIRTUAL TABLE fts USING fts5(scope, body, id UNINDEXED)"))
            rows = (await conn.execute(text("SELECT scope, key, text, id FROM agent_memory"))).all()
            await conn.execute(
                text("INSERT INTO fts (scope, body, id) VALUES (:s, :b, :i)"),
                [{"s": _token(s), "b": " ".join(tokenise(f"{k} {t}")), "i": i} for s, k, t, i in rows],
            )
            await conn.execute(
                text("CREATE TABLE term (scope, term, id, tf, PRIMARY KEY (scope, term, id)) WITHOUT ROWID")
            )
            for s, k, t, i in rows:
                if s != self._scope:
                    continue
                counts: dict[str, int] = {}
                for term in tokenise(f"{k} {t}"):
                    counts[term] = counts.get(term, 0) + 1
                await conn.execute(
                    text("INSERT INTO term VALUES (:s, :t, :i, :n)"),
                    [{"s": s, "t": term, "i": i, "n": n} for term, n in counts.items()],
                )
        return True

    def calls(self) -> dict[str, Call]:
        """What is timed."""
        return {"FTS5 words": self._words, "postings table": self._postings, "FTS5 words and numpy": self._both}

    async def _words(self, question: str) -> None:
        async with self._engine.connect() as conn:
            await self._match(conn, question)

    async def _match(self, conn: Any, question: str) -> None:
        driver = (await conn.get_raw_connection()).driver_connection
        words = " OR ".join(f'"{term}"' for term in tokenise(question))
        await driver.execute_fetchall(
            "SELECT m.* FROM fts JOIN agent_memory m ON m.id = fts.id"
            " WHERE fts MATCH ? ORDER BY bm25(fts, 0, 1) LIMIT ?",
            (f"scope:{_token(self._scope)} AND body:({words})", LIMIT),
        )

    async def _postings(self, question: str) -> None:
        terms = tokenise(question)
        holes = ",".join("?" * len(terms))
        async with self._engine.connect() as conn:
            driver = (await conn.get_raw_connection()).driver_connection
            await driver.execute_fetchall(
                "WITH hits AS (SELECT term, id, tf FROM term WHERE scope = ? AND term IN (" + holes + ")),"
                " df AS (SELECT term, count(*) n FROM hits GROUP BY term)"
                " SELECT m.*, s.score FROM (SELECT id, sum(tf * 2.2 / (tf + 1.2) / df.n) score FROM hits"
                " JOIN df USING (term) GROUP BY id ORDER BY score DESC LIMIT ?) s JOIN agent_memory m ON m.id = s.id",
                (self._scope, *terms, LIMIT),
            )

    async def _both(self, question: str) -> None:
        async with self._engine.connect() as conn:
            await self._match(conn, question)
            driver = (await conn.get_raw_connection()).driver_connection
            rows = await driver.execute_fetchall(
                "SELECT v.memory_id, v.vector FROM agent_memory m JOIN agent_memory_vector v ON v.memory_id = m.id"
                " WHERE m.scope = ?",
                (self._scope,),
            )
            matrix = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f2").astype("f4").reshape(len(rows), -1)
            np.argsort(-np.einsum("ij,j->i", matrix, self._made.of(question)))[:LIMIT]


class RawPostgres:
    """tsvector with a GIN over scope and words; pgvector's exact search behind a materialised scope."""

    def __init__(self, engine: Any, scope: str, made: Any) -> None:
        self._engine, self._scope, self._made = engine, scope, made

    async def prepare(self) -> bool:
        """Index all rows; False where the server lacks the extensions."""
        try:
            async with self._engine.begin() as conn:
                await conn.execute(text("CREATE EXTENSION IF NOT EXISTS btree_gin"))
                await conn.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        except Exception as error:  # noqa: BLE001  # a server without them is measured without the limit
            print(f"left out: raw SQL on PostgreSQL ({type(error).__name__})")
            return False
        async with self._engine.begin() as conn:
            await conn.execute(
                text("CREATE TABLE words AS SELECT id, scope, to_tsvector('simple', text) AS w FROM agent_memory")
            )
            await conn.execute(text("CREATE INDEX ON words USING gin (scope, w)"))
            await conn.execute(
                text(f"CREATE TABLE near (id varchar PRIMARY KEY, scope varchar, v halfvec({self._made.dimensions}))")
            )
            rows = (
                await conn.execute(
                    text(
                        "SELECT m.id, m.scope, m.text FROM agent_memory m"
                        " JOIN agent_memory_halfvec v ON v.memory_id = m.id ORDER BY m.scope"
                    )
                )
            ).all()
            await conn.execute(
                text("INSERT INTO near VALUES (:i, :s, CAST(:v AS halfvec))"),
                [{"i": i, "s": s, "v": _spelled(self._made.of(t))} for i, s, t in rows],
            )
            await conn.execute(text("CREATE INDEX ON near (scope)"))
        async with self._engine.connect() as conn:
            await (await conn.execution_options(isolation_level="AUTOCOMMIT")).execute(text("VACUUM ANALYZE"))
        return True

    def calls(self) -> dict[str, Call]:
        """What is timed."""
        return {"tsvector words": self._words, "pgvector exact": self._vectors, "tsvector and pgvector": self._both}

    async def _words(self, question: str) -> None:
        async with self._engine.connect() as conn:
            await self._match(conn, question)

    async def _vectors(self, question: str) -> None:
        async with self._engine.connect() as conn:
            await self._near(conn, question)

    async def _both(self, question: str) -> None:
        async with self._engine.connect() as conn:
            await self._match(conn, question)
            await self._near(conn, question)

    async def _match(self, conn: Any, question: str) -> None:
        driver = (await conn.get_raw_connection()).driver_connection
        await driver.fetch(
            "SELECT m.* FROM (SELECT id, ts_rank_cd(w, q) r FROM words, to_tsquery('simple', $2) q"
            " WHERE scope = ANY($1) AND w @@ q ORDER BY r DESC LIMIT 20) h JOIN agent_memory m ON m.id = h.id",
            [self._scope],
            " | ".join(question.split()),
        )

    async def _near(self, conn: Any, question: str) -> None:
        driver = (await conn.get_raw_connection()).driver_connection
        await driver.fetch(
            "WITH c AS MATERIALIZED (SELECT id, v FROM near WHERE scope = ANY($1)), h AS ("
            "SELECT id FROM c ORDER BY v <=> CAST($2::text AS halfvec) LIMIT 20)"
            " SELECT m.* FROM h JOIN agent_memory m USING (id)",
            [self._scope],
            _spelled(self._made.of(question)),
        )


def _token(scope: str) -> str:
    return "s" + scope.encode().hex()


def _spelled(vector: Sequence[float]) -> str:
    return "[" + ",".join(f"{value:.5f}" for value in vector) + "]"
