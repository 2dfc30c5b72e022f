"""The door: what a turn is offered, by which settings, and what never leaves it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from datetime import UTC, datetime

import pytest

import onfile
from onfile import (
    Actor,
    ListMemories,
    Memory,
    MemoryDigest,
    MemoryOrigin,
    ScopeContext,
    ScopeError,
    SearchMemories,
    StoreMemory,
    WriteRefused,
    build_memory_block,
    dump_digest,
    load_digest,
    remember_tool,
)
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact
from tests.providers import Broken, Leaky, ListOnly, Searchable, Writable
from tests.turns import ANA, BOB, CALL, remember, standing

NO_SCOPES = [None, [], "actor:ana", [""], ["  "], [7], ["actor:ana", None]]


# Offering


async def test_an_offer_without_a_query_lists():
    provider = Searchable(fact())

    digest = await Memory(provider).offer(ANA)

    assert provider.asked == [ListMemories(scopes=("actor:ana", "tenant:acme", "global"), ctx=ANA)]
    assert [entry.text for entry in digest.entries] == ["kilometres"]
    assert not digest.recalled


@pytest.mark.parametrize("blank", ["", "  ", "\n\t\u3000"])
async def test_a_blank_query_lists(blank: str):
    provider = Searchable()

    assert not (await Memory(provider).offer(ANA, query=blank)).recalled
    assert isinstance(provider.asked[0], ListMemories)


async def test_a_turn_without_text_of_the_users_lists():
    digest = await Memory(InMemoryMemoryProvider(recall=True)).offer(ANA, query=None)

    assert not digest.recalled


async def test_a_query_is_searched_trimmed_and_with_the_ceiling_as_its_limit():
    provider = Searchable()

    await Memory(provider, max_memories=7).offer(ANA, query="  how do we label a pallet?\n")

    assert provider.asked == [
        SearchMemories(
            scopes=("actor:ana", "tenant:acme", "global"), query="how do we label a pallet?", limit=7, ctx=ANA
        )
    ]


async def test_a_provider_that_cannot_search_is_listed_whatever_the_query():
    provider = ListOnly(fact())

    digest = await Memory(provider).offer(ANA, query="units?")

    assert isinstance(provider.asked[0], ListMemories)
    assert (len(digest.entries), digest.recalled) == (1, False)


@pytest.mark.parametrize("found", [[], [fact()]], ids=["nothing found", "one found"])
async def test_recalled_is_true_whenever_search_was_asked(found):
    digest = await Memory(Searchable(found=found)).offer(ANA, query="units?")

    assert digest.recalled
    assert len(digest.entries) == len(found)


async def test_a_recalled_block_says_that_it_is_a_selection_and_a_whole_one_does_not():
    memory = Memory(Searchable(fact(), found=[fact()]))

    assert "selection" in memory.block(await memory.offer(ANA, query="units?"))
    assert "selection" not in memory.block(await memory.offer(ANA))


async def test_a_block_with_keys_left_out_says_that_it_is_a_selection():
    memory = Memory(ListOnly(fact("a"), fact("b")), max_memories=1)

    assert "selection" in (await memory.offer(ANA)).block


async def test_under_a_ceiling_of_nothing_everything_is_listed_and_counts_as_omitted():
    provider = Searchable(fact("a"), fact("b", pinned=True), found=[fact()])

    digest = await Memory(provider, max_memories=0).offer(ANA, query="units?")

    assert isinstance(provider.asked[0], ListMemories)
    assert (digest.entries, digest.omitted, digest.pinned_omitted, digest.recalled, digest.block) == (
        (),
        2,
        1,
        False,
        "",
    )


async def test_without_a_ceiling_the_limit_is_none_and_everything_is_shown():
    found = [fact(f"key {number}") for number in range(30)]
    provider = Searchable(found=found)

    digest = await Memory(provider, max_memories=None).offer(ANA, query="units?")

    assert provider.asked[0].limit is None
    assert (len(digest.entries), digest.omitted) == (30, 0)


async def test_a_search_fills_up_by_relevance_and_renders_by_scope_and_key():
    found = [fact("z", scope="global"), fact("m"), fact("a")]

    digest = await Memory(Searchable(found=found), max_memories=2).offer(ANA, query="z?")

    assert [entry.key for entry in digest.entries] == ["m", "z"]
    assert digest.omitted == 1


async def test_what_a_leaky_provider_returns_from_elsewhere_is_dropped():
    memory = Memory(
        Leaky(fact(), fact("salary", "9000", scope="actor:bob"), fact(scope="tenant:acme-corp"), fact(scope=""))
    )

    digest = await memory.offer(ANA)

    assert [entry.text for entry in digest.entries] == ["kilometres"]
    assert digest.entries[0].overrides == ()
    assert await standing(memory) == [("actor:ana", "units", "kilometres")]
    assert (await memory.forget((await memory.read_back(BOB))[0].id, ANA)).status == "not_found"


async def test_the_digest_keeps_the_block_as_it_was_rendered():
    digest = await Memory(Writable(fact())).offer(ANA)

    assert digest.block == build_memory_block(entries=digest.entries, writable=True, partial=False)


async def test_a_block_is_read_from_the_digest_and_never_rendered_anew():
    memory = Memory(ListOnly(fact()))
    kept = load_digest(dump_digest(dataclasses.replace(await memory.offer(ANA), block="<memory>older words</memory>")))

    assert memory.block(kept) == "<memory>older words</memory>"


async def test_two_turns_with_nothing_changed_give_the_same_bytes():
    memory = Memory(
        InMemoryMemoryProvider(records=[fact(f"key {n}", scope=s) for n in range(5) for s in ("global", "actor:ana")])
    )

    assert (await memory.offer(ANA, run_id="r1")).block == (await memory.offer(ANA, run_id="r2")).block


async def test_scopes_come_from_the_hosts_resolver_which_may_be_async():
    async def resolver(ctx: ScopeContext) -> list[str]:
        return ["depot:north", f"actor:{ctx.actor.id}"]

    digest = await Memory(
        ListOnly(fact(text="mine"), fact(text="the depot's", scope="depot:north")), scopes=resolver
    ).offer(ANA)

    assert digest.scopes == ("depot:north", "actor:ana")
    assert digest.entries[0].text == "the depot's"


@pytest.mark.parametrize("answer", NO_SCOPES, ids=repr)
async def test_without_a_scope_every_act_is_an_error_before_the_provider_is_asked(answer):
    provider = InMemoryMemoryProvider()
    provider.list = provider.write = provider.forget = provider.pin = Broken(AssertionError("asked")).asked
    memory = Memory(provider, scopes=lambda _: answer)

    for act in (
        memory.offer(ANA, query="units?"),
        memory.read_back(ANA),
        memory.forget("id", ANA),
        memory.publish(scope="actor:ana", key="units", text="km", ctx=ANA),
        memory.pin("id", pinned=True, ctx=ANA),
    ):
        with pytest.raises(ScopeError):
            await act


@pytest.mark.parametrize("actor", [Actor(id=""), Actor(id="ana", tenant_ref="")], ids=repr)
async def test_nobody_may_do_nothing_even_where_the_resolver_knows_a_scope(actor: Actor):
    memory = Memory(Broken(AssertionError("asked")), scopes=lambda _: ["actor:", "global"])
    ctx = ScopeContext(actor=actor)

    for act in (
        memory.offer(ctx),
        memory.read_back(ctx),
        memory.forget("id", ctx),
        memory.publish(scope="global", key="units", text="km", ctx=ctx, elevated=True),
    ):
        with pytest.raises(ScopeError):
            await act


async def test_nobody_remembers_nothing():
    provider = Writable()

    with pytest.raises(ScopeError):
        await Memory(provider).remember(
            CALL, digest=MemoryDigest(scopes=("actor:",)), ctx=ScopeContext(actor=Actor(id=""))
        )
    assert provider.asked == []


async def test_calls_at_once_do_not_mix_their_actors():
    class Slow(ListOnly):
        async def list(self, request):
            await asyncio.sleep(0)
            return await super().list(request)

    memory = Memory(Slow(*(fact(text=f"of {n}", scope=f"actor:{n}") for n in range(50))))

    digests = await asyncio.gather(*(memory.offer(ScopeContext(actor=Actor(id=str(n)))) for n in range(50)))

    assert [digest.entries[0].text for digest in digests] == [f"of {n}" for n in range(50)]


# What the model is offered


async def test_remember_is_offered_where_the_provider_can_write_and_the_run_has_the_actors_own_scope():
    memory = Memory(Writable(fact()))

    digest = await memory.offer(ANA)

    assert digest.writable
    assert memory.tools(digest) == (remember_tool(),)
    assert "`remember`" in digest.block


@pytest.mark.parametrize(
    ("provider", "ctx"),
    [
        (ListOnly(fact(scope="global")), ANA),
        (Writable(fact(scope="global")), dataclasses.replace(ANA, shared=True)),
    ],
    ids=["a read-only provider", "a shared thread"],
)
async def test_remember_is_not_offered_where_it_would_be_refused(provider, ctx: ScopeContext):
    memory = Memory(provider)

    digest = await memory.offer(ctx)

    assert not digest.writable
    assert memory.tools(digest) == ()
    assert "remember" not in digest.block
    assert digest.block


async def test_a_run_that_was_offered_the_tool_keeps_it_when_it_resumes_elsewhere():
    digest = load_digest(dump_digest(await Memory(Writable()).offer(ANA)))

    assert Memory(ListOnly()).tools(digest) == (remember_tool(),)


# The host's settings


@pytest.mark.parametrize("limits", [{"max_memories": -1}, {"max_fact_chars": 0}, {"max_key_chars": 0}], ids=repr)
def test_limits_under_which_nothing_works_are_an_error(limits):
    with pytest.raises(ValueError, match="max_"):
        Memory(ListOnly(), **limits)


def test_the_values_are_frozen_and_slotted():
    for name in onfile.__all__:
        value = getattr(onfile, name)
        if isinstance(value, type) and dataclasses.is_dataclass(value):
            assert value.__dataclass_params__.frozen, name
            assert "__slots__" in vars(value), name
            assert all(field.kw_only for field in dataclasses.fields(value)), name


def test_the_protocols_are_claims_by_method():
    assert isinstance(Writable(), onfile.WritableMemoryProvider)
    assert isinstance(Searchable(), onfile.SearchableMemoryProvider)
    assert isinstance(ListOnly(), onfile.MemoryProvider)
    assert not isinstance(ListOnly(), onfile.WritableMemoryProvider | onfile.SearchableMemoryProvider)


# Nothing leaks


def test_a_refused_write_tells_its_words_to_the_caller_and_not_to_a_traceback():
    refusal = WriteRefused("a person stated zanzibar at actor:ana")

    assert refusal.reason == "a person stated zanzibar at actor:ana"
    assert "zanzibar" not in f"{refusal} {refusal!r}"


@pytest.mark.parametrize("recall", [False, True])
async def test_a_planted_secret_is_in_no_log_record_with_every_logger_at_debug(recall: bool, caplog):
    caplog.set_level(logging.DEBUG)
    for name in logging.root.manager.loggerDict:
        caplog.set_level(logging.DEBUG, logger=name)
    asyncio.get_running_loop().set_debug(True)
    secret = "zanzibar4711"
    ctx = ScopeContext(actor=Actor(id=secret, tenant_ref=secret), thread_id=secret)

    def observer(happened: object) -> None:
        raise RuntimeError(secret)

    memory = Memory(InMemoryMemoryProvider(recall=recall), on_event=observer)
    digest = await memory.offer(ctx, query=secret)
    kept = await memory.remember({"key": secret, "fact": secret}, digest=digest, ctx=ctx, run_id="r", tool_call_id="c")
    await memory.remember({"key": secret, "fact": "x" * 300 + secret}, digest=digest, ctx=ctx)
    await memory.remember({secret: secret}, digest=digest, ctx=ctx)
    await memory.publish(scope=f"tenant:{secret}", key=secret, text=secret, ctx=ctx)
    await memory.publish(scope=f"tenant:{secret}", key=secret, text=secret, ctx=ctx, elevated=True)
    await memory.pin(kept.record.id, pinned=True, ctx=ctx)
    await memory.offer(ctx, query=secret)
    await memory.forget(kept.record.id, ctx)

    assert any(record.name == "onfile" for record in caplog.records)
    assert not [record for record in caplog.records if secret in f"{record.getMessage()} {vars(record)}"]


async def test_no_clock_is_read_by_the_door():
    # A write's time comes from the store's clock alone.
    then = datetime(1999, 12, 31, tzinfo=UTC)
    memory = Memory(InMemoryMemoryProvider(clock=lambda: then))

    assert (await remember(memory)).record.updated_at == then


def test_store_requests_carry_a_report_that_a_foreign_provider_may_ignore():
    assert StoreMemory(key="a", text="b", scope="c", origin=MemoryOrigin(author="agent"), ctx=ANA).report is None


# Being built


@pytest.mark.parametrize(
    ("provider", "wanted"),
    [
        (None, "NoneType has no method list and no method forget"),
        ("sqlite:///onfile.db", r"from_url\(url\); this str has no method list and"),
        (InMemoryMemoryProvider, "not the class InMemoryMemoryProvider itself"),
    ],
    ids=["nothing", "a URL", "a class"],
)
def test_what_is_no_provider_is_refused_where_a_memory_is_built(provider, wanted: str):
    with pytest.raises(TypeError, match=wanted):
        Memory(provider)


def test_scopes_in_the_place_of_their_resolver_are_refused_where_a_memory_is_built():
    with pytest.raises(TypeError, match=r"takes a callable .* not a list"):
        Memory(InMemoryMemoryProvider(), scopes=["actor:ana"])
