"""Vectors that stay in PostgreSQL: the answers are those of vectors in memory, whatever is asked."""

from __future__ import annotations

import random
import zlib
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import numpy
import pytest
from sqlalchemy import text

from onfile.provider import SearchMemories
from onfile.recall import CallableEmbedder
from onfile.recall.tokens import tokenise
from onfile.recall.vectors import VectorMarks, VectorRows
from onfile.records import MemoryOrigin, MemoryRecord
from onfile.stores import SqlMemoryProvider, StoredMemory, hnsw, nearest
from onfile.stores.search import Search
from onfile.testing import CLAUSES, check
from tests.facts import NOON
from tests.stores.conftest import empty_database
from tests.stores.desk import Desk, context

DIMENSIONS = 16
WORDS = [f"word{n}" for n in range(40)]
SCOPES = ("actor:ana", "depot:north", "tenant:acme")


def by_last_words(texts):
    """The same vector for the same last words, so that many facts tie; none for what is called dumb."""
    found = []
    for one in texts:
        chance = numpy.random.default_rng(sum(map(ord, " ".join(one.split()[-3:]))))
        found.append(chance.standard_normal(DIMENSIONS) * ("dumb" not in one))
    return found


def by_words(texts):
    """Near where words are shared, as a model's vectors are."""
    return [
        sum(
            (numpy.random.default_rng(zlib.crc32(term.encode())).standard_normal(512) for term in tokenise(one)),
            start=numpy.full(512, 0.01),
        )
        for one in texts
    ]


@pytest.fixture(params=["asyncpg", "psycopg"])
async def url(request, tmp_path):
    return await empty_database(request.param, request, tmp_path)


@pytest.fixture
async def store(url):
    store = SqlMemoryProvider.from_url(
        url, CallableEmbedder(by_last_words, model="it's 100% made up", dimensions=DIMENSIONS)
    )
    await store.setup()
    yield store
    await store.aclose()


def holding(store, vectors):
    """The same store's search, with room in memory for so many facts' vectors."""
    return Search(store._database, store._embedding, vectors_in_memory=vectors)


def asked(query, *, scopes=SCOPES, limit=5):
    return SearchMemories(scopes=scopes, query=query, limit=limit, ctx=context("ana"))


def made_up(chance, count, scopes=SCOPES):
    facts = []
    for n in range(count):
        words = " ".join(chance.choices(WORDS, k=chance.randint(2, 6)))
        record = MemoryRecord(
            id=f"mem_{chance.randrange(10**9)}_{n}",
            key=f"key {chance.randrange(count)}" if chance.random() < 0.3 else f"key {n}",
            text=("dumb " if chance.random() < 0.1 else "") + words,
            scope=chance.choice(scopes),
            origin=MemoryOrigin(author="human"),
            updated_at=NOON + timedelta(minutes=chance.randrange(3)),
            pinned=chance.random() < 0.02,
        )
        expires = NOON + timedelta(days=chance.choice([-1, 1])) if chance.random() < 0.2 else None
        facts.append(StoredMemory(record=record, created_at=NOON, expires_at=expires))
    return facts


async def fill(store, facts):
    await store.restore(facts, on_conflict="skip")
    [step async for step in store.reindex()]


# How many of the nearest, of those with the best words, and at most by name: so few that a question takes rounds.
@pytest.mark.parametrize(("nearest", "likely", "by_name"), [(3, 2, 7), (30, 2, 2_000), (512, 256, 2_000)])
@pytest.mark.parametrize(("weight", "in_memory"), [(0.14, 0), (1.5, 150)])
async def test_the_answer_is_the_one_of_vectors_in_memory(
    store, weight, in_memory, nearest, likely, by_name, monkeypatch
):
    monkeypatch.setattr("onfile.stores.nearest._FIRST_DEPTH", nearest)
    monkeypatch.setattr("onfile.recall.ranking._FEW_ASKED", likely)
    monkeypatch.setattr("onfile.recall.cosines.MOST_ASKED", by_name)
    store._embedding.embedder.lexical_weight = weight
    chance = random.Random(f"{weight} {in_memory} {nearest}")
    await fill(store, made_up(chance, 400))
    expected, mixed = store._search, holding(store, in_memory)

    for n in range(20):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 5))) + ("" if n % 9 else " dumb nothing")
        scopes = chance.sample(SCOPES, k=chance.randint(1, 3))
        limit = chance.choice([0, 1, 3, 8, 20, 1_000, None])
        request = asked(query, scopes=scopes, limit=limit)
        assert await mixed.records(request, now=NOON) == await expected.records(request, now=NOON)

        explain = {"scopes": scopes, "query": query, "limit": limit or 4, "others": 5, "now": NOON}
        for ours, theirs in zip(await mixed.explain(**explain), await expected.explain(**explain), strict=True):
            assert (ours.records, ours.rank, ours.chosen, ours.matched) == (
                *(theirs.records, theirs.rank, theirs.chosen, theirs.matched),
            )
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)
            assert (ours.cosine is None) == (theirs.cosine is None)
            assert ours.cosine is None or ours.cosine == pytest.approx(theirs.cosine, abs=1e-6)


