"""What `onfile db hnsw` costs in recall and saves in time, in one scope of very many facts on PostgreSQL.

python -m bench.hnsw                          60,000 facts of 100,000; random vectors, and vectors in clusters
python -m bench.hnsw --facts 200000 --others 0

Recall is the share of the exact answer's first twenty that the index's answer has as well: of the nearest
vectors alone (what pgvector itself answers), and of the keys that a whole search returns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from bench.latency import DIMENSIONS, LIMIT, Made, fill_rows, holding, postgres, timed
from bench.stand import CTX, RESULTS, machine, percentile
from onfile.provider import SearchMemories
from onfile.stores import SqlMemoryProvider, hnsw

SCOPE = "tenant:a"


class Spread(Made):
    """Made-up facts of which each has a vector of its own; in clusters as texts are, or with no structure at all."""

    def __init__(self, texts: int, clusters: int) -> None:
        super().__init__()
        chance = np.random.default_rng(11)
        vectors = chance.standard_normal((texts, DIMENSIONS)).astype(np.float32)
        if clusters:
            # As far apart as MiniLM's: a fact's own part is as long as what it shares with its topic.
            centres = chance.standard_normal((clusters, DIMENSIONS)).astype(np.float32)
            vectors += centres[chance.integers(clusters, size=texts)]
        self._noise = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def measure(url: str, kind: str, clusters: int, facts: int, others: int, questions: int) -> list[dict[str, Any]]:
    """Fill one database and ask it in every way."""
    made = Spread(2 * (facts + others), clusters)
    asked = made.questions(questions)
    provider = SqlMemoryProvider.from_url(url, made)
    rows: list[dict[str, Any]] = []
    try:
        await provider.setup()
        await fill_rows(provider, made, made.facts(SCOPE, facts), embed=True)
        if others:
            await fill_rows(provider, made, made.facts("tenant:b", others), embed=True)
        started = time.perf_counter()
        await provider.setup()
        print(f"{kind}: moved into pgvector's table in {time.perf_counter() - started:.0f} s", flush=True)
        async with provider.engine.connect() as conn:
            await (await conn.execution_options(isolation_level="AUTOCOMMIT")).execute(text("VACUUM ANALYZE"))
        exact = await nearest(provider, made, asked)
        wanted: dict[str, list[str]] = {}
        for name, vectors in (("in memory", 10**9), ("PostgreSQL, exact", 0), ("PostgreSQL, HNSW", 0)):
            more: dict[str, Any] = {}
            if name.endswith("HNSW"):
                started = time.perf_counter()
                await hnsw.build(provider.engine, tell=lambda *_: None)
                more["build_s"] = time.perf_counter() - started
                found = await nearest(provider, made, asked)
                more["recall_vectors"] = overlap(exact, found)
            one = holding(provider.engine, made, vectors)
            answers: dict[str, list[str]] = {}

            async def search(question: str, one: Any = one, answers: Any = answers) -> None:
                found = await one.search(SearchMemories(scopes=[SCOPE], query=question, limit=LIMIT, ctx=CTX))
                answers[question] = [record.id for record in found]

            started = time.perf_counter()
            await search(asked[0])
            first = (time.perf_counter() - started) * 1000
            spent = await timed(search, asked)
            wanted = wanted or answers
            row = {"vectors": kind, "way": name, "p50": statistics.median(spent), "p95": percentile(spent, 0.95)}
            rows.append(row | {"first_ms": first, "recall_answer": overlap(wanted, answers), **more})
            print(
                "   ".join(f"{k} {v:,.3f}" if isinstance(v, float) else f"{v}" for k, v in rows[-1].items()), flush=True
            )
    finally:
        await provider.aclose()
    return rows


async def nearest(provider: SqlMemoryProvider, made: Made, asked: list[str]) -> dict[str, list[str]]:
    """What pgvector alone calls the twenty nearest, through the index if there is one."""
    from onfile.stores import nearest as ranking

    found: dict[str, list[str]] = {}
    embedding = provider._embedding
    async with provider.engine.connect() as conn:
        by_index = await ranking._is_indexed(conn, embedding)
        for question in asked:
            named: dict[str, Any] = {"question": ranking.spelled(made.of(question).tolist()), "scope": SCOPE}
            named |= {"model": made.model, "dimensions": made.dimensions, "expired": [], "depth": LIMIT}
            if by_index:
                await conn.execute(ranking._SETTINGS, {"ef": str(ranking._INDEX_DEPTH)})
                result = await conn.execute(ranking._by_index(made.dimensions), named | {"depth": ranking._INDEX_DEPTH})
                best = sorted(result.all(), key=lambda row: -row[1])[:LIMIT]
                found[question] = [row[0] for row in best]
            else:
                result = await conn.execute(ranking._NEAREST, named | {"ids": []})
                found[question] = [row[1] for row in result.all() if row[0] == 1]
    return found


def overlap(wanted: dict[str, list[str]], found: dict[str, list[str]]) -> float:
    """The share of what is wanted that was found."""
    return statistics.mean(len({*wanted[q]} & {*found[q]}) / len(wanted[q]) for q in wanted)


async def main() -> None:
    """Measure and print; `--json` keeps the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=60_000)
    parser.add_argument("--others", type=int, default=40_000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--kinds", nargs="+", default=["clusters", "random"])
    parser.add_argument("--json", type=Path, default=RESULTS / "hnsw.json")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with postgres() as fresh:
        for kind, clusters in (("clusters", 500), ("random", 0)):
            if fresh is not None and kind in arguments.kinds:
                rows += await measure(fresh(), kind, clusters, arguments.facts, arguments.others, arguments.questions)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    kept = {"machine": machine(), "facts": arguments.facts, "others": arguments.others, "rows": rows}
    arguments.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {arguments.json}")


if __name__ == "__main__":
    asyncio.run(main())
