"""A store over one actor's facts, and facts over somebody's store."""

from __future__ import annotations

from typing import Any

import pytest

from .installed import needs

needs("langgraph")

from langgraph.store.memory import InMemoryStore

from onfile import Actor, Memory, ScopeContext, WriteRefused
from onfile.adapters.langgraph_store import LangGraphStoreProvider, ScopedStore, label
from onfile.blocking import Blocking
from onfile.testing import CLAUSES, InMemoryMemoryProvider, check
from tests.facts import fact

from .behaviour import ANA

CTX = ScopeContext(actor=ANA)
RECORDS = [
    fact("units", "kilometres"),
    fact("units", "miles", scope="tenant:acme", author="human"),
    fact("lunch", "tofu", scope="actor:bo"),
]


async def bound(provider: Any = None, ctx: ScopeContext = CTX) -> ScopedStore:
    memory = Memory(provider or InMemoryMemoryProvider(records=RECORDS))
    return ScopedStore(memory, digest=await memory.offer(ctx), ctx=ctx)


async def test_a_store_shows_the_actor_s_scopes_and_nobody_else_s():
    store = await bound()

    found = await store.asearch(())

    assert [(item.namespace, item.key, item.value["text"]) for item in found] == [
        (("actor=3Aana",), "units", "kilometres"),
        (("tenant=3Aacme",), "units", "miles"),
    ]
    assert await store.asearch((label("actor:bo"),)) == []
    assert await store.aget((label("actor:bo"),), "lunch") is None


async def test_a_fact_is_got_by_any_spelling_of_its_key():
    store = await bound(InMemoryMemoryProvider(records=[fact("Fiscal Year", "calendar")]))

    item = await store.aget((label("actor:ana"),), "fiscal-year")

    assert item and item.value["text"] == "calendar"


async def test_what_is_put_is_the_agent_s_note_at_the_actor_s_own_scope():
    provider = InMemoryMemoryProvider()
    store = await bound(provider)

    await store.aput((label("actor:ana"),), "carrier", {"text": "by rail"})

    item = await store.aget((label("actor:ana"),), "carrier")
    assert item and (item.value["text"], item.value["author"]) == ("by rail", "agent")


@pytest.mark.parametrize(
    ("scope", "value", "says"),
    [
        ("tenant:acme", {"text": "by rail"}, "own scope"),
        ("actor:bo", {"text": "by rail"}, "own scope"),
        ("actor:ana", {"text": "by rail", "pinned": True}, "one string"),
        ("actor:ana", {"text": 7}, "string"),
        ("actor:ana", None, "deletes nothing"),
    ],
)
async def test_what_may_not_be_put_is_refused_in_words(scope: str, value: Any, says: str):
    store = await bound()

    with pytest.raises(WriteRefused) as refused:
        await store.aput((label(scope),), "units", value)

    assert says in refused.value.reason


async def test_a_scope_that_no_label_may_hold_is_still_one_namespace():
    ctx = ScopeContext(actor=Actor(id="bob@example.com", tenant_ref="acme.io"))
    store = await bound(InMemoryMemoryProvider(), ctx)

    await store.aput((label("actor:bob@example.com"),), "units", {"text": "miles"})

    assert await store.alist_namespaces() == [(label("actor:bob@example.com"),)]


def test_two_scopes_are_never_one_label():
    scopes = ["a.b", "a=2Eb", "a%2Eb", "A.b", "a b", "a_b", "ann", "anna", "\ud800", "ä"]

    assert len({label(scope) for scope in scopes}) == len(scopes)
    assert not any("." in label(scope) for scope in scopes)


async def test_a_search_asks_the_provider_that_can_search():
    provider = InMemoryMemoryProvider(
        recall=True, records=[fact("lunch", "lentils", minutes=1), fact("pallet labels", "two")]
    )
    store = await bound(provider)

    found = await store.asearch((), query="how do we label a pallet?", limit=1)

    assert [item.key for item in found] == ["pallet labels"]


async def test_items_are_filtered_paged_and_listed_by_namespace():
    store = await bound()

    assert [item.key for item in await store.asearch((), filter={"author": "human"})] == ["units"]
    assert [item.value["text"] for item in await store.asearch((), limit=1, offset=1)] == ["miles"]
    assert await store.alist_namespaces(prefix=("tenant=3Aacme",)) == [("tenant=3Aacme",)]
    assert await store.alist_namespaces(prefix=("actor=3Abo",)) == []


def test_code_that_does_not_await_uses_the_blocking_door():
    with Blocking(Memory(InMemoryMemoryProvider(records=RECORDS))) as memory:
        store = ScopedStore(memory, digest=memory.offer(CTX), ctx=CTX)

        store.put((label("actor:ana"),), "carrier", {"text": "by rail"})

        assert [item.key for item in store.search((label("actor:ana"),))] == ["carrier", "units"]


async def test_an_awaited_store_says_so_where_nothing_is_awaited():
    store = await bound()

    with pytest.raises(TypeError, match="use aget"):
        store.search(())


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
async def test_a_provider_over_a_langgraph_store_keeps(clause: Any):
    result = await check(clause, lambda: LangGraphStoreProvider(InMemoryStore()))
    if result.status == "skipped":
        pytest.skip(result.reason)

    assert result.status == "passed", result.reason


async def test_a_store_that_matches_namespaces_by_their_beginning_brings_nobody_else_s_facts():
    # given a store that treats a namespace as text, as SQL stores with LIKE do
    class ByText(InMemoryStore):
        async def asearch(self, namespace_prefix: Any, /, **how: Any) -> Any:
            found = await super().asearch(namespace_prefix[:1], **how)
            return [item for item in found if ".".join(item.namespace).startswith(".".join(namespace_prefix))]

    provider = LangGraphStoreProvider(ByText())
    memory = Memory(provider)
    for name in ("ann", "anna"):
        ctx = ScopeContext(actor=Actor(id=name))
        await memory.publish(scope=f"actor:{name}", key="lunch", text=f"of {name}", ctx=ctx)

    # when one of two actors is asked for, whose names begin alike
    entries = await memory.read_back(ScopeContext(actor=Actor(id="ann")))

    # then only theirs are on file
    assert [entry.text for entry in entries] == ["of ann"]
