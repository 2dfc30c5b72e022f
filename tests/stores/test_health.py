"""The state of a database is told alike on every kind, and a vacuum loses nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from onfile.recall import CallableEmbedder
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.stores.health import health_of, vacuum
from tests.facts import fact


async def test_every_database_counts_code_points_and_exact_scopes_alike(desk, engine):
    kept = [
        fact("ключ" * 16, "é" * 240),
        fact("k" * 65, "x" * 241, scope="Actor:a"),
        fact(scope="tenant:a", pinned=True),
    ]
    await desk.store.restore([StoredMemory(record=one, created_at=one.updated_at) for one in kept])
    await vacuum(engine)

    now = datetime(2027, 1, 1, tzinfo=UTC)
    health = await health_of(engine, now=now, receipts_before=now, max_fact=240, max_key=64, max_memories=0)

    assert health.rows == {"actor": 1, "other": 1, "tenant": 1}
    assert (health.long_facts, health.long_keys, health.overpinned_scopes, health.without_vector) == (1, 1, 1, 3)
    assert await desk.store.count() == 3


async def test_a_fact_with_another_models_vector_lacks_one_of_the_model_that_is_asked_about(desk, engine):
    before, now = (
        CallableEmbedder(lambda texts: [[1.0, 0.0]] * len(texts), model=model, dimensions=2) for model in "ab"
    )
    store = SqlMemoryProvider(engine, before, clock=desk.clock)
    await desk.store.restore([StoredMemory(record=one, created_at=one.updated_at) for one in (fact("a"), fact("b"))])
    async for _ in store.reindex():
        pass
    asked = {"now": desk.now, "receipts_before": desk.now, "max_fact": 240, "max_key": 64, "max_memories": 20}

    lacking = [(await health_of(engine, embedder=embedder, **asked)).without_vector for embedder in (None, before, now)]

    assert lacking == [0, 0, 2]
    await store.aclose()
