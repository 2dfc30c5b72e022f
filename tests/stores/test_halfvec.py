"""Vectors in pgvector's table: the answers of vectors in memory, whatever is asked, and everything without it too."""

from __future__ import annotations

import logging
import random
from datetime import timedelta

import numpy
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.provider import SearchMemories
from onfile.recall import CallableEmbedder
from onfile.records import MemoryOrigin, MemoryRecord
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.stores.search import Search
from tests.facts import NOON
from tests.stores import servers
from tests.stores.conftest import empty_database
from tests.stores.desk import Desk, context

DIMENSIONS = 16
WORDS = [f"word{n}" for n in range(40)]
SCOPES = ("actor:ana", "depot:north", "tenant:acme")


def by_first_words(texts):
    """The same vector for the same first words, so that many facts tie; none for what is called dumb."""
    found = []
    for one in texts:
        chance = numpy.random.default_rng(sum(map(ord, " ".join(one.split()[-3:]))))
        found.append(chance.standard_normal(DIMENSIONS) * ("dumb" not in one))
    return found


def embedder(model="made-up", weight=None):
    made = CallableEmbedder(by_first_words, model=model, dimensions=DIMENSIONS)
    made.lexical_weight = 0.14 if weight is None else weight
    return made


@pytest.fixture(params=["asyncpg", "psycopg"])
async def url(request, tmp_path):
    return await empty_database(request.param, request, tmp_path)


@pytest.fixture
async def store(url):
    store = SqlMemoryProvider.from_url(url, embedder())
    await store.setup()
    yield store
    await store.aclose()


def all_by_sql(store, **named):
    """The same store's search with every vector in the database."""
    return Search(store._database, store._embedding, vectors_in_memory=0, **named)


def asked(query, *, scopes=SCOPES, limit=5):
    return SearchMemories(scopes=scopes, query=query, limit=limit, ctx=context("ana"))


def facts(chance, count):
    made = []
    for n in range(count):
        words = " ".join(chance.choices(WORDS, k=chance.randint(2, 6)))
        expires = NOON + timedelta(days=chance.choice([-1, 1])) if chance.random() < 0.2 else None
        record = MemoryRecord(
            id=f"mem_{chance.randrange(10**9)}_{n}",
            key=f"key {chance.randrange(count)}" if chance.random() < 0.3 else f"key {n}",
            text=("dumb " if chance.random() < 0.1 else "") + words,
            scope=chance.choice(SCOPES),
            origin=MemoryOrigin(author="human"),
            updated_at=NOON + timedelta(minutes=chance.randrange(3)),
            pinned=chance.random() < 0.05,
        )
        made.append(StoredMemory(record=record, created_at=NOON, expires_at=expires))
    return made


async def counts(engine):
    async with engine.connect() as conn:
        return [
            (await conn.execute(text(f"SELECT count(*) FROM agent_memory_{name}"))).scalar_one()
            for name in ("vector", "halfvec")
        ]


@pytest.mark.parametrize("weight", [0.14, 1.5])
async def test_postgresql_answers_what_memory_answers_whatever_is_asked(store, weight, monkeypatch):
    # So few that one question takes several rounds.
    monkeypatch.setattr("onfile.stores.nearest._FIRST_DEPTH", 3)
    monkeypatch.setattr("onfile.recall.ranking._FEW_ASKED", 2)
    monkeypatch.setattr("onfile.recall.cosines.MOST_ASKED", 7)
    store._embedding.embedder.lexical_weight = weight
    chance = random.Random(5)
    await store.restore(facts(chance, 400), on_conflict="skip")
    [step async for step in store.reindex()]
    in_memory, by_sql = store._search, all_by_sql(store)

    for n in range(40):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 5))) + ("" if n % 9 else " dumb nothing")
        scopes = chance.sample(SCOPES, k=chance.randint(1, 3))
        limit = chance.choice([0, 1, 3, 8, 20, 1_000, None])
        request = asked(query, scopes=scopes, limit=limit)
        expected = await in_memory.records(request, now=NOON)
        assert await by_sql.records(request, now=NOON) == expected

        close = {"scopes": scopes, "query": query, "limit": limit or 4, "others": 5, "now": NOON}
        for ours, theirs in zip(await in_memory.explain(**close), await by_sql.explain(**close), strict=True):
            assert ours.records == theirs.records
            assert (ours.rank, ours.chosen, ours.matched) == (theirs.rank, theirs.chosen, theirs.matched)
            assert theirs.score == pytest.approx(ours.score, abs=1e-4)
            assert (ours.cosine is None) == (theirs.cosine is None)
            assert theirs.cosine is None or theirs.cosine == pytest.approx(ours.cosine, abs=1e-6)