@pytest.mark.parametrize("clause", [one for one in CLAUSES if one.capability == "search"], ids=str)
async def test_with_every_vector_in_postgresql_the_contract_is_kept(clause, url):
    @asynccontextmanager
    async def opened():
        store = SqlMemoryProvider.from_url(url, CallableEmbedder(by_words, model="m", dimensions=512))
        store._search = holding(store, 0)
        await store.setup()
        try:
            yield store
        finally:
            await store.aclose()

    result = await check(clause, opened)

    assert result.status == "passed", result.reason


async def test_what_is_written_replaced_forgotten_and_expires_is_in_the_next_answer(store):
    desk = Desk(store)
    store._search = holding(store, 0)
    await fill(store, made_up(random.Random(1), 60, scopes=("actor:ana",)))

    kept = await desk.write("likes", "likes green sencha")
    assert (await store.search(asked("likes green sencha", limit=1)))[0].key == "likes"
    await desk.write("likes", "word1 word2 rooibos")
    [key] = await store.explain(scopes=["actor:ana"], query="word1 word2 rooibos", limit=1, others=0)
    assert (key.records[0].text, key.cosine) == ("word1 word2 rooibos", pytest.approx(1, abs=1e-3))
    await store.expire(id=kept.id, expires_at=NOON)
    assert all(key.records[0].id != kept.id for key in await store.explain(scopes=["actor:ana"], query="rooibos"))
    assert kept.id not in [record.id for record in await store.search(asked("rooibos", limit=None))]


async def test_a_scope_that_grows_too_large_lets_go_of_its_vectors(store):
    search = store._search = holding(store, 50)
    facts = made_up(random.Random(2), 160, scopes=("actor:ana",))
    await fill(store, facts[:40])
    await store.search(asked("word1"))
    assert isinstance(search._cache.get("actor:ana").vectors, VectorRows)

    await fill(store, facts[40:])
    await store.search(asked("word1"))
    await Desk(store).write("one more", "word3")
    answer = await store.search(asked("word1 word2"))

    assert isinstance(search._cache.get("actor:ana").vectors, VectorMarks)
    assert answer == await holding(store, 1_000).records(asked("word1 word2"), now=store._keeper.now())


async def test_a_gap_is_found_and_mended_with_vectors_elsewhere_too(store):
    store._search = holding(store, 0)
    await fill(store, made_up(random.Random(4), 30, scopes=("actor:ana",)))

    async def write(transaction):
        await Desk(store.within(transaction)).write("tea", "likes sencha")

    await store._database.transact(write)

    assert [record.key for record in await store.search(asked("sencha", limit=1))] == ["tea"]
    await store._embedding._mending
    [key] = await store.explain(scopes=["actor:ana"], query="likes sencha", limit=1, others=0)
    assert key.cosine is not None


async def plan(store, scope):
    """How PostgreSQL looks for what is nearest by the index."""
    statement = nearest._by_index(DIMENSIONS)
    explain = text(f"EXPLAIN {statement.text}").bindparams(*statement._bindparams.values())
    named = {"scope": scope, "model": store._embedding.model, "expired": [], "depth": 160}
    async with store.engine.connect() as conn:
        await conn.exec_driver_sql("ANALYZE agent_memory_halfvec")
        await conn.exec_driver_sql("SET LOCAL hnsw.iterative_scan = 'strict_order'")
        rows = await conn.execute(explain, named | {"question": nearest.spelled([1.0] * DIMENSIONS)})
        return "\n".join(rows.scalars())


