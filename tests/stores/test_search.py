"""`search` on real databases: never stale, never without a fact, never another model's vectors."""

from __future__ import annotations

import logging

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.provider import SearchMemories
from onfile.recall import CallableEmbedder
from onfile.stores import SqlMemoryProvider
from onfile.stores.embedding import EmbedderFailed
from tests.facts import NOON
from tests.stores.desk import Desk, context

TOPICS = ("tea drink sencha beverage", "van drive lorry car", "sea swim water beach")


def by_topic(texts):
    return [[0.1 + sum(word in text.lower() for word in topic.split()) for topic in TOPICS] for text in texts]


class Topics(CallableEmbedder):
    """Vectors of three topics; can be down, and counts its calls."""

    def __init__(self, model="topics"):
        super().__init__(self._embed, model=model, dimensions=3)
        self.down = False
        self.asked = []

    def _embed(self, texts):
        self.asked += texts
        if self.down:
            msg = "quoting the text: " + texts[0]
            raise ConnectionError(msg)
        return by_topic(texts)


@pytest.fixture
async def embedder():
    return Topics()


@pytest.fixture
async def topical(engine, embedder):
    desk = Desk(store=None)
    desk.store = SqlMemoryProvider(engine, embedder=embedder, clock=desk.clock)
    await desk.store.setup()
    yield desk
    await desk.store.aclose()


async def found(store, query, *, scopes=("actor:ana",), limit=1):
    asked = SearchMemories(scopes=scopes, query=query, limit=limit, ctx=context("ana"))
    return [record.key for record in await store.search(asked)]


async def vectors(store):
    """How many vectors there are, in the one table that this database keeps them in."""
    tables = ["agent_memory_vector"]
    if store.engine.dialect.name == "postgresql":
        tables.append("agent_memory_halfvec")
    async with store.engine.connect() as conn:
        counts = [sqlalchemy.text(f"SELECT count(*) FROM {name}") for name in tables]
        *others, count = [(await conn.execute(statement)).scalar_one() for statement in counts]
    assert not any(others)
    return count


async def test_words_find_a_fact_in_any_case_and_form(desk):
    await desk.write("office", "The desk is in Zürich.")
    await desk.write("units", "kilometres")

    assert await found(desk.store, "zu\u0308RICH?") == ["office"]


async def test_a_pasted_book_is_read_as_far_as_it_says_what_it_is_about(desk):
    await desk.write("office", "The desk is in Utrecht.")
    await desk.write("units", "kilometres")

    assert await found(desk.store, "Utrecht " + "lorem ipsum dolor " * 100_000) == ["office"]


async def test_what_another_process_writes_pins_and_forgets_is_in_the_next_search(shared_url):
    ours, theirs = create_async_engine(shared_url), create_async_engine(shared_url)
    try:
        here, there = Desk(SqlMemoryProvider(ours)), Desk(SqlMemoryProvider(theirs))
        await here.store.setup()
        kept = await here.write("tea", "likes sencha")
        assert await found(here.store, "sencha") == ["tea"]

        await there.write("tea", "likes rooibos")
        pallet = await there.write("pallet", "blue ones")
        assert await found(here.store, "rooibos") == ["tea"]
        assert await found(here.store, "blue pallet") == ["pallet"]

        await there.store.pin(id=pallet.id, pinned=True)
        assert await found(here.store, "rooibos") == ["tea", "pallet"]

        await there.forget(kept.id)
        assert await found(here.store, "rooibos", limit=5) == ["pallet"]
    finally:
        await ours.dispose()
        await theirs.dispose()


async def test_an_index_that_is_too_far_behind_is_built_anew(desk, engine, monkeypatch):
    monkeypatch.setattr("onfile.stores.derived.KEPT_CHANGES", 1)
    monkeypatch.setattr("onfile.stores.derived._PRUNED_EVERY", 1)
    other = SqlMemoryProvider(engine)
    await desk.write("first", "pallet")
    assert await found(other, "pallet") == ["first"]

    for n in range(5):
        await desk.write(f"k{n}", f"word{n}")

    assert await found(other, "word0") == ["k0"]
    assert await found(other, "word4") == ["k4"]


async def test_a_write_that_is_rolled_back_is_in_no_index(desk):
    await desk.write("tea", "likes sencha")
    await found(desk.store, "sencha")

    async def fail(transaction):
        inside = Desk(desk.store.within(transaction))
        await inside.write("van", "drives a lorry")
        assert await found(inside.store, "lorry") == ["van"]
        raise KeyError

    with pytest.raises(KeyError):
        await desk.store._database.transact(fail)

    assert await found(desk.store, "lorry", limit=5) == ["tea"]


async def test_vectors_find_what_shares_no_word_in_every_database(topical):
    for key, text in (("morning", "has sencha"), ("work", "uses a lorry"), ("sunday", "is at the beach")):
        await topical.write(key, text)

    assert await found(topical.store, "which beverage?") == ["morning"]
    assert await found(topical.store, "where to swim?") == ["sunday"]


async def test_a_vector_goes_with_its_text(topical):
    record = await topical.write("morning", "has sencha")
    assert await vectors(topical.store) == 1

    await topical.write("morning", "takes the van")
    assert await found(topical.store, "drive") == ["morning"]
    assert await vectors(topical.store) == 1

    await topical.forget(record.id)
    assert await vectors(topical.store) == 0