async def test_an_hnsw_index_answers_nearly_the_same_and_is_let_go_again(store):
    chance = random.Random(6)
    facts = made_up(chance, 1_500, scopes=("tenant:acme",))
    await fill(store, [replace(one, expires_at=None) for one in facts])
    exact, approximate = holding(store, 0), holding(store, 0)
    told = []
    questions = [" ".join(chance.choices(WORDS, k=4)) for _ in range(15)]
    wanted = [await exact.records(asked(one, limit=20), now=NOON) for one in questions]

    [indexed] = await hnsw.build(store.engine, tell=lambda *step: told.append(step))
    found = [await approximate.records(asked(one, limit=20), now=NOON) for one in questions]

    assert (indexed.model, indexed.dimensions, indexed.refused) == ("it's 100% made up", DIMENSIONS, None)
    shared = [len({*map(repr, ours)} & {*map(repr, theirs)}) for ours, theirs in zip(found, wanted, strict=True)]
    assert sum(shared) > 0.9 * sum(map(len, wanted))
    assert approximate._cache.get("tenant:acme").vectors.sample is not None  # what only an answer by the index needs
    assert "hnsw" in await plan(store, "tenant:acme")
    assert [await approximate.records(asked(one, limit=None), now=NOON) for one in questions[:3]] == [
        await exact.records(asked(one, limit=None), now=NOON) for one in questions[:3]
    ]
    assert await hnsw.drop(store.engine) == 1
    assert [await approximate.records(asked(one, limit=20), now=NOON) for one in questions] == wanted


async def test_what_is_forgotten_leaves_also_the_vectors_that_an_approximate_answer_keeps_to_tell_how_they_spread(
    store,
):
    chance = random.Random(9)
    await fill(store, [replace(one, expires_at=None) for one in made_up(chance, 600, scopes=("tenant:acme",))])
    await hnsw.build(store.engine, tell=lambda *_: None)
    store._search = holding(store, 0)
    request = asked("word1 word2", scopes=["tenant:acme"], limit=20)
    best = (await store.search(request))[0]
    marks = store._search._cache.get("tenant:acme").vectors
    [vector] = by_last_words([f"{best.key}: {best.text}"])
    vector /= numpy.linalg.norm(vector)

    def sampled():
        return len(marks.sample), int((numpy.abs(marks.sample - vector).max(axis=1) < 1e-3).sum())

    before = sampled()
    await store.remove(id=best.id)
    await store.search(request)

    assert before[1] > 0
    assert sampled() == (before[0] - 1, before[1] - 1)


async def test_where_the_index_leaves_too_few_of_the_scope_every_vector_is_compared(store):
    chance = random.Random(7)
    await fill(store, made_up(chance, 1_000, scopes=("tenant:acme",)))
    await fill(
        store,
        [
            replace(one, record=replace(one.record, id=f"{one.record.id}x"))
            for one in made_up(chance, 12, scopes=("actor:ana",))
        ],
    )
    await hnsw.build(store.engine, tell=lambda *_: None)
    request = asked("word1 word2", scopes=["actor:ana"], limit=20)

    assert await holding(store, 0).records(request, now=NOON) == await holding(store, 99).records(request, now=NOON)


async def test_what_an_unfinished_index_left_behind_is_made_anew(store):
    await fill(store, made_up(random.Random(8), 30))
    await hnsw.build(store.engine, tell=lambda *_: None)
    async with store.engine.begin() as conn:
        await conn.exec_driver_sql(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid IN"
            " (SELECT oid FROM pg_class WHERE starts_with(relname::text, 'ix_agent_memory_halfvec_hnsw_'))"
        )

    [indexed] = await hnsw.build(store.engine, tell=lambda *_: None)

    assert indexed.refused is None
    async with store.engine.connect() as conn:
        valid = await conn.exec_driver_sql(
            "SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'agent_memory_halfvec'::regclass"
        )
        assert valid.scalar_one()