async def test_a_fact_is_kept_and_found_by_words_while_the_embedder_is_down(topical, embedder, caplog):
    await topical.write("morning", "has sencha")
    embedder.down = True

    with caplog.at_level(logging.WARNING):
        await topical.write("evening", "reads the newspaper")
        await topical.write("night", "listens to the radio")

    assert await found(topical.store, "newspaper") == ["evening"]
    [warning] = [one for one in caplog.records if one.name.startswith("onfile")]
    assert "newspaper" not in warning.getMessage()
    assert warning.exc_info is None


async def test_reindex_goes_on_where_it_stopped_and_embeds_only_what_has_no_vector(topical, embedder):
    embedder.down = True
    for n in range(70):
        await topical.write(f"k{n}", f"sencha {n}")
    embedder.down, embedder.asked = False, []

    steps = [step async for step in topical.store.reindex()]
    assert (steps[0].done, steps[0].total) == (0, 70)
    assert (steps[-1].done, steps[-1].total) == (70, 70)
    assert await vectors(topical.store) == 70

    assert [step.total async for step in topical.store.reindex()] == [0]
    assert len(embedder.asked) == 70


async def test_reindex_says_that_the_embedder_is_down(topical, embedder):
    embedder.down = True
    await topical.write("morning", "has sencha")

    with pytest.raises(EmbedderFailed, match="ConnectionError") as caught:
        [step async for step in topical.store.reindex()]

    assert "sencha" not in str(caught.value)


async def test_a_gap_that_a_search_meets_is_mended_in_the_background(topical, embedder):
    async def write(transaction):
        await Desk(topical.store.within(transaction)).write("morning", "has sencha")

    await topical.store._database.transact(write)
    assert await vectors(topical.store) == 0

    await found(topical.store, "anything")
    await topical.store._embedding._mending

    assert await vectors(topical.store) == 1
    assert await found(topical.store, "which beverage?") == ["morning"]


async def test_a_text_written_without_an_embedder_has_no_vector_of_the_old_one_and_gets_its_own_later(topical, engine):
    await topical.write("morning", "has sencha")
    await Desk(SqlMemoryProvider(engine)).write("morning", "takes the van")
    assert await vectors(topical.store) == 0

    await found(topical.store, "which car?")
    await topical.store._embedding._mending
    [key] = await topical.store.explain(scopes=["actor:ana"], query="which car?", limit=1)

    assert key.cosine == pytest.approx(1, abs=1e-2)


async def test_vectors_of_another_model_are_not_compared(topical, engine):
    await topical.write("morning", "has sencha")
    await topical.write("work", "uses a lorry")
    other = SqlMemoryProvider(engine, embedder=Topics("others"))

    explained = await other.explain(scopes=["actor:ana"], query="which beverage?")
    await other.aclose()

    assert [key.cosine for key in explained] == [None, None]


async def test_a_text_that_was_replaced_meanwhile_gets_no_vector_of_the_old_one(topical, embedder):
    record = await topical.write("morning", "has sencha")

    async def replace_first(texts):
        embedder._embed = by_topic
        await topical.write("morning", "takes the van")
        return by_topic(texts)

    slow = CallableEmbedder(replace_first, model="topics", dimensions=3)
    topical.store._embedding.embedder = slow
    await topical.store._embedding.keep(record)

    topical.store._embedding.embedder = embedder
    [step async for step in topical.store.reindex()]
    [key] = await topical.store.explain(scopes=["actor:ana"], query="drive")
    assert key.cosine > 0.9


async def test_an_explanation_tells_scores_ranks_and_what_is_left_out(topical):
    await topical.write("morning", "has sencha")
    await topical.write("work", "uses a lorry")

    first, second = await topical.store.explain(scopes=["actor:ana"], query="sencha", limit=1)

    assert (first.rank, first.chosen, first.records[0].key) == (1, True, "morning")
    assert first.lexical > 0
    assert first.cosine > second.cosine
    assert (second.rank, second.chosen) == (2, False)


async def test_an_expired_fact_is_not_found_and_takes_no_place(desk):
    old = await desk.write("old", "pallet one")
    await desk.write("new", "pallet two")
    assert set(await found(desk.store, "pallet", limit=2)) == {"old", "new"}

    await desk.store.expire(id=old.id, expires_at=NOON)

    assert await found(desk.store, "pallet", limit=1) == ["new"]
    explained = await desk.store.explain(scopes=["actor:ana"], query="pallet")
    assert [record.key for key in explained for record in key.records] == ["new"]


async def test_a_wider_fact_is_found_again_when_the_narrower_one_expires(desk):
    await desk.write("units", "miles", scope="global", author="human")
    own = await desk.write("units", "kilometres")
    await found(desk.store, "units", scopes=("actor:ana", "global"))

    await desk.store.expire(id=own.id, expires_at=NOON)

    asked = SearchMemories(scopes=("actor:ana", "global"), query="units", limit=5, ctx=context("ana"))
    assert [record.text for record in await desk.store.search(asked)] == ["miles"]


async def test_without_numpy_words_still_rank_and_one_line_says_what_is_missing(engine, monkeypatch, caplog):
    monkeypatch.setattr("onfile.stores.embedding._numpy", lambda: None)
    with caplog.at_level(logging.WARNING):
        desk = Desk(SqlMemoryProvider(engine, embedder=Topics()))
    await desk.store.setup()
    await desk.write("morning", "has sencha")
    await desk.write("work", "uses a lorry")

    assert await found(desk.store, "lorry") == ["work"]
    assert [one.getMessage() for one in caplog.records if "onfile[vectors]" in one.getMessage()]
